"""Small files that unpack to a lot are refused by their headers."""

import zipfile

import numpy as np
import pytest

from ...formats.arrays import load_infeed, load_io
from ...hlo.dtypes import DType
from ...hlo.errors import InputError
from ...hlo.shapes import array

HUGE = (1 << 20, 1 << 20)


@pytest.fixture
def bomb(tmp_path):
    """An .npz with a header of 4 TiB of f32 in front of few bytes."""

    def write(name: str):
        path = tmp_path / "bomb.npz"
        with zipfile.ZipFile(path, "w") as archive, archive.open(f"{name}.npy", "w") as member:
            np.lib.format.write_array_header_1_0(member, {"descr": "<f4", "fortran_order": False, "shape": HUGE})
            member.write(b"\0" * 64)
        return path

    return write


def test_the_shape_is_compared_before_anything_is_read(bomb):
    with pytest.raises(InputError, match=r"in0: shape \[1048576, 1048576\] does not match f32\[4\]"):
        load_io(bomb("in0"), [array(DType.F32, 4)], None)
    with pytest.raises(InputError, match="in0: dtype f32 does not match s32"):
        load_io(bomb("in0"), [array(DType.S32, 4)], None)


def test_so_it_is_of_an_infeed(bomb):
    with pytest.raises(InputError, match=r"value0: shape \[1048576, 1048576\] does not match"):
        load_infeed(bomb("value0"), [[array(DType.F32, 4)]], 1)


def test_a_single_array_is_not_read(tmp_path):
    path = tmp_path / "one.npz"
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": HUGE})
        file.truncate(file.tell() + 4 * HUGE[0] * HUGE[1])  # a sparse file
    with pytest.raises(InputError, match="one array, not an"):
        load_io(path, [array(DType.F32, 4)], None)
