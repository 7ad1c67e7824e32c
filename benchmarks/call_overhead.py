"""Microseconds of one call from Python of a small program, x + 1 on 8 elements, against jax.jit in the same process.

Run: .venv/bin/python -m testbed.benchmarks.call_overhead [--rounds N] [--elements N] [--emitters FLAGS] [--bounds R,F]
Contestants take turns; the table has medians, minima and the ratio to jax.jit (on arrays of its device, waiting for the
result), paired by round. Exits 1 if the ratio with recycled or with fresh results exceeds its bound. Without jaxlib,
there are no ratios.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from ..migration.api import compile
from .paired import race, ratio
from .tables import left, right, text_table

MODULE = """HloModule increment
ENTRY main {
  x = f32[SIZE]{0} parameter(0)
  one = f32[] constant(1)
  ones = f32[SIZE]{0} broadcast(one), dimensions={}
  ROOT y = f32[SIZE]{0} add(x, ones)
}
"""

JAX, RECYCLED, FRESH = "jax.jit", "recycled", "fresh"


def contestants(elements: int, emitters: str) -> dict[str, Callable[[], object]]:
    """Calls by name. converted: with an array of the other byte order, which the Python code converts."""
    program = compile(MODULE.replace("SIZE", str(elements)), emitters)
    x = np.arange(elements, dtype=np.float32)
    out, swapped = program(x), x.astype(">f4")
    np.testing.assert_array_equal(out, x + 1)
    calls: dict[str, Callable[[], object]] = {
        RECYCLED: lambda: program(x, out=out),
        FRESH: lambda: program(x),
        "execute, recycled": lambda: program.execute((x,), (out,)),
        "converted": lambda: program(swapped),
    }
    if find_spec("jax") is not None:
        import jax

        jitted, on_device = jax.jit(lambda x: x + 1), jax.numpy.asarray(x)
        np.testing.assert_array_equal(jitted(on_device), out)
        calls = {JAX: lambda: jitted(on_device).block_until_ready(), **calls}
    return calls


def _bounds(text: str) -> dict[str, float]:
    recycled, fresh = map(float, text.split(","))
    return {RECYCLED: recycled, FRESH: fresh}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=31, help="rounds in which each contestant runs (31)")
    parser.add_argument("--elements", type=int, default=8, help="elements of x (8)")
    parser.add_argument("--emitters", default="legacy", help="the stack or flags (legacy)")
    parser.add_argument("--bounds", type=_bounds, default="0.1,0.2", metavar="R,F", help="ratios: recycled, fresh")
    options = parser.parse_args(argv)
    result = race(contestants(options.elements, options.emitters), rounds=options.rounds, seconds=0.01)
    base = result.get(JAX)
    ratios = {} if base is None else {name: ratio(timing, base) for name, timing in result.items() if name != JAX}
    rows = [
        (name, f"{timing.median * 1e6:.3f}", f"{timing.minimum * 1e6:.3f}", str(ratios.get(name, "")))
        for name, timing in result.items()
    ]
    print(text_table([left(""), right("median µs"), right("min µs"), left("ratio to jax.jit [95%]")], rows))
    slow = [name for name, bound in options.bounds.items() if name in ratios and ratios[name].median > bound]
    for name in slow:
        print(f"{name}: above its bound of {options.bounds[name]:g}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
