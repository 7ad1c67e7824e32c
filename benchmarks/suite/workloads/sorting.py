"""Sort, argsort, the largest k."""

from __future__ import annotations

import numpy as np

from ..workload import Case, Draw, Register, jnp, lax, module_text

SORTING = Register("sorting")


def _sort(dims: tuple[int, ...], dtype: str) -> Case:
    order = ",".join(map(str, reversed(range(len(dims)))))
    s = f"{dtype}[{','.join(map(str, dims))}]{{{order}}}"
    less = f"""
less {{
  a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}}
"""
    draw = Draw()
    x = draw.uniform(*dims) if dtype == "f32" else draw.integers(-(1 << 30), 1 << 30, *dims)
    return Case(
        (x,),
        module_text([("x", s)], f"ROOT r = {s} sort(x), dimensions={{{len(dims) - 1}}}, to_apply=less", less),
        numpy=lambda x: np.sort(x),
        torch=lambda torch, x: torch.sort(x).values,
    )


SORTING.hlo("sort_f32_2^18", lambda: _sort((1 << 18,), "f32"))
SORTING.hlo("sort_f32_2^20", lambda: _sort((1 << 20,), "f32"))
SORTING.hlo("sort_s32_2^18", lambda: _sort((1 << 18,), "s32"))
SORTING.hlo("sort_rows_1024x256", lambda: _sort((1024, 256), "f32"))


def _argsort(size: int) -> Case:
    return Case(
        (Draw().uniform(size),),
        function=lambda x: jnp.argsort(x),
        numpy=lambda x: np.argsort(x, kind="stable").astype(np.int32),
        torch=lambda torch, x: torch.argsort(x, stable=True).int(),
    )


@SORTING.jax("argsort_2^16")
def _argsort_16() -> Case:
    return _argsort(1 << 16)


@SORTING.jax("argsort_2^18")
def _argsort_18() -> Case:
    return _argsort(1 << 18)


@SORTING.jax("sort_pairs_2^16")
def _sort_pairs() -> Case:
    draw = Draw()
    keys, values = draw.integers(0, 1000, 1 << 16), draw.uniform(1 << 16)
    return Case((keys, values), function=lambda k, v: lax.sort((k, v), num_keys=1, is_stable=True))


@SORTING.jax("top_32_of_64x16384")
def _top_k() -> Case:
    return Case(
        (Draw().uniform(64, 16384),),
        function=lambda x: lax.top_k(x, 32),
        torch=lambda torch, x: [torch.topk(x, 32).values, torch.topk(x, 32).indices.int()],
    )


@SORTING.jax("median_rows_256x1024")
def _median() -> Case:
    return Case((Draw().uniform(256, 1024),), function=lambda x: jnp.median(x, 1), numpy=lambda x: np.median(x, 1))


@SORTING.jax("searchsorted_2^16")
def _searchsorted() -> Case:
    draw = Draw()
    return Case(
        (np.sort(draw.uniform(1 << 14)), draw.uniform(1 << 16)),
        function=lambda table, x: jnp.searchsorted(table, x),
        numpy=lambda table, x: np.searchsorted(table, x).astype(np.int32),
    )
