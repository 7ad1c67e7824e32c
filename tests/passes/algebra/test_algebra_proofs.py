"""Rules on integers, element by element, are proved by z3: for every type of HLO, and for all widths from 1 to 64 bits.

The rule itself makes the right side, from its template. For widths that HLO does not have, the constants of the 32-bit
and the 64-bit form say what they are there: a number, or a number from the width or from the least or largest integer.
"""

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from ....evaluator.evaluator import evaluate
from ....formats.text.parser import parse_module
from ....hlo.dtypes import BY_NAME, DType
from ....hlo.ir import Instruction
from ....hlo.opcodes import Op
from ....hlo.opset import OPSET
from ....passes.algebra.sweep import ALL_RULES, by_opcode, simplify_algebra
from ....passes.fuel import Fuel, limited
from ...cases.algebra_modules import dtypes, hlo_text
from ...cases.algebra_template import Template
from ...cases.algebra_templates import TEMPLATES
from ...support.corpus import DEEP

if find_spec("z3") is None:
    pytest.skip("z3-solver is not installed (./testbed setup --dev)", allow_module_level=True)

import z3

from ....differential.exact.formulas import LOGIC, TERMS, Formulas, NoFormulaError, splat

WIDTHS = range(1, 65) if DEEP else (1, 2, 3, 5, 6, 7, 12, 31, 33, 63)

Sides = tuple[Instruction, Instruction]
"""The roots of a module before and after a rule."""


def sides(name: str, template: Template, dtype: str) -> Sides:
    before = parse_module(hlo_text(template, dtype))
    with limited(Fuel()) as fuel:
        after = simplify_algebra(before, by_opcode([r for r in ALL_RULES if r.name == name]))
    assert fuel.spent, name
    return before.entry.root, after.entry.root


def prove(pair: Sides, width: Callable[[DType], int], number: Callable[[Instruction], int], what: str) -> None:
    """Raises AssertionError with numbers for which both sides differ, NoFormulaError."""
    formulas = Formulas(width, number)
    left, right = map(formulas.of, pair)
    for case in cases(left != right, [i for i in below(pair[0]) if i.opcode is Op.ABS], formulas):
        solver = z3.SolverFor("QF_BV")
        solver.set("rlimit", 50_000_000)
        solver.add(case)
        answer = solver.check()
        assert answer == z3.unsat, f"{what}: {answer} {solver.model() if answer == z3.sat else ''}"


def cases(differ: Any, magnitudes: list[Instruction], formulas: Formulas) -> list[Any]:
    """The question for each choice of the signs of what magnitudes are taken of: products of these are too hard."""
    found = [differ]
    for negative in (formulas.of(i.operands[0]) < 0 for i in magnitudes if i.shape.dtype.is_signed):
        found = [
            z3.And(negative == z3.BoolVal(sign), z3.substitute(question, (negative, z3.BoolVal(sign))))
            for question in found
            for sign in (True, False)
        ]
    return found


def constants(root: Instruction) -> list[Instruction]:
    """The constants below an instruction, in a fixed order."""
    found: dict[Instruction, None] = {}

    def walk(i: Instruction) -> None:
        for o in i.operands:
            walk(o)
        if i.opcode is Op.CONSTANT:
            found[i] = None

    walk(root)
    return list(found)


def bounds(width: int, signed: bool) -> tuple[int, int]:
    half = 1 << width - 1
    return (-half, half - 1) if signed else (0, 2 * half - 1)


def at_width(narrow: int, wide: int, width: int, signed: bool) -> int:
    """What a constant is in a width, from what it is in 32 and in 64 bits."""
    for of in (lambda w: 0, lambda w: w, lambda w: bounds(w, signed)[0], lambda w: bounds(w, signed)[1]):
        if narrow - of(32) == wide - of(64):
            return narrow - of(32) + of(width)
    raise NoFormulaError(f"{narrow} in 32 bits and {wide} in 64")


def prove_widths(name: str, template: Template, kind: str) -> int:
    """Prove a template for all widths of signed or of unsigned integers that hold its constants; returns how many."""
    signed, types = kind == "s", (f"{kind}32", f"{kind}64")
    if not {*types} <= {*dtypes(template)}:
        return 0
    narrow, wide = (sides(name, template, dtype) for dtype in types)
    if any(i.shape.dtype not in (BY_NAME[types[0]], DType.PRED) for root in narrow for i in below(root)):
        return 0
    count = 0
    for width in WIDTHS:
        given, made = (constants_at(a, b, width, signed) for a, b in zip(narrow, wide, strict=True))
        low, high = bounds(width, signed)
        if all(low <= value <= high for i, value in given.items() if i.shape.dtype is not DType.PRED):
            values = {**given, **made}
            prove(narrow, partial(_always, width), values.__getitem__, f"{name} {kind}{width}: {template.body}")
            count += 1
    return count


def _always(width: int, dtype: DType) -> int:
    return width


def constants_at(narrow: Instruction, wide: Instruction, width: int, signed: bool) -> dict[Instruction, int]:
    """The constants of a side in 32 bits → what they are in a width. Raises NoFormulaError."""
    here, there = constants(narrow), constants(wide)
    if len(here) != len(there):
        raise NoFormulaError("another formula in 64 bits")
    return {
        x: splat(x) if x.shape.dtype is DType.PRED else at_width(splat(x), splat(y), width, signed)
        for x, y in zip(here, there, strict=True)
    }


def below(root: Instruction) -> set[Instruction]:
    found = {root}
    for o in root.operands:
        found |= below(o)
    return found


