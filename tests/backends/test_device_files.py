"""Programs of devices as files: with the device's code, for that device only. On OpenCL where there is one."""

from dataclasses import replace

import numpy as np
import pytest

from ... import ffi
from ...backends.base import CompileOptions
from ...backends.cuda.dialect import CUDA
from ...backends.host.loader import deserialize_and_load
from ...backends.rocm.dialect import HIP
from ...codegen.options import Grouped
from ...evaluator.evaluator import evaluate
from ...ffi.registry import register, unregister
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError, UnsupportedError
from ...migration.compile import compile_module
from ...migration.flags import Flags
from ...thunks.wire.program import read_program, write_program
from ..support.device_programs import PROGRAM, compiled, inputs, targets
from ..support.host_items import host_items
from ..support.recorded import Recorded


def refusal(made, data, kind=InputError):
    with pytest.raises(kind) as caught:
        made.compiler().load_executable(data)
    assert "\n" not in str(caught.value) and caught.value.remedy
    return str(caught.value)


def rewritten(data, **changes):
    """The file with other code of a device, and right checksums."""
    file, _ = read_program(data)
    return b"".join(write_program(replace(file, device=replace(file.device, **changes))))


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("made", [*targets()])
def test_a_program_with_loops_constants_and_a_library_comes_back(made, stack):
    found = made()
    executable = compiled(found, PROGRAM, stack)
    data = executable.serialize()
    loaded = found.compiler().load_executable(data)
    before, after = executable.execute(inputs()), loaded.execute(inputs())
    assert [a.tobytes() for a in after] == [b.tobytes() for b in before]
    for a, b in zip(after, evaluate(parse_module(PROGRAM), inputs()), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    assert loaded.serialize() == data and loaded.__signature__ == executable.__signature__
    assert [k for k, _ in loaded.kernels] == [k for k, _ in executable.kernels]


TRANSFORMS = """HloModule transforms
ENTRY e {
  p = c64[24,32] parameter(0)
  q = f32[24,16] parameter(1)
  a = c64[24,32] fft(p), fft_type=FFT, fft_length={32}
  b = c64[24,32] fft(p), fft_type=IFFT, fft_length={24,32}
  c = c64[24,9] fft(q), fft_type=RFFT, fft_length={16}
  ROOT t = (c64[24,32], c64[24,32], c64[24,9]) tuple(a, b, c)
}
"""


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("made", [*targets()])
def test_transforms_of_many_rows_run_on_the_host_with_the_functions_that_they_share(made, stack):
    rng, found = np.random.default_rng(0), made()
    given = [rng.normal(size=(24, 32)).astype(np.complex64), rng.normal(size=(24, 16)).astype(np.float32)]
    executable = compiled(found, TRANSFORMS, stack)
    loaded = found.compiler().load_executable(executable.serialize())
    for run in (executable, loaded):
        for a, b in zip(run.execute(given), evaluate(parse_module(TRANSFORMS), given), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("made", [*targets()])
def test_a_file_is_loaded_without_an_emitter_or_llvm(made, monkeypatch):
    from ...backends.accelerator import compiler as of_devices

    found = made()
    data = compiled(found, PROGRAM).serialize()

    def never(*arguments):
        raise AssertionError("emitted again")

    monkeypatch.setattr(of_devices, "build_device_code", never)
    monkeypatch.setattr(of_devices, "emitted_for", never)
    assert found.compiler().load_executable(data).execute(inputs())[2].tolist() == [1, 2, 4]


def test_a_file_of_another_platform_or_device_is_refused_in_one_line():
    cuda, hip = Recorded(CUDA, host_items()), Recorded(HIP, host_items())
    data = compiled(cuda, PROGRAM).serialize()
    assert "it is a program for the platform cuda, not for hip" in refusal(hip, data)
    other = rewritten(data, identity="CUDA | another card | sm_80")
    assert "it is a program for CUDA | another card | sm_80, and this device is CUDA | recording CUDA" in refusal(
        cuda, other
    )
    with pytest.raises(InputError, match="a program for the platform cuda, not for the host") as caught:
        deserialize_and_load(data)
    assert "platform('cuda').compiler().load_executable" in caught.value.remedy
    host = compile_module(parse_module(PROGRAM), Flags.parse("legacy"), CompileOptions(cache=None)).serialize()
    assert "it is a program for the host, not for cuda" in refusal(cuda, host)


def test_code_that_does_not_fit_the_program_is_refused():
    made = Recorded(CUDA, host_items())
    data = compiled(made, PROGRAM).serialize()
    kernels = read_program(data)[0].device.kernels
    assert "does not define the kernel" in refusal(made, rewritten(data, kernels=kernels[1:]))
    more = (replace(kernels[0], arguments=kernels[0].arguments + 1), *kernels[1:])
    assert "does not define the kernel" in refusal(made, rewritten(data, kernels=more))
    none = (replace(kernels[0], group=Grouped(1, 0, 1, 0)), *kernels[1:])
    assert "has no work that a device can share" in refusal(made, rewritten(data, kernels=none))
    cut = (replace(kernels[0], code=b"no code"), *kernels[1:])
    assert "cannot load a program" in refusal(made, rewritten(data, kernels=cut), Exception)
    assert "description is damaged" in refusal(made, rewritten(data, calls=(b"{}",)))


CALLED = """HloModule m
ENTRY e {
  p = f32[8]{0} parameter(0)
  ROOT c = f32[8]{0} custom-call(p), custom_call_target="device.kept", api_version=API_VERSION_TYPED_FFI,
    backend_config={k = 3.0 : f32}
}
"""


def test_a_handler_is_found_again_by_its_name():
    made = Recorded(CUDA, host_items())

    def run(x, y, k, stream):
        made.library.live[int(stream)].submit(lambda: None).result()
        y[...] = x * k

    bound = ffi.bind().arg(ffi.Buffer[ffi.F32]).ret(ffi.Buffer[ffi.F32]).attr(ffi.float32, "k").ctx(ffi.PlatformStream)
    register("device.kept", bound.to(run), "CUDA")
    try:
        data = compiled(made, CALLED).serialize()
        loaded = made.compiler().load_executable(data)
        assert loaded.execute([np.arange(8, dtype=np.float32)])[0].tolist() == [3.0 * n for n in range(8)]
        assert loaded.serialize() == data
    finally:
        unregister("device.kept", "CUDA")
    assert "custom-call(device.kept) of c on CUDA" in refusal(made, data, UnsupportedError)
