"""Faults of one stack's emitters."""

from __future__ import annotations

from typing import Any

from ...hlo.opcodes import Op
from .fault import Fault, Spot, emitter_row

_ENTRY = "HloModule planted\n\n{regions}ENTRY e {{\n{body}}}\n"


def module(body: str, regions: str = "") -> str:
    """HLO text with an entry of these lines."""
    return _ENTRY.format(regions=regions, body="".join(f"  {line.strip()}\n" for line in body.strip().splitlines()))


_LEGACY, _MLIR = ("legacy",), ("mlir",)
_NAN = float("nan")


def _swapped(function: Any) -> Any:
    return lambda *given: function(*given[:-2], given[-1], given[-2])


def _subtracts_backwards(row: Any) -> Any:
    from dataclasses import replace

    return replace(row, integer=_swapped(row.integer), real=_swapped(row.real))


def _one_too_early(function: Any) -> Any:
    """A rule of data movement that reads the element before, where there is one."""

    def rule(e: Any, node: Any, number: int, index: Any, raw: bool) -> Any:
        if isinstance(index, tuple) and index:
            b = e.b
            at, none, one = b.materialize(index[-1]), b.materialize(0), b.materialize(1)
            before = b.select(b.compare_integers("eq", at, none), at, b.binary("subi", at, one))
            index = (*index[:-1], before)
        return (yield from function(e, node, number, index, raw))

    return rule


def _in_order(positions: Any) -> Any:
    def rule(e: Any, instruction: Any, index: Any) -> Any:
        from ...legacy.loops.elemental import Index

        operand = instruction.operands[0]
        return (yield operand, Index.at(e.code, operand.shape, list(index.multi)))

    return rule


def _smaller(b: Any, node: Any, x: Any, y: Any) -> Any:
    return b.select(b.compare("olt", x, y), x, y)


def _first_only(function: Any) -> Any:
    def combine(e: Any, node: Any, accumulators: Any, elements: Any) -> Any:
        return function(e, node, elements, accumulators)

    return combine