def proved(name: str) -> tuple[int, int]:
    """(Types of HLO, widths) for which the templates of a rule are proved; (0, 0) if none is a formula of integers."""
    found = [_proved(name, template) for template in TEMPLATES[name]]
    return sum(types for types, _ in found), sum(widths for _, widths in found)


def _proved(name: str, template: Template) -> tuple[int, int]:
    integers = [d for d in dtypes(template) if BY_NAME[d].is_integer or BY_NAME[d] is DType.PRED]
    try:
        for dtype in integers:
            prove(sides(name, template, dtype), lambda d: d.bits, splat, f"{name} {dtype}: {template.body}")
        return len(integers), sum(prove_widths(name, template, kind) for kind in "su")
    except NoFormulaError:
        return 0, 0


FORMULAS = """
abs_of_negated abs_of_what_is_not_negative absorb add_negated add_zero clamp_in_range clamp_of_clamp clamp_twice
compare_itself compare_ranges compare_with_truth de_morgan divide_in_range divide_minus_one divide_one
elementwise_of_broadcasts extreme_in_range extreme_of_constants extreme_of_limit factor_out gather_constants
idempotent logic_known logic_of_negation multiply_minus_one multiply_negated multiply_one multiply_zero
negated_difference negated_factor negated_product not_of_compare remainder_in_range remainder_one same_operands
select_extreme select_known select_of_not select_same_test select_truth shift_by_zero shift_out shift_twice
square_of_magnitude subtract_constant subtract_itself subtract_negated subtract_zero twice
unsigned_divide_power_of_two unsigned_remainder_power_of_two xor_known
"""
"""The rules that are formulas of integers, at least in some of their templates."""

OF_PREDS = {"compare_with_truth", "select_truth"}
"""Those that are formulas of preds only."""


@pytest.mark.parametrize("name", FORMULAS.split())
def test_a_rule_on_integers_is_proved_for_all_widths(name):
    types, widths = proved(name)
    assert types > 0 and (widths >= 4) == (name not in OF_PREDS)


def test_no_other_rule_is_a_formula_of_integers():
    assert [name for name in TEMPLATES if name not in FORMULAS.split() and proved(name) != (0, 0)] == []


PARAMETERS = "x = s8[] parameter(0)\n k = s8[] constant(2)\n o = s8[] constant(1)"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("s8[] abs(x)", "s8[] maximum(x, k)"),
        ("s8[] divide(x, k)", "s8[] shift-right-arithmetic(x, o)"),
        ("s8[] shift-left(x, k)", "s8[] add(x, x)"),
        ("s8[] remainder(x, k)", "s8[] and(x, o)"),
    ],
)
def test_a_wrong_rewrite_is_no_theorem(left, right):
    """A quotient is rounded towards 0, a shift downwards; and so on."""
    texts = [f"HloModule m\nENTRY e {{ {PARAMETERS}\n ROOT r = {text} }}\n" for text in (left, right)]
    pair = parse_module(texts[0]).entry.root, parse_module(texts[1]).entry.root
    with pytest.raises(AssertionError, match="p0 = "):
        prove(pair, lambda dtype: dtype.bits, splat, "")


@pytest.mark.parametrize("op", TERMS, ids=lambda op: op.value)
def test_formulas_give_the_evaluators_numbers(op):
    """On all numbers of four bits, and on preds."""
    types = [dtype for dtype in ("s4", "u4", "pred") if BY_NAME[dtype] in OPSET[op].dtypes]
    assert types
    for dtype in types:
        text = one_op(op, dtype)
        root = parse_module(text).entry.root
        if dtype == "pred" and op not in LOGIC:
            with pytest.raises(NoFormulaError):
                Formulas(lambda d: d.bits, splat).of(root)
            continue
        kinds = [o.shape.dtype for o in root.operands]
        numbers = [np.arange(2) if k is DType.PRED else np.arange(16) - 8 * k.is_signed for k in kinds]
        inputs = [x.reshape(-1).astype(k.numpy) for x, k in zip(np.meshgrid(*numbers), kinds, strict=True)]
        (wanted,) = evaluate(parse_module(text.replace("[]", f"[{inputs[0].size}]")), inputs)
        formula = Formulas(lambda d: d.bits, splat).of(root)
        step = 1 if len(kinds) < 3 else 37
        rows = [*zip(*inputs, wanted, strict=True)][::step]
        assert [value_of(formula, row[:-1], kinds) for row in rows] == [int(row[-1]) % 16 for row in rows], dtype


def value_of(formula: Any, values: Sequence[Any], kinds: Sequence[DType]) -> int:
    given = []
    for n, (value, kind) in enumerate(zip(values, kinds, strict=True)):
        pred = kind is DType.PRED
        variable = z3.Bool(f"p{n}") if pred else z3.BitVec(f"p{n}", 4)
        given.append((variable, z3.BoolVal(bool(value)) if pred else z3.BitVecVal(int(value), 4)))
    found = z3.simplify(z3.substitute(formula, *given))
    return int(z3.is_true(found)) if z3.is_bool(found) else found.as_long()


def one_op(op: Op, dtype: str) -> str:
    """A module of one op on parameters of a type."""
    if op is Op.SELECT:
        kinds = ("pred", dtype, dtype)
    else:
        kinds = (dtype,) * OPSET[op].low
    more, kind = (", direction=GE", "pred") if op is Op.COMPARE else ("", dtype)
    lines = [f"p{n} = {k}[] parameter({n})" for n, k in enumerate(kinds)]
    names = ", ".join(f"p{n}" for n in range(len(kinds)))
    return "\n".join(["HloModule m", "ENTRY e {", *lines, f"ROOT r = {kind}[] {op.value}({names}){more}", "}", ""])
