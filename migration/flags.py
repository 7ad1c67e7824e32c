"""Which stack emits which ops, as an immutable value: `mlir`, `mlir,reduce=legacy`,
`legacy,elementwise=mlir,f16=legacy`, `mlir,reduce:complex=legacy`, `ledger`.

The first word is the stack of what no rule names. Each `key=stack` after it sets the stack of an opcode, a family of
opcodes or a dtype; `opcode:class` is an opcode or family with a dtype or a class of dtypes (units.py). A key that ends
with a platform, `reduce@opencl`, is for that platform alone; `any@opencl` is every op there. If several keys match an
instruction, the last one applies. The first word `ledger` stands for the flags that the ledger gives (default.py): they
are the default wherever no flags are given, and what rules without a first word change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from ..hlo.dtypes import BY_NAME as DTYPES
from ..hlo.dtypes import DType
from ..hlo.errors import TestbedError
from ..hlo.opcodes import BY_NAME as OPCODES
from ..hlo.opcodes import Op
from ..hlo.opset import opcodes
from ..hlo.opset_rows import Family
from ..hlo.records import dataclass
from .names import BACK_ENDS, HOST, OTHERS, SHADOW, STACK_NAMES, XLA_STACKS
from .units import CLASSES, ELEMENTAL, UNITS

OLD = "legacy"
"""The stack whose results count in a shadow, and that emits a kernel whose ops are on several stacks."""
LEDGER = "ledger"
"""The default: each unit on the stack that the ledger has it on."""
ANY = "any"
"""Every op, in a key of one platform."""

XLA_SHADOWS = {f"{ours}+{xla}": (ours, xla) for ours in STACK_NAMES for xla in XLA_STACKS}
"""A stack of ours, whose results count, and a stack of XLA's beside it, whose results are compared with them."""

WORDS = (*STACK_NAMES, SHADOW, *OTHERS, *XLA_STACKS)
"""Of one stack each, or of both of ours."""

FAMILIES: dict[str, frozenset[Op]] = {
    "elementwise": frozenset(opcodes([Family.UNARY, Family.BINARY, Family.TERNARY, Family.CONVERT])),
    "unary": frozenset(opcodes([Family.UNARY])),
    "binary": frozenset(opcodes([Family.BINARY])),
    "ternary": frozenset(opcodes([Family.TERNARY])),
    "conversion": frozenset(opcodes([Family.CONVERT])),
    "shape": frozenset(opcodes([Family.SHAPE])),
    "region": frozenset(opcodes([Family.REGION])),
    "linear-algebra": frozenset(opcodes([Family.LINALG])),
    "random": frozenset(opcodes([Family.RNG])),
    ELEMENTAL: UNITS[ELEMENTAL],
}


class FlagError(TestbedError):
    """A text that is not a valid flags value."""


@dataclass(frozen=True, slots=True)
class FlagRule:
    """One `key=stack` of the flags. key: an opcode, a family or a dtype, or ops:types, with @platform or without."""

    key: str
    stack: str

    def matches(self, op: Op, dtypes: Iterable[DType], platform: str = HOST) -> bool:
        key, _, only = self.key.partition("@")
        if only and only != platform:
            return False
        ops, _, types = key.partition(":")
        if types and not _dtypes(types) & frozenset(dtypes):
            return False
        if ops in OPCODES:
            return op is OPCODES[ops]
        if ops in FAMILIES:
            return op in FAMILIES[ops]
        if ops == ANY:
            return True
        return DTYPES[ops] in dtypes


