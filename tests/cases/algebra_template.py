"""Templates of modules, by the name of the optimiser's rule that matches in them.

A template is lines of HLO, separated by `;`; the last one is the root. `T` is the type of the case with its dimensions,
`T[3]` the type with other dimensions, `S` its scalar, `P` pred, `C` and `F` complex and its component; `x`, `y`, `z`
are parameters of type T, `p` and `q` of type P; `#7` is an array of type T filled with 7. Each template is tested with
every type that it admits.
"""

from __future__ import annotations

from dataclasses import dataclass

TYPES = {
    "int": "s8 s16 s32 s64 u8 u16 u32 u64 s4 u4",
    "wide": "s8 s16 s32 s64 u8 u16 u32 u64",
    "signed": "s8 s16 s32 s64",
    "unsigned": "u8 u16 u32 u64",
    "float": "f16 bf16 f32 f64",
    "big": "f32 f64",
    "narrow": "f8e5m2 f8e4m3fn",
    "complex": "c64 c128",
    "pred": "pred",
}
TYPES["real"] = f"{TYPES['float']} {TYPES['narrow']}"
TYPES["number"] = f"{TYPES['int']} {TYPES['real']}"
TYPES["any"] = f"{TYPES['number']} {TYPES['complex']} pred"
TYPES["bits"] = f"{TYPES['int']} pred"
TYPES["sum"] = f"{TYPES['wide']} {TYPES['float']}"


@dataclass(frozen=True)
class Template:
    """kinds: words of TYPES, or types. dims: the dimensions of T, unless the template states others."""

    kinds: str
    body: str
    dims: str = "[2,3]"


def case(kinds: str, body: str, dims: str = "[2,3]") -> Template:
    return Template(kinds, body, dims)
