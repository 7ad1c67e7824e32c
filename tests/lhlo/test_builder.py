"""LhloBuilder: programs written in Python run on both stacks; mistakes are refused at the caller's line."""

from __future__ import annotations

import numpy as np
import pytest

import testbed
from testbed import LhloBuilder, ops
from testbed.evaluator.evaluator import evaluate
from testbed.hlo.errors import InputError, VerificationError
from testbed.lhlo.to_plan import to_plan


def results(b: LhloBuilder, *inputs: np.ndarray) -> list[np.ndarray]:
    """The results on the evaluator, which both stacks repeat."""
    lhlo = b.build()
    wanted = evaluate(to_plan(lhlo).module, list(inputs))
    for stack in ("legacy", "mlir"):
        for got, want in zip(testbed.compile(lhlo, stack).execute(inputs), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)
    return wanted


def test_one_op_stays_one_and_several_are_a_fusion():
    b = LhloBuilder()
    x, y = b.parameter("f32[4]"), b.result("f32[4]")
    t = b.temporary("f32[4]")
    b.kernel(ops.exp, [x], [t])
    b.kernel(lambda t, x: (t - x) * t, [t, x], [y])
    text = b.build().to_text()
    assert text.count('"lhlo.fusion"') == 1 and text.count('"lhlo.exponential"') == 1
    assert "exact" not in text and "shape =" not in text
    x = np.array([0, 1, -1, 2], np.float32)
    np.testing.assert_allclose(results(b, x)[0], (np.exp(x) - x) * np.exp(x), rtol=1e-5)


def test_operands_in_another_order_and_twice():
    b = LhloBuilder()
    x, y, z, w = b.parameter("f32[3]"), b.parameter("f32[3]"), b.result("f32[3]"), b.result("f32[3]")
    b.kernel(lambda x, y: y - x, [x, y], [z])
    b.kernel(lambda x: x * x, [x], [w])
    found = results(b, np.float32([1, 2, 3]), np.float32([10, 20, 30]))
    assert [list(v) for v in found] == [[9, 18, 27], [1, 4, 9]]


def test_layouts_views_constants_and_several_results():
    b = LhloBuilder()
    x = b.parameter("f32[2,3]{0,1}")
    flat = b.constant(np.arange(6, dtype=np.float32))
    table, one = flat.view("f32[3,2]"), b.constant(1.0, "bf16[]")
    y, low, high = b.result("f32[3,2]"), b.result("f32[]"), b.result("bf16[]")
    b.kernel(lambda x, t: ops.transpose(x, [1, 0]) + t, [x, table], [y])
    b.kernel(lambda y: ops.reduce(y, np.inf, ops.min, [0, 1]), [y], [low])
    b.kernel(lambda one: one + one, [one], [high])
    given = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    total, least, two = results(b, given)
    np.testing.assert_array_equal(total, given.T + np.arange(6).reshape(3, 2))
    assert least == total.min() and float(two) == 2.0


def test_a_sort_gets_its_scratch_memory():
    b = LhloBuilder()
    x, y = b.parameter("f32[2000]"), b.result("f32[2000]")
    b.kernel(lambda x: ops.sort([x], dimension=0), [x], [y])
    values = np.random.default_rng(0).standard_normal(2000).astype(np.float32)
    np.testing.assert_array_equal(results(b, values)[0], np.sort(values))
    assert "scratch = array<i64: 2, 0," in b.build().to_text()


def test_control_flow_and_aliased_parameters():
    b = LhloBuilder()
    k, x = b.parameter("s32[]"), b.parameter_and_result("f32[4]")
    i, more, zero = b.temporary("s32[]"), b.temporary("pred[]"), b.constant(np.int32(0))
    b.copy(zero, i)
    b.while_(
        more,
        lambda: b.kernel(lambda i, k: i < k, [i, k], [more]),
        lambda: b.kernel(lambda x, i: (x * 2.0, i + 1), [x, i], [x, i]),
    )
    b.case(k, [lambda: None, lambda: b.kernel(ops.neg, [x], [x])])
    x = np.float32([1, 2, 3, 4])
    assert list(results(b, np.int32(3), x)[0]) == [-8, -16, -24, -32]
    assert list(results(b, np.int32(0), x)[0]) == [1, 2, 3, 4]


def wrong_shape(b: LhloBuilder) -> None:
    b.kernel(lambda x: x + x, [b.parameter("f32[4]")], [b.result("f32[5]")])


def not_a_kernel(b: LhloBuilder) -> None:
    b.kernel(lambda x: x, [b.parameter("f32[4]")], [b.result("f32[4]")])


def too_many_bytes(b: LhloBuilder) -> None:
    b.parameter("f32[4]").view("f32[4]", 4)


def other_copy(b: LhloBuilder) -> None:
    b.copy(b.parameter("f32[4]"), b.result("s32[4]"))


def wrong_constant(b: LhloBuilder) -> None:
    b.constant(np.zeros(3, np.float32), "f32[4]")


def wrong_op(b: LhloBuilder) -> None:
    b.kernel(lambda x, y: x + y, [b.parameter("f32[4]"), b.parameter("s32[4]")], [b.result("f32[4]")])


MISTAKES = {
    wrong_shape: r"gives f32\[4\].* for outputs f32\[5\]",
    not_a_kernel: "returns its input",
    too_many_bytes: "does not lie inside the 16 bytes",
    other_copy: "a copy of f32",
    wrong_constant: r"a constant of shape f32\[4\]",
    wrong_op: "element types f32 and s32 differ",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_refused_at_the_callers_line(mistake):
    with pytest.raises((InputError, VerificationError), match=MISTAKES[mistake]) as found:
        mistake(LhloBuilder())
    assert found.value.location is not None and found.value.location.file.endswith("test_builder.py")


def test_a_kernel_that_overwrites_what_it_reads_is_refused():
    b = LhloBuilder()
    x = b.parameter_and_result("f32[4]")
    b.kernel(lambda x: ops.rev(x, [0]), [x], [x])
    with pytest.raises(VerificationError, match="PLAN5"):
        testbed.compile(b.build())
