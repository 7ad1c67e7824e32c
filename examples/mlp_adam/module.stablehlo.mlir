module @jit_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<24x48xf32>, %arg1: tensor<48xf32>, %arg2: tensor<48x10xf32>, %arg3: tensor<10xf32>, %arg4: tensor<24x48xf32>, %arg5: tensor<48xf32>, %arg6: tensor<48x10xf32>, %arg7: tensor<10xf32>, %arg8: tensor<24x48xf32>, %arg9: tensor<48xf32>, %arg10: tensor<48x10xf32>, %arg11: tensor<10xf32>, %arg12: tensor<i32>, %arg13: tensor<32x24xf32>, %arg14: tensor<32xi32>) -> (tensor<24x48xf32> {jax.result_info = "result[0][0][0]"}, tensor<48xf32> {jax.result_info = "result[0][0][1]"}, tensor<48x10xf32> {jax.result_info = "result[0][1][0]"}, tensor<10xf32> {jax.result_info = "result[0][1][1]"}, tensor<24x48xf32> {jax.result_info = "result[1][0][0]"}, tensor<48xf32> {jax.result_info = "result[1][0][1]"}, tensor<48x10xf32> {jax.result_info = "result[1][1][0]"}, tensor<10xf32> {jax.result_info = "result[1][1][1]"}, tensor<24x48xf32> {jax.result_info = "result[2][0][0]"}, tensor<48xf32> {jax.result_info = "result[2][0][1]"}, tensor<48x10xf32> {jax.result_info = "result[2][1][0]"}, tensor<10xf32> {jax.result_info = "result[2][1][1]"}, tensor<i32> {jax.result_info = "result[3]"}, tensor<f32> {jax.result_info = "result[4]"}) {
    %0 = stablehlo.dot_general %arg13, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x24xf32>, tensor<24x48xf32>) -> tensor<32x48xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<48xf32>) -> tensor<1x48xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x48xf32>) -> tensor<32x48xf32>
    %3 = stablehlo.add %0, %2 : tensor<32x48xf32>
    %4 = call @relu(%3) : (tensor<32x48xf32>) -> tensor<32x48xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<32x48xf32>
    %6 = stablehlo.compare GT, %3, %5, FLOAT : (tensor<32x48xf32>, tensor<32x48xf32>) -> tensor<32x48xi1>
    %7 = stablehlo.dot_general %4, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x48xf32>, tensor<48x10xf32>) -> tensor<32x10xf32>
    %8 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<10xf32>) -> tensor<1x10xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<1x10xf32>) -> tensor<32x10xf32>
    %10 = stablehlo.add %7, %9 : tensor<32x10xf32>
    %11 = call @_one_hot(%arg14) : (tensor<32xi32>) -> tensor<32x10xf32>
    %12:3 = call @log_softmax(%10) : (tensor<32x10xf32>) -> (tensor<32x10xf32>, tensor<32x10xf32>, tensor<32x1xf32>)
    %13 = stablehlo.multiply %12#0, %11 : tensor<32x10xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %14 = stablehlo.reduce(%13 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<32x10xf32>, tensor<f32>) -> tensor<32xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %15 = stablehlo.reduce(%14 init: %cst_1) applies stablehlo.add across dimensions = [0] : (tensor<32xf32>, tensor<f32>) -> tensor<f32>
    %cst_2 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %16 = stablehlo.divide %15, %cst_2 : tensor<f32>
    %17 = stablehlo.negate %16 : tensor<f32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %18 = stablehlo.negate %cst_3 : tensor<f32>
    %cst_4 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %19 = stablehlo.divide %18, %cst_4 : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0] : (tensor<32xf32>) -> tensor<32x10xf32>
    %22 = stablehlo.multiply %21, %11 : tensor<32x10xf32>
    %23 = call @log_softmax_0(%12#1, %12#2, %22) : (tensor<32x10xf32>, tensor<32x1xf32>, tensor<32x10xf32>) -> tensor<32x10xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %24 = stablehlo.reduce(%23 init: %cst_5) applies stablehlo.add across dimensions = [0] : (tensor<32x10xf32>, tensor<f32>) -> tensor<10xf32>
    %25 = stablehlo.reshape %24 : (tensor<10xf32>) -> tensor<1x10xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %26 = stablehlo.reduce(%25 init: %cst_6) applies stablehlo.add across dimensions = [0] : (tensor<1x10xf32>, tensor<f32>) -> tensor<10xf32>
    %27 = stablehlo.dot_general %23, %4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x10xf32>, tensor<32x48xf32>) -> tensor<10x48xf32>
    %28 = stablehlo.transpose %27, dims = [1, 0] : (tensor<10x48xf32>) -> tensor<48x10xf32>
    %29 = stablehlo.dot_general %23, %arg2, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<32x10xf32>, tensor<48x10xf32>) -> tensor<32x48xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %30 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<32x48xf32>
    %31 = stablehlo.select %6, %29, %30 : tensor<32x48xi1>, tensor<32x48xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %32 = stablehlo.reduce(%31 init: %cst_8) applies stablehlo.add across dimensions = [0] : (tensor<32x48xf32>, tensor<f32>) -> tensor<48xf32>
    %33 = stablehlo.reshape %32 : (tensor<48xf32>) -> tensor<1x48xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %34 = stablehlo.reduce(%33 init: %cst_9) applies stablehlo.add across dimensions = [0] : (tensor<1x48xf32>, tensor<f32>) -> tensor<48xf32>
    %35 = stablehlo.dot_general %31, %arg13, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x48xf32>, tensor<32x24xf32>) -> tensor<48x24xf32>
    %36 = stablehlo.transpose %35, dims = [1, 0] : (tensor<48x24xf32>) -> tensor<24x48xf32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %37 = stablehlo.add %arg12, %c : tensor<i32>
    %cst_10 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %38 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<24x48xf32>
    %39 = stablehlo.multiply %38, %arg4 : tensor<24x48xf32>
    %cst_11 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %40 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<24x48xf32>
    %41 = stablehlo.multiply %40, %36 : tensor<24x48xf32>
    %42 = stablehlo.add %39, %41 : tensor<24x48xf32>
    %cst_12 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %43 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<48xf32>
    %44 = stablehlo.multiply %43, %arg5 : tensor<48xf32>
    %cst_13 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %45 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<48xf32>
    %46 = stablehlo.multiply %45, %34 : tensor<48xf32>
    %47 = stablehlo.add %44, %46 : tensor<48xf32>
    %cst_14 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %48 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<48x10xf32>
    %49 = stablehlo.multiply %48, %arg6 : tensor<48x10xf32>
    %cst_15 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %50 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<48x10xf32>
    %51 = stablehlo.multiply %50, %28 : tensor<48x10xf32>
    %52 = stablehlo.add %49, %51 : tensor<48x10xf32>
    %cst_16 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %53 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<10xf32>
    %54 = stablehlo.multiply %53, %arg7 : tensor<10xf32>
    %cst_17 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %55 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<10xf32>
    %56 = stablehlo.multiply %55, %26 : tensor<10xf32>
    %57 = stablehlo.add %54, %56 : tensor<10xf32>
    %cst_18 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %58 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<24x48xf32>
    %59 = stablehlo.multiply %58, %arg8 : tensor<24x48xf32>
    %cst_19 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %60 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<24x48xf32>
    %61 = stablehlo.multiply %60, %36 : tensor<24x48xf32>
    %62 = stablehlo.multiply %61, %36 : tensor<24x48xf32>
    %63 = stablehlo.add %59, %62 : tensor<24x48xf32>
    %cst_20 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %64 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<48xf32>
    %65 = stablehlo.multiply %64, %arg9 : tensor<48xf32>
    %cst_21 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %66 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<48xf32>
    %67 = stablehlo.multiply %66, %34 : tensor<48xf32>
    %68 = stablehlo.multiply %67, %34 : tensor<48xf32>
    %69 = stablehlo.add %65, %68 : tensor<48xf32>
    %cst_22 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %70 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<48x10xf32>
    %71 = stablehlo.multiply %70, %arg10 : tensor<48x10xf32>
    %cst_23 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %72 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<48x10xf32>
    %73 = stablehlo.multiply %72, %28 : tensor<48x10xf32>
    %74 = stablehlo.multiply %73, %28 : tensor<48x10xf32>
    %75 = stablehlo.add %71, %74 : tensor<48x10xf32>
    %cst_24 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %76 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<10xf32>
    %77 = stablehlo.multiply %76, %arg11 : tensor<10xf32>
    %cst_25 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %78 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<10xf32>
    %79 = stablehlo.multiply %78, %26 : tensor<10xf32>
    %80 = stablehlo.multiply %79, %26 : tensor<10xf32>
    %81 = stablehlo.add %77, %80 : tensor<10xf32>
    %82 = stablehlo.convert %37 : (tensor<i32>) -> tensor<f32>
    %cst_26 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %83 = stablehlo.power %cst_26, %82 : tensor<f32>
    %cst_27 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %84 = stablehlo.subtract %cst_27, %83 : tensor<f32>
    %85 = stablehlo.sqrt %84 : tensor<f32>
    %cst_28 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %86 = stablehlo.multiply %cst_28, %85 : tensor<f32>
    %87 = stablehlo.convert %37 : (tensor<i32>) -> tensor<f32>
    %cst_29 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %88 = stablehlo.power %cst_29, %87 : tensor<f32>
    %cst_30 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %89 = stablehlo.subtract %cst_30, %88 : tensor<f32>
    %90 = stablehlo.divide %86, %89 : tensor<f32>
    %91 = stablehlo.broadcast_in_dim %90, dims = [] : (tensor<f32>) -> tensor<24x48xf32>
    %92 = stablehlo.multiply %91, %42 : tensor<24x48xf32>
    %93 = stablehlo.sqrt %63 : tensor<24x48xf32>
    %cst_31 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %94 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<24x48xf32>
    %95 = stablehlo.add %93, %94 : tensor<24x48xf32>
    %96 = stablehlo.divide %92, %95 : tensor<24x48xf32>
    %97 = stablehlo.subtract %arg0, %96 : tensor<24x48xf32>
    %98 = stablehlo.broadcast_in_dim %90, dims = [] : (tensor<f32>) -> tensor<48xf32>
    %99 = stablehlo.multiply %98, %47 : tensor<48xf32>
    %100 = stablehlo.sqrt %69 : tensor<48xf32>
    %cst_32 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %101 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<48xf32>
    %102 = stablehlo.add %100, %101 : tensor<48xf32>
    %103 = stablehlo.divide %99, %102 : tensor<48xf32>
    %104 = stablehlo.subtract %arg1, %103 : tensor<48xf32>
    %105 = stablehlo.broadcast_in_dim %90, dims = [] : (tensor<f32>) -> tensor<48x10xf32>
    %106 = stablehlo.multiply %105, %52 : tensor<48x10xf32>
    %107 = stablehlo.sqrt %75 : tensor<48x10xf32>
    %cst_33 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %108 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<48x10xf32>
    %109 = stablehlo.add %107, %108 : tensor<48x10xf32>
    %110 = stablehlo.divide %106, %109 : tensor<48x10xf32>
    %111 = stablehlo.subtract %arg2, %110 : tensor<48x10xf32>
    %112 = stablehlo.broadcast_in_dim %90, dims = [] : (tensor<f32>) -> tensor<10xf32>
    %113 = stablehlo.multiply %112, %57 : tensor<10xf32>
    %114 = stablehlo.sqrt %81 : tensor<10xf32>
    %cst_34 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %115 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<10xf32>
    %116 = stablehlo.add %114, %115 : tensor<10xf32>
    %117 = stablehlo.divide %113, %116 : tensor<10xf32>
    %118 = stablehlo.subtract %arg3, %117 : tensor<10xf32>
    return %97, %104, %111, %118, %42, %47, %52, %57, %63, %69, %75, %81, %37, %17 : tensor<24x48xf32>, tensor<48xf32>, tensor<48x10xf32>, tensor<10xf32>, tensor<24x48xf32>, tensor<48xf32>, tensor<48x10xf32>, tensor<10xf32>, tensor<24x48xf32>, tensor<48xf32>, tensor<48x10xf32>, tensor<10xf32>, tensor<i32>, tensor<f32>
  }
  func.func private @relu(%arg0: tensor<32x48xf32>) -> tensor<32x48xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<32x48xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<32x48xf32>
    return %1 : tensor<32x48xf32>
  }
  func.func private @_one_hot(%arg0: tensor<32xi32>) -> tensor<32x10xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<32xi32>) -> tensor<32x1xi32>
    %1 = stablehlo.iota dim = 1 : tensor<1x10xi32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<32x1xi32>) -> tensor<32x10xi32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x10xi32>) -> tensor<32x10xi32>
    %4 = stablehlo.compare EQ, %2, %3, SIGNED : (tensor<32x10xi32>, tensor<32x10xi32>) -> tensor<32x10xi1>
    %5 = stablehlo.convert %4 : (tensor<32x10xi1>) -> tensor<32x10xf32>
    return %5 : tensor<32x10xf32>
  }
  func.func private @log_softmax(%arg0: tensor<32x10xf32>) -> (tensor<32x10xf32>, tensor<32x10xf32>, tensor<32x1xf32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<32x10xf32>, tensor<f32>) -> tensor<32xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<32xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<32xf32>) -> tensor<32x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<32x1xf32>) -> tensor<32x10xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<32x10xf32>
    %6 = stablehlo.exponential %5 : tensor<32x10xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<32x10xf32>, tensor<f32>) -> tensor<32xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<32xf32>) -> tensor<32x1xf32>
    %9 = stablehlo.log %8 : tensor<32x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<32x1xf32>) -> tensor<32x10xf32>
    %11 = stablehlo.subtract %5, %10 : tensor<32x10xf32>
    return %11, %6, %8 : tensor<32x10xf32>, tensor<32x10xf32>, tensor<32x1xf32>
  }
  func.func private @log_softmax_0(%arg0: tensor<32x10xf32>, %arg1: tensor<32x1xf32>, %arg2: tensor<32x10xf32>) -> tensor<32x10xf32> {
    %0 = stablehlo.negate %arg2 : tensor<32x10xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<32x10xf32>, tensor<f32>) -> tensor<32xf32>
    %2 = stablehlo.reshape %1 : (tensor<32xf32>) -> tensor<32x1xf32>
    %3 = stablehlo.divide %2, %arg1 : tensor<32x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<32x1xf32>, tensor<f32>) -> tensor<32xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<32xf32>) -> tensor<32x10xf32>
    %6 = stablehlo.multiply %5, %arg0 : tensor<32x10xf32>
    %7 = stablehlo.add %arg2, %6 : tensor<32x10xf32>
    return %7 : tensor<32x10xf32>
  }
}
