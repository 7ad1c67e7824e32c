"""Reductions of nothing are what they begin with, whichever dimension is empty, in every layout, on both stacks."""

from itertools import combinations, permutations

import pytest

from ..support.check import check

REDUCED = [dims for n in (1, 2, 3) for dims in combinations(range(3), n)]


@pytest.mark.parametrize("dtype", ["f32", "s32"])
@pytest.mark.parametrize("op", ["add", "maximum"])
@pytest.mark.parametrize("sizes", [(0, 2, 3), (2, 0, 3), (2, 3, 0), (0, 3, 0)], ids=str)
def test_every_layout_and_every_choice_of_dimensions(sizes, op, dtype):
    shape = f"{dtype}[{','.join(map(str, sizes))}]"
    lines, results, shapes = [f"z = {dtype}[] constant(7)"], [], []
    for n, layout in enumerate(permutations(range(3))):
        lines.append(f"x{n} = {shape}{{{','.join(map(str, layout))}}} parameter({n})")
        for reduced in REDUCED:
            name, dims = f"r{len(results)}", ",".join(map(str, reduced))
            kept = ",".join(str(sizes[d]) for d in range(3) if d not in reduced)
            lines.append(f"{name} = {dtype}[{kept}] reduce(x{n}, z), dimensions={{{dims}}}, to_apply=op")
            results.append(name)
            shapes.append(f"{dtype}[{kept}]")
    lines.append(f"ROOT t = ({', '.join(shapes)}) tuple({', '.join(results)})")
    region = f"op {{ a = {dtype}[] parameter(0)\n b = {dtype}[] parameter(1)\n ROOT r = {dtype}[] {op}(a, b) }}\n"
    body = "\n  ".join(lines)
    check(f"HloModule m\n{region}ENTRY e {{\n  {body}\n}}\n", None, ("evaluator", "legacy", "mlir"))
