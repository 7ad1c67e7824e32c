"""A handler of XLA's FFI written in Python, called by both stacks, by the evaluator and, where it is installed, by JAX.

Run: python examples/python_handler.py
"""

from importlib.util import find_spec
from typing import Annotated

import numpy as np

import testbed
from testbed import ffi


@ffi.handler
def smooth(
    x: ffi.BufferR1[ffi.F32], y: ffi.Result[ffi.BufferR1[ffi.F32]], width: Annotated[int, ffi.Attr[ffi.int32]("width")]
):
    """The mean of each element and its `width` neighbours on either side."""
    if width < 0:
        raise ffi.Error.invalid_argument(f"the width is {width}")
    padded = np.pad(x, width, mode="edge")
    y[...] = np.lib.stride_tricks.sliding_window_view(padded, 2 * width + 1).mean(axis=1)


MODULE = """HloModule smoothed
ENTRY main {
  x = f32[8]{0} parameter(0)
  y = f32[8]{0} custom-call(x), custom_call_target="smooth", api_version=API_VERSION_TYPED_FFI,
    backend_config={width = 2 : i32}
  ROOT z = f32[8]{0} subtract(x, y)
}
"""


def with_jax(x: np.ndarray) -> np.ndarray:
    import jax

    ffi.register_with_jax("smooth", smooth)
    call = jax.ffi.ffi_call("smooth", jax.ShapeDtypeStruct(x.shape, x.dtype))
    return np.asarray(jax.jit(lambda x: x - call(x, width=np.int32(2)))(x))


def main() -> None:
    ffi.register("smooth", smooth)
    x = np.sin(np.arange(8, dtype=np.float32))
    (want,) = testbed.evaluate(MODULE, [x])
    results = {stack: testbed.compile(MODULE, stack)(x) for stack in ("legacy", "mlir")}
    if find_spec("jax") is not None:
        results["JAX"] = with_jax(x)
    for name, got in results.items():
        np.testing.assert_array_equal(got, want)
        print(f"{name}: {got.round(3)}, as the evaluator's")


if __name__ == "__main__":
    main()
