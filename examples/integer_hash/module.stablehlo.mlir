module @jit_mix attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<16x24xui32>, %arg1: tensor<24xui32>) -> (tensor<16x24xui32> {jax.result_info = "result[0]"}, tensor<16x24xf32> {jax.result_info = "result[1]"}, tensor<16x24x4xui8> {jax.result_info = "result[2]"}, tensor<16x24xui32> {jax.result_info = "result[3]"}, tensor<16x24xui32> {jax.result_info = "result[4]"}, tensor<16x24xi32> {jax.result_info = "result[5]"}) {
    %c = stablehlo.constant dense<[0, 8, 16, 24]> : tensor<4xui32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<24xui32>) -> tensor<1x24xui32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<1x24xui32>) -> tensor<16x24xui32>
    %2 = stablehlo.xor %arg0, %1 : tensor<16x24xui32>
    %c_0 = stablehlo.constant dense<16> : tensor<ui32>
    %3 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui32>) -> tensor<16x24xui32>
    %4 = stablehlo.shift_right_logical %2, %3 : tensor<16x24xui32>
    %5 = stablehlo.xor %2, %4 : tensor<16x24xui32>
    %c_1 = stablehlo.constant dense<2246822507> : tensor<ui32>
    %6 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<ui32>) -> tensor<16x24xui32>
    %7 = stablehlo.multiply %5, %6 : tensor<16x24xui32>
    %c_2 = stablehlo.constant dense<13> : tensor<ui32>
    %8 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<ui32>) -> tensor<16x24xui32>
    %9 = stablehlo.shift_right_logical %7, %8 : tensor<16x24xui32>
    %10 = stablehlo.xor %7, %9 : tensor<16x24xui32>
    %c_3 = stablehlo.constant dense<3266489909> : tensor<ui32>
    %11 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<ui32>) -> tensor<16x24xui32>
    %12 = stablehlo.multiply %10, %11 : tensor<16x24xui32>
    %c_4 = stablehlo.constant dense<16> : tensor<ui32>
    %13 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<ui32>) -> tensor<16x24xui32>
    %14 = stablehlo.shift_right_logical %12, %13 : tensor<16x24xui32>
    %15 = stablehlo.xor %12, %14 : tensor<16x24xui32>
    %c_5 = stablehlo.constant dense<1> : tensor<ui32>
    %16 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<ui32>) -> tensor<16x24xui32>
    %17 = stablehlo.multiply %15, %16 : tensor<16x24xui32>
    %c_6 = stablehlo.constant dense<9> : tensor<ui32>
    %18 = stablehlo.broadcast_in_dim %c_6, dims = [] : (tensor<ui32>) -> tensor<16x24xui32>
    %19 = stablehlo.shift_right_logical %17, %18 : tensor<16x24xui32>
    %c_7 = stablehlo.constant dense<1065353216> : tensor<ui32>
    %20 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<ui32>) -> tensor<16x24xui32>
    %21 = stablehlo.or %19, %20 : tensor<16x24xui32>
    %22 = stablehlo.bitcast_convert %21 : (tensor<16x24xui32>) -> tensor<16x24xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x24xf32>
    %24 = stablehlo.subtract %22, %23 : tensor<16x24xf32>
    %25 = stablehlo.broadcast_in_dim %17, dims = [0, 1] : (tensor<16x24xui32>) -> tensor<16x24x1xui32>
    %26 = stablehlo.broadcast_in_dim %c, dims = [2] : (tensor<4xui32>) -> tensor<1x1x4xui32>
    %27 = stablehlo.broadcast_in_dim %25, dims = [0, 1, 2] : (tensor<16x24x1xui32>) -> tensor<16x24x4xui32>
    %28 = stablehlo.broadcast_in_dim %26, dims = [0, 1, 2] : (tensor<1x1x4xui32>) -> tensor<16x24x4xui32>
    %29 = stablehlo.shift_right_logical %27, %28 : tensor<16x24x4xui32>
    %30 = stablehlo.convert %29 : (tensor<16x24x4xui32>) -> tensor<16x24x4xui8>
    %31 = stablehlo.popcnt %17 : tensor<16x24xui32>
    %32 = stablehlo.count_leading_zeros %17 : tensor<16x24xui32>
    %33 = stablehlo.convert %17 : (tensor<16x24xui32>) -> tensor<16x24xi32>
    %c_8 = stablehlo.constant dense<7> : tensor<i32>
    %34 = call @floor_divide(%33, %c_8) : (tensor<16x24xi32>, tensor<i32>) -> tensor<16x24xi32>
    return %17, %24, %30, %31, %32, %34 : tensor<16x24xui32>, tensor<16x24xf32>, tensor<16x24x4xui8>, tensor<16x24xui32>, tensor<16x24xui32>, tensor<16x24xi32>
  }
  func.func private @floor_divide(%arg0: tensor<16x24xi32>, %arg1: tensor<i32>) -> tensor<16x24xi32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<16x24xi32>
    %2 = stablehlo.divide %arg0, %1 : tensor<16x24xi32>
    %3 = stablehlo.sign %arg0 : tensor<16x24xi32>
    %4 = stablehlo.sign %0 : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i32>) -> tensor<16x24xi32>
    %6 = stablehlo.compare NE, %3, %5, SIGNED : (tensor<16x24xi32>, tensor<16x24xi32>) -> tensor<16x24xi1>
    %7 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<16x24xi32>
    %8 = stablehlo.remainder %arg0, %7 : tensor<16x24xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %9 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<16x24xi32>
    %10 = stablehlo.compare NE, %8, %9, SIGNED : (tensor<16x24xi32>, tensor<16x24xi32>) -> tensor<16x24xi1>
    %11 = stablehlo.and %6, %10 : tensor<16x24xi1>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %12 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<16x24xi32>
    %13 = stablehlo.subtract %2, %12 : tensor<16x24xi32>
    %14 = call @_where(%11, %13, %2) : (tensor<16x24xi1>, tensor<16x24xi32>, tensor<16x24xi32>) -> tensor<16x24xi32>
    return %14 : tensor<16x24xi32>
  }
  func.func private @_where(%arg0: tensor<16x24xi1>, %arg1: tensor<16x24xi32>, %arg2: tensor<16x24xi32>) -> tensor<16x24xi32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<16x24xi1>, tensor<16x24xi32>
    return %0 : tensor<16x24xi32>
  }
}
