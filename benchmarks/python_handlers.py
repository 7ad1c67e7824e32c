"""Microseconds of one call of a handler written in Python, beyond those of an empty ctypes callback in the same place.

Run: .venv/bin/python -m testbed.benchmarks.python_handlers [--rounds N] [--bounds OURS,JAX]
Each contestant is a loop of 1000 custom calls with 3 arguments and 1 result, as a program of our runtime and,
where jaxlib is installed, of JAX; all take turns in one process. The handler's body is empty, too: what counts is how
its arguments get there. Exits 1 if a difference of medians exceeds its bound.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from .. import ffi
from ..codegen.load import load
from ..codegen.runtime import runtime_object
from ..ffi.abi import CAPSULE, HANDLER
from ..migration.api import compile
from .paired import Timing, race
from .tables import left, right, text_table

CALLS, ELEMENTS = 1000, 8
OURS, JAX = "ours", "JAX"
HANDLER_NAME, EMPTY_NAME = "benchmark_handler", "benchmark_empty"

PROGRAM = """HloModule calls
body {
  s = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8]{0} get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[8]{0} custom-call(x, x, x), custom_call_target="TARGET", custom_call_has_side_effect=true,
    api_version=API_VERSION_TYPED_FFI
  ROOT r = (s32[], f32[8]{0}) tuple(next, y)
}
condition {
  s = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(1000)
  ROOT less = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[8]{0} parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[8]{0}) tuple(zero, x)
  w = (s32[], f32[8]{0}) while(s), condition=condition, body=body
  ROOT y = f32[8]{0} get-tuple-element(w), index=1
}
"""

# A frame with an extension asks for metadata, which the real handler tells; any other is the callback's.
SWITCH = """
define ptr @switch_{callback}(ptr %frame) {{
  %at = getelementptr i8, ptr %frame, i64 8
  %extension = load ptr, ptr %at
  %plain = icmp eq ptr %extension, null
  %callback = inttoptr i64 {callback} to ptr
  %handler = inttoptr i64 {handler} to ptr
  %function = select i1 %plain, ptr %callback, ptr %handler
  %error = tail call ptr %function(ptr %frame)
  ret ptr %error
}}
"""


@ffi.handler
def nothing(
    a: ffi.Buffer[ffi.F32], b: ffi.Buffer[ffi.F32], c: ffi.Buffer[ffi.F32], y: ffi.Result[ffi.Buffer[ffi.F32]]
) -> None:
    """What is timed."""


_KEEP: list[object] = []


def empty_callback() -> int:
    """The address of a ctypes callback that returns at once, and that still answers a runtime's first question."""
    callback = HANDLER(lambda frame: 0)
    address = ctypes.cast(callback, ctypes.c_void_p).value or 0
    text = SWITCH.format(callback=address, handler=nothing.ffi_address)
    code = load([runtime_object(text, lambda: text, None)])
    _KEEP.extend([callback, code])
    return code.address(f"switch_{address}")


def contestants() -> dict[str, dict[str, Callable[[], object]]]:
    """Runtime → the loops of the empty callback and of the handler."""
    from ..ffi import registry

    address = empty_callback()
    registry.register(EMPTY_NAME, address, replace=True)
    ffi.register(HANDLER_NAME, nothing, replace=True)
    x = np.zeros(ELEMENTS, np.float32)
    found: dict[str, dict[str, Callable[[], object]]] = {OURS: {}}
    for name in (EMPTY_NAME, HANDLER_NAME):
        program = compile(PROGRAM.replace("TARGET", name), "mlir")
        out = program(x)
        found[OURS][name] = partial(program, x, out=out)
    if find_spec("jax") is not None:
        found[JAX] = _jax_loops(address, x)
    return found


def _jax_loops(empty: int, x: np.ndarray) -> dict[str, Callable[[], object]]:
    import jax

    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    capsule = make(("PyCapsule_New", ctypes.pythonapi))(empty, CAPSULE, None)
    jax.ffi.register_ffi_target(EMPTY_NAME, capsule, platform="cpu")
    ffi.register_with_jax(HANDLER_NAME, nothing)
    given = jax.numpy.asarray(x)
    found: dict[str, Callable[[], object]] = {}
    for name in (EMPTY_NAME, HANDLER_NAME):
        call = jax.ffi.ffi_call(name, jax.ShapeDtypeStruct(x.shape, x.dtype), has_side_effect=True)
        loop = jax.jit(lambda x, call=call: jax.lax.fori_loop(0, CALLS, lambda _, y: call(y, y, y), x))
        loop(given).block_until_ready()
        found[name] = partial(_finished, loop, given)
    return found


def _finished(loop: Callable[[Any], Any], given: Any) -> object:
    return loop(given).block_until_ready()


def _bounds(text: str) -> dict[str, float]:
    ours, jax = map(float, text.split(","))
    return {OURS: ours, JAX: jax}


def beyond(times: dict[str, Timing]) -> float:
    """Microseconds of a call of the handler beyond the empty callback."""
    return (times[HANDLER_NAME].median - times[EMPTY_NAME].median) / CALLS * 1e6


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=31, help="rounds in which each contestant runs (31)")
    parser.add_argument("--bounds", type=_bounds, default="1,1.5", metavar="OURS,JAX", help="µs beyond (1,1.5)")
    options = parser.parse_args(argv)
    loops = contestants()
    together = {(where, name): loop for where, pair in loops.items() for name, loop in pair.items()}
    timed = race(
        {f"{where} {name}": loop for (where, name), loop in together.items()}, rounds=options.rounds, seconds=0.01
    )
    rows, slow = [], []
    for where, pair in loops.items():
        times = {name: timed[f"{where} {name}"] for name in pair}
        each = [f"{times[name].median / CALLS * 1e6:.3f}" for name in (EMPTY_NAME, HANDLER_NAME)]
        rows.append((where, *each, f"{beyond(times):+.3f}"))
        slow += [where] * (beyond(times) > options.bounds[where])
    print(text_table([left("called by"), right("empty callback µs"), right("handler µs"), right("beyond µs")], rows))
    for where in slow:
        print(f"called by {where}: above its bound of {options.bounds[where]:g} µs")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
