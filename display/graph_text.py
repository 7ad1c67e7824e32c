"""What stands in the boxes of a picture: titles, values, costs, tooltips, each short enough for a line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..formats.text.print_literals import literal_to_text
from ..formats.text.printer import print_instruction
from ..hlo.analysis.cost_analysis import Cost
from ..hlo.ir import Computation, Instruction
from ..hlo.metadata import metadata_of
from ..hlo.opcodes import Op

WIDEST, LARGE = 36, 12
"""Characters in a line of a box, and elements of a constant that are shown."""


def is_inlined(i: Instruction, computation: Computation) -> bool:
    """Whether a constant is shown in the boxes of its users."""
    return (
        i.opcode is Op.CONSTANT
        and i.shape.is_array
        and i.shape.size == 1
        and i is not computation.root
        and bool(computation.users[i])
        and all(u.opcode not in (Op.FUSION, Op.TUPLE, Op.CALL, Op.WHILE) for u in computation.users[i])
    )


def callees_of(i: Instruction) -> list[tuple[str, Computation]]:
    """Computations that get a group of their own, each with its role: not those that are one op on their parameters."""
    roles = {c: key for key, c in i.attributes.items() if isinstance(c, Computation)}
    words = {"to_apply": "", "calls": "", "condition": "condition", "body": "body"}
    return [
        (words.get(roles.get(c, ""), roles.get(c, "")), c) for c in dict.fromkeys(i.called()) if simple_op(c) is None
    ]


def simple_op(computation: Computation) -> Op | None:
    """The op of a computation that is one op of its two parameters, such as a sum's."""
    root = computation.root
    if len(computation.instructions) == 3 and len(root.operands) == 2:
        return root.opcode if all(o.opcode is Op.PARAMETER for o in root.operands) else None
    return None


def reducer_word(i: Instruction) -> str:
    """The op of a reduction, or the direction of a comparison: what tells two boxes of one opcode apart."""
    for c in i.called():
        if (op := simple_op(c)) is not None:
            direction = c.root.attributes.get("direction")
            return f"({op.value}{f' {direction}' if direction else ''})"
    if i.opcode is Op.COMPARE:
        return str(i.attributes.get("direction", ""))
    if i.opcode is Op.GET_TUPLE_ELEMENT:
        return str(i.attributes.get("index", ""))
    if i.opcode is Op.PARAMETER:
        return str(i.parameter_number)
    if i.opcode is Op.CUSTOM_CALL:
        return clean(str(i.attributes.get("custom_call_target", "")))
    return ""


def value_text(i: Instruction) -> str:
    """A constant's value: the whole of a small one, the first elements of a large one."""
    literal = i.literal
    if literal.is_elided or not i.shape.is_array:
        return "{...}"
    if i.shape.size <= LARGE:
        return re.sub(r"\s+", " ", literal_to_text(literal)) if i.shape.rank else literal_to_text(literal)
    first = ", ".join(str(v) for v in literal.array.reshape(-1)[:3])
    return f"{{{first}, …}}"


def cost_text(cost: Cost) -> str:
    """FLOPs, transcendentals and bytes that are not zero, as text."""
    pairs = ((cost.flops, "FLOP"), (cost.transcendentals, " transc."), (cost.bytes, "B"))
    return ", ".join(f"{short_number(number)}{unit}".replace("  ", " ") for number, unit in pairs if number)


def short_number(number: float) -> str:
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= scale:
            return f"{number / scale:.3g} {prefix}"
    return f"{number:g} "


def tip_of(i: Instruction) -> str:
    """The instruction as text, without the elements of a large constant."""
    is_large = i.opcode is Op.CONSTANT and i.shape.size > 20
    return cut(f"{i.name} = {i.shape} constant({{...}})" if is_large else print_instruction(i), 600)


def common_scope(run: Sequence[Instruction]) -> str:
    """Where a run is in its source: the common beginning of the op_names, and the first and last word behind it."""
    names = [name.split("/")[:-1] for i in run if (name := metadata_of(i).get("op_name"))]
    common: list[str] = []
    for parts in zip(*names):
        if len(set(parts)) > 1:
            first, last = parts[0], parts[-1]
            return "/".join([*common[-1:], first if first == last else f"{first} … {last}"])
        common.append(parts[0])
    return "/".join(common)


MOST_IN_TIP = 12


def shortened(lines: Sequence[str]) -> list[str]:
    more = len(lines) - MOST_IN_TIP
    return [*lines[:MOST_IN_TIP], *([f"… {more} more"] if more > 0 else [])]


def clean(text: str) -> str:
    """The text without unprintable characters, which XML forbids."""
    return "".join(c if c.isprintable() else "?" for c in text)


def tail(text: str) -> str:
    """The end of a scope, which tells it from others."""
    printable = clean(text)
    return printable if len(printable) <= WIDEST else "…" + printable[1 - WIDEST :]


def cut(text: str, most: int) -> str:
    printable = clean(text)
    return printable if len(printable) <= most else printable[: most - 1] + "…"
