"""Partial sums: their levels, their IR on every target, and errors of long sums on every level of processors."""

import re

import numpy as np
import pytest

from ... import legacy
from ...backends.base import CompileOptions
from ...backends.host.compiler import HostCompiler
from ...codegen.options import LEVELS, EmitOptions, Target
from ...formats.text.parser import parse_module
from ...legacy.reductions.long_sums import CHAIN_TERMS, UNBOUNDED, lanes_of, levels_of
from ...migration import Flags, compile_module

REDUCE = """HloModule m
add {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT c = {t}[] add(a, b) }}
ENTRY e {{
  x = {t}[{shape}] parameter(0)
  v = {t}[{shape}] multiply(x, x)
  init = {t}[] constant(0)
  ROOT r = {t}[{kept}] reduce(v, init), dimensions={{{dims}}}, to_apply=add
}}"""

DOT = """HloModule m
ENTRY e {{
  x = f32[{m},{k}] parameter(0)
  y = f32[{k},{n}] parameter(1)
  ROOT r = f32[{m},{n}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}"""

CONVOLUTION = """HloModule m
ENTRY e {
  x = f32[1,4,4,65536] parameter(0)
  k = f32[3,3,65536,4] parameter(1)
  ROOT r = f32[1,2,2,4] convolution(x, k), window={size=3x3}, dim_labels=b01f_01io->b01f
}"""


def reduce_text(shape: tuple[int, ...], dims: tuple[int, ...], t: str = "f32") -> str:
    kept = [size for d, size in enumerate(shape) if d not in dims]
    return REDUCE.format(
        t=t, shape=",".join(map(str, shape)), dims=",".join(map(str, dims)), kept=",".join(map(str, kept))
    )


REDUCES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "flat": ((1 << 20,), (0,)),
    "rows": ((4, 1 << 18), (1,)),
    "rows with a rest": ((3, 100_003), (1,)),
    "short columns": ((1 << 18, 3), (0,)),
    "columns": ((1 << 14, 40), (0,)),
    "many dimensions": ((5, 7, 11, 13, 17), (0, 1, 2, 4)),
    "first and last": ((256, 16, 300), (0, 2)),
    "c64": ((1 << 18,), (0,)),
}
"""Name → (shape, dimensions that are reduced)."""

PROGRAMS = {
    **{name: reduce_text(*form, "c64" if name == "c64" else "f32") for name, form in REDUCES.items()},
    "vectors": DOT.format(m=1, k=1 << 18, n=1),
    "few columns": DOT.format(m=3, k=1 << 16, n=5),
    "columns of a product": DOT.format(m=2, k=1 << 16, n=8),
    "tiles": DOT.format(m=16, k=1 << 16, n=16),
    "convolution": CONVOLUTION,
}


def emitted(text: str, target: Target, strict: bool = False) -> str:
    options = EmitOptions(target, strict)
    made = HostCompiler().run_hlo_passes(parse_module(text), CompileOptions(options))
    return legacy.emit(made.kernels, options).llvm_ir


@pytest.mark.parametrize("sizes", [[1], [31], [32], [33], [1000], [1 << 21], [3, 5, 7], [1024, 1024, 3], [70, 1, 40]])
@pytest.mark.parametrize("terms", [1, 4, 17])
def test_levels_cover_each_dimension_and_keep_partial_sums_short(sizes, terms):
    levels, _ = levels_of(sizes, terms)
    inner = terms
    spans = dict(enumerate([1] * len(sizes)))
    ends = dict(enumerate(sizes))
    for number in reversed(range(len(levels))):
        level = levels[number]
        assert level.span == spans[level.dimension]
        outer = next((o.span for o in reversed(levels[:number]) if o.dimension == level.dimension), None)
        count = -(-(outer or ends[level.dimension]) // level.span)
        spans[level.dimension] *= count
        inner = count if level.apart else inner * count
        assert inner <= max(CHAIN_TERMS, terms)
    assert all(spans[d] >= size for d, size in enumerate(sizes))


def test_sums_that_are_not_divided_have_one_loop_a_dimension():
    levels, _ = levels_of([1 << 20, 1, 77], 4, UNBOUNDED)
    assert [(level.dimension, level.span, level.apart) for level in levels] == [(0, 1, False), (2, 1, False)]


@pytest.mark.parametrize("fast, widest, lanes", [(1, 4, 1), (3, 4, 4), (100, 4, 32), (64, 4, 64), (1000, 8, 32)])
def test_a_line_has_a_power_of_two_of_lanes(fast, widest, lanes):
    assert lanes_of(fast, widest) == lanes


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in ("tiles", "columns of a product")])
def test_the_order_of_a_sum_does_not_depend_on_the_target(name):
    # A product of complex numbers is made of other operations where the target has no fused multiply-add.
    program = PROGRAMS[name].replace("multiply", "add") if name == "c64" else PROGRAMS[name]
    kernels = (emitted(program, Target.level(level)).partition("define")[2] for level in LEVELS)
    texts = {re.sub(r"(?m)^!.*\n?|, !llvm.loop !\d+", "", text) for text in kernels}  # without hints for loops
    assert len(texts) == 1
    assert "reassoc" not in texts.pop()


def test_strict_sums_have_one_chain():
    text = emitted(PROGRAMS["flat"], Target.level("x86-64-v3"), strict=True)
    assert len(re.findall(r"\bfadd\b", text)) == 1 and "reassoc" not in text


@pytest.mark.parametrize("cpu", [*Target.levels(), "host"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_errors_of_long_sums_are_small(name, cpu):
    """One chain, or a vector of chains, is off by 1e-6 and more."""
    module, generator = parse_module(PROGRAMS[name]), np.random.default_rng(0)
    inputs = [generator.random(p.shape.dims, np.float32) for p in module.entry.parameters]
    if name == "c64":
        inputs = [(x + 1j * generator.random(x.shape, np.float32)).astype(np.complex64) for x in inputs]
    executable = compile_module(module, Flags.parse("legacy"), CompileOptions(EmitOptions(Target.of(cpu)), cache=None))
    (found,) = executable.execute(inputs)
    exact = exact_result(name, [x.astype(np.complex128 if name == "c64" else np.float64) for x in inputs])
    assert np.max(np.abs(found - exact) / np.abs(exact)) <= 3e-7


def exact_result(name: str, inputs: list[np.ndarray]) -> np.ndarray:
    if name in REDUCES:
        return np.square(inputs[0]).sum(REDUCES[name][1])
    x, k = inputs
    if name != "convolution":
        return x @ k
    windows = [x[0, i : i + 3, j : j + 3] for i, j in np.ndindex(2, 2)]
    return np.array([np.einsum("pqc,pqco->o", w, k, optimize=True) for w in windows]).reshape(1, 2, 2, 4)
