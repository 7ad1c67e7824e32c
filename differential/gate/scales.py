"""A row's programs by size, by rank, and by the number of instructions before its op, for what must grow slowly."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from ...hlo.dtypes import DType
from ...migration.units import ELEMENTAL
from .. import row_programs as rows
from ..row_programs import TIMED, Make, fold, module

FACTORS = (1, 2, 4, 8)
RANKS = (2, 4, 8)
LENGTHS = (8, 16, 32, 64)


def scaled(unit: str, dtypes: str, factor: int) -> str:
    """A program whose work grows with the factor."""
    return _SCALED[unit](TIMED[dtypes][0], factor)


def ranked(unit: str, dtypes: str, rank: int) -> str:
    """A program on arrays of a rank, most of whose dimensions have two elements."""
    return _RANKED[unit](TIMED[dtypes][0], rank)


def lengthened(unit: str, dtypes: str, count: int) -> str:
    """A small program of the row whose first operand is made by `count` elementwise instructions."""
    dtype = TIMED[dtypes][0]
    text = rows.CASES[unit](dtype, 0)
    found = re.search(r"^  p = (\S+) parameter\(0\)$", text, re.M)
    assert found is not None, f"{unit} has no operand p"
    shape, names = found[1], ["p0", *(f"c{n}" for n in range(count - 1)), "p"]
    lines = [f"  p0 = {shape} parameter(0)"]
    for n, (before, after) in enumerate(pairwise(names)):
        op = ("and", "or")[n % 2] if dtype is DType.PRED else ("multiply", "add", "subtract")[n % 3]
        lines.append(f"  {after} = {shape} {op}({before}, p0)")
    return text.replace(found[0], "\n".join(lines))


# -- by size ----------------------------------------------------------------------------------------------------------
def _elements(dtype: DType, factor: int) -> str:
    """As the chain of row_programs, of a size."""
    return rows.chain(dtype, 0).replace("[1000]", f"[{8192 * factor}]")


_SCALED: dict[str, Make] = {
    ELEMENTAL: _elements,
    "concatenate": lambda t, k: rows.joined_of(t, 32 * k, 250, 1),
    "convolution": lambda t, k: rows.convolved_of(t, 8 * k, 16, 8, 16),
    "dot": lambda t, k: rows.product_of(t, 32 * k, 64, 64),
    "dynamic-update-slice": lambda t, k: rows.updated_of(t, 32 * k, 250),
    "reduce": lambda t, k: rows.reduction_of(t, 0, 64 * k, 256, "1"),
    "reduce-window": lambda t, k: rows.windowed_of(t, 1, 32 * k, 64, stride=2),
    "scatter": lambda t, k: rows.scattered_of(t, 0, 64, 32, 128 * k),
    "sort": lambda t, k: rows.sorted_of(t, 4, 2048 * k),
    "transpose": lambda t, k: rows.transposed_of(t, 75 * k, 50),
}
"""Unit → a program that fits the caches at each factor: what leaves them is slower a byte, on any stack."""


# -- by rank ----------------------------------------------------------------------------------------------------------
def _dims(rank: int, **changed: int) -> str:
    dims = [2] * rank
    for place, value in changed.items():
        dims[int(place.removeprefix("d"))] = value
    return ",".join(map(str, dims))


def _list(rank: int, backwards: bool = False) -> str:
    return ",".join(map(str, reversed(range(rank)) if backwards else range(rank)))


def _turned(t: DType, r: int) -> str:
    shape = f"{t.value}[{_dims(r)}]"
    return module([f"p = {shape} parameter(0)", f"ROOT r = {shape} transpose(p), dimensions={{{_list(r, True)}}}"])


def _reversed(t: DType, r: int) -> str:
    shape = f"{t.value}[{_dims(r)}]"
    how = f"dimensions={{{_list(r)}}}"
    return module(
        [
            f"p = {shape} parameter(0)",
            f"q = {shape} reverse(p), {how}",
            f"v = {t.value}[] parameter(1)",
            f"w = {shape} broadcast(v), dimensions={{}}",
            f"c = pred[{_dims(r)}] compare(q, p), direction=EQ",
            f"ROOT s = {shape} select(c, q, w)",
        ]
    )


def _joined(t: DType, r: int) -> str:
    shape = f"{t.value}[{_dims(r)}]"
    lines = [f"p = {shape} parameter(0)", f"q = {shape} parameter(1)"]
    how = f"concatenate(p, q), dimensions={{{r - 1}}}"
    return module([*lines, f"ROOT r = {t.value}[{_dims(r, **{f'd{r - 1}': 4})}] {how}"])


def _updated(t: DType, r: int) -> str:
    names = [f"i{n}" for n in range(r)]
    lines = [f"p = {t.value}[{_dims(r, d0=5)}] parameter(0)", f"u = {t.value}[{_dims(r)}] parameter(1)"]
    lines += [f"{name} = s32[] parameter({n + 2})" for n, name in enumerate(names)]
    return module([*lines, f"ROOT r = {t.value}[{_dims(r, d0=5)}] dynamic-update-slice(p, u, {', '.join(names)})"])


def _reduced(t: DType, r: int) -> str:
    computation, start = fold(t, 0)
    gone = list(range(0, r, 2))
    lines = [f"p = {t.value}[{_dims(r)}] parameter(0)", f"z = {t.value}[] constant({start})"]
    how = f"dimensions={{{','.join(map(str, gone))}}}, to_apply=fold"
    return module([*lines, f"ROOT r = {t.value}[{_dims(r - len(gone))}] reduce(p, z), {how}"], computation)


def _windowed(t: DType, r: int) -> str:
    computation, start = fold(t, 0)
    window = f"size={'x'.join(['2'] * 2 + ['1'] * (r - 2))} pad={'x'.join(['1_0'] * 2 + ['0_0'] * (r - 2))}"
    lines = [f"p = {t.value}[{_dims(r)}] parameter(0)", f"z = {t.value}[] constant({start})"]
    root = f"ROOT r = {t.value}[{_dims(r)}] reduce-window(p, z), window={{{window}}}, to_apply=fold"
    return module([*lines, root], computation)


def _multiplied(t: DType, r: int) -> str:
    batch = ",".join(map(str, range(r - 2)))
    sides = f"lhs_batch_dims={{{batch}}}, rhs_batch_dims={{{batch}}}, " if r > 2 else ""
    how = f"{sides}lhs_contracting_dims={{{r - 1}}}, rhs_contracting_dims={{{r - 2}}}"
    shape = f"{t.value}[{_dims(r)}]"
    return module([f"p = {shape} parameter(0)", f"q = {shape} parameter(1)", f"ROOT r = {shape} dot(p, q), {how}"])


def _convolved(t: DType, r: int) -> str:
    space = "".join(map(str, range(r - 2)))
    labels = f"dim_labels=b{space}f_{space}io->b{space}f"
    window = f"window={{size={'x'.join(['1'] * (r - 2))}}}, " if r > 2 else ""
    shape = f"{t.value}[{_dims(r)}]"
    kernel = f"{t.value}[{','.join(['1'] * (r - 2) + ['2', '2'])}]"
    lines = [f"p = {shape} parameter(0)", f"q = {kernel} parameter(1)"]
    return module([*lines, f"ROOT r = {shape} convolution(p, q), {window}{labels}"])


def _scattered(t: DType, r: int) -> str:
    computation, _ = fold(t, 0)
    where = f"update_window_dims={{{','.join(map(str, range(1, r)))}}}, inserted_window_dims={{0}}, "
    where += "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=fold"
    shape = f"{t.value}[{_dims(r)}]"
    lines = [f"p = {shape} parameter(0)", "i = s32[2] parameter(1)", f"u = {shape} parameter(2)"]
    return module([*lines, f"ROOT r = {shape} scatter(p, i, u), {where}"], computation)


def _sorted(t: DType, r: int) -> str:
    """As that of row_programs, of a rank."""
    text = rows.sorted_of(t, 2, 2)
    return text.replace("[2,2]", f"[{_dims(r)}]").replace("dimensions={1}", f"dimensions={{{r - 1}}}")


_RANKED: dict[str, Callable[[DType, int], str]] = {
    ELEMENTAL: _reversed,
    "concatenate": _joined,
    "convolution": _convolved,
    "dot": _multiplied,
    "dynamic-update-slice": _updated,
    "reduce": _reduced,
    "reduce-window": _windowed,
    "scatter": _scattered,
    "sort": _sorted,
    "transpose": _turned,
}
