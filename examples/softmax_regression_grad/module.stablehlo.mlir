module @jit_loss attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<20x7xf32>, %arg1: tensor<7xf32>, %arg2: tensor<64x20xf32>, %arg3: tensor<64xi32>) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<20x7xf32> {jax.result_info = "result[1][0]"}, tensor<7xf32> {jax.result_info = "result[1][1]"}) {
    %0 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x20xf32>, tensor<20x7xf32>) -> tensor<64x7xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<7xf32>) -> tensor<1x7xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x7xf32>) -> tensor<64x7xf32>
    %3 = stablehlo.add %0, %2 : tensor<64x7xf32>
    %4 = call @_one_hot(%arg3) : (tensor<64xi32>) -> tensor<64x7xf32>
    %5 = stablehlo.multiply %3, %4 : tensor<64x7xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.reduce(%5 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<64x7xf32>, tensor<f32>) -> tensor<64xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %7 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.maximum across dimensions = [1] : (tensor<64x7xf32>, tensor<f32>) -> tensor<64xf32>
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %9 = stablehlo.maximum %8, %7 : tensor<64xf32>
    %10 = stablehlo.is_finite %9 : (tensor<64xf32>) -> tensor<64xi1>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %12 = stablehlo.select %10, %9, %11 : tensor<64xi1>, tensor<64xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0] : (tensor<64xf32>) -> tensor<64x1xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<64x1xf32>) -> tensor<64x7xf32>
    %15 = stablehlo.subtract %3, %14 : tensor<64x7xf32>
    %16 = stablehlo.exponential %15 : tensor<64x7xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %17 = stablehlo.reduce(%16 init: %cst_3) applies stablehlo.add across dimensions = [1] : (tensor<64x7xf32>, tensor<f32>) -> tensor<64xf32>
    %18 = stablehlo.abs %17 : tensor<64xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %20 = stablehlo.compare GE, %17, %19, FLOAT : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
    %21 = stablehlo.log %18 : tensor<64xf32>
    %22 = stablehlo.add %21, %12 : tensor<64xf32>
    %23 = stablehlo.subtract %22, %6 : tensor<64xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %24 = stablehlo.reduce(%23 init: %cst_5) applies stablehlo.add across dimensions = [0] : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
    %cst_6 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %25 = stablehlo.divide %24, %cst_6 : tensor<f32>
    %26 = stablehlo.multiply %arg0, %arg0 : tensor<20x7xf32>
    %cst_7 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<20x7xf32>
    %28 = stablehlo.multiply %27, %arg0 : tensor<20x7xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %29 = stablehlo.reduce(%26 init: %cst_8) applies stablehlo.add across dimensions = [0, 1] : (tensor<20x7xf32>, tensor<f32>) -> tensor<f32>
    %cst_9 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %30 = stablehlo.multiply %cst_9, %29 : tensor<f32>
    %31 = stablehlo.add %25, %30 : tensor<f32>
    %cst_10 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %cst_11 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %32 = stablehlo.multiply %cst_10, %cst_11 : tensor<f32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [] : (tensor<f32>) -> tensor<20x7xf32>
    %34 = stablehlo.multiply %33, %28 : tensor<20x7xf32>
    %cst_12 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_13 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %35 = stablehlo.divide %cst_12, %cst_13 : tensor<f32>
    %36 = stablehlo.broadcast_in_dim %35, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %37 = stablehlo.negate %36 : tensor<64xf32>
    %38 = stablehlo.divide %36, %18 : tensor<64xf32>
    %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %39 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %40 = stablehlo.select %20, %39, %38 : tensor<64xi1>, tensor<64xf32>
    %41 = stablehlo.select %20, %38, %39 : tensor<64xi1>, tensor<64xf32>
    %42 = stablehlo.negate %40 : tensor<64xf32>
    %43 = stablehlo.add %41, %42 : tensor<64xf32>
    %44 = stablehlo.broadcast_in_dim %43, dims = [0] : (tensor<64xf32>) -> tensor<64x7xf32>
    %45 = stablehlo.multiply %44, %16 : tensor<64x7xf32>
    %46 = stablehlo.broadcast_in_dim %37, dims = [0] : (tensor<64xf32>) -> tensor<64x7xf32>
    %47 = stablehlo.multiply %46, %4 : tensor<64x7xf32>
    %48 = stablehlo.add %45, %47 : tensor<64x7xf32>
    %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %49 = stablehlo.reduce(%48 init: %cst_15) applies stablehlo.add across dimensions = [0] : (tensor<64x7xf32>, tensor<f32>) -> tensor<7xf32>
    %50 = stablehlo.reshape %49 : (tensor<7xf32>) -> tensor<1x7xf32>
    %cst_16 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %51 = stablehlo.reduce(%50 init: %cst_16) applies stablehlo.add across dimensions = [0] : (tensor<1x7xf32>, tensor<f32>) -> tensor<7xf32>
    %52 = stablehlo.dot_general %48, %arg2, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x7xf32>, tensor<64x20xf32>) -> tensor<7x20xf32>
    %53 = stablehlo.transpose %52, dims = [1, 0] : (tensor<7x20xf32>) -> tensor<20x7xf32>
    %54 = stablehlo.add %34, %53 : tensor<20x7xf32>
    return %31, %54, %51 : tensor<f32>, tensor<20x7xf32>, tensor<7xf32>
  }
  func.func private @_one_hot(%arg0: tensor<64xi32>) -> tensor<64x7xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<64xi32>) -> tensor<64x1xi32>
    %1 = stablehlo.iota dim = 1 : tensor<1x7xi32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<64x1xi32>) -> tensor<64x7xi32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x7xi32>) -> tensor<64x7xi32>
    %4 = stablehlo.compare EQ, %2, %3, SIGNED : (tensor<64x7xi32>, tensor<64x7xi32>) -> tensor<64x7xi1>
    %5 = stablehlo.convert %4 : (tensor<64x7xi1>) -> tensor<64x7xf32>
    return %5 : tensor<64x7xf32>
  }
}
