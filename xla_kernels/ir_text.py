"""LLVM IR text of XLA's newer LLVM → text that llvmlite's LLVM reads: EDITS lists every difference that is known.

What no edit knows is left as it is, and LLVM's parser then says where it stands.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

import ml_dtypes
import numpy as np

from ..hlo.records import dataclass

FLOATS = {
    "half": np.dtype(np.float16),
    "bfloat": np.dtype(ml_dtypes.bfloat16),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}
"""LLVM's name of a type of floats → its values."""

PREFIX = {"half": "0xH", "bfloat": "0xR", "float": "0x", "double": "0x"}
"""How a constant of the type begins in hexadecimal. A float is written with the bits of its value as a double."""

_SPECIAL = {"+inf": np.inf, "-inf": -np.inf, "inf": np.inf, "+qnan": np.nan, "-qnan": -np.nan, "qnan": np.nan}
_VALUE = r"f0x[0-9A-Fa-f]+|[+-]?s?nan\(0x[0-9A-Fa-f]+\)|[+-]?(?:inf|qnan)\b|[+-]?\d+\.\d*(?:[eE][+-]?\d+)?"
_CONSTANT = re.compile(rf"(?P<before>[(\[<{{ ,=])(?P<value>{_VALUE})(?=[\s,)\]>}}]|$)", re.MULTILINE)
_TYPE = re.compile(r"\b(half|bfloat|float|double)\b")
_NAN = re.compile(r"([+-]?)(s?)nan\(0x([0-9A-Fa-f]+)\)")
_STRING = re.compile(r'"[^"\n]*"')


@dataclass(frozen=True, slots=True)
class Edit:
    """One difference between the texts of the two LLVMs. what: in a few words."""

    what: str
    run: Callable[[str], str]


def _without(pattern: str) -> Callable[[str], str]:
    compiled = re.compile(pattern)
    return lambda text: compiled.sub("", text)


def _constants(text: str) -> str:
    """Write every constant of a float type with the bits that it has in that type."""
    return "\n".join(_line(line) if _CONSTANT.search(line) else line for line in text.split("\n"))


def _line(line: str) -> str:
    """A line whose constants are of the last type of floats that stands before each of them."""
    quoted = [found.span() for found in _STRING.finditer(line)]
    types = [(found.end(), found[1]) for found in _TYPE.finditer(line)]

    def rewrite(found: re.Match[str]) -> str:
        place = found.start("value")
        before = [name for end, name in types if end <= place]
        if not before or any(begin < place < end for begin, end in quoted):
            return found[0]
        return found["before"] + constant(before[-1], found["value"])

    return _CONSTANT.sub(rewrite, line)


def constant(name: str, value: str) -> str:
    """A constant of a type of floats as every LLVM reads it. value: as a newer one writes it.

    Raises ValueError for bits that the type does not have.
    """
    dtype = FLOATS[name]
    if value.startswith("f0x"):
        bits = int(value[3:], 16)
    elif nan := _NAN.fullmatch(value):
        bits = _nan(dtype, nan[1] == "-", not nan[2], int(nan[3], 16))
    else:
        number = _SPECIAL[value] if value in _SPECIAL else float(value)
        bits = int.from_bytes(np.array(number, np.float64).astype(dtype).tobytes(), "little")
    if bits >> 8 * dtype.itemsize:
        raise ValueError(f"{value} has more bits than {name}")
    if name == "float":
        wide = _widened(bits)
        return f"{PREFIX[name]}{wide:016X}"
    return f"{PREFIX[name]}{bits:0{2 * dtype.itemsize}X}"


def _nan(dtype: np.dtype, negative: bool, quiet: bool, payload: int) -> int:
    """The bits of a NaN. payload: its fraction without the bit that says that it is quiet."""
    width = 8 * dtype.itemsize
    infinity = int.from_bytes(np.array(np.inf).astype(dtype).tobytes(), "little")
    last = (infinity & -infinity) >> 1  # the highest bit of the fraction
    return negative << (width - 1) | infinity | quiet * last | payload


def _widened(bits: int) -> int:
    """The bits as a double of the value of a float; a NaN keeps its payload and its sign."""
    if bits & 0x7F800000 == 0x7F800000:
        return (bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
    (value,) = struct.unpack("<f", bits.to_bytes(4, "little"))
    return int.from_bytes(struct.pack("<d", value), "little")


EDITS = (
    Edit(
        "the module flags, which contradict each other between modules, are left out",
        _without(r"(?m)^!llvm\.module\.flags = .*\n"),
    ),
    Edit("the attribute denormal_fpenv(…) is left out", _without(r" ?\bdenormal_fpenv\((?:[^()]|\([^()]*\))*\)")),
    Edit(
        "a domain of alias scopes loses its second operand, an i1",
        lambda text: re.sub(r"(?m)^(!\d+ = distinct !\{!\d+), i1 (?:true|false)(, !\"[^\"\n]*\"\}|\})$", r"\1\2", text),
    ),
    Edit("the location target_mem of memory(…) is left out", _without(r", target_mem\d*: \w+")),
    Edit(
        "the processor is this one, whatever a function's attributes say",
        _without(r' ?"target-(?:cpu|features)"="[^"]*"'),
    ),
    Edit("constants f0x…, ±inf, ±qnan, ±nan(0x…) and decimals get the bits of their type", _constants),
)


def adapted(text: str) -> str:
    """The text after all EDITS. Raises ValueError for a constant that its type does not have."""
    for edit in EDITS:
        text = edit.run(text)
    return text
