"""Convolutions that are drawn have all that programs have: labels, windows, groups, types, and ops around them."""

from collections import Counter

import pytest

from ...differential.campaign.task import Orders, draw_task
from ...differential.generate.module import draw_case
from ...differential.generate.program import Limits
from ...differential.generate.source import Recorded, Seeded
from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.verify.verifier import verify

AROUND = (Op.ADD, Op.MULTIPLY, Op.MAXIMUM, Op.SUBTRACT, Op.TRANSPOSE, Op.PAD, Op.CONCATENATE, Op.NEGATE)
LIMITS = Limits(6, ops=frozenset({Op.CONVOLUTION, *AROUND}), focus=frozenset({Op.CONVOLUTION}))


@pytest.fixture(scope="module")
def convolutions():
    """Those of 500 programs, each of which has one at least."""
    found = []
    for seed in range(500):
        module = draw_case(Seeded(seed), LIMITS).module
        verify(module)
        made = [i for i in module.instructions() if i.opcode is Op.CONVOLUTION]
        assert made, seed
        found += made
    return found


def test_roles_are_in_any_order(convolutions):
    found = Counter()
    for i in convolutions:
        d = i.attributes["dim_labels"]
        found["rank", len(d.input_spatial)] += 1
        found["features last in the result"] += i.shape.minor_to_major[0] == d.output_feature
        found["features elsewhere"] += i.shape.minor_to_major[0] != d.output_feature
        found["features last in the kernel"] += i.operands[1].shape.minor_to_major[0] == d.kernel_output_feature
        found["another layout"] += any(not x.shape.is_row_major for x in (i, *i.operands))
        out_of_order = (tuple(sorted(dims)) != dims for dims in (d.input_spatial, d.kernel_spatial, d.output_spatial))
        found["spatial out of order"] += any(out_of_order)
    assert {("rank", n) for n in range(4)} <= {*found} and min(found.values()) >= 40


def test_windows_of_every_kind(convolutions):
    found = Counter()
    for i in convolutions:
        for w in i.attributes["window"].dims if "window" in i.attributes else ():
            found["padding on one side"] += (w.pad_low == 0) != (w.pad_high == 0)
            found["negative padding"] += min(w.pad_low, w.pad_high) < 0
            found["holes"] += w.lhs_dilate > 1
            found["dilation"] += w.rhs_dilate > 1
            found["stride"] += w.stride > 1
            found["reversal"] += w.reverse
            found["holes and dilation and stride"] += min(w.lhs_dilate, w.rhs_dilate, w.stride) > 1
    assert min(found.values()) >= 20


def test_features_groups_and_types(convolutions):
    features, found = Counter(), Counter()
    for i in convolutions:
        groups, batches = i.attributes["feature_group_count"], i.attributes["batch_group_count"]
        outs = i.operands[1].shape.dims[i.attributes["dim_labels"].kernel_output_feature]
        features[outs // (groups * batches)] += 1
        found["groups"] += groups > 1
        found["groups of batches"] += batches > 1
        found["a feature a group"] += groups > 1 and outs == groups
        found["a wider result"] += i.shape.dtype is not i.operands[0].shape.dtype
        found[i.shape.dtype] += 1
    assert {7, 8, 9, 15, 16, 17, 31, 32, 33} <= {*features}
    assert {DType.F32, DType.F64, DType.BF16, DType.F16, DType.S8, DType.S32, DType.C64} <= {*found}
    assert min(found["groups"], found["groups of batches"], found["a wider result"]) >= 20


def test_ops_around(convolutions):
    programs = [draw_case(Seeded(seed), LIMITS).module for seed in range(200)]
    found = Counter()
    for module in programs:
        for i in module.entry.instructions:
            found.update((i.opcode, o.opcode) for o in i.operands)
            found["a row"] += (
                i.opcode in (Op.ADD, Op.MULTIPLY, Op.SUBTRACT, Op.MAXIMUM)
                and i.operands[0].opcode is Op.CONVOLUTION
                and i.operands[1].opcode is Op.BROADCAST
                and len(i.operands[1].dimensions) == 1
            )
    reads = [found[Op.CONVOLUTION, op] for op in (Op.TRANSPOSE, Op.PAD, Op.CONCATENATE, Op.NEGATE)]
    assert min(reads) >= 5 and found["a row"] >= 10 and found[Op.TRANSPOSE, Op.CONVOLUTION] >= 3


def test_sizes_get_smaller_until_they_fit():
    """Whatever is drawn: the largest choices, too."""
    for seed in range(60):
        choices = draw_case(Seeded(seed), LIMITS)
        assert max(i.shape.size for i in choices.module.instructions() if i.shape.is_array) <= 1 << 17
    assert draw_case(Recorded([10**9] * 400), LIMITS).module is not None


def test_all_programs_may_be_checked_or_none():
    for percent in (0, 100):
        tasks = [draw_task(Seeded(seed), Orders(LIMITS, checked=percent, exact=0)) for seed in range(20)]
        assert {task.setting.memory for task in tasks} == {percent == 100}
