"""The elements of two arrays that differ most, with both values and their distance, for reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..hlo.dtypes import FROM_NUMPY, DType
from .bounds import Bound, Tolerance
from .comparison import disagreeing, errors_of

MOST = 4
"""Elements of a result leaf that a report shows."""


@dataclass(frozen=True)
class WorstElement:
    """An element that does not agree. relative: to the right one, of a complex number in the plane.

    ulp: representable values between the two, the larger of both parts of a complex number; None for integers.
    """

    index: tuple[int, ...]
    left: str
    right: str
    absolute: float
    relative: float
    ulp: float | None


def worst_elements(
    left: np.ndarray, right: np.ndarray, bound: Bound | Tolerance, most: int = MOST
) -> Sequence[WorstElement]:
    """The elements beyond the bound, the farthest first; none if the arrays have other shapes or types.

    The distance is in ulp, and absolute for integers.
    """
    left, right = np.asarray(left), np.asarray(right)
    if left.shape != right.shape or left.dtype != right.dtype or not left.size:
        return ()
    dtype = FROM_NUMPY[right.dtype]
    places = np.flatnonzero(disagreeing(left, right, dtype, bound))
    a, e = left.reshape(-1)[places], right.reshape(-1)[places]
    absolute, relative, ulp = _distances(a, e, dtype)
    order = np.argsort(-(absolute if ulp is None else ulp), kind="stable")[:most]
    return tuple(
        WorstElement(
            tuple(int(i) for i in np.unravel_index(int(places[n]), left.shape)),
            str(a[n]),
            str(e[n]),
            float(absolute[n]),
            float(relative[n]),
            None if ulp is None else float(ulp[n]),
        )
        for n in order
    )


def _distances(a: np.ndarray, e: np.ndarray, dtype: DType) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Absolute and relative errors and ulp (None for integers) of each element."""
    if dtype.is_float:
        errors = errors_of(a, e, dtype)
        return errors.absolute, errors.relative, errors.ulps
    with np.errstate(all="ignore"):
        if dtype.is_complex:
            parts = [errors_of(x, y, dtype.component) for x, y in ((a.real, e.real), (a.imag, e.imag))]
            absolute = np.hypot(parts[0].absolute, parts[1].absolute)
            return absolute, absolute / np.abs(e), np.maximum(parts[0].ulps, parts[1].ulps)
        wide = [x.astype(object if x.dtype.itemsize == 8 else np.int64) for x in (a, e)]
        absolute = np.abs(wide[0] - wide[1]).astype(np.float64)
        return absolute, absolute / np.abs(wide[1].astype(np.float64)), None
