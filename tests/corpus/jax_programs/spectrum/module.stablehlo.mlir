module @jit_spectrum attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x16xf32>) -> (tensor<3x9xf32> {jax.result_info = "result[0]"}, tensor<3x16xf32> {jax.result_info = "result[1]"}) {
    %0 = call @fft(%arg0) : (tensor<3x16xf32>) -> tensor<3x9xcomplex<f32>>
    %1 = stablehlo.real %0 : (tensor<3x9xcomplex<f32>>) -> tensor<3x9xf32>
    %2 = stablehlo.imag %0 : (tensor<3x9xcomplex<f32>>) -> tensor<3x9xf32>
    %3 = stablehlo.negate %2 : tensor<3x9xf32>
    %4 = stablehlo.complex %1, %3 : tensor<3x9xcomplex<f32>>
    %5 = stablehlo.multiply %0, %4 : tensor<3x9xcomplex<f32>>
    %6 = stablehlo.abs %5 : (tensor<3x9xcomplex<f32>>) -> tensor<3x9xf32>
    %cst = stablehlo.constant dense<(5.000000e-01,0.000000e+00)> : tensor<complex<f32>>
    %7 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f32>>) -> tensor<3x9xcomplex<f32>>
    %8 = stablehlo.multiply %0, %7 : tensor<3x9xcomplex<f32>>
    %9 = call @fft_0(%8) : (tensor<3x9xcomplex<f32>>) -> tensor<3x16xf32>
    return %6, %9 : tensor<3x9xf32>, tensor<3x16xf32>
  }
  func.func private @fft(%arg0: tensor<3x16xf32>) -> tensor<3x9xcomplex<f32>> {
    %0 = stablehlo.fft %arg0, type = RFFT, length = [16] : (tensor<3x16xf32>) -> tensor<3x9xcomplex<f32>>
    return %0 : tensor<3x9xcomplex<f32>>
  }
  func.func private @fft_0(%arg0: tensor<3x9xcomplex<f32>>) -> tensor<3x16xf32> {
    %0 = stablehlo.fft %arg0, type = IRFFT, length = [16] : (tensor<3x9xcomplex<f32>>) -> tensor<3x16xf32>
    return %0 : tensor<3x16xf32>
  }
}
