"""Random sorts: shapes, dimensions, layouts, dtypes, comparators; keys with ties, NaN, zeros of both signs."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from ...hlo.dtypes import DType

KEYS = (
    *(DType.F32, DType.F64, DType.F16, DType.BF16, DType.F8E5M2, DType.F8E4M3FN, DType.S8, DType.S32, DType.S64),
    *(DType.U8, DType.U16, DType.U64, DType.S4, DType.U4, DType.PRED),
)
PAYLOADS = (DType.S32, DType.F32, DType.C64, DType.U8, DType.BF16, DType.PRED, DType.F64, DType.S4, DType.C128)

COMPARATORS = {
    "first": "ROOT r = pred[] compare(a0, b0), direction={less}{order}",
    "or equal": "ROOT r = pred[] compare(a0, b0), direction={less_equal}{order}",
    "last, then first": """l = pred[] compare(a{last}, b{last}), direction=LT{last_order}
  g = pred[] compare(a{last}, b{last}), direction=EQ{last_order}
  f = pred[] compare(a0, b0), direction={less}{order}
  ROOT r = pred[] select(g, f, l)""",
    "called": "ROOT r = pred[] call(a0, b0), to_apply=inner",
    "distance from a constant": """c = {key} constant(1)
  p = pred[] compare(a0, c), direction=NE
  q = pred[] compare(b0, c), direction=NE
  ROOT r = pred[] compare(p, q), direction=LT""",
}
"""Bodies over parameters a0, b0, a1, b1 … ({last}: the last operand)."""


def values(draw: st.DrawFn, dtype: DType, dims: tuple[int, ...], nan: bool) -> np.ndarray:
    """A few distinct values, so that there are ties. Floats include both zeros, infinities and, if `nan`, both NaNs."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    if dtype is DType.PRED:
        return random.integers(0, 2, dims).astype(bool)
    if dtype.is_complex:
        return (random.integers(-4, 4, dims) + 1j * random.integers(-4, 4, dims)).astype(dtype.numpy)
    if dtype.is_float:
        pool = np.array([0.0, -0.0, 1.0, -1.0, 1.5, np.inf, -np.inf, 2.0, -3.0, np.nan, -np.nan])
        many = draw(st.sampled_from([5, len(pool) if nan else len(pool) - 2]))
        chosen = random.choice(pool[:many], dims).astype(dtype.numpy)
        return chosen if nan else np.where(np.isnan(chosen), np.zeros((), dtype.numpy), chosen)
    low = 0 if dtype.is_unsigned else -8
    return random.integers(low, min(low + 15, 2 ** (dtype.bits - (low < 0)) - 1), dims, endpoint=True).astype(
        dtype.numpy
    )


@st.composite
def sorts(draw: st.DrawFn) -> tuple[str, list[np.ndarray]]:
    """HLO text and inputs of a module that is one sort."""
    length = draw(st.sampled_from([0, 1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 50, 64, 65, 130, 300]))
    rest = draw(st.lists(st.sampled_from([1, 2, 3]), max_size=2))
    if length <= 65 and draw(st.booleans()):  # enough rows to be sorted side by side
        rest.insert(draw(st.integers(0, len(rest))), draw(st.sampled_from([16, 17, 40, 130])))
    dimension = draw(st.integers(0, len(rest)))
    dims = (*rest[:dimension], length, *rest[dimension:])
    key = draw(st.sampled_from(KEYS))
    dtypes = [key, *draw(st.lists(st.sampled_from(PAYLOADS), max_size=2))]
    name = draw(st.sampled_from(sorted(COMPARATORS)))
    if name == "last, then first" and dtypes[-1].is_complex:
        dtypes.append(DType.S32)
    shapes = [shape(draw, d, dims) for d in dtypes]
    results = [shape(draw, d, dims) for d in dtypes]
    result = results[0] if len(results) == 1 else f"({', '.join(results)})"
    lines = [f"  p{n} = {s} parameter({n})" for n, s in enumerate(shapes)]
    turned = [draw(st.booleans()) for _ in dtypes]  # operands that are computed by a fused op
    lines += [f"  t{n} = {s} reverse(p{n}), dimensions={{{dimension}}}" for n, s in enumerate(shapes) if turned[n]]
    operands = ", ".join(f"{'t' if turned[n] else 'p'}{n}" for n in range(len(dtypes)))
    sort = f"sort({operands}), dimensions={{{dimension}}}, is_stable={draw(st.sampled_from(['true', 'false']))}"
    text = "\n".join(
        [
            "HloModule m",
            *comparator(draw, name, dtypes),
            "ENTRY e {",
            *lines,
            f"  ROOT s = {result} {sort}, to_apply=by",
            "}",
        ]
    )
    nan = "TOTALORDER" in text or name == "distance from a constant"  # other comparisons with NaN are no order
    return text, [values(draw, d, dims, nan or n > 0) for n, d in enumerate(dtypes)]


def shape(draw: st.DrawFn, dtype: DType, dims: tuple[int, ...]) -> str:
    layout = draw(st.permutations(range(len(dims)))) if draw(st.booleans()) else range(len(dims))[::-1]
    return f"{dtype.value}[{','.join(map(str, dims))}]{{{','.join(map(str, layout))}}}"


def comparator(draw: st.DrawFn, name: str, dtypes: list[DType]) -> list[str]:
    order = ", type=TOTALORDER" if dtypes[0].is_float else ""
    if name != "last, then first" and dtypes[0].is_float and draw(st.booleans()):
        order = ""
    less = draw(st.sampled_from(["LT", "GT"]))
    body = COMPARATORS[name].format(
        less=less, less_equal=less.replace("T", "E"), order=order, key=f"{dtypes[0].value}[]",
        last_order=", type=TOTALORDER" if dtypes[-1].is_float else "", last=len(dtypes) - 1,
    )  # fmt: skip
    if dtypes[0] is DType.PRED:
        body = body.replace("constant(1)", "constant(true)")
    parameters = [
        f"  {side}{n} = {d.value}[] parameter({2 * n + k})" for n, d in enumerate(dtypes) for k, side in enumerate("ab")
    ]
    inner = [
        "inner {",
        *parameters[:2],
        f"  ROOT r = pred[] compare(a0, b0), direction={less}{order}",
        "}",
    ]
    return [*inner, "by {", *parameters, f"  {body}", "}"]
