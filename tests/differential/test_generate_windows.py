"""The generator draws windows of every kind, and what is drawn agrees on both stacks."""

from collections import Counter

import numpy as np
import pytest

from ...differential.generate.module import draw_case
from ...differential.generate.program import Limits
from ...differential.generate.source import Seeded
from ...differential.generate.windows import FEW, LANES, positions
from ...differential.outcome import outcome
from ...differential.setting import Setting
from ...hlo.analysis.windows import result_dims, running
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op

LIMITS = Limits(ops=frozenset({Op.REDUCE_WINDOW}), instructions=3)


def windows_of(case) -> list[Instruction]:
    return [i for i in case.module.entry.instructions if i.opcode is Op.REDUCE_WINDOW]


MADE = [i for seed in range(400) for i in windows_of(draw_case(Seeded(seed), LIMITS))]

KINDS = {
    "in the padding, of one element": lambda w, n: w.size == 1 and max(w.pad_low, w.pad_high) > 0,
    "padding wider than the window": lambda w, n: max(w.pad_low, w.pad_high) > w.size > 1,
    "padding on one side": lambda w, n: (w.pad_low > 0) != (w.pad_high > 0),
    "negative padding": lambda w, n: min(w.pad_low, w.pad_high) < 0,
    "base dilation": lambda w, n: w.lhs_dilate > 1 and n > 1,
    "base dilation under single elements": lambda w, n: w.lhs_dilate > 1 and w.size == 1 and n > 1,
    "window dilation": lambda w, n: w.rhs_dilate > 1 and w.size > 1,
    "reversal": lambda w, n: w.reverse and w.size > 1,
    "strides wider than the window": lambda w, n: w.stride > w.size and n > 1,
    "wider than the array": lambda w, n: w.size > n > 0,
    "nothing to slide over": lambda w, n: n == 0,
}


@pytest.mark.parametrize("kind", KINDS)
def test_windows_of_each_kind(kind):
    found = [i for i in MADE if any(map(KINDS[kind], i.attributes["window"].dims, i.operands[0].shape.dims))]
    assert len(found) >= 20


def test_forms_types_and_sizes():
    found = Counter[str]()
    for i in MADE:
        dims, result = i.operands[0].shape, next(shape for _, shape in i.shape.leaves())
        row = dims.dims[dims.minor_to_major[0]] in LANES and all(dims.dims[d] in FEW for d in dims.minor_to_major[1:])
        found["plane"] += row and dims.rank > 1
        found["layout"] += not (dims.is_row_major and result.is_row_major)
        found["empty"] += result.size == 0
        found["running"] += running(i) is not None
        found["two arrays"] += i.shape.is_tuple
        found["vectors"] += result.dims[result.minor_to_major[0]] >= 8
        region = i.attributes["to_apply"]
        found["in order"] += len(region.instructions) == 4 and not i.shape.is_tuple
    assert min(found.values()) >= 10, found
    assert found["vectors"] >= 200 and found["plane"] >= 150
    dtypes = {i.operands[0].shape.dtype for i in MADE}
    assert dtypes >= {DType.F32, DType.BF16, DType.F16, DType.F64, DType.C64, DType.S32, DType.U8, DType.PRED}
    assert {i.operands[0].shape.rank for i in MADE} == {*range(1, 9)}


def test_positions_are_those_of_the_verifier():
    for i in MADE:
        for w, n, count in zip(i.attributes["window"].dims, i.operands[0].shape.dims, result_dims(i), strict=True):
            assert positions(w, n) == count


def test_windows_read_gathers_products_and_concatenations():
    ops = frozenset({Op.REDUCE_WINDOW, Op.GATHER, Op.DOT, Op.CONCATENATE, Op.ADD, Op.BROADCAST})
    read = Counter[Op]()
    for seed in range(500):
        for i in windows_of(draw_case(Seeded(seed), Limits(ops=ops))):
            read[i.operands[0].opcode] += 1
    assert min(read[op] for op in (Op.GATHER, Op.DOT, Op.CONCATENATE, Op.ADD)) >= 10, read


def test_drawn_windows_agree():
    """What the stacks left in memory beside the padding was NaN or an old result in one of thirty of these programs."""
    for seed in range(40):
        case = draw_case(Seeded(seed), LIMITS)
        with np.errstate(all="ignore"):
            found = outcome(case.module, case.inputs, setting=Setting(cache=False, optimized=False))
        assert not found.is_finding, (found.sentence, case.blob)
