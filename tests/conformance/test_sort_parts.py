"""Slices of sorted arrays: of each row a part, of some rows only, and at a distance; between guard bytes."""

import pytest

from ...formats.text.parser import parse_module
from ...hlo.analysis.sorted_parts import part_of_sort
from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ..support.keyed_sorts import agree, keys, order_of, sort_text


def sliced(dims, dimension: int, row: str, others: str, name: str = "s") -> str:
    """A slice of each dimension by the same part; `row`: of the sorted one. `n` is the size."""
    parts = [(row if d == dimension else others).replace("n", str(n)) for d, n in enumerate(dims)]
    kept = [len(range(*(int(p) for p in part.split(":")))) for part in parts]
    bounds = ", ".join(f"[{part}]" for part in parts)
    return f"[{','.join(map(str, kept))}] slice({name}), slice={{{bounds}}}"


PARTS = {  # of a row, and of all other dimensions; whether the sort's kernel writes it
    "the first of each row": ("0:3:1", "0:n:1", True),
    "the last of each row": ("2:n:1", "0:n:1", True),
    "some rows": ("0:n:1", "0:n:2", False),
    "the last rows": ("0:n:1", "1:n:1", False),
    "a part of some rows": ("1:7:1", "0:n:3", False),
    "each third of each row": ("0:n:3", "0:n:1", False),
    "each second of some rows": ("1:n:2", "0:n:2", False),
}
FORMS = {  # the array's dimensions, the sorted one
    "short rows side by side": ((3, 11, 35), 1),
    "the shortest": ((11, 35), 0),
    "short rows": ((4, 11), 1),
    "rows of several runs": ((5, 70), 1),
    "long columns": ((300, 4), 0),
    "long rows": ((3, 2100), 1),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("payloads", [(), ("s32",)])
def test_a_slice_of_a_sort(form, part, payloads):
    (dims, dimension), (row, others, in_kernel) = FORMS[form], PARTS[part]
    dtype = DType.BF16 if not payloads else DType.F32
    roots = [f"{t}{sliced(dims, dimension, row, others, f's{n}')}" for n, t in enumerate((dtype.value, *payloads))]
    if payloads:
        shapes = ", ".join(root.split(" ")[0] for root in roots)
        lines = [f"r{n} = {root}" for n, root in enumerate(roots)]
        root = "\n  ".join([*lines, f"ROOT r = ({shapes}) tuple(r0, r1)"])
    else:
        root = "ROOT r = " + roots[0].replace("(s0)", "(s)")
    text = sort_text(dtype, dims, f"compare(a0, b0), direction=GT{order_of(dtype)}", dimension, payloads, root=root)
    slices = [i for i in parse_module(text).entry.instructions if i.opcode is Op.SLICE]
    assert all((part_of_sort(i) is not None) == in_kernel for i in slices)
    agree(text, [keys(dtype, dims, 1), *(keys(DType(p), dims, 2) for p in payloads)])


DIMENSIONS_OF_ONE = """HloModule m

first {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  c = bf16[] parameter(2)
  d = bf16[] parameter(3)
  ROOT r = pred[] compare(b, a), direction=GT
}

ENTRY e {
  i = bf16[1,11,1,1] iota(), iota_dimension=0
  k = bf16[1,11,1,1]{2,1,3,0} copy(i)
  s = (bf16[1,11,1,1]{2,1,3,0}, bf16[1,11,1,1]{2,1,3,0}) sort(k, k), dimensions={1}, to_apply=first, is_stable=true
  s0 = bf16[1,11,1,1]{2,1,3,0} get-tuple-element(s), index=0
  s1 = bf16[1,11,1,1]{2,1,3,0} get-tuple-element(s), index=1
  x = bf16[1,5,1,1]{2,1,3,0} slice(s0), slice={[0:1], [6:11], [0:1], [0:1]}
  y = bf16[1,1,1,1]{2,1,3,0} slice(s1), slice={[0:1], [6:7], [0:1:2], [0:1]}
  ROOT t = (bf16[1,5,1,1]{2,1,3,0}, bf16[1,1,1,1]{2,1,3,0}) tuple(x, y)
}
"""


def test_the_place_of_dimensions_of_one_element_decides_nothing():
    agree(DIMENSIONS_OF_ONE, [])
