"""A function for each elementwise opcode without attributes of its own, derived from the table of opcodes.

The names are those of HLO text with `_`, followed by one where Python reserves the word (`and_`); ALIASES has
XlaBuilder's own names. tools/builder_stub.py writes elementwise.pyi, from which type checkers know the functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from keyword import iskeyword

from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...hlo.opset_rows import Family
from .values import Value, XlaOp, binary

ALIASES: dict[str, Op] = {
    "clz": Op.COUNT_LEADING_ZEROS,
    "cos": Op.COSINE,
    "div": Op.DIVIDE,
    "exp": Op.EXPONENTIAL,
    "expm1": Op.EXPONENTIAL_MINUS_ONE,
    "log1p": Op.LOG_PLUS_ONE,
    "max": Op.MAXIMUM,
    "min": Op.MINIMUM,
    "mul": Op.MULTIPLY,
    "neg": Op.NEGATE,
    "population_count": Op.POPCNT,
    "pow": Op.POWER,
    "rem": Op.REMAINDER,
    "round": Op.ROUND_NEAREST_AFZ,
    "sin": Op.SINE,
    "sub": Op.SUBTRACT,
}
"""XlaBuilder's name → the opcode, where the name is not the opcode's."""


def name_of(op: Op) -> str:
    name = op.value.replace("-", "_")
    return f"{name}_" if iskeyword(name) else name


UNARY, BINARY = (
    {name_of(op): op for op, row in OPSET.items() if row.family is family and not row.required}
    for family in (Family.UNARY, Family.BINARY)
)
"""Name of a function → its opcode."""


def xla_name(op: Op) -> str:
    """The name in xla_builder.h: `Exp` of exponential, `IsFinite` of is-finite."""
    short = next((name for name, alias in ALIASES.items() if alias is op), op.value)
    return "".join(word.capitalize() for word in short.replace("_", "-").split("-"))


def _unary(name: str, op: Op) -> Callable[..., XlaOp]:
    def function(operand: XlaOp, result_accuracy: str | None = None) -> XlaOp:
        accuracy = {} if result_accuracy is None else {"result_accuracy": result_accuracy}
        return operand.builder.add(op, [operand], **accuracy)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"HLO's {op.value} of each element; XlaBuilder's {xla_name(op)}."
    return function


def _binary(name: str, op: Op) -> Callable[..., XlaOp]:
    def function(lhs: Value, rhs: Value, broadcast_dimensions: Sequence[int] = ()) -> XlaOp:
        return binary(op, lhs, rhs, broadcast_dimensions)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"HLO's {op.value} of each two elements; XlaBuilder's {xla_name(op)}."
    return function


FUNCTIONS: dict[str, Callable[..., XlaOp]] = {
    **{name: _unary(name, op) for name, op in UNARY.items()},
    **{name: _unary(name, op) for name, op in ALIASES.items() if op in UNARY.values()},
    **{name: _binary(name, op) for name, op in BINARY.items()},
    **{name: _binary(name, op) for name, op in ALIASES.items() if op in BINARY.values()},
}

globals().update(FUNCTIONS)
__all__ = [*FUNCTIONS]  # noqa: PLE0604