STACKS: tuple[Fault, ...] = (
    Fault(
        "legacy-maximum-blind-to-nan",
        "nan",
        "maximum takes NaN for a small number",
        _LEGACY,
        ("maximum", "reduce", "scatter"),
        [
            emitter_row(
                "legacy", "numerics.elementwise", Op.MAXIMUM, real=lambda r, a, b: r.select(r.compare(">", a, b), a, b)
            )
        ],
        module("""
            p = f32[8] parameter(0)
            c = f32[] constant(-0.5)
            b = f32[8] broadcast(c), dimensions={}
            t = f32[8] tanh(p)
            m = f32[8] maximum(t, b)
            ROOT r = f32[8] exponential(m)
        """),
        (_NAN, 1.0, -1.0),
    ),
    Fault(
        "legacy-compare-less-or-equal",
        "predicate",
        "compare LT is LE",
        _LEGACY,
        ("compare",),
        [Spot("legacy.numerics.elementwise", "COMPARISONS", lambda _: "<=", "LT", (Op.COMPARE, Op.SORT))],
        module("""
            p = s32[16] parameter(0)
            q = s32[16] parameter(1)
            s = s32[16] add(p, q)
            c = pred[16] compare(p, q), direction=LT
            ROOT r = s32[16] select(c, s, q)
        """),
    ),
    Fault(
        "legacy-subtract-swapped",
        "operands",
        "the operands of subtract are swapped",
        _LEGACY,
        ("subtract",),
        [Spot("legacy.numerics.elementwise", "EMIT", _subtracts_backwards, Op.SUBTRACT)],
        module("""
            p = f32[4,4] parameter(0)
            q = f32[4,4] parameter(1)
            s = f32[4,4] sine(p)
            d = f32[4,4] subtract(s, q)
            e = f32[4,4] exponential(d)
            ROOT t = (f32[4,4], f32[4,4]) tuple(e, s)
        """),
    ),
    Fault(
        "legacy-round-half-away",
        "rounding",
        "round-nearest-even rounds halves away from zero",
        _LEGACY,
        ("round-nearest-even",),
        [emitter_row("legacy", "numerics.elementwise", Op.ROUND_NEAREST_EVEN, real=lambda r, x: r.call("round", x))],
        module("""
            p = f32[6] parameter(0)
            a = f32[6] abs(p)
            e = f32[6] round-nearest-even(a)
            ROOT r = f32[6] add(e, p)
        """),
        (0.5, 2.5, -4.5),
    ),
    Fault(
        "legacy-reverse-forgotten",
        "index",
        "reverse copies",
        _LEGACY,
        ("reverse",),
        [Spot("legacy.kernel", "RULES", _in_order, Op.REVERSE)],
        module("""
            p = f32[5,3] parameter(0)
            n = f32[5,3] negate(p)
            v = f32[5,3] reverse(n), dimensions={0}
            ROOT r = f32[5,3] add(v, p)
        """),
    ),
    Fault(
        "mlir-minimum-blind-to-nan",
        "nan",
        "minimum takes NaN for a large number",
        _MLIR,
        ("minimum", "reduce", "scatter"),
        [emitter_row("mlir_emitters", "numerics.elementwise", Op.MINIMUM, floating=_smaller)],
        module("""
            p = f32[8] parameter(0)
            c = f32[] constant(0.5)
            b = f32[8] broadcast(c), dimensions={}
            e = f32[8] exponential(p)
            m = f32[8] minimum(e, b)
            ROOT r = f32[8] negate(m)
        """),
        (1.0, _NAN, 0.5),
    ),
    Fault(
        "mlir-reverse-off-by-one",
        "bounds",
        "reverse reads the element before",
        _MLIR,
        ("reverse",),
        [Spot("mlir_emitters.kernel", "RULES", _one_too_early, Op.REVERSE)],
        module("""
            p = f32[3,7] parameter(0)
            c = f32[3,7] cosine(p)
            v = f32[3,7] reverse(c), dimensions={1}
            ROOT r = f32[3,7] multiply(v, p)
        """),
    ),
    Fault(
        "mlir-sign-of-unsigned-shift",
        "sign",
        "shift-right-logical keeps the sign",
        _MLIR,
        ("shift-right-logical",),
        [
            Spot(
                "mlir_emitters.numerics.elementwise",
                "EMIT",
                lambda row: type(row)(integer=lambda b, node, x, y: b.binary("shrsi", x, y)),
                Op.SHIFT_RIGHT_LOGICAL,
            )
        ],
        module("""
            p = s32[8] parameter(0)
            n = s32[8] negate(p)
            c = s32[] constant(3)
            b = s32[8] broadcast(c), dimensions={}
            s = s32[8] shift-right-logical(n, b)
            ROOT r = s32[8] add(s, p)
        """),
        (5.0, 9.0),
    ),
    Fault(
        "mlir-f16-not-rounded",
        "rounding",
        "a sum of f16 is rounded as if it were bf16",
        _MLIR,
        ("add", "f16"),
        [
            emitter_row(
                "mlir_emitters",
                "numerics.elementwise",
                Op.ADD,
                floating=lambda b, node, x, y: b.binary("addf", x, b.binary("addf", y, b.like(0.0078125, y))),
            )
        ],
        module("""
            p = f16[8] parameter(0)
            q = f16[8] parameter(1)
            s = f16[8] add(p, q)
            n = f16[8] negate(s)
            ROOT r = f16[8] maximum(n, p)
        """),
    ),
    Fault(
        "mlir-reduce-swaps-accumulator",
        "operands",
        "a reduction with a region of its own gives the element as accumulator",
        _MLIR,
        ("reduce",),
        [
            Spot("mlir_emitters.reductions.reduce", "combine", _first_only, needs=(Op.REDUCE, Op.REDUCE_WINDOW)),
            Spot("mlir_emitters.reductions.columns", "combine", _first_only, needs=(Op.REDUCE,)),
        ],
        module(
            """
            p = f32[4,9] parameter(0)
            z = f32[] constant(1)
            h = f32[4,9] tanh(p)
            s = f32[4] reduce(h, z), dimensions={1}, to_apply=half
            ROOT r = f32[4] negate(s)
        """,
            "half {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  c = f32[] constant(0.5)\n"
            "  m = f32[] multiply(a, c)\n  ROOT r = f32[] add(m, b)\n}\n\n",
        ),
    ),
)
