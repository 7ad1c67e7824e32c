"""Sorts whose comparators compare one key, and the first few of sorted rows: long rows, all types, special values."""

import dataclasses
import re

import ml_dtypes
import numpy as np
import pytest

from ... import legacy, mlir_emitters
from ...backends.base import CompileOptions
from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...legacy.sorts.sort_order import key_order
from ...lhlo import from_kernels
from ...migration import Flags, compile_module
from ...mlir_emitters.core.graph import graphs, reachable
from ...mlir_emitters.sorts.sort_keys import keys_of
from ...planning.planner import plan
from ..support.keyed_sorts import COMPARATORS, FLOATS, JAX, KEYS, ORDERED, agree, keys, order_of, sort_text


@pytest.mark.parametrize("direction", ["LT", "GT"])
@pytest.mark.parametrize("dtype", KEYS, ids=lambda d: d.value)
def test_keys_of_all_types_are_in_order_and_ties_keep_theirs(dtype, direction):
    x = keys(dtype, (2, 600), 1)
    places = np.broadcast_to(np.arange(600, dtype=np.int32), x.shape).copy()
    agree(sort_text(dtype, x.shape, f"compare(a0, b0), direction={direction}{order_of(dtype)}"), [x])
    compare = f"compare(b0, a0), direction={direction}{order_of(dtype)}"
    agree(sort_text(dtype, x.shape, compare, payloads=("s32",)), [x, places])


@pytest.mark.parametrize("length", [15, 16, 17, 31, 32, 33, 39, 40, 41, 64, 200, 40000])
def test_lengths(length):
    x = keys(DType.F32, (1, length), length)
    agree(sort_text(DType.F32, x.shape, "compare(a0, b0), direction=LT, type=TOTALORDER"), [x])


@pytest.mark.parametrize("layout", ["{1,0}", "{0,1}"])
@pytest.mark.parametrize("dimension", [0, 1])
def test_rows_of_both_strides_with_wide_and_narrow_payloads(dimension, layout):
    dims = (700, 3) if dimension == 0 else (3, 700)
    x, random = keys(DType.S32, dims, 2), np.random.default_rng(3)
    wide, narrow = random.normal(size=dims) + 1j, random.integers(0, 99, dims).astype(np.uint8)
    compare = "compare(a0, b0), direction=LT"
    agree(sort_text(DType.S32, dims, compare, dimension, ("c128", "u8"), layout), [x, wide.astype(complex), narrow])


@pytest.mark.parametrize("low, high", [(5, 6), (0, 256), (0, 1 << 20), (-3, 4)])
def test_digits_that_all_keys_share(low, high):
    """As many passes move elements as digits differ: an even or an odd number."""
    x = np.random.default_rng(4).integers(low, high, (2, 900))
    agree(sort_text(DType.S64, x.shape, "compare(a0, b0), direction=GT"), [x])


@pytest.mark.parametrize("dims", [(1, 12), (3, 20), (2, 600), (300, 12), (64, 64)])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.value)
def test_a_partial_order_has_equal_zeros(dtype, dims):
    """Subnormals are among them, but for those of f16, which XLA:CPU compares as f32: their places stay theirs."""
    x, places = keys(dtype, dims, 5, ORDERED), np.broadcast_to(np.arange(dims[1], dtype=np.int32), dims).copy()
    least = ml_dtypes.finfo(x.dtype).smallest_subnormal
    x[:, :8] = np.array([0, 1, -3, 0, 2, -0.0, -2, 1]).astype(x.dtype) * least
    x[0, 8:12] = 1, -1, -1, 0
    for direction in ("LT", "GT"):
        text = sort_text(dtype, x.shape, f"compare(a0, b0), direction={direction}", payloads=("s32",))
        agree(text, [x, places])
        agree(sort_text(dtype, x.shape, f"compare(a0, b0), direction={direction}"), [x])


@pytest.mark.parametrize("room", [legacy, mlir_emitters])
def test_a_strict_order_compares_subnormals(room):
    """Where they are kept, only zeros are equal: magnitudes, shifted by the sign, are compared with 1."""
    kernels = plan(parse_module(sort_text(DType.F32, (2, 600), "compare(a0, b0), direction=LT"))).kernels
    for strict, least in ((False, 1 << 24), (True, 1)):
        text = room.emit(kernels, dataclasses.replace(EmitOptions.host(), strict=strict)).llvm_ir
        found = {int(n) for n in re.findall(r"icmp ult i32 [^,]*, (\d+)", text)}
        assert least in found and (2 << 23 if strict else 1) not in found


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_a_partial_order_permutes_nans_and_sorts_the_rest(stack):
    x = keys(DType.F32, (3, 800), 6)
    module = parse_module(sort_text(DType.F32, x.shape, "compare(a0, b0), direction=LT"))
    options = CompileOptions(cache=None, red_zones=True)
    (found,) = compile_module(module, Flags.parse(stack), options).execute([x])
    for row, given in zip(found, x, strict=True):
        assert sorted(row.view(np.uint32)) == sorted(given.view(np.uint32))
        finite = row[np.isfinite(row)]
        assert (np.diff(np.where(np.abs(finite) < 1.2e-38, 0, finite)) >= 0).all()


