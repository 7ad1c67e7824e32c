"""Every algebraic rule, on modules made for it: the rule fires, and the results are the same.

Results must be equal bit for bit if the rule is exact (all NaNs count as equal), otherwise within the rule's ulp.
Inputs include NaN, infinities, -0, subnormals and the limits of integers, for every type that the template admits.
"""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ....differential.comparison import ulp_distance
from ....evaluator.evaluator import evaluate
from ....formats.text.parser import parse_module
from ....hlo.dtypes import FROM_NUMPY, DType
from ....hlo.ir import Module
from ....hlo.opcodes import Op
from ....hlo.verify.verifier import verify
from ....passes.algebra.rule import Rule
from ....passes.algebra.sweep import ALL_RULES, by_opcode, simplify_algebra
from ....passes.cleanup.simplify import RULES as SIMPLIFY_RULES
from ....passes.cleanup.simplify import simplify
from ....passes.fuel import Fuel, limited
from ....passes.pipeline import optimize, run_pipeline, select
from ...cases.algebra_modules import cases, dtypes, hlo_text, special_inputs
from ...cases.algebra_template import Template
from ...cases.algebra_templates import TEMPLATES
from ...cases.simplify_templates import SIMPLIFY
from ...generators.random_programs import expression
from ...support.choices import CHOICES

CASES = list(cases())


def rule_of(name: str) -> Rule:
    return next(r for r in ALL_RULES if r.name == name)


def same_bits(before: np.ndarray, after: np.ndarray) -> bool:
    """Equal including the sign of zero; all NaNs count as equal."""
    assert before.dtype == after.dtype and before.shape == after.shape
    if before.dtype.kind == "c":
        return same_bits(before.real, after.real) and same_bits(before.imag, after.imag)
    dtype = FROM_NUMPY[before.dtype]
    if not dtype.is_float:
        return np.array_equal(before, after)
    nans = np.isnan(before) & np.isnan(after)
    bits = np.dtype(f"u{before.dtype.itemsize}")
    return bool(np.all(nans | (np.ascontiguousarray(before).view(bits) == np.ascontiguousarray(after).view(bits))))


def close(before: np.ndarray, after: np.ndarray, ulp: float) -> bool:
    """Equal within `ulp`, integers exactly. Elements that overflow on one side only are ignored, since summands may
    cancel. Complex numbers are compared in the plane, where all parts are finite.
    """
    if before.dtype.kind == "c":
        finite = np.isfinite(before) & np.isfinite(after)
        with np.errstate(all="ignore"):
            apart = np.abs(before.astype(np.clongdouble) - after) > ulp * np.finfo(before.dtype).eps * np.abs(before)
        return not (apart & finite).any()
    if not FROM_NUMPY[before.dtype].is_float:
        return np.array_equal(before, after)
    finite = np.isfinite(before) & np.isfinite(after)
    with np.errstate(all="ignore"):
        alike = (np.isnan(before) & np.isnan(after)) | (before == after) | (ulp_distance(before, after) <= ulp)
    return bool(np.all(alike | ~finite & ~(np.isfinite(before) & np.isnan(after))))


def holds(rule: Rule, before: Module, after: Module, seed: int) -> bool:
    inputs = special_inputs(before, seed)
    wanted, given = (evaluate(m, inputs, flush_subnormals=False) for m in (before, after))
    if rule.inexact:
        return all(close(w, g, rule.ulp) for w, g in zip(wanted, given, strict=True))
    return all(same_bits(w, g) for w, g in zip(wanted, given, strict=True))


def applied(rule: Rule, module: Module) -> Module:
    """The module after this one rule, which must fire."""
    with limited(Fuel()) as fuel:
        after = simplify_algebra(module, by_opcode([rule]))
    assert fuel.spent, f"{rule.name} finds nothing to match"
    verify(after)
    return after


def test_each_rule_has_a_template_and_a_pattern():
    names = [r.name for r in ALL_RULES]
    assert len(set(names)) == len(names)
    assert set(TEMPLATES) == set(names), "a rule without a template in algebra_modules.py, or a template without a rule"
    for r in ALL_RULES:
        assert "→" in r.pattern, f"{r.name}: its docstring's first line says what it makes of what"
        assert bool(r.inexact) or not r.ulp


@pytest.mark.parametrize("name", TEMPLATES)
def test_each_rule_fires_and_keeps_the_results(name: str):
    rule = rule_of(name)
    for template in TEMPLATES[name]:
        for dtype in dtypes(template):
            text = hlo_text(template, dtype)
            before = parse_module(text)
            verify(before)
            try:
                after = applied(rule, before)
            except AssertionError as error:
                raise AssertionError(f"{error}\n{text}") from None
            assert holds(rule, before, after, seed=1), text


