"""Time per multiply-add of products, by dtype, layout and size, on both stacks: does any size fall off a cliff?

Run: .venv/bin/python -m testbed.benchmarks.dot_shapes [--dtypes bf16,f32] [--layouts nn,nt] [--depths 512,4096]
     [--sizes 1x1024,128x256] [--stacks legacy,mlir,xla] [--epilogue]
A product is C[M, N] = Σ A[m, k]·B[k, n]. Its layout says which operands are stored transposed: n, t for A, then for B.
The unit is picoseconds per multiply-add, the minimum over rounds in which the stacks take turns. A row is marked
  ^ where a stack needs --limit times the time of its next smaller depth in the list (a cliff along K),
  * where it needs --limit times the time of the fastest stack.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .tables import left, right, text_table

DTYPES = ("f32", "bf16", "f16", "f64", "s8", "s4", "f8e5m2", "c64")
LAYOUTS = ("nn", "nt", "tn", "tt")
DEPTHS = (512, 1024, 2047, 2048, 2049, 3000, 4096, 8192, 65536)
SIZES = ((1, 256), (128, 128), (8, 8), (256, 1))
LARGEST = 1 << 31
"""Multiply-adds of the largest product that is timed: half a minute where each takes 10 ns."""


@dataclass(frozen=True, slots=True)
class Product:
    """One product: rows × depth times depth × columns; epilogue: a bias and a maximum follow."""

    dtype: str
    layout: str
    rows: int
    depth: int
    columns: int
    epilogue: bool = False

    @property
    def work(self) -> int:
        """Multiply-adds."""
        return self.rows * self.depth * self.columns

    def module_text(self) -> str:
        t, m, k, n = self.dtype, self.rows, self.depth, self.columns
        a = f"{k},{m}" if self.layout[0] == "t" else f"{m},{k}"
        b = f"{n},{k}" if self.layout[1] == "t" else f"{k},{n}"
        numbers = (
            f"lhs_contracting_dims={{{0 if self.layout[0] == 't' else 1}}}, "
            f"rhs_contracting_dims={{{1 if self.layout[1] == 't' else 0}}}"
        )
        lines = [f"a = {t}[{a}] parameter(0)", f"b = {t}[{b}] parameter(1)"]
        if not self.epilogue:
            lines += [f"ROOT d = {t}[{m},{n}] dot(a, b), {numbers}"]
        else:
            lines += [
                f"c = {t}[{n}] parameter(2)",
                f"d = {t}[{m},{n}] dot(a, b), {numbers}",
                f"e = {t}[{m},{n}] broadcast(c), dimensions={{1}}",
                f"ROOT f = {t}[{m},{n}] add(d, e)",
            ]
        return "\n".join(["HloModule product", "ENTRY main {", *("  " + line for line in lines), "}", ""])


def products(options: argparse.Namespace) -> list[Product]:
    """Every product that was asked for, the depths of one form in ascending order."""
    found = []
    for dtype in options.dtypes:
        for layout in options.layouts:
            for rows, columns in options.sizes:
                for depth in sorted(options.depths):
                    product = Product(dtype, layout, rows, depth, columns, options.epilogue)
                    if product.work <= LARGEST:
                        found.append(product)
    return found


def measure(product: Product, stacks: Sequence[str], rounds: int, seconds: float) -> dict[str, float]:
    """Picoseconds per multiply-add by stack."""
    from ..formats.program import Program
    from ..formats.text.parser import parse_module
    from .contestants import contestant
    from .paired import race

    text = product.module_text()
    program = Program("product", text, parse_module(text))
    inputs = [random_array(p.shape, seed) for seed, p in enumerate(program.module.entry.parameters)]
    runs = {stack: contestant(stack, program, inputs).run for stack in stacks}
    times = race(runs, rounds=rounds, seconds=seconds)
    return {stack: timing.minimum / product.work * 1e12 for stack, timing in times.items()}


def random_array(shape, seed: int) -> np.ndarray:
    """Small numbers of any dtype, none of them zero or subnormal."""
    generator = np.random.default_rng(seed)
    return generator.integers(1, 4, shape.dims).astype(shape.dtype.numpy)


def marks(times: Sequence[tuple[Product, Mapping[str, float]]], limit: float) -> dict[tuple[Product, str], str]:
    """The marks of each product and stack: '^' for a cliff along K, '*' for a slower stack."""
    found = {}
    for number, (product, row) in enumerate(times):
        before = times[number - 1] if number else None
        along = before is not None and _form(before[0]) == _form(product)
        for stack, time in row.items():
            steep = along and before is not None and time > limit * before[1][stack]
            found[product, stack] = ("^" if steep else "") + ("*" if time > limit * min(row.values()) else "")
    return found


def _form(product: Product) -> tuple[object, ...]:
    """What two neighbours along K have in common."""
    return product.dtype, product.layout, product.rows, product.columns, product.epilogue


def table(times: Sequence[tuple[Product, Mapping[str, float]]], limit: float) -> str:
    """A line per product: picoseconds per multiply-add on each stack, with marks; below, how many are marked."""
    stacks = list(times[0][1])
    found = marks(times, limit)
    columns = [left("dtype"), left("layout"), right("M"), right("N"), right("K")]
    for stack in stacks:
        columns += [right(f"{stack} ps"), left("")]
    rows = []
    for product, row in times:
        cells = [product.dtype, product.layout, str(product.rows), str(product.columns), str(product.depth)]
        for stack in stacks:
            cells += [f"{row[stack]:.1f}", found[product, stack]]
        rows.append(cells)
    ends = []
    for stack in stacks:
        cliffs = sum("^" in mark for (_, s), mark in found.items() if s == stack)
        slower = sum("*" in mark for (_, s), mark in found.items() if s == stack)
        ends.append(f"{stack}: {cliffs} cliffs along K, {slower} times {limit:g}× slower than the fastest stack")
    return "\n".join([text_table(columns, rows), *ends])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: text.split(",")  # noqa: E731
    parser.add_argument("--dtypes", type=words, default=list(DTYPES))
    parser.add_argument("--layouts", type=words, default=list(LAYOUTS))
    parser.add_argument("--depths", type=lambda text: [int(k) for k in text.split(",")], default=list(DEPTHS))
    parser.add_argument("--sizes", type=_sizes, default=list(SIZES), help="MxN, separated by commas")
    parser.add_argument("--stacks", type=words, default=["legacy", "mlir"])
    parser.add_argument("--epilogue", action="store_true", help="add a bias to the product, in the same kernel")
    parser.add_argument("--limit", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.005, help="seconds per stack and round")
    parser.add_argument("--cpu", type=int, default=0)
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.cpu})  # before XLA starts its threads, so that they share the core
    times = [(p, measure(p, options.stacks, options.rounds, options.seconds)) for p in products(options)]
    if not times:
        parser.error("no product is small enough to be timed")
    print(table(times, options.limit))


def _sizes(text: str) -> list[tuple[int, int]]:
    found = []
    for word in text.split(","):
        rows, _, columns = word.partition("x")
        found.append((int(rows), int(columns)))
    return found


if __name__ == "__main__":
    main()
