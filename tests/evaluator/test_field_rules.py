"""The evaluator's second table, against sums and products of Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

from ...evaluator.elements import Elements
from ...evaluator.evaluator import evaluate
from ...evaluator.field import field_rules
from ...formats.text.parser import parse_module
from ...hlo.errors import UnsupportedError

WIDE = Elements(4261412863, 1234567, 3, -126, 23)
NARROW = Elements(65011, 20011, 3, -126, 7)
BOTH = pytest.mark.parametrize("e", [WIDE, NARROW], ids=["wide", "narrow"])


def run(text: str, e: Elements, *inputs: np.ndarray) -> np.ndarray:
    return evaluate(parse_module(f"HloModule m\n{text}"), inputs, flush_subnormals=False, rules=field_rules(e))[0]


def drawn(e: Elements, *dims: int, seed: int = 0, dtype: str = "f4") -> np.ndarray:
    return e.write(np.random.default_rng(seed).integers(0, e.prime, dims, np.uint64), np.dtype(dtype))


def integers(e: Elements, x: np.ndarray) -> np.ndarray:
    """The elements as Python's integers, which do not overflow."""
    return e.read(x).astype(object)


def same(e: Elements, found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_array_equal(e.read(found).astype(object), np.asarray(wanted, object) % e.prime)


ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"


@BOTH
def test_a_product_of_matrices(e: Elements) -> None:
    x, y = drawn(e, 2, 5, 300), drawn(e, 2, 300, 4, seed=1)
    found = run(
        "ENTRY e { p = f32[2,5,300] parameter(0)\n q = f32[2,300,4] parameter(1)\n ROOT r = f32[2,5,4] dot(p, q), "
        "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1} }",
        e, x, y,
    )  # fmt: skip
    same(e, found, np.matmul(integers(e, x), integers(e, y)))


@BOTH
def test_a_convolution(e: Elements) -> None:
    x, k = drawn(e, 9), drawn(e, 3, seed=1)
    found = run(
        "ENTRY e { p = f32[1,9,1] parameter(0)\n k = f32[3,1,1] parameter(1)\n ROOT r = f32[1,9,1] convolution(p, k), "
        "window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f }",
        e, x.reshape(1, 9, 1), k.reshape(3, 1, 1),
    )  # fmt: skip
    padded = [0, *integers(e, x), 0]
    same(e, found.reshape(-1), np.array([sum(integers(e, k) * padded[n : n + 3]) for n in range(9)], object))


@BOTH
@pytest.mark.parametrize("length", [1, 7, 1500])
def test_a_sum_begins_with_its_start(e: Elements, length: int) -> None:
    x, start = drawn(e, 3, length), drawn(e, seed=1)
    found = run(
        f"{ADD}ENTRY e {{ p = f32[3,{length}] parameter(0)\n z = f32[] parameter(1)\n "
        "ROOT r = f32[3] reduce(p, z), dimensions={1}, to_apply=add }",
        e, x, start,
    )  # fmt: skip
    same(e, found, integers(e, x).sum(1) + int(integers(e, start)))


@BOTH
def test_windows_and_scatters_add_elements(e: Elements) -> None:
    x, u = drawn(e, 6), drawn(e, 4, seed=1)
    found = run(
        f"{ADD}ENTRY e {{ p = f32[6] parameter(0)\n z = f32[] constant(0)\n "
        "ROOT r = f32[5] reduce-window(p, z), window={size=2}, to_apply=add }",
        e, x,
    )  # fmt: skip
    same(e, found, integers(e, x)[:-1] + integers(e, x)[1:])
    found = run(
        f"{ADD}ENTRY e {{ p = f32[6] parameter(0)\n i = s32[4,1] constant({{{{2}},{{2}},{{0}},{{7}}}})\n "
        "u = f32[4] parameter(1)\n ROOT r = f32[6] scatter(p, i, u), update_window_dims={}, "
        "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add }",
        e, x, u,
    )  # fmt: skip
    wanted = integers(e, x)
    wanted[2] += integers(e, u)[0] + integers(e, u)[1]
    wanted[0] += integers(e, u)[2]
    same(e, found, wanted)


@BOTH
def test_constants_are_the_fractions_that_they_hold(e: Elements) -> None:
    found = run("ENTRY e { ROOT c = f32[4] constant({0.75, -3, 0.1, 0}) }", e)
    tenth = np.float32(0.1).item().as_integer_ratio()
    wanted = [3 * pow(4, -1, e.prime), -3, tenth[0] * pow(tenth[1], -1, e.prime), 0]
    same(e, found, np.array(wanted, object))


@BOTH
def test_integers_keep_their_values(e: Elements) -> None:
    n = np.array([-5, 0, 7, 30000], np.int32)
    there = run("ENTRY e { p = s32[4] parameter(0)\n ROOT r = f32[4] convert(p) }", e, n)
    same(e, there, n.astype(object))
    back = run("ENTRY e { p = f32[4] parameter(0)\n ROOT r = s32[4] convert(p) }", e, there)
    np.testing.assert_array_equal(back, n)
    iota = run("ENTRY e { ROOT r = f32[2,5] iota(), iota_dimension=1 }", e)
    same(e, iota, np.broadcast_to(np.arange(5), (2, 5)))


def test_infinities_follow_the_signs_of_elements() -> None:
    x = np.concatenate([np.abs(drawn(WIDE, 1)), -np.abs(drawn(WIDE, 1)), np.float32([0, np.inf])])
    text = "ENTRY e {{ p = f32[4] parameter(0)\n c = f32[] constant({})\n b = f32[4] broadcast(c), dimensions={{}}\n"
    found = run(f"{text.format('inf')} ROOT r = f32[4] multiply(p, b) }}", WIDE, x)
    np.testing.assert_array_equal(found, np.float32([np.inf, -np.inf, np.nan, np.inf]))
    found = run(f"{text.format('0')} ROOT r = f32[4] divide(p, b) }}", WIDE, x)
    np.testing.assert_array_equal(found, np.float32([np.inf, -np.inf, np.nan, np.inf]))
    found = run("ENTRY e { p = f32[4] parameter(0)\n n = f32[4] negate(p)\n ROOT r = f32[4] exponential(n) }", WIDE, x)
    assert found[3] == 0 and np.isfinite(found).all()


def test_functions_are_functions_and_differ() -> None:
    x = drawn(WIDE, 50)
    made = {
        name: run(f"ENTRY e {{ p = f32[50] parameter(0)\n ROOT r = f32[50] {name}(p) }}", WIDE, x)
        for name in ("exponential", "tanh", "sqrt", "floor")
    }
    again = run("ENTRY e { p = f32[50] parameter(0)\n ROOT r = f32[50] tanh(p) }", WIDE, x)
    np.testing.assert_array_equal(again, made["tanh"])
    assert len(np.unique(np.stack(list(made.values())))) == 200


def test_what_has_no_meaning_is_refused() -> None:
    text = "ENTRY e { p = f32[] parameter(0)\n q = f32[] parameter(1)\n"
    text += " ROOT r = f32[8] rng(p, q), distribution=rng_uniform }"
    with pytest.raises(UnsupportedError, match="rng"):
        run(text, WIDE, *np.zeros((2,), np.float32))
