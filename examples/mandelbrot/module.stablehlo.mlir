module @jit_escape attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<64xf32>, %arg1: tensor<48xf32>) -> (tensor<48x64xi32> {jax.result_info = "result"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<64xf32>) -> tensor<1x64xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [0] : (tensor<48xf32>) -> tensor<48x1xf32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<1x64xf32>) -> tensor<48x64xf32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<48x1xf32>) -> tensor<48x64xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<48x64xf32>
    %5 = stablehlo.convert %4 : (tensor<48x64xf32>) -> tensor<48x64xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %6:6 = stablehlo.while(%iterArg = %2, %iterArg_0 = %3, %iterArg_1 = %c, %iterArg_2 = %4, %iterArg_3 = %4, %iterArg_4 = %5) : tensor<48x64xf32>, tensor<48x64xf32>, tensor<i32>, tensor<48x64xf32>, tensor<48x64xf32>, tensor<48x64xi32>
    cond {
      %c_5 = stablehlo.constant dense<50> : tensor<i32>
      %7 = stablehlo.compare LT, %iterArg_1, %c_5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %8 = stablehlo.multiply %iterArg_2, %iterArg_2 : tensor<48x64xf32>
      %9 = stablehlo.multiply %iterArg_3, %iterArg_3 : tensor<48x64xf32>
      %10 = stablehlo.add %8, %9 : tensor<48x64xf32>
      %cst_6 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
      %11 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<48x64xf32>
      %12 = stablehlo.compare LE, %10, %11, FLOAT : (tensor<48x64xf32>, tensor<48x64xf32>) -> tensor<48x64xi1>
      %c_7 = stablehlo.constant dense<false> : tensor<i1>
      %13 = stablehlo.reduce(%12 init: %c_7) applies stablehlo.or across dimensions = [0, 1] : (tensor<48x64xi1>, tensor<i1>) -> tensor<i1>
      %c_8 = stablehlo.constant dense<false> : tensor<i1>
      %14 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i1>) -> tensor<i1>
      %15 = stablehlo.compare NE, %7, %14, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %16 = stablehlo.convert %15 : tensor<i1>
      %17 = stablehlo.and %16, %13 : tensor<i1>
      stablehlo.return %17 : tensor<i1>
    } do {
      %7 = stablehlo.multiply %iterArg_2, %iterArg_2 : tensor<48x64xf32>
      %8 = stablehlo.multiply %iterArg_3, %iterArg_3 : tensor<48x64xf32>
      %9 = stablehlo.add %7, %8 : tensor<48x64xf32>
      %cst_5 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
      %10 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<48x64xf32>
      %11 = stablehlo.compare LE, %9, %10, FLOAT : (tensor<48x64xf32>, tensor<48x64xf32>) -> tensor<48x64xi1>
      %12 = stablehlo.multiply %iterArg_2, %iterArg_2 : tensor<48x64xf32>
      %13 = stablehlo.multiply %iterArg_3, %iterArg_3 : tensor<48x64xf32>
      %14 = stablehlo.subtract %12, %13 : tensor<48x64xf32>
      %15 = stablehlo.add %14, %iterArg : tensor<48x64xf32>
      %16 = func.call @_where(%11, %15, %iterArg_2) : (tensor<48x64xi1>, tensor<48x64xf32>, tensor<48x64xf32>) -> tensor<48x64xf32>
      %cst_6 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %17 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<48x64xf32>
      %18 = stablehlo.multiply %17, %iterArg_2 : tensor<48x64xf32>
      %19 = stablehlo.multiply %18, %iterArg_3 : tensor<48x64xf32>
      %20 = stablehlo.add %19, %iterArg_0 : tensor<48x64xf32>
      %21 = func.call @_where(%11, %20, %iterArg_3) : (tensor<48x64xi1>, tensor<48x64xf32>, tensor<48x64xf32>) -> tensor<48x64xf32>
      %c_7 = stablehlo.constant dense<1> : tensor<i32>
      %22 = stablehlo.add %iterArg_1, %c_7 : tensor<i32>
      %23 = stablehlo.convert %11 : (tensor<48x64xi1>) -> tensor<48x64xi32>
      %24 = stablehlo.add %iterArg_4, %23 : tensor<48x64xi32>
      stablehlo.return %iterArg, %iterArg_0, %22, %16, %21, %24 : tensor<48x64xf32>, tensor<48x64xf32>, tensor<i32>, tensor<48x64xf32>, tensor<48x64xf32>, tensor<48x64xi32>
    }
    return %6#5 : tensor<48x64xi32>
  }
  func.func private @_where(%arg0: tensor<48x64xi1>, %arg1: tensor<48x64xf32>, %arg2: tensor<48x64xf32>) -> tensor<48x64xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<48x64xi1>, tensor<48x64xf32>
    return %0 : tensor<48x64xf32>
  }
}
