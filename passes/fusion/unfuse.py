"""Take apart fusions that cannot be kernels, because they contain ops that only the host program can run."""

from __future__ import annotations

from collections.abc import Callable

from ...hlo.analysis.sorted_parts import part_of_sort
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opclasses import control_computations
from ...hlo.opcodes import Op
from ..inline import inline_calls
from ..rewriting import rebuild, with_attributes

HOST_ONLY = frozenset(
    {
        Op.BATCH_NORM_GRAD,
        Op.BATCH_NORM_INFERENCE,
        Op.BATCH_NORM_TRAINING,
        Op.CHOLESKY,
        Op.CONDITIONAL,
        Op.CUSTOM_CALL,
        Op.FFT,
        Op.RAGGED_DOT,
        Op.RNG,
        Op.RNG_BIT_GENERATOR,
        Op.SCALED_DOT,
        Op.SCAN,
        Op.SELECT_AND_SCATTER,
        Op.TOPK,
        Op.TRIANGULAR_SOLVE,
        Op.WHILE,
    }
)
"""Opcodes that neither stack emits within a kernel of several ops."""

LAST_ONLY = frozenset({Op.SCATTER, Op.SORT})
"""Opcodes that both stacks emit only as the last op of a kernel."""


def unfuse(module: Module) -> Module:
    """Take apart each fusion that contains an op that only the host program can run (HOST_ONLY)."""
    return take_apart(module, _is_no_kernel)


def take_apart(module: Module, chosen: Callable[[Instruction], bool]) -> Module:
    """Replace each chosen fusion by its instructions. The module must be flat."""
    host = control_computations(module)
    if not any(chosen(i) for c in host for i in c.instructions):
        return module

    def change(computation: Computation) -> Computation:
        new: dict[Instruction, Instruction] = {}
        for old in computation.instructions:
            operands = tuple(new[o] for o in old.operands)
            i = old if operands == old.operands else old.replace(operands=operands)
            if chosen(i):
                i = with_attributes(i, calls=None, kind=None, to_apply=i.called()[0]).replace(opcode=Op.CALL)
            new[old] = i
        if all(a is b for a, b in new.items()):
            return computation
        return Computation(computation.name, tuple(new.values()), new[computation.root], computation.attributes)

    return inline_calls(rebuild(module, change, host))


def _is_no_kernel(i: Instruction) -> bool:
    if i.opcode is not Op.FUSION:
        return False
    body = i.called()[0]
    return any(o.opcode in HOST_ONLY or (o.opcode in LAST_ONLY and not _ends(body, o)) for o in body.instructions)


def _ends(body: Computation, last: Instruction) -> bool:
    """Whether the results of an op are exactly the results of its computation, each once."""
    if last is body.root:
        return True
    elements = body.users[last] if last.shape.is_tuple else (last,)
    ends = [_part(body, e) for e in elements]
    wanted = len(last.shape.elements) if last.shape.is_tuple else 1
    if ends == [body.root]:
        return wanted == 1  # another result may have been removed, because nobody reads it
    return (
        body.root.opcode is Op.TUPLE
        and len({e.attributes.get("index") for e in elements}) == wanted
        and all(body.users[e] == (body.root,) and body.root.operands.count(e) == 1 for e in ends)
    )


def _part(body: Computation, value: Instruction) -> Instruction:
    """The slice of a sorted array that is its only use; for other values, the value itself."""
    users = body.users[value]
    return users[0] if len(users) == 1 and part_of_sort(users[0]) is not None else value
