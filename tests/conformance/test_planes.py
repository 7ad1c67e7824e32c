"""Pixels of a few channels become planes: vectors of pixels are loaded, and channels are chosen from them."""

import pytest

from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...migration.choose import emitter, present
from ...planning.planner import plan
from ..support.check import check
from ..support.processors import code_for
from ..support.ranges import check_ranges_alone, check_threads, number_of_threads


def text_of(dtype: str, dims: list[int], order: list[int], name: str = "m") -> str:
    out = ",".join(str(dims[d]) for d in order)
    return f"""HloModule {name}
ENTRY e {{ x = {dtype}[{",".join(map(str, dims))}] parameter(0)
  ROOT r = {dtype}[{out}] transpose(x), dimensions={{{",".join(map(str, order))}}} }}
"""


def shuffles(text: str, stack: str, level: str) -> int:
    options = EmitOptions(Target.level(level))
    return emitter(stack).emit(plan(parse_module(text)).kernels, options).llvm_ir.count("shufflevector")


FORMS = [
    ([5, 20, 70, 3], [0, 3, 1, 2]),
    ([3, 1031, 2], [0, 2, 1]),  # the last vector lies over the one before it
    ([2, 3, 900, 4], [1, 0, 3, 2]),  # planes that are apart
    ([4500, 3], [1, 0]),
]


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype", ["s8", "f8e5m2", "bf16", "f16", "s32", "f64", "u64"])
def test_channels_become_planes(dtype, level):
    """XLA took half the time of loads of single elements of bf16, for images of 32 × 32 pixels."""
    with code_for(level):
        for n, form in enumerate(FORMS):
            text = text_of(dtype, *form, name=f"m{n}_{level.replace('-', '_')}")
            channels = form[0][-1]
            for stack in present():
                found, least = shuffles(text, stack, level), channels * (channels - 2)
                assert (0 if level == "x86-64-v2" else least) < found <= least + channels  # MLIR folds those of pairs
            check(text)


@pytest.mark.parametrize(
    ("dims", "order"),
    [
        ([10, 500, 5], [0, 2, 1]),  # five channels
        ([400, 4, 3], [0, 2, 1]),  # planes of four pixels
        ([3000, 3, 2], [1, 2, 0]),  # a part of a pixel's channels is a plane's
        ([30, 3], [1, 0]),
    ],
)
def test_other_transpositions(dims, order):
    text = text_of("f32", dims, order)
    for stack in present():
        assert shuffles(text, stack, "x86-64-v4") != dims[-1] * (dims[-1] - 1)
    check(text)


def test_small_types_and_complex_numbers():
    for dtype in ("pred", "s4", "c64", "c128"):
        check(text_of(dtype, [3, 1031, 3], [0, 2, 1]))


@pytest.mark.parametrize("dims", [[40, 90, 90, 3], [300_000, 3]])
@pytest.mark.parametrize("stack", present())
def test_threads_write_the_same_bits(stack, dims):
    order = [0, 3, 1, 2] if len(dims) == 4 else [1, 0]
    with number_of_threads():
        check_ranges_alone(check_threads(parse_module(text_of("bf16", dims, order)), stack))
