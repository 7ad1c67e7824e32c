"""What large pictures fold together: instructions of one scope of JAX's op_name, or runs of them in their order."""

from __future__ import annotations

from collections.abc import Sequence

from ..hlo.ir import Computation, Instruction
from ..hlo.metadata import metadata_of
from ..hlo.opcodes import Op

NO_SCOPE = ("no op_name",)

OPEN = frozenset({Op.WHILE, Op.CONDITIONAL, Op.CALL, Op.ASYNC_START})
"""Instructions that keep a box beside folded scopes, because what they call is drawn next to it."""


def scope_of(op_name: str) -> tuple[str, ...]:
    """The scopes of an op_name, outermost first, without the primitive that ends it. A slash in parentheses splits
    none: `jit(f)/jvp(a/b)/mul` has the scopes jit(f) and jvp(a/b).
    """
    parts, depth = [""], 0
    for c in op_name:
        depth += (c == "(") - (c == ")")
        if c == "/" and depth <= 0:
            parts.append("")
        else:
            parts[-1] += c
    return tuple(p for p in parts[:-1] if p)


def own_scope(i: Instruction) -> tuple[str, ...]:
    """The scope that an instruction's metadata names, or that most of a fusion's instructions name; else ()."""
    found = scope_of(metadata_of(i).get("op_name", ""))
    if found or i.opcode is not Op.FUSION:
        return found
    inside = [s for c in i.called() for b in c.instructions if (s := scope_of(metadata_of(b).get("op_name", "")))]
    return max(inside, key=inside.count, default=())


def scopes_of(computation: Computation) -> dict[Instruction, tuple[str, ...]]:
    """The scope of each instruction. One without an op_name has that of its first user, else of its first operand."""
    found = {i: s for i in computation.instructions if (s := own_scope(i))}
    for i in reversed(computation.instructions):
        if i not in found:
            near = next((found[u] for u in computation.users[i] if u in found), None)
            if near is not None:
                found[i] = near
    for i in computation.instructions:
        if i not in found:
            found[i] = next((found[o] for o in i.operands if o in found), NO_SCOPE)
    return found


def by_scope(
    boxes: Sequence[Instruction], computation: Computation, pieces: int, level: int | None
) -> dict[Instruction, tuple[str, ...]] | None:
    """The scope in whose box each instruction is folded, cut to `level` names; without one, to the most that leave no
    more than `pieces` boxes, and None where that is one scope.
    """
    scopes = scopes_of(computation)
    deepest = max((len(scopes[i]) for i in boxes), default=0)
    for n in (level,) if level is not None else range(deepest, 0, -1):
        cut = {i: scopes[i][:n] for i in boxes}
        if level is not None or len(set(cut.values())) <= pieces:
            return cut if level is not None or len(set(cut.values())) > 1 else None
    return None


def run_numbers(boxes: Sequence[Instruction], computation: Computation, pieces: int) -> dict[Instruction, int]:
    """The run of each instruction. Parameters and constants belong to the run of their first user."""
    working = [i for i in boxes if i.operands] or list(boxes)
    size = -(-len(working) // pieces)
    run_of = {i: n // size for n, i in enumerate(working)}
    for i in reversed(boxes):
        if i not in run_of:
            run_of[i] = min((run_of[u] for u in computation.users[i] if u in run_of), default=0)
    return run_of
