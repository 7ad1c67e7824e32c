"""Custom options: what a caller gives handlers with one execution, as Python's values → attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..hlo.dtypes import DType, from_numpy
from ..hlo.errors import InputError
from .abi import DATA_TYPES, AttrType
from .attributes import Attribute, Attributes


def attributes_from(values: Mapping[str, Any]) -> Attributes:
    """The attributes of a dictionary. bool, int (i64), float (f64), str, numpy's numbers and arrays, dictionaries.

    Raises InputError for other values, and for names that are no text.
    """
    rows = []
    for name, value in values.items():
        if not isinstance(name, str):
            raise InputError(f"custom option {name!r}: a name is text")
        rows.append((name, _attribute(name, value)))
    return tuple(sorted(rows, key=lambda row: row[0].encode()))


def _attribute(name: str, value: Any) -> Attribute:
    if isinstance(value, Mapping):
        return int(AttrType.DICTIONARY), attributes_from(value)
    if isinstance(value, str):
        return int(AttrType.STRING), value.encode().hex()
    made = np.asarray(value)
    dtype = from_numpy().get(made.dtype)
    if not isinstance(value, bool | int | float | complex | np.generic | np.ndarray) or dtype not in _TYPES:
        remedy = "give numbers, text, arrays of whole bytes or dictionaries of them"
        raise InputError(f"custom option {name!r}: {type(value).__name__} is no attribute", remedy=remedy)
    data = np.ascontiguousarray(made).tobytes().hex()
    if isinstance(value, np.ndarray):
        return int(AttrType.ARRAY), DATA_TYPES[dtype], made.size, data
    return int(AttrType.SCALAR), DATA_TYPES[dtype], data


_TYPES = {DType.PRED, DType.S8, DType.S16, DType.S32, DType.S64, DType.U8, DType.U16, DType.U32, DType.U64}
_TYPES |= {DType.F16, DType.BF16, DType.F32, DType.F64, DType.C64, DType.C128}
