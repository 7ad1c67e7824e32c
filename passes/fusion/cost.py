"""Cost of fusing: how many index expressions each instruction of a fusion is evaluated at, and how often.

An instruction that is reached through k different index expressions is computed k times, by contract no more often
(hlo/analysis/kernel_forms.py). An index expression is a token: elementwise ops pass their own token on to their
operands; every other op creates a new one for each index expression it has.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...hlo.analysis.kernel_forms import is_abreast
from ...hlo.analysis.windows import result_dims, running, taps
from ...hlo.ir import Instruction
from ...hlo.opclasses import ELEMENTWISE, EXPENSIVE
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, field

MOST_CODE = 400
"""Code of a fusion: the sum over its instructions of tokens x weight."""

TINY_WORK = 4096
"""Evaluations (weighted) that are cheaper to repeat than to run one more kernel."""

SMALL_WORK = 1024
"""Evaluations (weighted) that a second kernel may repeat, whatever they cost."""

MOST_REUSE = 8.0
"""Repeated evaluations (weighted) of cheap ops, per element of the fusion's result."""

Tokens = dict[object, float]
"""{index expression: number of elements evaluated through it}."""


def weight(i: Instruction) -> int:
    """Rough time per element, in simple operations; 0 for pure data movement.

    A gather costs 2, because its reads are scattered.
    """
    if i.opcode in EXPENSIVE:
        return 16 if i.opcode not in (Op.DIVIDE, Op.SQRT, Op.RSQRT) else 8
    if i.opcode is Op.GATHER:
        return 2 if i.shape.dims else 0
    return 1 if i.opcode in ELEMENTWISE else 0


def code_size(i: Instruction) -> int:
    """Rough code size per element, in simple operations. A scalar for every element is none: it is a constant or stays
    in a register.
    """
    if i.opcode is Op.CONSTANT or (i.opcode is Op.BROADCAST and not i.operands[0].shape.dims):
        return 0
    if i.opcode in (Op.DIVIDE, Op.SQRT, Op.RSQRT) or i.opcode not in EXPENSIVE:
        return 1 if i.opcode not in (Op.CONCATENATE, Op.PAD) else 1 + len(i.operands)
    return 8


@dataclass(eq=False, slots=True)
class Cluster:
    """A fusion under construction: its root and the tokens of each member.

    inputs: the values that it reads as it stands. code: sum of code size · tokens. reuse: repeated evaluations,
    weighted.
    """

    root: Instruction
    members: dict[Instruction, Tokens] = field(default_factory=dict)
    inputs: set[Instruction] = field(default_factory=set)
    code: int = 0
    reuse: float = 0.0

    def add(self, i: Instruction, tokens: Tokens) -> None:
        self.members[i] = tokens
        self.code += code_size(i) * len(tokens)
        if weight(i):
            self.reuse += max(0.0, sum(tokens.values()) - i.shape.size) * weight(i)
        self.inputs.discard(i)
        self.inputs.update([o for o in i.operands if o not in self.members])

    def tokens_of(self, producer: Instruction, users: list[Instruction]) -> Tokens:
        """Tokens that `producer` would have as a member. users: those of its users that are members."""
        if not producer.shape.dims and weight(producer) <= 1:
            return {"scalar": 1.0}  # the same value for every element: hoisted out of the loop
        tokens: Tokens = {}
        for user in users:
            mine = self.members[user]
            for number, operand in enumerate(user.operands):
                if operand is producer:
                    shared = user is self.root and user.opcode is Op.CONCATENATE and is_abreast(user)
                    pass_on(user, 0 if shared else number, producer, mine, tokens)
        return tokens


def root_tokens(root: Instruction) -> Tokens:
    """Tokens of a fusion's root."""
    if root.opcode in (Op.REDUCE, Op.SORT):
        return {"root": float(root.operands[0].shape.size)}
    if root.opcode is Op.REDUCE_WINDOW:
        results = math.prod(result_dims(root))
        return {"root": float(results if running(root) is not None else results * taps(root))}
    if root.opcode is Op.DYNAMIC_UPDATE_SLICE:
        return {"root": float(root.operands[1].shape.size)}
    if root.opcode is Op.SCATTER:
        return {"root": float(root.operands[-1].shape.size)}
    return {"root": float(root.shape.size)}


def pass_on(user: Instruction, number: int, producer: Instruction, mine: Tokens, tokens: Tokens) -> None:
    """Add to `tokens` the tokens with which `user` reads its operand `number`."""
    if not producer.shape.dims:
        tokens["scalar"] = max(tokens.get("scalar", 0.0), sum(mine.values()))
        return
    if user.opcode in ELEMENTWISE or _keeps_position(user, number):
        for token, count in mine.items():
            tokens[token] = max(tokens.get(token, 0.0), count)
        return
    rule = _RULES.get(user.opcode)
    for token, count in mine.items():
        key = (_reader(user, number), token)
        for component in range(_components(user, number)):
            tokens[key, component] = rule(user, number, count) if rule is not None else count


def _keeps_position(user: Instruction, number: int) -> bool:
    """Whether an element of the result reads the operand at its own position, but for dimensions of size 1."""
    if user.opcode is Op.RESHAPE:
        one, other = ([d for d in i.shape.dims if d != 1] for i in (user, user.operands[0]))
        return one == other
    return user.opcode is Op.GATHER and number == 1 and not user.attributes["offset_dims"] and _components(user, 1) == 1


def _reader(user: Instruction, number: int) -> object:
    """What tells apart the index expressions of operands that are read through the same token."""
    if user.opcode is Op.GATHER and number == 1:  # by positions of the result alone, which other gathers may share
        return Op.GATHER, user.shape.dims, user.attributes["offset_dims"], user.attributes["index_vector_dim"]
    return (user, number) if user.opcode in _APART else user


def _share(user: Instruction, number: int, count: float) -> float:
    """Evaluations if each element of the result reads one of several operands, or none."""
    return count * user.operands[number].shape.size / max(user.shape.size, 1)


def _gather(user: Instruction, number: int, count: float) -> float:
    """Evaluations for a gather: the elements of a slice share its index vector, one expression per component."""
    return count if number == 0 else _share(user, number, count) / _components(user, number)


def _scatter(user: Instruction, number: int, count: float) -> float:
    """Evaluations for a scatter: each operand is read once."""
    return user.operands[number].shape.size / _components(user, number)


def _update(user: Instruction, number: int, count: float) -> float:
    return float(user.operands[number].shape.size) if number < 2 else 1.0


def _components(user: Instruction, number: int) -> int:
    """Number of elements of an operand that one element of the result reads: components of an index vector, else 1."""
    if user.opcode not in (Op.GATHER, Op.SCATTER) or number != len(user.operands) // 2:
        return 1
    at, dims = user.attributes["index_vector_dim"], user.operands[number].shape.dims
    return max(dims[at], 1) if at < len(dims) else 1


_APART = frozenset({Op.CONCATENATE, Op.DYNAMIC_UPDATE_SLICE, Op.GATHER, Op.SCATTER})
"""Ops that read their operands at different index expressions."""

_RULES: dict[Op, Callable[[Instruction, int, float], float]] = {
    Op.CONCATENATE: _share,
    Op.DYNAMIC_UPDATE_SLICE: _update,
    Op.GATHER: _gather,
    Op.PAD: _share,
    Op.SCATTER: _scatter,
}