@given(st.sampled_from(CASES), st.integers(0, 2**32))
def test_special_values(chosen: tuple[str, Template, str], seed: int):
    name, template, dtype = chosen
    rule, before = rule_of(name), parse_module(hlo_text(template, dtype))
    assert holds(rule, before, applied(rule, before), seed)
    assert holds(rule, before, simplify_algebra(before), seed)
    with limited(Fuel()) as fuel:
        simplify_algebra(simplify_algebra(simplify_algebra(before)))
    assert fuel.spent < 50


@given(st.sampled_from(CASES), st.integers(0, 2**32))
def test_the_whole_pipeline(chosen: tuple[str, Template, str], seed: int):
    before = parse_module(hlo_text(*chosen[1:]))
    inputs = special_inputs(before, seed)
    wanted, given = (evaluate(m, inputs, flush_subnormals=False) for m in (before, optimize(before)))
    assert all(close(w, g, 64) for w, g in zip(wanted, given, strict=True) if w.dtype.kind != "c")


def test_a_sweep_ends():
    """Rules do not undo each other: a second sweep changes nothing."""
    for name, template, dtype in CASES[:: max(len(CASES) // 400, 1)]:
        once = simplify_algebra(simplify_algebra(parse_module(hlo_text(template, dtype))))
        with limited(Fuel()) as fuel:
            simplify_algebra(once)
        assert not fuel.spent, name


EXPRESSION_TYPES = [DType.F32, DType.F16, DType.BF16, DType.F64, DType.S8, DType.S32, DType.U8, DType.U64, DType.PRED]


@given(CHOICES, st.sampled_from(EXPRESSION_TYPES))
def test_expressions_keep_every_bit(choices: Random, dtype: DType):
    """No rule for elementwise ops may change a bit, in any combination with others."""
    text = hlo_text(Template(dtype.value, expression(choices, dtype)), dtype.value)
    before = parse_module(text)
    after = simplify_algebra(simplify_algebra(before))
    verify(after)
    inputs = special_inputs(before, choices.randrange(2**16))
    results = [evaluate(m, inputs, flush_subnormals=False) for m in (before, after)]
    assert all(same_bits(w, g) for w, g in zip(*results, strict=True)), text


def test_each_rule_of_simplify_has_a_template():
    assert set(SIMPLIFY) == set(SIMPLIFY_RULES), "a rule of simplify.py without a template, or the other way round"


@pytest.mark.parametrize("opcode", SIMPLIFY, ids=lambda op: op.value)
def test_simplify_moves_no_element(opcode: Op):
    for template in SIMPLIFY[opcode]:
        for dtype in dtypes(template):
            text = hlo_text(template, dtype)
            before = parse_module(text)
            verify(before)
            with limited(Fuel()) as fuel:
                after = simplify(before)
            assert fuel.spent, text
            verify(after)
            inputs = special_inputs(before, 2)
            results = [evaluate(m, inputs, flush_subnormals=False) for m in (before, after)]
            assert all(same_bits(w, g) for w, g in zip(*results, strict=True)), text


KEPT = [
    ("algebra", "a = f32[2,3] negate(x); ROOT r = f32[2,3] add(x, a)", Op.SUBTRACT),
    ("algebra", "x = f32[2] parameter(0); y = f32[3] parameter(1); ROOT r = f32[2,3] dot(x, y)", Op.MULTIPLY),
    ("simplify", "x = f32[1,3] parameter(0); ROOT r = f32[3,1] transpose(x), dimensions={1,0}", Op.RESHAPE),
    ("simplify", "ROOT r = s32[] get-dimension-size(x), dimensions={1}", Op.CONSTANT),
    ("fold-constants", "n = f32[] constant(2); ROOT r = f32[] negate(n)", Op.CONSTANT),
]


@pytest.mark.parametrize(("name", "body", "opcode"), KEPT)
def test_metadata_and_sharding_stay_with_what_stands_for_an_instruction(name, body, opcode):
    said = ', metadata={op_name="jit(f)/work"}, sharding={replicated}'
    before = parse_module(hlo_text(Template("f32", body + said), "f32"))
    root = run_pipeline(before, select([name])).entry.root
    assert root.opcode is opcode and root.name == "r"
    for key in ("metadata", "sharding"):
        assert root.attributes[key] == before.entry.root.attributes[key]
