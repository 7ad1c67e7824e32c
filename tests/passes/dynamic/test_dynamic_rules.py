"""Every opcode with a dynamic dimension in every possible position: padded or not, on both stacks, with garbage
padding.
"""

from __future__ import annotations

import math
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given

from ....evaluator.evaluator import evaluate
from ....evaluator.reference.shape import reshape_groups
from ....formats.text.parser import parse_module
from ....hlo.dtypes import DType
from ....hlo.errors import InputError, UnsupportedError
from ....hlo.ir import Instruction
from ....hlo.opcodes import Op
from ....hlo.shapes import Shape, array
from ....passes.dynamic.reshape import blocks, sized_dimension
from ....planning.planner import plan
from ...cases.dynamic_poison import evaluate_poisoned, poisoned
from ...cases.dynamic_templates import CASES, COLLAPSED, IMAGES, REGIONS, Case
from ...generators.random_dynamic import RandomDynamic
from ...support.check import check
from ...support.choices import CHOICES
from ...support.passes import agree, fill, run


def inputs_of(case: Case, text: str, sizes: dict[str, int]) -> list[np.ndarray]:
    made = []
    for x, dynamic in zip(fill(parse_module(text), 3), case.dimensions(), strict=True):
        for d, letter in dynamic:
            x = x[(slice(None),) * d + (slice(0, sizes[letter]),)]
        made.append(np.array(x, order="C"))
    return made


