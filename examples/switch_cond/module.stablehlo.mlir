module @jit_dispatch attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<i32>, %arg1: tensor<8x8xf32>, %arg2: tensor<8x8xf32>) -> (tensor<8x8xf32> {jax.result_info = "result[0]"}, tensor<8x8xf32> {jax.result_info = "result[1]"}, tensor<8xi32> {jax.result_info = "result[2]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<3> : tensor<i32>
    %0 = stablehlo.clamp %c, %arg0, %c_0 : tensor<i32>
    %1 = "stablehlo.case"(%0) ({
      %9 = stablehlo.sine %arg1 : tensor<8x8xf32>
      stablehlo.return %9 : tensor<8x8xf32>
    }, {
      %9 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
      %10 = stablehlo.dot_general %arg1, %9, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      stablehlo.return %10 : tensor<8x8xf32>
    }, {
      %9 = func.call @_flip(%arg1) : (tensor<8x8xf32>) -> tensor<8x8xf32>
      %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %10 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
      %11 = stablehlo.multiply %9, %10 : tensor<8x8xf32>
      stablehlo.return %11 : tensor<8x8xf32>
    }, {
      %9 = stablehlo.slice %arg1 [0:2, 0:2] : (tensor<8x8xf32>) -> tensor<2x2xf32>
      %cst_2 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
      %10 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
      %11 = stablehlo.multiply %9, %10 : tensor<2x2xf32>
      %c_3 = stablehlo.constant dense<3> : tensor<i32>
      %c_4 = stablehlo.constant dense<0> : tensor<i32>
      %12 = stablehlo.compare LT, %c_3, %c_4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_5 = stablehlo.constant dense<3> : tensor<i32>
      %c_6 = stablehlo.constant dense<8> : tensor<i32>
      %13 = stablehlo.add %c_5, %c_6 : tensor<i32>
      %c_7 = stablehlo.constant dense<3> : tensor<i32>
      %14 = stablehlo.select %12, %13, %c_7 : tensor<i1>, tensor<i32>
      %c_8 = stablehlo.constant dense<2> : tensor<i32>
      %15 = stablehlo.dynamic_update_slice %arg1, %11, %c_8, %14 : (tensor<8x8xf32>, tensor<2x2xf32>, tensor<i32>, tensor<i32>) -> tensor<8x8xf32>
      stablehlo.return %15 : tensor<8x8xf32>
    }) : (tensor<i32>) -> tensor<8x8xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.reduce(%arg1 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.reduce(%arg2 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>
    %4 = stablehlo.compare GT, %2, %3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %5 = stablehlo.convert %4 : (tensor<i1>) -> tensor<i32>
    %6 = "stablehlo.case"(%5) ({
      %9 = stablehlo.multiply %1, %arg2 : tensor<8x8xf32>
      stablehlo.return %9 : tensor<8x8xf32>
    }, {
      %9 = stablehlo.subtract %1, %arg2 : tensor<8x8xf32>
      stablehlo.return %9 : tensor<8x8xf32>
    }) : (tensor<i32>) -> tensor<8x8xf32>
    %7 = stablehlo.maximum %1, %6 : tensor<8x8xf32>
    %8 = call @argmax(%7) : (tensor<8x8xf32>) -> tensor<8xi32>
    return %1, %6, %8 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8xi32>
  }
  func.func private @_flip(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = stablehlo.reverse %arg0, dims = [0] : tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
  func.func private @argmax(%arg0: tensor<8x8xf32>) -> tensor<8xi32> {
    %0 = stablehlo.iota dim = 1 : tensor<8x8xi32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [1] : (tensor<8x8xf32>, tensor<8x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xi32>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i32>, %arg4: tensor<i32>)  {
      %2 = stablehlo.compare GT, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i32>
      stablehlo.return %9, %10 : tensor<f32>, tensor<i32>
    }
    return %1#1 : tensor<8xi32>
  }
}