def test_the_keys_that_jax_compares():
    """Zeros are equal, and so are NaNs, which come last."""
    x = keys(DType.F32, (2, 700), 7)
    places = np.broadcast_to(np.arange(700, dtype=np.int32), x.shape).copy()
    compare = "compare(ak, bk), direction=LT, type=TOTALORDER"
    agree(sort_text(DType.F32, x.shape, compare, payloads=("s32",), body=JAX), [x, places])
    negated = "ai = s32[] negate(a1)\nbi = s32[] negate(b1)"  # the key is of the other operand
    compare = "compare(ai, bi), direction=GT"
    agree(sort_text(DType.F32, x.shape, compare, payloads=("s32",), body=negated), [x, places])


@pytest.mark.parametrize("name", COMPARATORS)
def test_only_comparators_of_one_key_are_known(name):
    body, compare, known = COMPARATORS[name]
    module = parse_module(sort_text(DType.S32, (2, 600), compare, payloads=("s32",), body=body))
    (sort,) = (i for i in module.instructions() if i.opcode is Op.SORT)
    assert (key_order(sort.attributes["to_apply"]) is not None) == known
    lhlo = from_kernels(plan(module).kernels)
    with lhlo.context:
        (node,) = (n for g in graphs(lhlo) for n in reachable(g.results) if n.opcode is Op.SORT)
        assert (keys_of(node.bodies[0]) is not None) == known


@pytest.mark.parametrize("name", ["by a key", "two keys"])
def test_comparators_that_are_known_or_nearly(name):
    body, compare, _ = COMPARATORS[name]
    random = np.random.default_rng(8)
    inputs = [random.integers(0, 50, (2, 600)).astype(np.int32) for _ in range(2)]
    agree(sort_text(DType.S32, (2, 600), compare, payloads=("s32",), body=body), inputs)


# --- the first few ---------------------------------------------------------------------------------------------------


def topk_text(dtype: DType, dims: tuple[int, int], k: int, largest: bool) -> str:
    rows, length = dims
    return f"""HloModule m
ENTRY e {{ x = {dtype.value}[{rows},{length}] parameter(0)
  ROOT t = ({dtype.value}[{rows},{k}], s32[{rows},{k}]) topk(x), k={k}, largest={str(largest).lower()} }}"""


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", [d for d in KEYS if d is not DType.PRED], ids=lambda d: d.value)
def test_the_first_few_of_all_types(dtype, largest):
    agree(topk_text(dtype, (2, 777), 5, largest), [keys(dtype, (2, 777), 9)])


@pytest.mark.parametrize(
    "length, k",
    [
        *((1, 1), (1, 0), (31, 1), (32, 1), (33, 2), (63, 15), (64, 16), (65, 1), (300, 8), (383, 95), (384, 32)),
        *((511, 127), (512, 1), (512, 32), (600, 0), (600, 600), (1000, 83), (4096, 300), (16384, 32)),
    ],
)
def test_how_many_of_how_many(length, k):
    agree(topk_text(DType.F32, (2, length), k, True), [keys(DType.F32, (2, length), length + k)])


def helpers_of(text: str, stack: str) -> frozenset[str]:
    """The functions that a program's kernels share with those of others."""
    room = {"legacy": legacy, "mlir": mlir_emitters}[stack]
    return frozenset(room.emit(plan(parse_module(text)).kernels, EmitOptions(Target.level("x86-64-v4"))).helpers)


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_what_is_selected_is_sorted_by_functions_that_depend_on_no_size(stack):
    first, second = (
        helpers_of(topk_text(DType.F32, dims, k, True), stack) for dims, k in (((2, 4096), 9), ((5, 16384), 32))
    )
    assert first == second and len(first) == 1
    others = [
        helpers_of(topk_text(d, (2, 4096), 9, largest), stack) for d, largest in ((DType.F32, False), (DType.S32, True))
    ]
    assert all(len(found - first) == 1 for found in others) and others[0] != others[1]


