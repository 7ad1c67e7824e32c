module @jit_simulate attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<32x32xf32>, %arg1: tensor<16x16xf32>) -> (tensor<32x32xf32> {jax.result_info = "result[0]"}, tensor<8x8xf32> {jax.result_info = "result[1]"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = call @_pad(%arg1, %c) : (tensor<16x16xf32>, tensor<i32>) -> tensor<32x32xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<32x32xf32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %2:2 = stablehlo.while(%iterArg = %c_0, %iterArg_1 = %1) : tensor<i32>, tensor<32x32xf32>
    cond {
      %c_2 = stablehlo.constant dense<40> : tensor<i32>
      %5 = stablehlo.compare LT, %iterArg, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    } do {
      %5 = func.call @closed_call(%iterArg_1) : (tensor<32x32xf32>) -> tensor<32x32xf32>
      %c_2 = stablehlo.constant dense<1> : tensor<i32>
      %6 = stablehlo.add %iterArg, %c_2 : tensor<i32>
      stablehlo.return %6, %5 : tensor<i32>, tensor<32x32xf32>
    }
    %3 = stablehlo.slice %2#1 [0:32:4, 0:32:4] : (tensor<32x32xf32>) -> tensor<8x8xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%2#1 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x32xf32>, tensor<f32>) -> tensor<f32>
    return %2#1, %3, %4 : tensor<32x32xf32>, tensor<8x8xf32>, tensor<f32>
  }
  func.func private @_pad(%arg0: tensor<16x16xf32>, %arg1: tensor<i32>) -> tensor<32x32xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.pad %arg0, %0, low = [8, 4], high = [8, 12], interior = [0, 0] : (tensor<16x16xf32>, tensor<f32>) -> tensor<32x32xf32>
    return %1 : tensor<32x32xf32>
  }
  func.func private @closed_call(%arg0: tensor<32x32xf32>) -> tensor<32x32xf32> {
    %0 = stablehlo.slice %arg0 [0:1, 0:32] : (tensor<32x32xf32>) -> tensor<1x32xf32>
    %1 = stablehlo.slice %arg0 [31:32, 0:32] : (tensor<32x32xf32>) -> tensor<1x32xf32>
    %2 = stablehlo.concatenate %0, %arg0, %1, dim = 0 : (tensor<1x32xf32>, tensor<32x32xf32>, tensor<1x32xf32>) -> tensor<34x32xf32>
    %3 = stablehlo.slice %2 [0:34, 0:1] : (tensor<34x32xf32>) -> tensor<34x1xf32>
    %4 = call @_flip(%3) : (tensor<34x1xf32>) -> tensor<34x1xf32>
    %5 = stablehlo.slice %2 [0:34, 31:32] : (tensor<34x32xf32>) -> tensor<34x1xf32>
    %6 = call @_flip(%5) : (tensor<34x1xf32>) -> tensor<34x1xf32>
    %7 = stablehlo.concatenate %4, %2, %6, dim = 1 : (tensor<34x1xf32>, tensor<34x32xf32>, tensor<34x1xf32>) -> tensor<34x34xf32>
    %8 = stablehlo.slice %7 [0:32, 1:33] : (tensor<34x34xf32>) -> tensor<32x32xf32>
    %9 = stablehlo.slice %7 [2:34, 1:33] : (tensor<34x34xf32>) -> tensor<32x32xf32>
    %10 = stablehlo.add %8, %9 : tensor<32x32xf32>
    %11 = stablehlo.slice %7 [1:33, 0:32] : (tensor<34x34xf32>) -> tensor<32x32xf32>
    %12 = stablehlo.add %10, %11 : tensor<32x32xf32>
    %13 = stablehlo.slice %7 [1:33, 2:34] : (tensor<34x34xf32>) -> tensor<32x32xf32>
    %14 = stablehlo.add %12, %13 : tensor<32x32xf32>
    %cst = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %16 = stablehlo.multiply %15, %arg0 : tensor<32x32xf32>
    %17 = stablehlo.subtract %14, %16 : tensor<32x32xf32>
    %cst_0 = stablehlo.constant dense<2.000000e-01> : tensor<f32>
    %18 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %19 = stablehlo.multiply %18, %17 : tensor<32x32xf32>
    %20 = stablehlo.add %arg0, %19 : tensor<32x32xf32>
    return %20 : tensor<32x32xf32>
  }
  func.func private @_flip(%arg0: tensor<34x1xf32>) -> tensor<34x1xf32> {
    %0 = stablehlo.reverse %arg0, dims = [1] : tensor<34x1xf32>
    return %0 : tensor<34x1xf32>
  }
}
