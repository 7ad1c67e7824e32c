"""The generator of programs: they are valid, cover the opset, come again from their blobs, and shrink."""

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings

from ...differential.generate.focus import PLACING, SCALING
from ...differential.generate.folds import fold_ops
from ...differential.generate.inputs import special_values
from ...differential.generate.module import again, draw_case
from ...differential.generate.program import Limits
from ...differential.generate.source import VERSION, Recorded, Seeded, blob_of, choices_of
from ...differential.generate.strategy import DrawnBy
from ...differential.generate.table import GROW, NOT_DRAWN, WEIGHTS
from ...differential.generate.values import DRAWN
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...formats.text.printer import print_module
from ...hlo.dtypes import DType
from ...hlo.errors import InputError
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...hlo.verify.verifier import verify

CASES = [draw_case(Seeded(seed)) for seed in range(250)]


def test_cases_verify_print_parse_and_have_fitting_inputs():
    for case in CASES:
        verify(case.module)
        text = print_module(case.module)
        assert print_module(parse_module(text)) == text
        for value, parameter in zip(case.inputs, case.module.entry.parameters, strict=True):
            assert (value.shape, value.dtype) == (parameter.shape.dims, parameter.shape.dtype.numpy)


def test_each_opcode_is_drawn_or_says_why_not():
    assert {*GROW, *NOT_DRAWN} == {*OPSET} and not GROW.keys() & NOT_DRAWN.keys()
    assert {OPSET[op].family for op in GROW} <= {*WEIGHTS}
    assert all(NOT_DRAWN.values())


@pytest.mark.parametrize("op", GROW, ids=lambda op: op.value)
def test_each_opcode_is_drawn_alone(op):
    """With the opcode as the only one allowed, some of a few programs have it."""
    seen = Counter()
    for seed in range(6):
        case = draw_case(Seeded(seed), Limits(ops=frozenset({op}), instructions=3))
        verify(case.module)
        seen.update(i.opcode for i in case.module.instructions())
    assert seen[op]


def test_types_ranks_and_forms():
    made = [i for case in CASES for i in case.module.instructions()]
    arrays = [i.shape for i in made if i.shape.is_array]
    assert {s.dtype for s in arrays} >= {*DRAWN}
    assert {s.rank for s in arrays} == {*range(9)}
    assert any(not s.size for s in arrays)
    assert any(not s.is_row_major for s in arrays) and any(s.is_dynamic for s in arrays)
    headers = [case.module.attributes for case in CASES]
    assert any("is_scheduled" in h for h in headers) and any("input_output_alias" in h for h in headers)
    assert any("buffer_donor" in h for h in headers)


def test_patterns_that_passes_rewrite_are_drawn():
    """Pairs of ops that place elements, integers by powers of two, products that read a transpose; and branches that
    only the run decides.
    """
    found = Counter()
    for seed in range(1500):
        for i in draw_case(Seeded(seed)).module.entry.instructions:
            found.update({(i.opcode, o.opcode) for o in i.operands})
            if i.opcode is Op.CONDITIONAL and i.operands[0].opcode in (Op.PARAMETER, Op.COMPARE, Op.SUBTRACT):
                found[Op.CONDITIONAL, i.operands[0].shape.dtype] += 1
                found[Op.CONDITIONAL, i.operands[0].opcode is Op.PARAMETER] += 1
            if i.opcode in SCALING and i.shape.dtype.is_integer and _is_power_of_two(i.operands[1]):
                found[i.opcode] += 1
    assert min(found[b, a] for a in PLACING for b in PLACING) >= 3
    assert min(found[op] for op in SCALING) >= 3 and found[Op.DOT, Op.TRANSPOSE] >= 10
    assert found[Op.CONDITIONAL, DType.PRED] >= 10 and found[Op.CONDITIONAL, DType.S32] >= 5
    assert found[Op.CONDITIONAL, True] >= 5 and found[Op.CONDITIONAL, False] >= 5


def _is_power_of_two(x: Instruction) -> bool:
    scalar = x.operands[0] if x.opcode is Op.BROADCAST else x
    if scalar.opcode is not Op.CONSTANT or scalar.shape.size != 1:
        return False
    number = int(scalar.literal.array.reshape(-1)[0])
    return number > 1 and number & (number - 1) == 0


def test_some_sums_are_long():
    limits = Limits(ops=frozenset({Op.REDUCE}))
    made = [i for seed in range(30) for i in draw_case(Seeded(seed), limits).module.entry.instructions]
    assert max(i.operands[0].shape.size for i in made if i.opcode is Op.REDUCE) > 100_000