PATTERNS = {
    "ascending": lambda n: np.arange(n),
    "descending": lambda n: -np.arange(n),
    "all equal": lambda n: np.zeros(n),
    "equal but one": lambda n: np.arange(n) == n - 1,
    "every 256th large": lambda n: np.where(np.arange(n) % 256 == 3, np.arange(n) + n, 0),
    "the least of the type": lambda n: np.full(n, -(2**31)),
    "the largest of the type": lambda n: np.full(n, 2**31 - 1),
    "few of the largest": lambda n: np.where(np.arange(n) % 400 == 7, 2**31 - 1, -(2**31)),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns(name):
    """Rows of which many elements are candidates, and ties at the last element that is wanted."""
    x = np.stack([PATTERNS[name](4000), PATTERNS[name](4000)[::-1]]).astype(np.int32)
    for largest in (True, False):
        agree(topk_text(DType.S32, x.shape, 40, largest), [x])


@pytest.mark.parametrize(
    "first, last, dims, dimension",
    [((0, 9), (0, 9), (2, 700), 1), ((3, 9), (0, 20), (2, 700), 1), ((600, 610), (0, 3), (2, 700), 1),
     ((0, 9), (2, 9), (700, 2), 0)],
)  # fmt: skip
def test_parts_of_rows(first, last, dims, dimension):
    def part(bounds: tuple[int, int], array: str, dtype: str) -> str:
        sizes = [(0, n) if d != dimension else bounds for d, n in enumerate(dims)]
        shape = ",".join(str(end - start) for start, end in sizes)
        return f"{dtype}[{shape}] slice({array}), slice={{{', '.join(f'[{a}:{b}]' for a, b in sizes)}}}"

    shapes = [part(first, "s0", "f32"), part(last, "s1", "s32")]
    types = [shape.split(" ")[0] for shape in shapes]
    root = f"f = {shapes[0]}\n  g = {shapes[1]}\n  ROOT r = ({', '.join(types)}) tuple(f, g)"
    compare = "compare(a0, b0), direction=GT, type=TOTALORDER"
    x = keys(DType.F32, dims, 10)
    numbers = np.arange(x.size, dtype=np.int32).reshape(dims)
    agree(sort_text(DType.F32, dims, compare, dimension, ("s32",), root=root), [x, numbers])


def test_what_is_computed_on_its_way_into_a_selection():
    text = """HloModule m
ENTRY e { x = bf16[2,900] parameter(0)
  y = bf16[2,900] negate(x)
  z = f32[2,900] convert(y)
  ROOT t = (f32[2,4], s32[2,4]) topk(z), k=4 }"""
    agree(text, [np.random.default_rng(11).normal(size=(2, 900)).astype(ml_dtypes.bfloat16)])


def test_a_key_that_is_wider_than_all_operands_is_sorted_in_another_way():
    """Its keys have no room in scratch memory."""
    body = "p = f64[] convert(a0)\nq = f64[] convert(b0)"
    compare = "compare(p, q), direction=LT, type=TOTALORDER"
    x = keys(DType.F16, (2, 600), 12, ORDERED)
    agree(
        sort_text(DType.F16, x.shape, compare, body=body, root="ROOT f = f16[2,3] slice(s), slice={[0:2], [0:3]}"), [x]
    )


@pytest.mark.parametrize("stack", [legacy, mlir_emitters])
def test_devices_merge(stack):
    """Where the outer shape is that of devices, an item sorts a row without counts and keys."""
    kernels = plan(parse_module(topk_text(DType.F32, (2, 16384), 3, True))).kernels
    host = EmitOptions.host()
    assert "cttz" in stack.emit(kernels, host).llvm_ir
    assert "cttz" not in stack.emit(kernels, dataclasses.replace(host, by_element=True)).llvm_ir


@pytest.mark.parametrize(("stack", "most"), [(legacy, 16), (mlir_emitters, 28)])
def test_the_loop_over_counts_has_one_body(stack, most):
    """LLVM unrolled it eight times; its chain of additions took as long."""
    less = "less {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=LT }"
    entry = "x = s32[100000] parameter(0)\n  ROOT r = s32[100000] sort(x), dimensions={0}, to_apply=less"
    options = EmitOptions(Target.level("x86-64-v4"))
    module = stack.emit(plan(parse_module(f"HloModule m\n{less}\nENTRY e {{\n  {entry}\n}}\n")).kernels, options)
    assert optimize(module.llvm_ir, options).count(" add ") <= most
