"""Tuples, calls, control flow, custom calls, asynchronous pairs, and transfers (infeed, outfeed, send, recv)."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence

import numpy as np

from ...hlo.errors import UnsupportedError
from ...hlo.ir import Instruction, Literal
from ...hlo.library.calls import is_foreign
from ...hlo.replica_groups import Mode
from ...hlo.shapes import Shape
from .context import Context, Pending, Value
from .device_groups import paired


def arrived(value: Value) -> Value:
    """The value itself; a Pending is waited for."""
    return value.result() if isinstance(value, Pending) else value


def literal_value(literal: Literal) -> Value:
    """The value of a constant: an array, a tuple of values, or None for a token."""
    if isinstance(literal.value, tuple):
        return tuple(literal_value(element) for element in literal.value)
    return literal.value


def constant(instruction: Instruction, _operands: Sequence[Value], _context: Context) -> Value:
    if instruction.shape.is_array and instruction.literal.value is None:
        raise UnsupportedError(
            "evaluator",
            "constant({...})",
            location=instruction.location,
            remedy="the text leaves the values out: print the module with its large constants",
        )
    return literal_value(instruction.literal)


def make_tuple(_instruction: Instruction, operands: Sequence[Value], _context: Context) -> Value:
    return tuple(operands)


def get_tuple_element(instruction: Instruction, operands: Sequence[Value], _context: Context) -> Value:
    return arrived(operands[0][instruction.attributes["index"]])


def call(instruction: Instruction, operands: Sequence[Value], context: Context) -> Value:
    """call and fusion: the called computation on the operands."""
    return context.call(instruction.called()[0], operands)


def while_(instruction: Instruction, operands: Sequence[Value], context: Context) -> Value:
    condition, body = instruction.attributes["condition"], instruction.attributes["body"]
    (state,) = operands
    iterations = 0
    while context.call(condition, (state,)):
        before, state = state, context.call(body, (state,))
        iterations += 1
        # A state that an iteration does not change never changes again, so the loop is infinite. XLA assumes that loops
        # are finite and removes it; here it ends with that state. The check is made at powers of two, as it is slow.
        # A handler may have a state of its own.
        if (
            iterations.bit_count() == 1
            and iterations >= 64
            and _same(before, state)
            and not _calls_handlers(instruction)
        ):
            break
    return state


def _calls_handlers(instruction: Instruction) -> bool:
    """Whether an instruction, or what it calls, is a custom call of a handler."""
    return is_foreign(instruction) or any(_calls_handlers(i) for c in instruction.called() for i in c.instructions)


def _same(x: Value, y: Value) -> bool:
    """Whether two values are equal bit by bit."""
    if isinstance(x, tuple):
        return all(_same(a, b) for a, b in zip(x, y, strict=True))
    return x is y or (isinstance(x, np.ndarray) and x.tobytes() == y.tobytes())


def conditional(instruction: Instruction, operands: Sequence[Value], context: Context) -> Value:
    """A pred selects the true or the false computation. An index out of range selects the last branch, as in XLA."""
    selector, *arguments = operands
    if selector.dtype == np.bool_:
        branches = instruction.called()
        chosen = 0 if selector else 1
    else:
        branches = instruction.attributes["branch_computations"]
        chosen = int(selector)
        chosen = chosen if 0 <= chosen < len(branches) else len(branches) - 1
    return context.call(branches[chosen], (arguments[chosen],))


def identity(_instruction: Instruction, operands: Sequence[Value], _context: Context) -> Value:
    """opt-barrier, domain, add-dependency: the first operand."""
    return operands[0]


def token(_instruction: Instruction, _operands: Sequence[Value], _context: Context) -> Value:
    return None


def custom_call(instruction: Instruction, operands: Sequence[Value], context: Context) -> Value:
    return context.custom_call(instruction, operands)


# --- asynchronous pairs: the start computes, the done picks the result -----------------------------------------------


def async_start(instruction: Instruction, operands: Sequence[Value], context: Context) -> Value:
    """(operands, result, None for every further element of the shape). The start computes the result."""
    result = context.call(instruction.called()[0], operands)
    rest = (None,) * (len(instruction.shape.elements) - 2)
    return (tuple(operands), result, *rest)


def async_done(_instruction: Instruction, operands: Sequence[Value], _context: Context) -> Value:
    return operands[0][1]


def copy_start(_instruction: Instruction, operands: Sequence[Value], _context: Context) -> Value:
    return (operands[0], operands[0], np.zeros((), np.uint32))


def copy_done(_instruction: Instruction, operands: Sequence[Value], _context: Context) -> Value:
    return operands[0][0]


# --- infeed, outfeed, send, recv -------------------------------------------------------------------------------------


def infeed(_instruction: Instruction, _operands: Sequence[Value], context: Context) -> Value:
    return (context.read_infeed(), None)


def outfeed(_instruction: Instruction, operands: Sequence[Value], context: Context) -> Value:
    context.write_outfeed(operands[0])
    return None


_PAIRS = re.compile(r'_xla_send_recv_source_target_pairs\s*=\s*"?\{([^"]*)\}')
_PAIR = re.compile(r"\{\s*(\d+)\s*,\s*(\d+)\s*\}")


def _pairs(instruction: Instruction, context: Context) -> tuple[tuple[int, int], ...] | None:
    """Pairs of devices from the frontend attribute that XLA's pipelining writes; None if there is none."""
    text = getattr(instruction.attributes.get("frontend_attributes"), "text", "")
    found = _PAIRS.search(text)
    if found is None:
        return None
    pairs = [(int(a), int(b)) for a, b in _PAIR.findall(found[1])]
    mode = Mode.CROSS_PARTITION if context.partitions > 1 else Mode.CROSS_REPLICA
    return paired(instruction, pairs, context.device, context.replicas, context.partitions, mode)


def send(instruction: Instruction, operands: Sequence[Value], context: Context) -> Value:
    """Sends to the targets of this device if pairs are given, else to any receiver on the channel."""
    channel, pairs = instruction.attributes.get("channel_id", 0), _pairs(instruction, context)
    if pairs is None:
        context.post(("channel", channel, context.device), operands[0])
    for source, target in pairs or ():
        if source == context.device:
            context.post(("channel", channel, (source, target)), operands[0])
    return (operands[0], np.zeros((), np.uint32), None)


def recv(instruction: Instruction, _operands: Sequence[Value], context: Context) -> Value:
    """A pending value, for which recv-done waits. A device that is no target of a pair gets zeros.

    Without pairs a device prefers values that it sent itself.
    """
    channel, pairs = instruction.attributes.get("channel_id", 0), _pairs(instruction, context)
    data = instruction.shape.elements[0]
    if pairs is None:
        devices = sorted(range(context.replicas * context.partitions), key=lambda d: (d != context.device, d))
        addresses: list[Hashable] = [("channel", channel, d) for d in devices]
    else:
        addresses = [("channel", channel, (source, target)) for source, target in pairs if target == context.device]
    pending = Pending(lambda: context.collect(instruction, addresses, f"a send on channel {channel}"))
    return (pending if addresses else zeros(data), np.zeros((), np.uint32), None)


def zeros(shape: Shape) -> Value:
    """A value of this shape whose elements are all zero."""
    if shape.is_tuple:
        return tuple(zeros(e) for e in shape.elements)
    return np.zeros(shape.dims, shape.dtype.numpy) if shape.is_array else None


def recv_done(_instruction: Instruction, operands: Sequence[Value], _context: Context) -> Value:
    return (arrived(operands[0][0]), None)
