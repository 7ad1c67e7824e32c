"""Sorts, reductions and scatters drop arrays that are not used."""

import numpy as np
import pytest

from ....evaluator.evaluator import evaluate
from ....formats.text.parser import parse_module
from ....hlo.ir import Module
from ....hlo.opcodes import Op
from ....hlo.verify.verifier import verify
from ....passes.pipeline import run_pipeline, select
from ...support.check import check

REGIONS = """less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  e = f32[] parameter(4)
  f = f32[] parameter(5)
  ROOT r = pred[] compare(e, f), direction=LT }
three { a = f32[] parameter(0)
  b = s32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  e = s32[] parameter(4)
  f = f32[] parameter(5)
  p = pred[] compare(a, d), direction=GE
  k = s32[] select(p, b, e)
  m = f32[] maximum(a, d)
  s = f32[] add(c, f)
  ROOT t = (f32[], s32[], f32[]) tuple(m, k, s) }
"""
SORT = "s = (f32[9], s32[9], f32[9]) sort(x, i, y), dimensions={0}, to_apply=less"
REDUCE = "s = (f32[], s32[], f32[]) reduce(x, i, y, l, z, o), dimensions={0}, to_apply=three"
WINDOW = "s = (f32[9], s32[9], f32[9]) reduce-window(x, i, y, l, z, o), window={size=3 pad=1_1}, to_apply=three"
SCATTER = (
    "n = s32[2,1] constant({{4},{7}})\n  u = f32[2] slice(y), slice={[0:2]}\n  v = s32[2] slice(i), slice={[0:2]}\n"
    "  s = (f32[9], s32[9], f32[9]) scatter(x, i, y, n, u, v, u), update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=three"
)


BARRIER = (
    "u = s32[9] negate(i)\n  w = (f32[9], s32[9], f32[9]) tuple(x, u, y)\n  s = (f32[9], s32[9], f32[9]) opt-barrier(w)"
)


def text_of(line: str, *taken: int) -> str:
    start = line.rindex("= (") + 3
    shapes = line[start : line.index(")", start)].split(", ")
    reads = [f"r{k} = {shapes[k]} get-tuple-element(s), index={k}" for k in taken]
    lines = ["x = f32[9] parameter(0)", "y = f32[9] parameter(1)", "i = s32[9] iota(), iota_dimension=0"]
    lines += ["l = f32[] constant(-inf)", "z = s32[] constant(0)", "o = f32[] constant(0)", line, *reads]
    root = f"ROOT t = ({', '.join(shapes[k] for k in taken)}) tuple({', '.join(f'r{k}' for k in taken)})"
    return f"HloModule m\n{REGIONS}ENTRY e {{\n  " + "\n  ".join([*lines, root]) + "\n}\n"


def pruned(module: Module) -> Module:
    return run_pipeline(module, select(["flatten", "dce", "prune", "dce"]))


@pytest.mark.parametrize(
    ("line", "taken", "left"),
    [
        (SORT, (0,), 2), (SORT, (2,), 1), (SORT, (1, 2), 2), (SORT, (0, 1), 3),
        (REDUCE, (0,), 2), (REDUCE, (1,), 4), (REDUCE, (2,), 2), (REDUCE, (2, 0), 4), (REDUCE, (1, 2), 6),
        (WINDOW, (0,), 2), (WINDOW, (1,), 4), (WINDOW, (0, 1, 2), 6),
        (BARRIER, (1,), 1), (BARRIER, (2, 0), 1), (BARRIER, (0, 1, 2), 1),
        (SCATTER, (2,), 3), (SCATTER, (1, 0), 5), (SCATTER, (1, 2), 7),
    ],
)  # fmt: skip
def test_only_what_is_needed_is_carried(line, taken, left):
    text = text_of(line, *taken)
    before = parse_module(text)
    after = pruned(before)
    verify(after)
    opcodes = {Op.SORT, Op.REDUCE, Op.REDUCE_WINDOW, Op.SCATTER, Op.OPT_BARRIER}
    (found,) = [i for i in after.entry.instructions if i.opcode in opcodes]
    assert len(found.operands) == left
    if line == BARRIER:
        assert len(list(found.shape.leaves())) == len(taken)
        assert any(i.opcode is Op.NEGATE for i in after.entry.instructions) == (1 in taken)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(9).astype(np.float32) for _ in range(2)]
    for wanted, given in zip(evaluate(before, inputs), evaluate(after, inputs), strict=True):
        np.testing.assert_array_equal(wanted, given)
    check(text, inputs)


def test_what_is_read_whole_or_tied_stays():
    whole = text_of(SORT, 0).replace("ROOT t = (f32[9]) tuple(r0)", "ROOT t = ((f32[9], s32[9], f32[9])) tuple(s)")
    tied = text_of(SORT, 0).replace("index=0", "index=0, control-predecessors={x}")
    root = text_of(SORT).replace(SORT, f"ROOT {SORT}").replace("  ROOT t = () tuple()\n", "")
    for text in (whole, tied, root):
        after = pruned(parse_module(text))
        (sort,) = [i for i in after.entry.instructions if i.opcode is Op.SORT]
        assert len(sort.operands) == 3


def test_narrow_sums_are_rounded_as_before():
    text = text_of(REDUCE, 2)
    narrow = text.replace("f32", "bf16")
    for given, left in ((text, 2), (narrow, 6)):
        (reduce,) = [i for i in pruned(parse_module(given)).entry.instructions if i.opcode is Op.REDUCE]
        assert len(reduce.operands) == left
