"""Sorts in the outer shape of devices: rows that an item sorts by digits, on threads of the recording driver."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from ...backends.accelerator.compiler import emitted_for
from ...backends.accelerator.targets import SPIRV
from ...backends.base import CompileOptions
from ...backends.cuda.dialect import CUDA
from ...backends.host.compiler import HostCompiler
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.verify.verifier import verify
from ...migration.choose import emit_for
from ...migration.flags import Flags
from ..support.host_items import host_items
from ..support.recorded import Recorded

STACKS = ("legacy", "mlir")

KEYS = {"f32": np.float32, "f64": np.float64, "s32": np.int32, "u8": np.uint8}


def stable_sort(dtype: str, rows: int, length: int, kept: int = 0, order: str = "LT") -> str:
    """Rows of keys with their numbers, which tell whether equal keys keep their order. kept: of the first elements."""
    total = ", type=TOTALORDER" if dtype.startswith("f") else ""
    region = f"""HloModule m
before {{ a = {dtype}[] parameter(0)
 b = {dtype}[] parameter(1)
 c = s32[] parameter(2)
 d = s32[] parameter(3)
 ROOT e = pred[] compare(a, b), direction={order}{total} }}
ENTRY e {{ p = {dtype}[{rows},{length}] parameter(0)
 q = s32[{rows},{length}] parameter(1)
"""
    whole = f"({dtype}[{rows},{length}], s32[{rows},{length}])"
    sort = f"{whole} sort(p, q), dimensions={{1}}, is_stable=true, to_apply=before"
    if not kept:
        return f"{region} ROOT r = {sort} }}"
    parts = [f" g{n} = {t}[{rows},{length}] get-tuple-element(r), index={n}\n" for n, t in enumerate((dtype, "s32"))]
    for n, t in enumerate((dtype, "s32")):
        parts.append(f" h{n} = {t}[{rows},{kept}] slice(g{n}), slice={{[0:{rows}], [0:{kept}]}}\n")
    first = f"({dtype}[{rows},{kept}], s32[{rows},{kept}])"
    return f"{region} r = {sort}\n{''.join(parts)} ROOT t = {first} tuple(h0, h1) }}"


def keys(dtype: str, rows: int, length: int) -> list[np.ndarray]:
    rng = np.random.default_rng(length)
    made = rng.integers(0, max(4, length // 8), (rows, length)).astype(KEYS[dtype])
    if dtype.startswith("f") and length > 4:
        made *= rng.choice([-1, 1], made.shape)
        made[0, :5] = 0.0, math.nan, -0.0, math.inf, -math.nan
    elif dtype == "s32":
        made -= length // 16
    return [made, np.arange(rows * length, dtype=np.int32).reshape(rows, length)]


@functools.cache
def items() -> Recorded:
    return Recorded(CUDA, host_items())


def _plan(text: str):
    module = parse_module(text)
    verify(module)
    return module, HostCompiler().run_hlo_passes(module, CompileOptions())


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(
    ("dtype", "rows", "length", "kept", "order"),
    [
        ("f32", 3, 0, 0, "LT"),
        ("f32", 3, 1, 0, "LT"),
        ("f32", 2, 65, 0, "LT"),
        ("f32", 3, 600, 0, "LT"),
        ("f32", 1, (1 << 15) + 3, 0, "GT"),
        ("f64", 2, 700, 0, "GT"),
        ("s32", 3, 513, 0, "LT"),
        ("u8", 2, 1000, 0, "GT"),
        ("f32", 2, 600, 7, "LT"),
        ("f32", 2, 300, 290, "GT"),
    ],
)
def test_items_sort_as_the_evaluator(stack: str, dtype: str, rows: int, length: int, kept: int, order: str):
    module, plan = _plan(stable_sort(dtype, rows, length, kept, order))
    executable = items().compiler().compile(plan, emit_for(Flags.parse(stack)), CompileOptions(cache=None))
    inputs = keys(dtype, rows, length)
    for found, wanted in zip(executable.execute(inputs), evaluate(module, inputs), strict=True):
        assert found.dtype == wanted.dtype
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(("length", "kept", "by_digits"), [(64, 0, False), (1024, 0, True), (1024, 5, True)])
def test_an_item_sorts_long_rows_by_digits(stack: str, length: int, kept: int, by_digits: bool):
    """Such a kernel compares no floats, has no vectors, and no loop of it carries more than one register a value."""
    _, plan = _plan(stable_sort("f32", 4, length, kept).replace(", type=TOTALORDER", ""))
    chosen = emit_for(Flags.parse(stack))
    texts = [emitted_for(SPIRV, chosen(request), request).text for request in plan.emitted]
    assert any("fcmp" in text for text in texts) != by_digits
    assert not any(" x i1>" in text or "phi {" in text for text in texts)
