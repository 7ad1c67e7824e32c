"""Random gathers and scatters: dimension numbers, layouts, dtypes, and indices in range, out of range and far out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from ...hlo.dtypes import DType

INDEX_DTYPES = (DType.S32, DType.S64, DType.U32, DType.U64, DType.S8, DType.U8, DType.S16, DType.S4, DType.U4)
DTYPES = (
    *(DType.F32, DType.S32, DType.PRED, DType.C64, DType.BF16, DType.F16, DType.U8, DType.F64, DType.F8E4M3FN),
    *(DType.S4, DType.C128, DType.U2),
)

REGIONS = {
    "put": ("p", "ROOT r = {t} parameter(1)"),
    "keep": ("ROOT p", "q = {t} parameter(1)"),
    "add": ("p", "q = {t} parameter(1)\n  ROOT r = {t} add(p, q)"),
    "top": ("p", "q = {t} parameter(1)\n  ROOT r = {t} maximum(q, p)"),
    "both": ("p", "q = {t} parameter(1)\n  ROOT r = {t} or(p, q)"),
    "mix": ("p", "q = {t} parameter(1)\n  m = {t} multiply(p, p)\n  ROOT r = {t} subtract(m, q)"),
}
"""Update computations: (the first line's name, the rest)."""


@dataclass(frozen=True)
class Numbers:
    """Dimension numbers of a gather or scatter. batch: sizes of the indices without the index vector."""

    dims: list[int]
    mapped: list[int]
    batching: list[int]
    partners: list[int]
    alone: list[int]
    sizes: list[int]
    batch: list[int]
    vector_dim: int
    indices: list[int]
    window_dims: list[int]

    @property
    def combined(self) -> list[int]:
        """Dimensions of the result of a gather, and of the updates of a scatter."""
        gone = {*self.batching, *self.alone}
        window = iter([n for d, n in enumerate(self.sizes) if d not in gone])
        rest = iter(self.batch)
        rank = len(self.batch) + len(self.window_dims)
        return [next(window) if d in self.window_dims else next(rest) for d in range(rank)]


@st.composite
def numbers(draw: st.DrawFn) -> Numbers:
    dims = draw(st.lists(st.sampled_from([1, 2, 3, 4, 5, 0]), max_size=4))
    rank = len(dims)
    order = draw(st.permutations(range(rank)))
    many = draw(st.integers(0, min(rank, 2)))
    mapped, rest = list(order[:many]), order[many:]
    batching = sorted(rest[: draw(st.integers(0, min(len(rest), 1)))])
    others = [d for d in range(rank) if d not in batching]
    alone = sorted(draw(st.sets(st.sampled_from(others), max_size=2))) if others else []
    sizes = [
        min(1, n) if d in batching or d in alone else draw(st.integers(0 if n == 0 else 1, n))
        for d, n in enumerate(dims)
    ]
    batch = draw(st.lists(st.sampled_from([2, 1, 3, 0]), max_size=2))
    places = []
    for d in batching:
        at = draw(st.integers(0, len(batch)))
        batch.insert(at, dims[d])
        places = [p + (p >= at) for p in places] + [at]
    vector_dim = draw(st.integers(0, len(batch)))
    hidden = many == 1 and draw(st.booleans())
    vector_dim = len(batch) if hidden else vector_dim
    indices = batch if hidden else [*batch[:vector_dim], many, *batch[vector_dim:]]
    partners = [p + (p >= vector_dim) for p in places]
    window = rank - len(batching) - len(alone)
    window_dims = sorted(draw(st.permutations(range(len(batch) + window)))[:window])
    return Numbers(dims, mapped, batching, partners, alone, sizes, batch, vector_dim, indices, window_dims)


def shape(draw: st.DrawFn, dtype: DType, dims: list[int]) -> str:
    layout = draw(st.permutations(range(len(dims)))) if draw(st.booleans()) else range(len(dims))[::-1]
    return f"{dtype.value}[{','.join(map(str, dims))}]" + (f"{{{','.join(map(str, layout))}}}" if dims else "")


def listed(values: list[int]) -> str:
    return f"{{{','.join(map(str, values))}}}"


def index_values(draw: st.DrawFn, dtype: DType, dims: list[int]) -> np.ndarray:
    """Indices mostly near the bounds of small arrays, sometimes the extremes of the dtype."""
    seed = draw(st.integers(0, 1000))
    random = np.random.default_rng(seed)
    low, high = (-(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1) if dtype.is_signed else (0, (1 << dtype.bits) - 1)
    near = random.integers(max(low, -2), min(high, 6), dims)
    extreme = random.choice(np.array([low, high, 0, min(high, 130)], object), dims)
    return np.where(random.random(dims) < 0.85, near, extreme).astype(dtype.numpy)


def element_values(draw: st.DrawFn, dtype: DType, dims: list[int]) -> np.ndarray:
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    if dtype is DType.PRED:
        return random.integers(0, 2, dims).astype(np.bool_)
    if dtype.is_complex:
        return (random.integers(-4, 5, dims) + 1j * random.integers(-4, 5, dims)).astype(dtype.numpy)
    return random.integers(0 if dtype.is_unsigned else -4, 5, dims).astype(dtype.numpy)


def turned(draw: st.DrawFn, name: str, dtype: DType, text: str, number: int) -> str:
    """A parameter, or an elementwise op of one, which can be fused into its user, named `name`."""
    if draw(st.booleans()):
        return f"{name} = {text} parameter({number})"
    op = "not" if dtype is DType.PRED or dtype.is_unsigned else "negate"
    return f"{name}_ = {text} parameter({number})\n  {name} = {text} {op}({name}_)"


def inverted(draw: st.DrawFn, text: str, values: np.ndarray) -> tuple[str, np.ndarray]:
    """The indices as a parameter, or as the `not` of a parameter."""
    if draw(st.booleans()):
        return f"i = {text} parameter(1)", values
    return f"i_ = {text} parameter(1)\n  i = {text} not(i_)", np.invert(values.astype(np.int64)).astype(values.dtype)


def root(draw: st.DrawFn, name: str, dtype: DType, text: str) -> str:
    """The end of the entry: the array itself, or an elementwise op of it."""
    if draw(st.booleans()):
        return f"ROOT r = {text} copy({name})"
    op = "not" if dtype is DType.PRED or dtype.is_unsigned else "negate"
    return f"ROOT r = {text} {op}({name})"


@st.composite
def gathers(draw: st.DrawFn) -> tuple[str, list[np.ndarray]]:
    """Module text and inputs."""
    n, dtype, of = draw(numbers()), draw(st.sampled_from(DTYPES)), draw(st.sampled_from(INDEX_DTYPES))
    x, r = shape(draw, dtype, n.dims), shape(draw, dtype, n.combined)
    i, indices = inverted(draw, shape(draw, of, n.indices), index_values(draw, of, n.indices))
    text = f"""HloModule m
ENTRY e {{
  {turned(draw, "x", dtype, x, 0)}
  {i}
  g = {r} gather(x, i), offset_dims={listed(n.window_dims)},
    collapsed_slice_dims={listed(n.alone)}, start_index_map={listed(n.mapped)}, index_vector_dim={n.vector_dim},
    operand_batching_dims={listed(n.batching)}, start_indices_batching_dims={listed(n.partners)},
    slice_sizes={listed(n.sizes)}
  {root(draw, "g", dtype, r)}
}}
"""
    return text, [element_values(draw, dtype, n.dims), indices]


@st.composite
def scatters(draw: st.DrawFn) -> tuple[str, list[np.ndarray]]:
    """Module text and inputs."""
    n, dtype, of = draw(numbers()), draw(st.sampled_from(DTYPES)), draw(st.sampled_from(INDEX_DTYPES))
    names = ["put", "keep", "both"] if dtype is DType.PRED else ["put", "add", "mix", *["top"] * (not dtype.is_complex)]
    first, rest = REGIONS[draw(st.sampled_from(names))]
    t = f"{dtype.value}[]"
    x = shape(draw, dtype, n.dims)
    i, indices = inverted(draw, shape(draw, of, n.indices), index_values(draw, of, n.indices))
    text = f"""HloModule m
region {{
  {first} = {t} parameter(0)
  {rest.format(t=t)}
}}
ENTRY e {{
  {turned(draw, "x", dtype, x, 0)}
  {i}
  {turned(draw, "u", dtype, shape(draw, dtype, n.combined), 2)}
  s = {x} scatter(x, i, u), update_window_dims={listed(n.window_dims)},
    inserted_window_dims={listed(n.alone)}, scatter_dims_to_operand_dims={listed(n.mapped)},
    index_vector_dim={n.vector_dim}, input_batching_dims={listed(n.batching)},
    scatter_indices_batching_dims={listed(n.partners)}, to_apply=region
  {root(draw, "s", dtype, x)}
}}
"""
    return text, [element_values(draw, dtype, n.dims), indices, element_values(draw, dtype, n.combined)]
