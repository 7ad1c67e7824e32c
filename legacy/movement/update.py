"""dynamic-update-slice at a kernel's root: copy the operand unless it is in place already, then write the update."""

from __future__ import annotations

from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from ..loops.elemental import Elemental, Index
from ..loops.form import Fit, Results, Task, form, needs
from ..loops.linear import is_linear
from ..loops.memory import Pointer, store
from ..loops.ranges import Steps, elements, loops_over
from .shape import clamped_start


def is_update(instruction: Instruction) -> bool:
    return instruction.opcode is Op.DYNAMIC_UPDATE_SLICE


def emit_update(e: Elemental, results: Results, copies: bool, steps: Steps | None) -> None:
    code, instruction, pointer = e.code, results.root, results.first.pointer(e)
    shape, (operand, update, *starts) = instruction.shape, instruction.operands
    if copies:
        copy_operand(e, operand, shape, pointer)
    if update.shape.size == 0:
        return
    begins = []
    for start, size, length in zip(starts, shape.dims, update.shape.dims, strict=True):
        register = e.number(start)
        begins.append(clamped_start(code, start, register, size - length))
    with loops_over(code, None, update.shape.dims, list(reversed(shape.minor_to_major))) as positions:
        value = e.value(update, Index.at(code, update.shape, positions))
        target = Index.at(code, shape, [code.add(b, p) for b, p in zip(begins, positions, strict=True)])
        store(code, pointer, shape.dtype, target.offset(shape), value)


def copy_operand(
    e: Elemental, operand: Instruction, shape: Shape, pointer: Pointer, steps: Steps | None = None
) -> None:
    """Copy all elements of an operand, or those of the steps, to a buffer of `shape`, which may have another layout."""
    code = e.code
    if operand.shape.minor_to_major == shape.minor_to_major and is_linear(operand, e.leaves):
        with elements(code, steps, shape.size) as place:
            value = e.value(operand, Index.flat(code, operand.shape, place))
            store(code, pointer, shape.dtype, place, value)
        return
    with loops_over(code, steps, shape.dims, list(reversed(shape.minor_to_major))) as positions:
        value = e.value(operand, Index.at(code, operand.shape, positions))
        store(code, pointer, shape.dtype, Index.at(code, shape, positions).offset(shape), value)


@form("update/in_place", emit_update)
def in_place(task: Task) -> Fit:
    """A slice is written over an operand, which need not move if it is in place.

    Parameters: whether the operand has to be copied.
    """
    leaf, root = task.results.first, task.results.root
    needs(task.results.alone and is_update(root), "no dynamic-update-slice is the only result")
    held = task.view.leaves.get(root.operands[0])
    return Fit(not (leaf.in_place and held == leaf.argument), in_steps=False)
