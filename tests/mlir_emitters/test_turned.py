"""Fusions that read arrays across the order of memory: their tiles are copied through vector registers."""

import numpy as np
import pytest

from ...codegen.options import EmitOptions, Target
from ...codegen.threads import set_threads, threads
from ...formats.text.parser import parse_module
from ...migration.choose import emitter
from ...passes.pipeline import optimize
from ...planning.planner import plan
from ..support.check import check, run_stack
from ..support.processors import code_for, small_caches

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
TYPES = ("f32", "f64", "s32", "u64", "bf16", "s8", "c64")


def mixed(dtype: str, dims: str, turned: str, order: str = "1,0", name: str = "m") -> str:
    return (
        f"HloModule {name}\nENTRY e {{\n  x = {dtype}[{dims}] parameter(0)\n  y = {dtype}[{turned}] parameter(1)\n"
        f"  t = {dtype}[{dims}] transpose(y), dimensions={{{order}}}\n  p = {dtype}[{dims}] multiply(x, t)\n"
        f"  ROOT r = {dtype}[{dims}] subtract(p, t)\n}}\n"
    )


def with_itself(dtype: str, n: int, name: str = "m") -> str:
    s = f"{dtype}[{n},{n}]"
    return (
        f"HloModule {name}\nENTRY e {{\n  x = {s} parameter(0)\n  t = {s} transpose(x), dimensions={{1,0}}\n"
        f"  a = {s} add(x, t)\n  m = pred[{n},{n}] compare(x, t), direction=LT\n  ROOT r = {s} select(m, a, t)\n}}\n"
    )


def kernel(text: str, level: str) -> str:
    (request,) = plan(optimize(parse_module(text))).kernels
    options = EmitOptions(Target.level(level), keep_stages=True)
    return dict(emitter("mlir").emit([request], options).stages)["mlir"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", TYPES)
def test_values(dtype, level):
    tag = level.replace("-", "_")
    with code_for(level):
        check(mixed(dtype, "64,64", "64,64", name=f"m_{tag}"))
        check(mixed(dtype, "100,71", "71,100", name=f"n_{tag}"))
        check(mixed(dtype, "3,65,80", "3,80,65", "0,2,1", name=f"o_{tag}"))
        check(mixed(dtype, "70,2,66", "66,2,70", "2,1,0", name=f"p_{tag}"))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", [t for t in TYPES if t != "c64"])
def test_an_array_and_its_own_transpose(dtype, level):
    with code_for(level):
        for n in (64, 90):
            check(with_itself(dtype, n, f"w{n}_{level.replace('-', '_')}"))


def test_a_transposed_row_that_is_broadcast_and_two_results():
    check(
        "HloModule m\nENTRY e {\n  x = f32[80,96] parameter(0)\n  y = f32[96,80] parameter(1)\n"
        "  z = f32[96] parameter(2)\n  t = f32[80,96] transpose(y), dimensions={1,0}\n"
        "  b = f32[80,96] broadcast(z), dimensions={1}\n  a = f32[80,96] add(t, b)\n"
        "  c = f32[80,96] multiply(a, x)\n  d = f32[80,96] subtract(t, x)\n"
        "  ROOT r = (f32[80,96], f32[80,96]) tuple(c, d)\n}\n"
    )


@pytest.mark.parametrize("n", [512, 600, 1000])
def test_threads_give_the_same_bits(n):
    """Steps number the rows of tiles, of which some are lower than a copy is."""
    hlo, before = with_itself("f32", n), threads()
    x = np.random.default_rng(2).normal(size=(n, n)).astype(np.float32)
    results = []
    try:
        for count in (1, 2, 3):
            set_threads(count)
            results.append(run_stack(hlo, "mlir", [x])[0])
    finally:
        set_threads(before)
    expected = np.where(x < x.T, x + x.T, x.T)
    assert all(np.array_equal(r, expected) for r in results)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", TYPES)
def test_elements_of_a_word_or_two_are_copied(dtype, level):
    size = {"f32": 4, "s32": 4, "f64": 8, "u64": 8}.get(dtype, 0)
    lanes = {"x86-64-v2": 16, "x86-64-v3": 32, "x86-64-v4": 64}[level] // (size or 64)
    text = kernel(mixed(dtype, "64,64", "64,64"), level)
    assert text.count("vector.store") == (16 * 16 // lanes if lanes >= 4 else 0)
    assert "linalg.generic" in text


@pytest.mark.parametrize("level", LEVELS)
def test_large_arrays_are_fetched_ahead_of_the_tiles(level):
    """In both orders, and what is written: 2,000 rows of 8,000 bytes took 1.4 times as long."""

    def fetched(dtype: str, n: int) -> tuple[int, int]:
        s = f"{dtype}[{n},{n}]"
        text = (
            f"HloModule m\nENTRY e {{\n  x = {s} parameter(0)\n"
            f"  t = {s}{{0,1}} transpose(x), dimensions={{1,0}}\n  ROOT r = {s} add(x, t)\n}}\n"
        )
        asks = [line for line in kernel(text, level).splitlines() if "memref.prefetch" in line]
        return sum(", read" in line for line in asks), sum(", write" in line for line in asks)

    assert fetched("f32", 1400) == (0, 0)
    assert fetched("f32", 1449) == (32, 16)
    if level != "x86-64-v2":
        assert fetched("f64", 1100) == (64, 32)
    with code_for(level), small_caches():
        check(with_itself("f64", 90, f"fetched_{level.replace('-', '_')}"))
        check(mixed("f32", "3,65,80", "3,80,65", "0,2,1", name=f"fetch_{level.replace('-', '_')}"))


@pytest.mark.parametrize("level", LEVELS)
def test_a_reshape_of_what_is_broadcast_is_no_hindrance(level):
    """It inserts a dimension of size 1, as the mean of rows has it; without copies, 2048² took 11 times as long."""
    text = (
        "HloModule m\nENTRY e {\n  x = f32[96,80] parameter(0)\n  y = f32[80] parameter(1)\n"
        "  z = f32[80,1] reshape(y)\n  c = f32[] constant(0.3)\n  d = f32[80,1] broadcast(c), dimensions={}\n"
        "  m = f32[80,1] multiply(z, d)\n  w = f32[80] reshape(m)\n"
        "  b = f32[80,96] broadcast(w), dimensions={0}\n  t = f32[80,96]{0,1} transpose(x), dimensions={1,0}\n"
        "  ROOT r = f32[80,96] subtract(t, b)\n}\n"
    )
    made = kernel(text, level)
    assert "linalg.generic" in made and "vector.store" in made
    with code_for(level):
        check(text.replace("HloModule m", f"HloModule m_{level.replace('-', '_')}"))
