"""Literals as keys of dictionaries: equal bits, equal hashes; different constants of one shape seldom collide."""

import numpy as np

from ...hlo.dtypes import DType
from ...hlo.ir import Literal
from ...hlo.shapes import array


def literal(values: np.ndarray) -> Literal:
    return Literal(array(DType.F32, values.shape), values)


def test_equal_literals_have_equal_hashes_however_they_are_stored():
    for dims in ((), (1,), (4,), (3, 5), (40, 30), (0, 7)):
        plain, splat = literal(np.full(dims, 7, np.float32)), literal(np.broadcast_to(np.float32(7), dims))
        assert plain == splat and hash(plain) == hash(splat), dims
    turned = np.asarray(np.arange(600, dtype=np.float32).reshape(20, 30), order="F")
    assert hash(literal(turned)) == hash(literal(np.ascontiguousarray(turned)))


def test_many_constants_of_one_shape_are_told_apart_by_their_hashes():
    small = [literal(np.array([0, 0, n, 0], np.float32)) for n in range(500)]
    large = [literal(np.linspace(0, n, 999, dtype=np.float32)) for n in range(500)]
    assert len({hash(a) for a in small + large}) > 990
