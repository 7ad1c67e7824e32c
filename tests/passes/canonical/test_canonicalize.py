"""Canonicalisation of dots and convolutions: transposes, reversals, pads, small windows fold; results do not change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ....formats.text.parser import parse_module
from ....formats.text.printer import print_module
from ....hlo.ir import Instruction
from ....hlo.opcodes import Op
from ....planning.plan import AllocationKind
from ....planning.planner import plan
from ...support.check import check
from ...support.passes import fill, opcodes, run, same

DOT, CONVOLUTION = ("flatten", "canonicalize-dot", "dce"), ("flatten", "canonicalize-convolution", "dce")


def entry(*lines: str) -> str:
    return "HloModule m\n\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


def after(text: str, *names: str, high: int = 5) -> set[Op]:
    """The remaining opcodes. Inputs are integers, so that results must be equal."""
    return opcodes(same(text, fill(parse_module(text), 1, high=high), *names, exact="s32" in text))


def text_of_dims(dims: list[int]) -> str:
    return ",".join(map(str, dims))


@st.composite
def dots(draw) -> str:
    """transpose(dot(transpose(x), transpose(y))) with any dimension numbers."""
    sizes = st.integers(1, 9)
    batch, left, right, inner = (draw(st.lists(sizes, max_size=2)) for _ in range(4))
    sides, numbers, free = [], [], []
    for mine in (left, right):
        roles = draw(st.permutations([("b", n) for n in range(len(batch))] + [("k", n) for n in range(len(inner))]
                                     + [("f", n) for n in range(len(mine))]))  # fmt: skip
        size = {"b": batch, "k": inner, "f": mine}
        dims = [size[r][n] for r, n in roles]
        order = draw(st.permutations(range(len(dims))))
        before = [0] * len(dims)
        for to, source in enumerate(order):
            before[source] = dims[to]
        sides.append((before, dims, order))
        numbers.append(
            [[roles.index((role, n)) for n in range(len(group))] for role, group in (("b", batch), ("k", inner))]
        )
        free += [size[r][n] for r, n in roles if r == "f"]
    result = batch + free
    order = draw(st.permutations(range(len(result))))
    (x, xt, xo), (y, yt, yo) = sides
    (lb, lk), (rb, rk) = numbers
    return entry(
        f"x = s32[{text_of_dims(x)}] parameter(0)",
        f"y = s32[{text_of_dims(y)}] parameter(1)",
        f"xt = s32[{text_of_dims(xt)}] transpose(x), dimensions={{{text_of_dims(xo)}}}",
        f"yt = s32[{text_of_dims(yt)}] transpose(y), dimensions={{{text_of_dims(yo)}}}",
        f"d = s32[{text_of_dims(result)}] dot(xt, yt), lhs_batch_dims={{{text_of_dims(lb)}}}, "
        f"rhs_batch_dims={{{text_of_dims(rb)}}}, lhs_contracting_dims={{{text_of_dims(lk)}}}, "
        f"rhs_contracting_dims={{{text_of_dims(rk)}}}",
        f"t = s32[{text_of_dims([result[d] for d in order])}] transpose(d), dimensions={{{text_of_dims(order)}}}",
        f"ROOT n = s32[{text_of_dims([result[d] for d in order])}] negate(t)",
    )


@given(dots(), st.integers(0, 9))
def test_transposes_around_dots(text, seed):
    same(text, fill(parse_module(text), seed), *DOT, exact=True)


MATRIX = ("flatten", "matrix-dots", "dce")


@given(dots(), st.integers(0, 9))
def test_dots_of_matrices(text, seed):
    after = same(text, fill(parse_module(text), seed), *MATRIX, exact=True)
    (dot,) = [i for i in after.entry.instructions if i.opcode is Op.DOT]
    assert len(dot.attributes["lhs_contracting_dims"]) == len(dot.attributes["rhs_contracting_dims"]) == 1
    batch = dot.attributes.get("lhs_batch_dims", ())
    assert batch == dot.attributes.get("rhs_batch_dims", ()) and batch in ((), (0,))
    assert all(o.shape.rank <= 2 + len(batch) for o in dot.operands) and 1 not in dot.shape.dims
    again = run(print_module(after), *MATRIX)
    assert sum(i.opcode is Op.RESHAPE for i in again.instructions()) == sum(
        i.opcode is Op.RESHAPE for i in after.instructions()
    )


def dot_of(x: str, y: str, result: str, numbers: str) -> str:
    x, y = f"x = {x} parameter(0)", f"y = {y} parameter(1)"
    return entry(x, y, f"ROOT d = {result} dot(x, y), {numbers}")


SIDE_BY_SIDE = {
    "two free dimensions": (
        "f32[4,5,6]", "f32[6,2,3]", "f32[4,5,2,3]", "lhs_contracting_dims={2}, rhs_contracting_dims={0}"
    ),
    "two contracted ones, the left side turned": (
        "f32[2,3,4]", "f32[2,3,5]", "f32[4,5]", "lhs_contracting_dims={1,0}, rhs_contracting_dims={1,0}"
    ),
    "ones anywhere": (
        "f32[4,1,6]", "f32[1,6,3]", "f32[4,1,1,3]", "lhs_contracting_dims={2}, rhs_contracting_dims={1}"
    ),
    "two batches": (
        "f32[2,3,4,5]", "f32[2,3,6,5]", "f32[2,3,4,6]",
        "lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={3}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SIDE_BY_SIDE)
def test_groups_side_by_side_become_one_without_a_copy(case):
    text = dot_of(*SIDE_BY_SIDE[case])
    made = same(text, fill(parse_module(text), 1), *MATRIX)
    assert opcodes(made) == {Op.PARAMETER, Op.RESHAPE, Op.DOT}
    check(print_module(made), fill(parse_module(text), 1))


def test_a_reshape_behind_a_product_does_not_keep_its_epilogue_from_it():
    text = entry(
        "x = f32[6,16] parameter(0)", "w = f32[16,8] parameter(1)", "v = f32[8] parameter(2)",
        "q = f32[2,3,8] parameter(3)", "d = f32[6,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "r = f32[2,3,8] reshape(d)", "b = f32[2,3,8] broadcast(v), dimensions={2}", "a = f32[2,3,8] add(r, b)",
        "t = f32[2,3,8] tanh(a)", "ROOT o = f32[2,3,8] multiply(t, q)",
    )  # fmt: skip
    assert len(plan(parse_module(text)).kernels) == 1
    check(text, fill(parse_module(text), 1))


def heads(reshaped: bool) -> str:
    """A dot of attention, weights by values, with its heads side by side."""
    last = "ROOT r = f32[2,16,48] reshape(t)" if reshaped else "ROOT r = f32[2,16,4,12] negate(t)"
    return entry(
        "p = f32[2,4,16,16] parameter(0)",
        "v = f32[2,16,4,12] parameter(1)",
        "vt = f32[2,4,16,12]{3,1,2,0} transpose(v), dimensions={0,2,1,3}",
        "d = f32[2,4,16,12] dot(p, vt), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, "
        "lhs_contracting_dims={3}, rhs_contracting_dims={2}",
        f"t = f32[2,16,4,12]{'{3,1,2,0}' if reshaped else ''} transpose(d), dimensions={{0,2,1,3}}",
        last,
    )


@pytest.mark.parametrize("reshaped", [True, False])
def test_a_transposed_result_is_a_layout(reshaped):
    text = heads(reshaped)
    assert Op.TRANSPOSE not in after(text, *DOT)
    kernels = plan(parse_module(text)).kernels
    assert len(kernels) == (1 if reshaped else 2)
    check(text)


def test_work_by_element_on_a_transposed_result_is_done_in_place():
    """The elementwise op uses the layout of the dot, whatever layout the text states."""
    text = entry(
        "x = f32[4,16,32] parameter(0)",
        "y = f32[24,16] parameter(1)",
        "z = f32[4,32,16] parameter(2)",
        "d = f32[4,32,24] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        "t = f32[4,24,32]{1,2,0} transpose(d), dimensions={0,2,1}",
        "e = f32[4,24,32]{1,2,0} exponential(t)",
        "m = f32[4,24,32]{1,2,0} multiply(e, t)",
        "o = f32[4,24,16] dot(m, z), lhs_batch_dims={0}, rhs_batch_dims={0}, "
        "lhs_contracting_dims={2}, rhs_contracting_dims={1}",
        "ROOT n = f32[24,4,16] transpose(o), dimensions={1,0,2}",
    )
    made = plan(parse_module(text))
    assert sum(a.size for a in made.assignment.allocations if a.kind is AllocationKind.TEMPORARY) == 4 * 24 * 32 * 4
    check(text)


def test_exchanged_operands_and_batches():
    text = entry(
        "x = f32[3,2,9,20] parameter(0)",
        "y = f32[3,2,20,11] parameter(1)",
        "d = f32[3,2,9,11] dot(x, y), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, "
        "lhs_contracting_dims={3}, rhs_contracting_dims={2}",
        "ROOT t = f32[2,3,11,9] transpose(d), dimensions={1,0,3,2}",
    )
    assert after(text, *DOT) == {Op.PARAMETER, Op.DOT}
    check(text)


def test_a_dot_that_others_read_keeps_its_transpose():
    text = entry(
        "x = f32[9,20] parameter(0)",
        "y = f32[20,11] parameter(1)",
        "d = f32[9,11] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "t = f32[11,9] transpose(d), dimensions={1,0}",
        "ROOT r = (f32[9,11], f32[11,9]) tuple(d, t)",
    )
    assert Op.TRANSPOSE in after(text, *DOT)


def convolution(kind: str, x: str, k: str, y: str, labels: str, window: str, *extra: str) -> list[str]:
    """A convolution of x and k; of xx or kk, if `extra` has lines that compute these."""
    left, right = (n * 2 if any(e.startswith(n * 2) for e in extra) else n for n in "xk")
    root = f"ROOT c = {kind}[{y}] convolution({left}, {right}), {window}dim_labels={labels}"
    return [f"x = {kind}[{x}] parameter(0)", f"k = {kind}[{k}] parameter(1)", *extra, root]


def test_operands_transposes_become_labels():
    text = entry(
        *convolution(
            "s32", "2,3,7,8", "9,3,2,3", "2,7,6,9", "b01f_01io->b01f", "window={size=2x3 pad=1_0x0_0}, ",
            "xx = s32[2,7,8,3] transpose(x), dimensions={0,2,3,1}",
            "kk = s32[2,3,3,9] transpose(k), dimensions={2,3,1,0}",
        )
    )  # fmt: skip
    assert after(text, *CONVOLUTION) == {Op.PARAMETER, Op.CONVOLUTION}
    check(text)


def test_a_reversed_kernel_is_the_windows_reversal():
    text = entry(
        *convolution(
            "f32", "2,7,8,3", "2,3,3,9", "2,7,6,9", "b01f_01io->b01f",
            "window={size=2x3 pad=1_0x0_0 rhs_reversal=1x0}, ", "kk = f32[2,3,3,9] reverse(k), dimensions={0,1}",
        )
    )  # fmt: skip
    assert after(text, *CONVOLUTION) == {Op.PARAMETER, Op.CONVOLUTION}
    check(text)


PADS = {
    "around": ("0_0x1_2x-1_3x0_0", "s32", "2,9,9,9"),
    "between": ("0_0x1_0_1x0_0x0_0", "s32", "2,13,7,9"),
    "of floats": ("0_0x1_2x-1_3x0_0", "f32", "2,9,9,9"),
    "of features": ("0_0x1_2x-1_3x0_0", "s32", "2,9,9,9"),
}


@pytest.mark.parametrize("form", PADS)
def test_pads_become_padding_where_weights_are_finite(form):
    padding, kind, result = PADS[form]
    padded = {"between": "2,14,8,3"}.get(form, "2,10,10,3")
    x = "2,7,8,2" if form == "of features" else "2,7,8,3"
    padding = padding[:-3] + "0_1" if form == "of features" else padding
    text = entry(
        *convolution(
            kind, x, "2,2,3,9", result, "b01f_01io->b01f", "window={size=2x2}, ",
            f"z = {kind}[] constant(0)", f"xx = {kind}[{padded}] pad(x, z), padding={padding}",
        )
    )  # fmt: skip
    assert (Op.PAD in after(text, *CONVOLUTION)) == (form in ("of floats", "of features"))
    check(text)


ONES = {
    "features last": ("2,5,6,20", "1,1,20,24", "2,5,6,24", "b01f_01io->b01f", True),
    "kernel turned": ("2,5,6,20", "1,1,24,20", "2,5,6,24", "b01f_01oi->b01f", True),
    "features first": ("2,20,5,16", "24,20,1,1", "2,24,5,16", "bf01_oi01->bf01", True),
    "features first, short rows": ("2,20,5,6", "24,20,1,1", "2,24,5,6", "bf01_oi01->bf01", False),
    "no window": ("6,20", "20,24", "6,24", "bf_io->bf", True),
}


@pytest.mark.parametrize("form", ONES)
def test_a_window_of_one_element_is_a_dot(form):
    x, k, y, labels, is_dot = ONES[form]
    window = "window={size=1x1}, " if "0" in labels else ""
    text = entry(*convolution("f32", x, k, y, labels, window))
    assert (Op.DOT in after(text, *CONVOLUTION)) == is_dot
    found = {i.opcode for kernel in plan(parse_module(text)).kernels for i in instructions(kernel.instruction)}
    assert found == {Op.DOT if is_dot else Op.CONVOLUTION}
    check(text)


def instructions(i: Instruction) -> tuple[Instruction, ...]:
    return i.called()[0].instructions if i.opcode is Op.FUSION else (i,)


@pytest.mark.parametrize("window", ["size=1x1 stride=2x1", "size=1x1 pad=1_1x0_0", "size=1x1 lhs_dilate=2x1"])
def test_windows_that_miss_elements_or_meet_padding_stay(window):
    rows = {"s": 3, "p": 7, "l": 9}[window.split()[1][0]]
    text = entry(
        *convolution("f32", "2,5,6,20", "1,1,20,24", f"2,{rows},6,24", "b01f_01io->b01f", f"window={{{window}}}, ")
    )
    assert Op.DOT not in after(text, *CONVOLUTION)


def test_a_result_transposed_along_its_rows_is_relabelled():
    lines = convolution("f32", "2,7,8,3", "2,3,3,9", "2,6,6,9", "b01f_01io->b01f", "window={size=2x3}, ")
    lines[-1] = lines[-1].removeprefix("ROOT ")
    text = entry(*lines, "ROOT t = f32[6,2,6,9] transpose(c), dimensions={1,0,2,3}")
    assert after(text, *CONVOLUTION) == {Op.PARAMETER, Op.CONVOLUTION}
    check(text)


@pytest.mark.parametrize("groups", [1, 2])
def test_a_kernel_whose_output_features_lie_apart_is_turned_once(groups):
    """The gradient with respect to the input."""
    lines = convolution(
        "s32", "2,15,18,16", f"2,3,24,{16 // groups}", "2,14,16,24", "b01f_01oi->b01f",
        "window={size=2x3 rhs_reversal=1x1}, ",
    )  # fmt: skip
    text = entry(*lines[:-1], f"{lines[-1]}, feature_group_count={groups}")
    assert after(text, *CONVOLUTION) == {Op.PARAMETER, Op.TRANSPOSE, Op.CONVOLUTION}
    twice = same(text, fill(parse_module(text), 1), *CONVOLUTION, "canonicalize-convolution", "dce", exact=True)
    assert sum(i.opcode is Op.TRANSPOSE for i in twice.instructions()) == 1
    check(text)
