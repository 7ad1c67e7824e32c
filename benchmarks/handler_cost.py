"""What a call of an FFI handler costs in a loop, next to XLA:CPU's call of the same handler in the same process.

Run: .venv/bin/python -m testbed.benchmarks.handler_cost [--calls 20000] [--rounds 99] [--bounds 5,12,20]
The handler does nothing: what counts is the way to it. A body of a loop holds EACH calls, and the time of the loop
without them is taken off. The second table has calls from Python of a program with one handler and without. Contestants
take turns; figures are of minima. Without jaxlib, XLA's columns are empty. Exits 1 above a bound or half of XLA's time.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..backends.base import CompileOptions
from ..backends.xla import installed
from ..codegen.load import LoadedCode, load
from ..codegen.runtime import runtime_object
from ..ffi import registry
from ..ffi.abi import CAPSULE
from ..formats.text.parser import parse_module
from ..migration.compile import compile_module
from ..migration.flags import Flags
from .paired import race
from .tables import left, right, text_table

TARGET = "testbed.nothing"
EACH = 8
FORMS = ((0, 0), (3, 1), (8, 4))
"""Operands and results."""

NOTHING = """
define ptr @nothing(ptr %frame) {
  %at.extension = getelementptr i8, ptr %frame, i64 8
  %extension = load ptr, ptr %at.extension
  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %done, label %probe
probe:
  %at.metadata = getelementptr i8, ptr %extension, i64 24
  %metadata = load ptr, ptr %at.metadata
  %major = getelementptr i8, ptr %metadata, i64 24
  store i32 0, ptr %major
  %minor = getelementptr i8, ptr %metadata, i64 28
  store i32 3, ptr %minor
  %traits = getelementptr i8, ptr %metadata, i64 32
  store i32 0, ptr %traits
  %state = getelementptr i8, ptr %metadata, i64 40
  store i64 0, ptr %state
  br label %done
done:
  ret ptr null
}
"""


@dataclass(frozen=True)
class Row:
    """Nanoseconds a call, ours and XLA's (NaN without it)."""

    operands: int
    results: int
    ours: float
    xla: float

    def cells(self) -> tuple[str, ...]:
        return str(self.operands + self.results), f"{self.ours:.1f}", f"{self.xla:.1f}", f"{self.ours / self.xla:.2f}"


def handler() -> LoadedCode:
    """The handler that does nothing, registered here and, where that is installed, with JAX."""
    code = load([runtime_object(NOTHING, lambda: NOTHING)])
    address = code.address("nothing")
    registry.register(TARGET, address, replace=True)
    if installed():
        import jax

        new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        jax.ffi.register_ffi_target(TARGET, new(("PyCapsule_New", ctypes.pythonapi))(address, CAPSULE, None))
    return code


def program(operands: int, results: int, calls: int, each: int) -> str:
    """A loop of calls // EACH iterations with `each` calls in its body."""
    shape = "(" + ", ".join(["f32[4]{0}"] * results) + ")"
    given = ", ".join(["x"] * operands)
    lines = [
        f'c{n} = {shape} custom-call({given}), custom_call_target="{TARGET}", api_version=API_VERSION_TYPED_FFI, '
        "custom_call_has_side_effect=true"
        for n in range(each)
    ]
    body = "\n  ".join(lines)
    return f"""HloModule m

cond {{ s = (s32[], f32[4]{{0}}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({calls // EACH})
  ROOT c = pred[] compare(i, n), direction=LT }}

body {{ s = (s32[], f32[4]{{0}}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4]{{0}} get-tuple-element(s), index=1
  {body}
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[4]{{0}}) tuple(j, x) }}

ENTRY e {{ x = f32[4]{{0}} parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[4]{{0}}) tuple(zero, x)
  w = (s32[], f32[4]{{0}}) while(s), condition=cond, body=body
  ROOT r = s32[] get-tuple-element(w), index=0 }}
"""


def measure(operands: int, results: int, calls: int, rounds: int) -> Row:
    """One form of call. calls: in a run."""
    inputs = [np.zeros(4, np.float32)]
    runs: dict[str, Callable[[], object]] = {}
    for each in (EACH, 0):
        text = program(operands, results, calls, each)
        options = CompileOptions(host_program="compiled")
        executable = compile_module(parse_module(text), Flags.parse("legacy"), options)
        runs[f"ours {each}"] = lambda executable=executable: executable.execute(inputs)  # type: ignore[misc]
        if installed():
            from ..backends.xla.executable import XlaExecutable

            theirs = XlaExecutable(text)
            runs[f"xla {each}"] = lambda theirs=theirs: theirs.execute(inputs)  # type: ignore[misc]
    times = race(runs, rounds=rounds, seconds=0.002)

    def cost(name: str) -> float:
        if f"{name} 0" not in times:
            return float("nan")
        return (times[f"{name} {EACH}"].minimum - times[f"{name} 0"].minimum) / calls * 1e9

    return Row(operands, results, cost("ours"), cost("xla"))


PLAIN = """HloModule m
ENTRY e {
  x = f32[4]{0} parameter(0)
  ROOT r = f32[4]{0} negate(x)
}
"""


def from_python(rounds: int) -> list[tuple[str, str]]:
    """Nanoseconds of a call from Python, with a result that is given: name of the program, time."""
    x, runs = np.zeros(4, np.float32), {}
    handled = f'custom-call(x), custom_call_target="{TARGET}", api_version=API_VERSION_TYPED_FFI'
    for name, text in (("one kernel", PLAIN), ("one handler", PLAIN.replace("negate(x)", handled))):
        executable = compile_module(parse_module(text), Flags.parse("legacy"))
        out = executable(x)
        runs[name] = partial(executable, x, out=out)
    times = race(runs, rounds=rounds, seconds=0.002)
    return [(name, f"{timing.minimum * 1e9:.0f}") for name, timing in times.items()]


def _bounds(text: str) -> list[float]:
    return [float(bound) for bound in text.split(",")]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=99)
    parser.add_argument("--bounds", type=_bounds, default="5,12,20", metavar="NS,…", help="ns of each form (5,12,20)")
    options = parser.parse_args(arguments)
    code = handler()
    rows = [measure(*form, options.calls, options.rounds) for form in FORMS]
    columns = [right("buffers"), right("ours ns"), right("XLA ns"), right("ratio")]
    print(text_table(columns, [row.cells() for row in rows]))
    print(text_table([left("call from Python of"), right("ns")], from_python(options.rounds)))
    assert code.address("nothing")
    slow = [row for row, bound in zip(rows, options.bounds) if row.ours > bound or row.ours > row.xla / 2]
    for row in slow:
        print(f"{row.operands + row.results} buffers: above the bound, or half of XLA's time")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
