"""The kinds of thunks as one table: kind → number on the wire, word in text, fields. Text and files are made from it.

A new kind is a class in kinds.py, a row here, and a message in wire.proto, with a number that no kind ever had.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from ..hlo.records import dataclass
from .kinds import (
    ChecksumThunk,
    CollectiveDoneThunk,
    CollectiveStartThunk,
    CompareThunk,
    ConditionalThunk,
    CopyThunk,
    DeviceIdThunk,
    FillThunk,
    InfeedThunk,
    KernelThunk,
    NanThunk,
    OutfeedThunk,
    ProfileThunk,
    SequentialThunk,
    WhileThunk,
    ZoneThunk,
)

MOST_NESTED = 100
"""Thunks within thunks: a text or a file that nests deeper is refused, before it fills the stack."""


class Type(Enum):
    """What a field holds; text.py, parse.py and wire/thunks.py have a row for each."""

    NAME = "name"
    LABEL = "label"  # the name of a sequence
    NUMBER = "number"  # a non-negative integer
    FLAG = "flag"
    SHAPE = "shape"  # of an array
    GROUPS = "groups"  # lists of numbers
    SLICE = "slice"
    USES = "uses"
    SPLIT = "split"
    SEQUENCE = "sequence"
    SEQUENCES = "sequences"
    THUNKS = "thunks"


BLOCKS = frozenset({Type.SEQUENCE, Type.SEQUENCES, Type.THUNKS})
"""Types that stand in the braces of a thunk's text."""

REQUIRED: Any = object()


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a kind. name: the attribute of its class, and the field in wire.proto. number: in wire.proto.

    before: what stands before it in text. words: of a flag, for true and for false. default: where it may be left out.
    """

    name: str
    number: int
    type: Type
    before: str = " "
    words: tuple[str, str] = ("", "")
    default: Any = REQUIRED


@dataclass(frozen=True, slots=True)
class Kind:
    """fields: in the order of the text. name: of its message in wire.proto. word: begins its text."""

    thunk: type
    name: str
    number: int
    word: str
    fields: tuple[Field, ...]


def _feed(place: str, before: str) -> tuple[Field, ...]:
    return (
        Field("name", 1, Type.NAME),
        Field("leaf", 2, Type.NUMBER, before=" leaf "),
        Field("leaves", 3, Type.NUMBER, before=" of "),
        Field("shape", 4, Type.SHAPE),
        Field(place, 5, Type.SLICE, before=before),
    )


KINDS = (
    Kind(
        KernelThunk,
        "Kernel",
        1,
        "kernel",
        (
            Field("name", 1, Type.NAME),
            Field("symbol", 2, Type.NAME, before=" @"),
            Field("arguments", 3, Type.USES, before=""),
            Field("split", 4, Type.SPLIT, before=" split ", default=None),
        ),
    ),
    Kind(
        CopyThunk,
        "Copy",
        2,
        "copy",
        (
            Field("name", 1, Type.NAME),
            Field("source", 2, Type.SLICE),
            Field("destination", 3, Type.SLICE, before=" -> "),
        ),
    ),
    Kind(
        SequentialThunk,
        "Sequential",
        3,
        "",
        (Field("name", 1, Type.LABEL, before=""), Field("thunks", 2, Type.THUNKS)),
    ),
    Kind(
        WhileThunk,
        "While",
        4,
        "while",
        (
            Field("name", 1, Type.NAME),
            Field("predicate", 4, Type.SLICE, before=" predicate "),
            Field("trip_count", 5, Type.NUMBER, before=" trip_count ", default=None),
            Field("condition", 2, Type.SEQUENCE),
            Field("body", 3, Type.SEQUENCE),
        ),
    ),
    Kind(
        ConditionalThunk,
        "Conditional",
        5,
        "conditional",
        (
            Field("name", 1, Type.NAME),
            Field("selector_is_pred", 3, Type.FLAG, words=("pred", "s32")),
            Field("selector", 2, Type.SLICE),
            Field("branches", 4, Type.SEQUENCES),
        ),
    ),
    Kind(
        ProfileThunk,
        "Profile",
        6,
        "profile",
        (
            Field("begin", 3, Type.FLAG, words=("begin", "end")),
            Field("id", 2, Type.NUMBER),
            Field("name", 1, Type.NAME),
        ),
    ),
    Kind(
        DeviceIdThunk,
        "DeviceId",
        7,
        "device-id",
        (
            Field("name", 1, Type.NAME),
            Field("partition", 2, Type.FLAG, words=("partition", "replica")),
            Field("destination", 3, Type.SLICE, before=" -> "),
        ),
    ),
    Kind(
        CollectiveStartThunk,
        "CollectiveStart",
        8,
        "collective-start",
        (
            Field("name", 1, Type.NAME),
            Field("exchange", 2, Type.NAME),
            Field("what", 3, Type.NAME, before=" of "),
            Field("channel", 6, Type.NUMBER, before=" channel ", default=None),
            Field("groups", 4, Type.GROUPS, before=" groups "),
            Field("source", 5, Type.SLICE, before=" <- "),
        ),
    ),
    Kind(
        CollectiveDoneThunk,
        "CollectiveDone",
        9,
        "collective-done",
        (Field("name", 1, Type.NAME), Field("destination", 2, Type.SLICE, before=" -> ")),
    ),
    Kind(InfeedThunk, "Infeed", 10, "infeed", _feed("destination", " -> ")),
    Kind(OutfeedThunk, "Outfeed", 11, "outfeed", _feed("source", " <- ")),
    Kind(
        ChecksumThunk,
        "Checksum",
        13,
        "checksum",
        (Field("id", 2, Type.NUMBER), Field("name", 1, Type.NAME), Field("slice", 3, Type.SLICE)),
    ),
    Kind(
        NanThunk,
        "Nan",
        14,
        "check",
        (
            Field("infinities", 5, Type.FLAG, words=("finite", "nan")),
            Field("id", 2, Type.NUMBER),
            Field("name", 1, Type.NAME),
            Field("dtype", 4, Type.NAME),
            Field("slice", 3, Type.SLICE),
        ),
    ),
    Kind(
        FillThunk,
        "Fill",
        15,
        "fill",
        (Field("name", 1, Type.NAME), Field("slice", 2, Type.SLICE), Field("seed", 3, Type.NUMBER, before=" with ")),
    ),
    Kind(
        ZoneThunk,
        "Zone",
        16,
        "zone",
        (
            Field("id", 2, Type.NUMBER),
            Field("name", 1, Type.NAME),
            Field("slice", 3, Type.SLICE),
            Field("seed", 4, Type.NUMBER, before=" with "),
        ),
    ),
    Kind(
        CompareThunk,
        "Compare",
        17,
        "compare",
        (
            Field("id", 2, Type.NUMBER),
            Field("name", 1, Type.NAME),
            Field("dtype", 5, Type.NAME),
            Field("left", 3, Type.SLICE),
            Field("right", 4, Type.SLICE, before=" and "),
            Field("steps", 6, Type.NUMBER, before=" within "),
            Field("scaled", 7, Type.NUMBER, before=" scaled "),
            Field("flag", 8, Type.SLICE, before=" -> "),
        ),
    ),
)

BY_CLASS = {kind.thunk: kind for kind in KINDS}
BY_WORD = {kind.word: kind for kind in KINDS}