@pytest.mark.parametrize("name", CASES)
def test_padded(name):
    case = CASES[name]
    text, tried = case.text(REGIONS), case.sizes()
    assert tried
    before, after, spoilt = parse_module(text), run(text, "flatten", "expand-async", "pad-dynamic"), poisoned(text)
    for sizes in tried:
        inputs = inputs_of(case, text, sizes)
        wanted = evaluate(before, inputs)
        agree(before, wanted, evaluate(after, inputs))
        agree(before, wanted, evaluate_poisoned(spoilt, inputs))
    for sizes in (tried[len(tried) // 2], tried[0]):
        check(text, inputs_of(case, text, sizes))


WINDOW = f"window={{size=3x2}}, {IMAGES}"


@given(CHOICES)
def test_random_modules(choices: Random):
    made = RandomDynamic(choices)
    before, after = parse_module(made.text), run(made.text, "flatten", "pad-dynamic")
    spoilt, draw = poisoned(made.text), np.random.default_rng(choices.randrange(2**16))
    for _ in range(3):
        sizes = [[int(draw.integers(0, n + 1)) if dynamic else n for n, dynamic in dims] for dims in made.parameters]
        inputs = [draw.uniform(-2, 2, dims).astype(np.float32) for dims in sizes]
        wanted = evaluate(before, inputs)
        agree(before, wanted, evaluate(after, inputs))
        agree(before, wanted, evaluate_poisoned(spoilt, inputs))
    if choices.randrange(3) == 0:
        check(made.text, inputs)


REFUSED = {
    "a transform's length": ("x:c64[3,n4] | c64[3,n4] fft(x), fft_type=FFT, fft_length={4}", "(fft)"),
    "index vectors": (f"x:f32[5,3] i:s32[4,n1] | f32[4,3] gather(x, i), {COLLAPSED}", "(gather)"),
    "features in groups": (
        f"x:f32[3,5,6,n4] k:f32[3,2,2,4] | f32[3,3,5,4] convolution(x, k), {WINDOW}, feature_group_count=2",
        "(convolution)",
    ),
    "a window that makes the result larger": (
        f"x:f32[3,5,6,4] k:f32[n3,2,4,4] | f32[3,n3,5,4] convolution(x, k), {WINDOW}", "(convolution)"
    ),
    "a reshape that could be two": ("x:f32[n6] | f32[n2,m3] reshape(x)", "has several of"),
    "another layout": ("x:f32[n5,3] | f32[3,n5] bitcast(x)", "(bitcast)"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_rule_is_named_with_its_place(name):
    body, what = REFUSED[name]
    with pytest.raises(UnsupportedError) as caught:
        plan(parse_module(Case(body).text(REGIONS)))
    assert what in str(caught.value) and caught.value.location is not None and caught.value.remedy


def test_a_reshape_that_nothing_fills_is_an_input_error():
    text = Case("x:f32[n6] | f32[n3,2] reshape(x)").text(REGIONS)
    with pytest.raises(InputError, match=r"\[5\] does not fill a reshape"):
        evaluate(parse_module(text), [np.zeros(5, np.float32)])


def _shapes_of(count: int) -> list[tuple[int, ...]]:
    """All shapes of rank up to 4 with `count` elements."""
    factors = [n for n in range(1, count + 1) if count % n == 0] if count else [0, 1, 2]
    return [d for rank in range(5) for d in product(factors, repeat=rank) if math.prod(d) == count]


@pytest.mark.parametrize("count", [0, 1, 2, 4, 6])
def test_pass_and_evaluator_agree_on_which_dimensions_of_a_reshape_belong_together(count):
    """The two have separate implementations, so that one bug does not affect both."""
    shapes = _shapes_of(count)
    for source, target in product(shapes, shapes):
        x = Instruction(Op.PARAMETER, "x", array(DType.F32, *source))
        reshape = Instruction(Op.RESHAPE, "r", array(DType.F32, *target), (x,))
        wanted = [(from_, to) for from_, to, _ in reshape_groups(reshape, [False] * len(source))]
        assert [(tuple(a), tuple(b)) for a, b in blocks(source, target)] == wanted, (source, target)


@pytest.mark.parametrize("declared", list(product([False, True], repeat=3)))
@pytest.mark.parametrize("inferred", [-1, 0, 1, 2])
@pytest.mark.parametrize("dims", [(1, 1, 6), (2, 1, 3), (6, 1, 1), (1, 6, 1)])
def test_pass_and_evaluator_agree_on_the_dimension_that_gets_the_size(dims, inferred, declared):
    x = Instruction(Op.PARAMETER, "x", Shape(DType.F32, (6,), dynamic=(True,)))
    attributes = {} if inferred < 0 else {"inferred_dimension": inferred}
    reshape = Instruction(Op.RESHAPE, "r", Shape(DType.F32, dims, dynamic=declared), (x,), attributes)

    def chosen(run) -> int | str:
        try:
            return run()
        except UnsupportedError as error:
            return error.what

    by_evaluator = chosen(lambda: next(n for _, _, n in reshape_groups(reshape, [True])))
    assert chosen(lambda: sized_dimension(reshape, range(3))) == by_evaluator


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("size", [3, 4, 6, 7])
def test_gradients_of_a_convolution_are_its_transposes(size, padding):
    """⟨conv(x, k), g⟩ = ⟨x, input_grad(g, k)⟩ = ⟨k, kernel_grad(x, g)⟩, with padding that depends on the size."""
    labels, same = "dim_labels=b0f_0io->b0f", f"padding_type=PADDING_{padding}"
    target = 'custom_call_target="DynamicConvolution'
    count = -(-size // 2) if padding == "SAME" else (size - 3) // 2 + 1
    forward = (
        f'x:f32[1,n8,1] k:f32[3,1,1] | f32[1,n4,1] custom-call(x, k), {target}Forward", window={{size=3 stride=2}}'
    )
    by_input = (
        f'v:s32[3] g:f32[1,n4,1] k:f32[3,1,1] | f32[1,m8,1] custom-call(v, g, k), {target}InputGrad", '
        "window={size=3 pad=2_2 lhs_dilate=2 rhs_reversal=1}"
    )
    back = "f32[3,1,1] custom-call(x, g)"
    by_kernel = f'x:f32[1,n8,1] g:f32[1,m4,1] | {back}, {target}KernelGrad", window={{size=4 rhs_dilate=2}}'
    draw = np.random.default_rng(size)
    x, k, g = (draw.standard_normal((1, n, 1)).astype(np.float32) for n in (size, 3, count))
    k = k.reshape(3, 1, 1)

    def run_on(body: str, labels: str, *inputs: np.ndarray) -> np.ndarray:
        text = Case(f"{body}, {labels}, {same}").text(REGIONS)
        return check(text, inputs)[0]

    y = run_on(forward, labels, x, k)
    dx = run_on(by_input, labels, np.array([1, size, 1], np.int32), g, k)
    dk = run_on(by_kernel, "dim_labels=f0b_i0o->0bf", x, g)
    product = float((y * g).sum())
    assert y.shape == g.shape and dx.shape == x.shape
    assert np.allclose([(x * dx).sum(), (k * dk).sum()], product, rtol=1e-4)