@dataclass(frozen=True, slots=True)
class Flags:
    """Immutable flags, a part of every cache key. Create them with `Flags.parse`."""

    default: str
    rules: tuple[FlagRule, ...] = ()

    @staticmethod
    def parse(text: str, base: str = LEDGER) -> Flags:
        """Parse the text form. base: the first word of a text that has only rules. Raises FlagError for an unknown word
        or a repeated key; InputError or LedgerError if the ledger is asked and cannot be read.
        """
        words = [word.strip() for word in text.split(",")]
        if not any(words):
            raise FlagError("the emitters flag is empty", remedy=f"give {' or '.join(STACK_NAMES)}")
        first = words.pop(0) if "=" not in words[0] else base
        if first == LEDGER:
            return _from_ledger(words)
        default = _stack(first, text)
        rules = tuple(_rule(word, text) for word in words)
        seen: set[str] = set()
        for rule in rules:
            if rule.key in seen:
                raise FlagError(f"{rule.key!r} stands twice in {text!r}", remedy="keep one")
            seen.add(rule.key)
        flags = Flags(default, rules)
        if len(flags._xla_stacks) > 1:
            raise FlagError(f"{text!r} names two stacks of XLA's", remedy="a program of XLA's has one: keep one")
        return flags

    def __str__(self) -> str:
        return ",".join([self.default, *(f"{rule.key}={rule.stack}" for rule in self.rules)])

    @property
    def _words(self) -> tuple[str, ...]:
        return (self.default, *(rule.stack for rule in self.rules))

    @property
    def has_shadows(self) -> bool:
        """Whether some ops run on two stacks."""
        return SHADOW in self._words or self.has_xla_shadows

    @property
    def without_shadows(self) -> Flags:
        """The flags of the stacks whose results count."""
        alone = {SHADOW: OLD, **{word: ours for word, (ours, _) in XLA_SHADOWS.items()}}
        rules = tuple(FlagRule(rule.key, alone.get(rule.stack, rule.stack)) for rule in self.rules)
        return Flags(alone.get(self.default, self.default), rules)

    @property
    def has_xla_shadows(self) -> bool:
        """Whether some ops run on a stack of XLA's beside one of ours."""
        return any(word in XLA_SHADOWS for word in self._words)

    @property
    def _xla_stacks(self) -> frozenset[str]:
        named = frozenset(XLA_SHADOWS[word][1] if word in XLA_SHADOWS else word for word in self._words)
        return named & frozenset(XLA_STACKS)

    @property
    def xla(self) -> str:
        """The stack of XLA's kernels that is named; '' if none is."""
        return "".join(self._xla_stacks)

    @property
    def cache_key(self) -> str:
        """A hash that is the same for equal flags in every process."""
        return hashlib.sha256(str(self).encode()).hexdigest()

    def stack_of(self, op: Op, dtypes: Iterable[DType], platform: str = HOST) -> str:
        """The stack of an opcode on a platform. dtypes: the element types of its result and operands."""
        dtypes = frozenset(dtypes)
        return next((r.stack for r in reversed(self.rules) if r.matches(op, dtypes, platform)), self.default)


def _from_ledger(words: list[str]) -> Flags:
    """The flags of the package's own ledger; rules that follow replace those of the same key."""
    from .default import default_flags

    base = Flags.parse(default_flags())
    more = Flags.parse(",".join([base.default, *words])).rules
    given = {rule.key for rule in more}
    return Flags(base.default, (*(rule for rule in base.rules if rule.key not in given), *more))


def _dtypes(word: str) -> frozenset[DType]:
    return CLASSES[word] if word in CLASSES else frozenset({DTYPES[word]})


def _rule(word: str, text: str) -> FlagRule:
    key, equals, stack = (part.strip() for part in word.partition("="))
    if not equals:
        if word in (*WORDS, *XLA_SHADOWS):
            raise FlagError(f"{word!r} must come first in {text!r}", remedy="one stack, then opcode=stack rules")
        raise FlagError(f"{word!r} in {text!r} is not of the form key=stack", remedy=_near(word, WORDS))
    what, at, only = key.partition("@")
    ops, colon, types = what.partition(":")
    if not (what == ANY and at):
        _refuse_unknown(ops, types, colon, text)
    if at and only not in BACK_ENDS:
        raise FlagError(f"unknown platform {only!r} in {text!r}", remedy=_near(only, BACK_ENDS))
    return FlagRule(key, _stack(stack, text))


def _refuse_unknown(ops: str, types: str, colon: str, text: str) -> None:
    """Raise FlagError unless these are ops, and types of them."""
    if ops not in OPCODES and ops not in FAMILIES and (colon or ops not in DTYPES):
        known = [*OPCODES, *FAMILIES, *([] if colon else DTYPES)]
        raise FlagError(f"unknown opcode, family or dtype {ops!r} in {text!r}", remedy=_near(ops, known, "families"))
    if colon and types not in CLASSES and types not in DTYPES:
        raise FlagError(
            f"unknown dtype or class of dtypes {types!r} in {text!r}", remedy=_near(types, [*CLASSES, *DTYPES])
        )


def _stack(word: str, text: str) -> str:
    if word not in (*WORDS, *XLA_SHADOWS):
        known = [*WORDS, *(XLA_SHADOWS if "+" in word else ())]
        raise FlagError(f"unknown stack {word!r} in {text!r}", remedy=_near(word, known))
    return word


def _near(word: str, known: Iterable[str], listed: str = "") -> str:
    import difflib

    near = difflib.get_close_matches(word, list(known), 1)
    if near:
        return f"did you mean {near[0]!r}?"
    if listed:
        return f"give an opcode such as reduce, a dtype such as f16, or a family: {', '.join(FAMILIES)}"
    return f"choose from {', '.join(known)}"
