"""Faults of what both stacks share: passes, buffer plan, thunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...hlo.ir import Instruction, Module, rewrite
from ...hlo.opcodes import Op
from ...planning.plan import CopyStep, WhileStep
from .fault import Fault, Spot
from .stacks import module

_BOTH = ("legacy", "mlir")


def _also(change: Callable[[Instruction], Instruction | None]) -> Callable[[Any], Any]:
    """A pass that does its work, and then makes a wrong rewrite of every instruction that `change` replaces."""

    def wrong(step: Any) -> Any:
        from dataclasses import replace

        from ...passes.fuel import spend
        from ...passes.rewriting import rebuild

        def one(i: Instruction) -> Instruction | None:
            made = change(i)
            return made if made is not None and spend() else None

        def run(old: Module) -> Module:
            done: Module = step.run(old)
            if not any(change(i) for i in done.instructions()):
                return done
            return rebuild(done, lambda c: rewrite(c, one))

        return replace(step, run=run)

    return wrong


def _absolute(i: Instruction) -> Instruction | None:
    """x · x → |x|: the square is forgotten."""
    same = i.opcode is Op.MULTIPLY and i.operands[0] is i.operands[1]
    return i.replace(opcode=Op.ABS, operands=i.operands[:1]) if same and i.shape.dtype.is_float else None


def _slice_from_the_start(i: Instruction) -> Instruction | None:
    """Slices of one dimension begin at 0."""
    from types import MappingProxyType

    from ...hlo.attributes import SliceDim

    if i.opcode is not Op.SLICE or i.shape.rank != 1 or i.attributes["slice"][0].start == 0:
        return None
    (d,) = i.attributes["slice"]
    dims = (SliceDim(0, d.limit - d.start, d.stride),)
    return i.replace(attributes=MappingProxyType({**i.attributes, "slice": dims}))


def _blind_to_attributes(key: Callable[..., Any]) -> Callable[..., Any]:
    def blind(instruction: Instruction, keys: Any) -> Any:
        if instruction.opcode is Op.COMPARE:
            return instruction.opcode, instruction.shape, instruction.operands, (), ()
        return key(instruction, keys)

    return blind


def _anything(reads: Callable[..., bool]) -> Callable[..., bool]:
    """Transposes read in place, too: a missed alias."""

    def wrong(i: Instruction, operand: Instruction) -> bool:
        return reads(i, operand) or i.opcode in (Op.TRANSPOSE, Op.REVERSE)

    return wrong


def _other_order(lower: Callable[..., Any]) -> Callable[..., Any]:
    """The last two thunks of a loop's body, which change its state, run in the other order."""

    def wrong(step: Any, code: Any) -> Any:
        from dataclasses import replace

        thunk = lower(step, code)
        *first, one, other = thunk.body.thunks
        return replace(thunk, body=replace(thunk.body, thunks=(*first, other, one)))

    return wrong


def _cut_short(lower: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of more than 4 bytes leaves out the last 4."""

    def wrong(step: Any, code: Any) -> Any:
        from dataclasses import replace

        thunk = lower(step, code)
        size = thunk.source.size - 4
        if size <= 0:
            return thunk
        return replace(
            thunk, source=replace(thunk.source, size=size), destination=replace(thunk.destination, size=size)
        )

    return wrong


_LOOP = """cond {
  s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}

body {
  s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[4] get-tuple-element(s), index=1
  y = f32[4] get-tuple-element(s), index=2
  c = f32[4] cosine(x)
  z = f32[4] add(c, y)
  ROOT t = (s32[], f32[4], f32[4]) tuple(j, z, x)
}

"""
_IN_LOOP = """
    p = f32[4] parameter(0)
    k = s32[] constant(0)
    e = f32[4] exponential(p)
    t = (s32[], f32[4], f32[4]) tuple(k, p, e)
    w = (s32[], f32[4], f32[4]) while(t), condition=cond, body=body
    a = f32[4] get-tuple-element(w), index=1
    b = f32[4] get-tuple-element(w), index=2
    ROOT r = f32[4] multiply(a, b)
"""

SHARED: tuple[Fault, ...] = (
    Fault(
        "pass-algebra-forgets-a-square",
        "rewrite",
        "algebra makes |x| of x times x",
        _BOTH,
        ("pass algebra",),
        [Spot("passes.pipeline", "PASSES", _also(_absolute), "algebra", (Op.MULTIPLY,))],
        module("""
            p = f32[6] parameter(0)
            s = f32[6] sine(p)
            q = f32[6] multiply(s, s)
            ROOT r = f32[6] add(q, p)
        """),
    ),
    Fault(
        "pass-simplify-slices-from-the-start",
        "rewrite",
        "simplify moves the start of a slice to 0",
        _BOTH,
        ("pass simplify",),
        [Spot("passes.pipeline", "PASSES", _also(_slice_from_the_start), "simplify", (Op.SLICE,))],
        module("""
            p = f32[9] parameter(0)
            c = f32[9] cosine(p)
            s = f32[4] slice(c), slice={[3:7]}
            n = f32[4] negate(s)
            ROOT r = f32[4] exponential(n)
        """),
    ),
    Fault(
        "pass-cse-blind-to-direction",
        "rewrite",
        "cse takes comparisons of two directions for one",
        _BOTH,
        ("pass cse",),
        [Spot("passes.cleanup.cse", "_key", _blind_to_attributes, needs=(Op.COMPARE,))],
        module("""
            p = s32[8] parameter(0)
            q = s32[8] parameter(1)
            a = pred[8] compare(p, q), direction=LT
            b = pred[8] compare(p, q), direction=GT
            x = s32[8] select(a, p, q)
            y = s32[8] select(b, x, q)
            z = s32[8] select(a, y, x)
            ROOT r = s32[8] multiply(y, z)
        """),
    ),
    Fault(
        "plan-alias-of-a-transpose",
        "alias",
        "a kernel that transposes takes over its operand's buffer",
        _BOTH,
        ("buffer reuse",),
        [Spot("hlo.analysis.updates", "reads_in_place", _anything, needs=(Op.TRANSPOSE, Op.REVERSE))],
        module("""
            p = f32[6,6] parameter(0)
            q = f32[6,6] parameter(1)
            d = f32[6,6] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            t = f32[6,6] reverse(d), dimensions={0,1}
            s = f32[6,6] sine(t)
            ROOT e = f32[6,6] dot(s, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        """),
    ),
    Fault(
        "thunk-loop-state-in-another-order",
        "order",
        "the last two thunks of a loop run in the other order",
        _BOTH,
        ("host program", "thunks"),
        [Spot("thunks.lowering", "_FROM_STEP", _other_order, WhileStep, (Op.WHILE,))],
        module(_IN_LOOP, _LOOP),
    ),
    Fault(
        "thunk-copy-cuts-the-end",
        "bounds",
        "copies leave out the last element",
        _BOTH,
        ("thunks", "host program"),
        [Spot("thunks.lowering", "_FROM_STEP", _cut_short, CopyStep)],
        module(_IN_LOOP, _LOOP),
    ),
)
