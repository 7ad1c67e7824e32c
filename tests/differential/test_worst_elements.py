"""Which elements a report shows, and how far apart they are."""

import ml_dtypes
import numpy as np
import pytest

from ...differential.bounds import Bound, Tolerance
from ...differential.comparison import compare_within, disagreeing
from ...differential.worst_elements import worst_elements
from ...hlo.dtypes import FROM_NUMPY


def test_the_farthest_come_first_with_both_values():
    expected = np.float32([[1, 2, 3], [4, np.nan, 6]])
    actual = np.float32([[1, 2.5, 3.25], [np.inf, np.nan, 6]])
    found = worst_elements(actual, expected, Bound(1), most=2)
    assert [w.index for w in found] == [(1, 0), (0, 1)]
    assert (found[0].left, found[0].right, found[0].ulp) == ("inf", "4.0", np.inf)
    assert (found[1].left, found[1].absolute, found[1].relative, found[1].ulp) == ("2.5", 0.5, 0.25, 2.0**21)


def test_integers_preds_and_complex_numbers():
    (one,) = worst_elements(np.uint64([5, 2**64 - 1]), np.uint64([5, 0]), Bound())
    assert (one.index, one.left, one.absolute, one.ulp) == ((1,), str(2**64 - 1), 2.0**64, None)
    (one,) = worst_elements(np.array([True, False]), np.array([True, True]), Bound())
    assert (one.left, one.right, one.absolute) == ("False", "True", 1)
    (one,) = worst_elements(np.complex64([3 + 4j, 0]), np.complex64([3, 0]), Bound(2))
    assert one.absolute == 4 and one.relative == pytest.approx(4 / 3)
    assert worst_elements(np.float32([1]), np.float32([1, 2]), Bound()) == ()


def test_a_zero_of_the_other_sign_is_shown():
    (one,) = worst_elements(np.float32([-0.0]), np.float32([0.0]), Bound())
    assert (one.left, one.right, one.ulp) == ("-0.0", "0.0", 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16, np.complex64, np.int32])
@pytest.mark.parametrize("bound", [Bound(), Bound(3), Bound(2, 2, True), Tolerance(), Tolerance(0.01, 0.1, 2)])
def test_what_is_shown_is_what_disagrees(dtype, bound):
    random = np.random.default_rng(1)
    expected = (random.normal(size=400) * 10.0 ** random.integers(-3, 3, 400)).astype(dtype)
    actual = (expected * (1 + random.choice([0, 1e-7, 1e-2, 1], 400))).astype(dtype)
    kind = FROM_NUMPY[expected.dtype]
    found = compare_within(actual, expected, kind, bound)
    bad = disagreeing(actual, expected, kind, bound)
    shown = worst_elements(actual, expected, bound, most=400)
    assert {w.index[0] for w in shown} == set(np.flatnonzero(bad).tolist()) and bool(shown) != found.agrees
    assert dtype is np.complex64 or found.failures == len(shown)  # parts of complex numbers are counted by themselves