def test_floats_are_multiplied_only_where_no_order_overflows():
    """inf times 0 is NaN in one order of a product and not in another, which no bound can know."""
    for dtype in DRAWN:
        large = Op.MULTIPLY in fold_ops(dtype, 1e30)
        assert large == dtype.is_integer
        assert (Op.MULTIPLY in fold_ops(dtype, 1.0)) == (dtype.is_integer or dtype.is_float)


def test_limits_are_kept():
    limits = Limits(4, ops=frozenset({Op.TANH, Op.ADD}), dtypes=(DType.F32, DType.S32))
    for seed in range(40):
        module = draw_case(Seeded(seed), limits).module
        found = {i.opcode for i in module.entry.instructions if i.operands and i.shape.is_array}
        assert found <= {Op.TANH, Op.ADD, Op.BROADCAST, Op.CLAMP, Op.COPY}
        assert {i.shape.dtype for i in module.entry.instructions if i.shape.is_array} <= {DType.F32, DType.S32}


def test_a_blob_draws_the_same_case():
    for case in CASES[:50]:
        same = again(case.blob)
        assert print_module(same.module) == print_module(case.module) and same.blob == case.blob
        assert all(a.tobytes() == b.tobytes() for a, b in zip(same.inputs, case.inputs, strict=True))


def test_blobs_that_are_none():
    good = CASES[0].blob
    for text, says in (
        ("", "no blob"),
        ("nonsense", "no blob"),
        (good.replace(f"p{VERSION}.", f"p{VERSION + 1}."), f"of version {VERSION + 1}"),
        (good[:-6], "damaged"),
        (f"p{VERSION}.!!", "damaged"),
    ):
        with pytest.raises(InputError, match=says) as raised:
            choices_of(text)
        assert raised.value.remedy


def test_choices_beyond_the_end_are_the_simplest():
    case = draw_case(Recorded([]))
    verify(case.module)
    assert case.module.entry.root.opcode is Op.ADD
    assert choices_of(blob_of("p", [0, 127, 128, 70_000])) == ("p", [0, 127, 128, 70_000])
    assert draw_case(Recorded([10**9] * 400)).module is not None


def test_exact_values_are_what_is_known_of_them():
    """What the generator says of numbers holds in the oracle: whole ones are integers below their limit."""
    checked = 0
    for case in CASES:
        for name, value in _known(case).items():
            whole, most, found = value
            if whole and found.size and found.dtype.kind in "fc":
                parts = np.concatenate([found.real.ravel(), found.imag.ravel()]).astype(np.float64)
                assert np.all(parts == np.round(parts)) and np.all(np.abs(parts) <= most), (name, case.blob)
                checked += 1
    assert checked > 30


def _known(case):
    """For each array of the entry that is a result: (whole, most, numbers)."""
    from ...differential.generate import module as drawing

    kept = {}
    usual = drawing._results

    def watched(body):
        found = usual(body)
        kept.update({n: (v.whole, v.most) for n, v in enumerate(found)})
        return found

    drawing._results = watched
    try:
        same = again(case.blob)
    finally:
        drawing._results = usual
    with np.errstate(all="ignore"):
        results = evaluate(same.module, [x.copy() for x in same.inputs])
    return {n: (*kept[n], r) for n, r in enumerate(results)} if len(results) == len(kept) else {}


@settings(phases=(Phase.generate,), database=None, suppress_health_check=list(HealthCheck))
@given(DrawnBy(draw_case))
def test_hypothesis_draws_cases(case):
    verify(case.module)
    assert print_module(again(case.blob).module) == print_module(case.module)


def test_shrinking_gives_a_small_module():
    def has_a_loop_around_a_sine(case):
        bodies = [i.attributes["body"] for i in case.module.entry.instructions if i.opcode is Op.WHILE]
        return any(Op.SINE in body.opcodes for body in bodies)

    limits = Limits(ops=frozenset({Op.WHILE, Op.SINE, Op.ADD, Op.TRANSPOSE, Op.REDUCE}))
    found = find(
        DrawnBy(lambda source: draw_case(source, limits)),
        has_a_loop_around_a_sine,
        settings=settings(
            max_examples=settings().max_examples * 60, database=None, suppress_health_check=list(HealthCheck)
        ),
        random=Random(2),
    )
    drawn = [i for i in found.module.entry.instructions if i.opcode not in (Op.PARAMETER, Op.CONSTANT)]
    assert len(drawn) <= 8 and len(found.module.computations) == 3


def test_special_values_hold_the_ends_of_a_type():
    assert {0, 1, 254, 255} <= {int(v) for v in special_values(DType.U8)}
    floats = special_values(DType.F16).astype(np.float64)
    assert np.isnan(floats).any() and np.isinf(floats).any() and 65504 in floats and 2**-24 in floats
