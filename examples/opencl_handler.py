"""A custom call on a device: a handler in C++ that enqueues a kernel, in SPIR-V, in the run's queue of OpenCL.

Run: python examples/opencl_handler.py, after ./testbed setup --opencl; it needs g++ and jaxlib's header.
"""

import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import testbed
from testbed.backends.accelerator.build import build_device_code
from testbed.backends.accelerator.targets import SPIRV
from testbed.backends.base import CompileOptions
from testbed.backends.opencl.library import candidates, devices
from testbed.ffi.static_library import register_symbols
from testbed.hlo.verify.verifier import verify
from testbed.migration.choose import emit_for
from testbed.migration.flags import Flags

KERNEL = """
define spir_kernel void @custom_call_kernel(ptr addrspace(1) %in0, ptr addrspace(1) %in1, ptr addrspace(1) %out) {
  %i = call spir_func i64 @_Z13get_global_idj(i32 0)
  %wrapped = urem i64 %i, 128
  %a = getelementptr float, ptr addrspace(1) %in0, i64 %wrapped
  %b = getelementptr float, ptr addrspace(1) %in1, i64 %i
  %c = getelementptr float, ptr addrspace(1) %out, i64 %i
  %x = load float, ptr addrspace(1) %a, align 4
  %y = load float, ptr addrspace(1) %b, align 4
  %sum = fadd float %x, %y
  store float %sum, ptr addrspace(1) %c, align 4
  ret void
}
declare spir_func i64 @_Z13get_global_idj(i32)
"""

MODULE = """HloModule called
ENTRY main {
  b = f32[128]{0} parameter(0)
  c = f32[2048]{0} parameter(1)
  twice = f32[2048]{0} add(c, c)
  a = f32[2048]{0} custom-call(b, twice), custom_call_target="guide.add", api_version=API_VERSION_TYPED_FFI
  ROOT r = f32[2048]{0} negate(a)
}
"""


def built(folder: Path) -> Path:
    """The handler as a shared library. Its kernel is compiled into it."""
    (folder / "kernel.inc").write_text(",".join(map(str, build_device_code(KERNEL, SPIRV, None))))
    jaxlib, opencl = find_spec("jaxlib"), Path(next(candidates()))
    if jaxlib is None or jaxlib.origin is None:
        raise SystemExit("jaxlib, which has the header, is not installed: ./testbed setup --xla")
    headers = Path(jaxlib.origin).parent / "include"
    linked = [str(opencl), f"-Wl,-rpath,{opencl.parent}"] if opencl.is_absolute() else [f"-l:{opencl}"]
    source, library = Path(__file__).with_name("opencl_handler.cc"), folder / "opencl_handler.so"
    command = ["g++", "-std=c++17", "-O2", "-w", "-shared", "-fPIC", f"-I{headers}", f"-I{folder}", str(source)]
    subprocess.run([*command, "-o", str(library), *linked], check=True)
    return library


def compiled(stack: str):
    """The program on the platform opencl."""
    compiler, options, module = testbed.platform("opencl").compiler(), CompileOptions(), testbed.parse(MODULE)
    verify(module)
    return compiler.compile(compiler.run_hlo_passes(module, options), emit_for(Flags.parse(stack)), options)


def main() -> None:
    found, why = devices()
    if not found:
        raise SystemExit(f"no OpenCL device: {why}")
    with tempfile.TemporaryDirectory() as folder:
        register_symbols(built(Path(folder)), {"guide.add": "custom_call"}, platform="opencl")
        b, c = np.arange(128, dtype=np.float32), np.arange(2048, dtype=np.float32)
        for stack in ("legacy", "mlir"):
            got = compiled(stack)(b, c)
            np.testing.assert_array_equal(got, -(np.tile(b, 16) + 2 * c))
            print(f"{stack}: {got[:4]}, by a kernel in the queue of the run")


if __name__ == "__main__":
    main()
