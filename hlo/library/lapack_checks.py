"""The shapes and element types that a LAPACK call must have, so that no routine reads or writes outside its arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ..dtypes import DType
from ..shapes import Shape, array
from .lapack import Routine

FORMS: dict[str, str] = {
    "potrf": "A(n,n) info()I",
    "getrf": "A(m,n) pivots(k)I info()I",
    "geqrf": "A(m,n) tau(k)",
    "geqp3": "A(m,n) pivots(n)I tau(k)",
    **dict.fromkeys(("orgqr", "ungqr"), "A(m,n) tau(t)"),
    **dict.fromkeys(("ormqr", "unmqr"), "A(q,n) tau(t) C(r,c)"),
    "trsm": "A(q,q) C(r,c)",
    "gehrd": "A(n,n) tau(p) info()I",
    "gtsv": "dl(n) d(n) du(n) C(n,c) info()I",
    **dict.fromkeys(("syevd", "heevd"), "A(n,n) w(n)R info()I"),
    **dict.fromkeys(("sytrd", "hetrd"), "A(n,n) d(n)R e(p)R tau(p) info()I"),
    **dict.fromkeys(("gesdd", "gesvd"), "A(m,n) s(k)R U(m,u) VT(v,n) info()I"),
    "geev": "X(n,n) wr(n) wi(n) w(n) VL(n,n)C VR(n,n)C info()I",
    "gees": "A(n,n) VS(n,n) wr(n) wi(n) w(n) sdim()I info()I",
}
"""Routine → its arrays without the batch: name, dimensions (letters: see `_sizes`), and element type.

The type is I for s32, R for real, C for complex, and nothing for the type of the routine.
"""

_FORM = re.compile(r"(\w+)\(([\w,]*)\)([IRC]?)")


def complaint(routine: Routine, dtype: DType, options: Mapping[str, object], shapes: Sequence[Shape]) -> str | None:
    """Why operands and results (`shapes`, in this order) are not what the routine takes; None if they are.

    The options must have been checked before.
    """
    names = [*routine.operands, *routine.results]
    if len(shapes) != len(names):
        return f"{routine.name} takes {len(routine.operands)} operands and gives {len(routine.results)} results"
    forms = {name: (dims.split(",") if dims else [], kind) for name, dims, kind in _FORM.findall(FORMS[routine.name])}
    rank = len(shapes[0].dims) - len(forms[names[0]][0])
    if rank < 0:
        return f"{names[0]} has too few dimensions"
    batch, known = shapes[0].dims[:rank], dict(zip(names, shapes, strict=True))
    if any(len(s.dims) != rank + len(forms[name][0]) for name, s in zip(names, shapes)):
        return "operands and results differ in their batch dimensions"
    sizes = _sizes(known, options, rank)
    for name, shape in zip(names, shapes, strict=True):
        dims, kind = forms[name]
        expected = array(_element(dtype, kind), *batch, *(sizes[d] for d in dims))
        if (shape.dtype, shape.dims) != (expected.dtype, expected.dims):
            return f"{name} must be {expected}, is {shape.without_layout()}"
    return next(_wrong_sizes(routine, sizes, options), None)


def _sizes(shapes: Mapping[str, Shape], options: Mapping[str, object], rank: int) -> dict[str, int]:
    """The size of each dimension letter in FORMS.

    m, n: rows and columns of the main matrix; k = min(m, n); p = n - 1; r, c: rows and columns of C; q: r or c, the
    order of a matrix that multiplies C from the left or right; t: length of tau; u: columns of U; v: rows of VT.
    """
    main = next(iter(shapes.values())).dims[rank:]
    m, n = main[0], main[-1]
    k = min(m, n)
    r, c = shapes["C"].dims[rank:] if "C" in shapes else (0, 0)
    q = r if options.get("side") == "L" else c
    t = shapes["tau"].dims[-1] if "tau" in shapes else 0
    thin = options.get("mode") == "S"
    u, v = (k, k) if thin else (m, n)
    if options.get("mode") == "N" and "U" in shapes and "VT" in shapes:  # they are not touched
        u, v = shapes["U"].dims[-1], shapes["VT"].dims[-2]
    return {"m": m, "n": n, "k": k, "p": max(n - 1, 0), "r": r, "c": c, "q": q, "t": t, "u": u, "v": v}


def _element(dtype: DType, kind: str) -> DType:
    wide = {DType.F32: DType.C64, DType.F64: DType.C128}
    return {"": dtype, "I": DType.S32, "R": dtype.component, "C": wide.get(dtype, dtype)}[kind]


def _wrong_sizes(routine: Routine, s: Mapping[str, int], options: Mapping[str, object]) -> Iterator[str]:
    if routine.name in ("orgqr", "ungqr") and not s["t"] <= s["n"] <= s["m"]:
        yield f"{s['t']} reflectors cannot make a {s['m']} × {s['n']} matrix"
    if routine.name in ("ormqr", "unmqr") and s["t"] > min(s["q"], s["n"]):
        yield f"{s['t']} reflectors are more than the matrix holds"
    if routine.name == "gehrd" and s["n"]:
        low, high = options["low"], options["high"]
        assert isinstance(low, int) and isinstance(high, int)
        if not 1 <= low <= high <= s["n"]:
            yield f"low and high must be 1 ≤ low ≤ high ≤ {s['n']}, are {low} and {high}"
