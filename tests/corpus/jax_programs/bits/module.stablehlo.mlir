module @jit_bits attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<33xui32>, %arg1: tensor<20xi16>) -> (tensor<33xui32> {jax.result_info = "result[0]"}, tensor<33xui32> {jax.result_info = "result[1]"}, tensor<20xi8> {jax.result_info = "result[2]"}, tensor<20xi16> {jax.result_info = "result[3]"}, tensor<20xi16> {jax.result_info = "result[4]"}) {
    %c = stablehlo.constant dense<7> : tensor<ui32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui32>) -> tensor<33xui32>
    %1 = stablehlo.shift_left %arg0, %0 : tensor<33xui32>
    %c_0 = stablehlo.constant dense<25> : tensor<ui32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui32>) -> tensor<33xui32>
    %3 = stablehlo.shift_right_logical %arg0, %2 : tensor<33xui32>
    %4 = stablehlo.or %1, %3 : tensor<33xui32>
    %c_1 = stablehlo.constant dense<2654435769> : tensor<ui32>
    %5 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<ui32>) -> tensor<33xui32>
    %6 = stablehlo.multiply %arg0, %5 : tensor<33xui32>
    %7 = stablehlo.xor %4, %6 : tensor<33xui32>
    %8 = stablehlo.popcnt %arg0 : tensor<33xui32>
    %c_2 = stablehlo.constant dense<2> : tensor<i16>
    %9 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i16>) -> tensor<20xi16>
    %10 = stablehlo.shift_right_arithmetic %arg1, %9 : tensor<20xi16>
    %11 = stablehlo.convert %10 : (tensor<20xi16>) -> tensor<20xi8>
    %c_3 = stablehlo.constant dense<3> : tensor<i32>
    %12 = call @floor_divide(%arg1, %c_3) : (tensor<20xi16>, tensor<i32>) -> tensor<20xi16>
    %c_4 = stablehlo.constant dense<5> : tensor<i32>
    %13 = call @remainder(%arg1, %c_4) : (tensor<20xi16>, tensor<i32>) -> tensor<20xi16>
    return %7, %8, %11, %12, %13 : tensor<33xui32>, tensor<33xui32>, tensor<20xi8>, tensor<20xi16>, tensor<20xi16>
  }
  func.func private @floor_divide(%arg0: tensor<20xi16>, %arg1: tensor<i32>) -> tensor<20xi16> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<i16>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i16>) -> tensor<20xi16>
    %2 = stablehlo.divide %arg0, %1 : tensor<20xi16>
    %3 = stablehlo.sign %arg0 : tensor<20xi16>
    %4 = stablehlo.sign %0 : tensor<i16>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i16>) -> tensor<20xi16>
    %6 = stablehlo.compare NE, %3, %5, SIGNED : (tensor<20xi16>, tensor<20xi16>) -> tensor<20xi1>
    %7 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i16>) -> tensor<20xi16>
    %8 = stablehlo.remainder %arg0, %7 : tensor<20xi16>
    %c = stablehlo.constant dense<0> : tensor<i16>
    %9 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i16>) -> tensor<20xi16>
    %10 = stablehlo.compare NE, %8, %9, SIGNED : (tensor<20xi16>, tensor<20xi16>) -> tensor<20xi1>
    %11 = stablehlo.and %6, %10 : tensor<20xi1>
    %c_0 = stablehlo.constant dense<1> : tensor<i16>
    %12 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i16>) -> tensor<20xi16>
    %13 = stablehlo.subtract %2, %12 : tensor<20xi16>
    %14 = call @_where(%11, %13, %2) : (tensor<20xi1>, tensor<20xi16>, tensor<20xi16>) -> tensor<20xi16>
    return %14 : tensor<20xi16>
  }
  func.func private @_where(%arg0: tensor<20xi1>, %arg1: tensor<20xi16>, %arg2: tensor<20xi16>) -> tensor<20xi16> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<20xi1>, tensor<20xi16>
    return %0 : tensor<20xi16>
  }
  func.func private @remainder(%arg0: tensor<20xi16>, %arg1: tensor<i32>) -> tensor<20xi16> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<i16>
    %c = stablehlo.constant dense<0> : tensor<i16>
    %1 = stablehlo.compare EQ, %0, %c, SIGNED : (tensor<i16>, tensor<i16>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<1> : tensor<i16>
    %2 = call @_where_0(%1, %c_0, %0) : (tensor<i1>, tensor<i16>, tensor<i16>) -> tensor<i16>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i16>) -> tensor<20xi16>
    %4 = stablehlo.remainder %arg0, %3 : tensor<20xi16>
    %c_1 = stablehlo.constant dense<0> : tensor<i16>
    %5 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i16>) -> tensor<20xi16>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<20xi16>, tensor<20xi16>) -> tensor<20xi1>
    %c_2 = stablehlo.constant dense<0> : tensor<i16>
    %7 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i16>) -> tensor<20xi16>
    %8 = stablehlo.compare LT, %4, %7, SIGNED : (tensor<20xi16>, tensor<20xi16>) -> tensor<20xi1>
    %c_3 = stablehlo.constant dense<0> : tensor<i16>
    %9 = stablehlo.compare LT, %2, %c_3, SIGNED : (tensor<i16>, tensor<i16>) -> tensor<i1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<20xi1>
    %11 = stablehlo.compare NE, %8, %10, UNSIGNED : (tensor<20xi1>, tensor<20xi1>) -> tensor<20xi1>
    %12 = stablehlo.and %11, %6 : tensor<20xi1>
    %13 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i16>) -> tensor<20xi16>
    %14 = stablehlo.add %4, %13 : tensor<20xi16>
    %15 = stablehlo.select %12, %14, %4 : tensor<20xi1>, tensor<20xi16>
    return %15 : tensor<20xi16>
  }
  func.func private @_where_0(%arg0: tensor<i1>, %arg1: tensor<i16>, %arg2: tensor<i16>) -> tensor<i16> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i16>
    return %0 : tensor<i16>
  }
}
