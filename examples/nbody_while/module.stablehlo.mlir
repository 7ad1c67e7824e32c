module @jit_simulate attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<16x3xf32>, %arg1: tensor<16x3xf32>, %arg2: tensor<16xf32>, %arg3: tensor<f32>) -> (tensor<16x3xf32> {jax.result_info = "result[0]"}, tensor<16x3xf32> {jax.result_info = "result[1]"}, tensor<f32> {jax.result_info = "result[2]"}, tensor<f32> {jax.result_info = "result[3]"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<16x3xf32>) -> tensor<1x16x3xf32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [0, 2] : (tensor<16x3xf32>) -> tensor<16x1x3xf32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2] : (tensor<1x16x3xf32>) -> tensor<16x16x3xf32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2] : (tensor<16x1x3xf32>) -> tensor<16x16x3xf32>
    %4 = stablehlo.subtract %2, %3 : tensor<16x16x3xf32>
    %5 = stablehlo.multiply %4, %4 : tensor<16x16x3xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.reduce(%5 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<16x16x3xf32>, tensor<f32>) -> tensor<16x16xf32>
    %cst_0 = stablehlo.constant dense<5.000000e-02> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %8 = stablehlo.add %6, %7 : tensor<16x16xf32>
    %9 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
    %cst_1 = stablehlo.constant dense<-1.500000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %11 = stablehlo.power %8, %10 : tensor<16x16xf32>
    %12 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<1x16xf32>) -> tensor<16x16xf32>
    %13 = stablehlo.multiply %12, %11 : tensor<16x16xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<16x16xf32>) -> tensor<16x16x1xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0, 1, 2] : (tensor<16x16x1xf32>) -> tensor<16x16x3xf32>
    %16 = stablehlo.multiply %4, %15 : tensor<16x16x3xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %17 = stablehlo.reduce(%16 init: %cst_2) applies stablehlo.add across dimensions = [1] : (tensor<16x16x3xf32>, tensor<f32>) -> tensor<16x3xf32>
    %cst_3 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %18:7 = stablehlo.while(%iterArg = %arg3, %iterArg_8 = %cst_3, %iterArg_9 = %arg2, %iterArg_10 = %cst_4, %iterArg_11 = %arg0, %iterArg_12 = %arg1, %iterArg_13 = %17) : tensor<f32>, tensor<f32>, tensor<16xf32>, tensor<f32>, tensor<16x3xf32>, tensor<16x3xf32>, tensor<16x3xf32>
    cond {
      %24 = stablehlo.compare LT, %iterArg_10, %iterArg, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %24 : tensor<i1>
    } do {
      %cst_14 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
      %24 = stablehlo.multiply %cst_14, %iterArg_8 : tensor<f32>
      %25 = stablehlo.broadcast_in_dim %24, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
      %26 = stablehlo.multiply %25, %iterArg_13 : tensor<16x3xf32>
      %27 = stablehlo.add %iterArg_12, %26 : tensor<16x3xf32>
      %28 = stablehlo.broadcast_in_dim %iterArg_8, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
      %29 = stablehlo.multiply %28, %27 : tensor<16x3xf32>
      %30 = stablehlo.add %iterArg_11, %29 : tensor<16x3xf32>
      %31 = stablehlo.broadcast_in_dim %30, dims = [1, 2] : (tensor<16x3xf32>) -> tensor<1x16x3xf32>
      %32 = stablehlo.broadcast_in_dim %30, dims = [0, 2] : (tensor<16x3xf32>) -> tensor<16x1x3xf32>
      %33 = stablehlo.broadcast_in_dim %31, dims = [0, 1, 2] : (tensor<1x16x3xf32>) -> tensor<16x16x3xf32>
      %34 = stablehlo.broadcast_in_dim %32, dims = [0, 1, 2] : (tensor<16x1x3xf32>) -> tensor<16x16x3xf32>
      %35 = stablehlo.subtract %33, %34 : tensor<16x16x3xf32>
      %36 = stablehlo.multiply %35, %35 : tensor<16x16x3xf32>
      %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %37 = stablehlo.reduce(%36 init: %cst_15) applies stablehlo.add across dimensions = [2] : (tensor<16x16x3xf32>, tensor<f32>) -> tensor<16x16xf32>
      %cst_16 = stablehlo.constant dense<5.000000e-02> : tensor<f32>
      %38 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
      %39 = stablehlo.add %37, %38 : tensor<16x16xf32>
      %40 = stablehlo.broadcast_in_dim %iterArg_9, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
      %cst_17 = stablehlo.constant dense<-1.500000e+00> : tensor<f32>
      %41 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
      %42 = stablehlo.power %39, %41 : tensor<16x16xf32>
      %43 = stablehlo.broadcast_in_dim %40, dims = [0, 1] : (tensor<1x16xf32>) -> tensor<16x16xf32>
      %44 = stablehlo.multiply %43, %42 : tensor<16x16xf32>
      %45 = stablehlo.broadcast_in_dim %44, dims = [0, 1] : (tensor<16x16xf32>) -> tensor<16x16x1xf32>
      %46 = stablehlo.broadcast_in_dim %45, dims = [0, 1, 2] : (tensor<16x16x1xf32>) -> tensor<16x16x3xf32>
      %47 = stablehlo.multiply %35, %46 : tensor<16x16x3xf32>
      %cst_18 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %48 = stablehlo.reduce(%47 init: %cst_18) applies stablehlo.add across dimensions = [1] : (tensor<16x16x3xf32>, tensor<f32>) -> tensor<16x3xf32>
      %49 = stablehlo.add %iterArg_10, %iterArg_8 : tensor<f32>
      %cst_19 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
      %50 = stablehlo.multiply %cst_19, %iterArg_8 : tensor<f32>
      %51 = stablehlo.broadcast_in_dim %50, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
      %52 = stablehlo.multiply %51, %48 : tensor<16x3xf32>
      %53 = stablehlo.add %27, %52 : tensor<16x3xf32>
      stablehlo.return %iterArg, %iterArg_8, %iterArg_9, %49, %30, %53, %48 : tensor<f32>, tensor<f32>, tensor<16xf32>, tensor<f32>, tensor<16x3xf32>, tensor<16x3xf32>, tensor<16x3xf32>
    }
    %19 = stablehlo.multiply %18#5, %18#5 : tensor<16x3xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %20 = stablehlo.reduce(%19 init: %cst_5) applies stablehlo.add across dimensions = [1] : (tensor<16x3xf32>, tensor<f32>) -> tensor<16xf32>
    %21 = stablehlo.multiply %arg2, %20 : tensor<16xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %22 = stablehlo.reduce(%21 init: %cst_6) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %cst_7 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %23 = stablehlo.multiply %cst_7, %22 : tensor<f32>
    return %18#4, %18#5, %23, %18#3 : tensor<16x3xf32>, tensor<16x3xf32>, tensor<f32>, tensor<f32>
  }
}
