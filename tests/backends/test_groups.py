"""Kernels that groups of work items compute: rows and tiles of both stacks, on threads of the recording driver."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from ...backends.accelerator.compiler import DeviceCompiler
from ...backends.accelerator.targets import SPIRV
from ...backends.base import CompileOptions
from ...backends.conformance import BackendConformance
from ...backends.cuda.dialect import CUDA
from ...codegen.options import EmitOptions, GroupShape
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.verify.verifier import verify
from ...migration.choose import emit_for
from ...migration.flags import Flags
from ..support.host_items import host_items
from ..support.recorded import Recorded, negated

SHAPE = GroupShape(lanes=4, across=2, down=2, columns=2, rows=2, depth=4, memory=1 << 14)
STACKS = ("legacy", "mlir")


@functools.cache
def threads(vectors: bool = False) -> Recorded:
    """A platform whose groups are threads. vectors: it has the form of kernels for a compiler that makes vectors."""
    return Recorded(CUDA, host_items(replace(SHAPE, vectors=vectors)))


class TestGroups(BackendConformance):
    platform = property(lambda self: threads())
    emit_for = staticmethod(emit_for(Flags.parse("mlir")))
    kernel = property(lambda self: negated())


ADD = "add { a = {t}[] parameter(0)\n b = {t}[] parameter(1)\n ROOT c = {t}[] {op}(a, b) }\n"


def reduction(dtype: str, op: str, dims: str, dimensions: str, init: str, result: str) -> str:
    region = ADD.replace("{t}", dtype).replace("{op}", op)
    return (
        f"HloModule m\n{region}ENTRY e {{ p = {dtype}[{dims}] parameter(0)\n z = {dtype}[] constant({init})\n"
        f" ROOT r = {dtype}[{result}] reduce(p, z), dimensions={{{dimensions}}}, to_apply=add }}"
    )


def product(a: str, b: str, result: str, numbers: str, dtype: str = "f32") -> str:
    return (
        f"HloModule m\nENTRY e {{ p = {dtype}[{a}] parameter(0)\n q = {dtype}[{b}] parameter(1)\n"
        f" ROOT r = {dtype}[{result}] dot(p, q), {numbers} }}"
    )


PLAIN = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
SOFTMAX = """HloModule m
max { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] maximum(a, b) }
add { d = f32[] parameter(0)
 e = f32[] parameter(1)
 ROOT f = f32[] add(d, e) }
ENTRY e {
 p = f32[3,5,37] parameter(0)
 low = f32[] constant(-inf)
 m = f32[3,5] reduce(p, low), dimensions={2}, to_apply=max
 mb = f32[3,5,37] broadcast(m), dimensions={0,1}
 s = f32[3,5,37] subtract(p, mb)
 x = f32[3,5,37] exponential(s)
 zero = f32[] constant(0)
 t = f32[3,5] reduce(x, zero), dimensions={2}, to_apply=add
 tb = f32[3,5,37] broadcast(t), dimensions={0,1}
 y = f32[3,5,37] divide(x, tb)
 ROOT r = (f32[3,5,37], f32[3,5]) tuple(y, t)
}
"""
EPILOGUE = """HloModule m
ENTRY e {
 p = f32[13,9] parameter(0)
 q = f32[9,11] parameter(1)
 bias = f32[11] parameter(2)
 d = f32[13,11] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 bb = f32[13,11] broadcast(bias), dimensions={1}
 s = f32[13,11] add(d, bb)
 z = f32[] constant(0)
 zb = f32[13,11] broadcast(z), dimensions={}
 ROOT r = f32[13,11] maximum(s, zb)
}
"""


def convolution(image: str, kernel: str, result: str, window: str, more: str = "", dtype: str = "f32") -> str:
    labels = "" if "dim_labels" in more else ", dim_labels=b01f_01io->b01f"
    return (
        f"HloModule m\nENTRY e {{ p = {dtype}[{image}] parameter(0)\n q = {dtype}[{kernel}] parameter(1)\n"
        f" ROOT r = {dtype}[{result}] convolution(p, q), window={{{window}}}{labels}{more} }}"
    )


CONVOLUTIONS = {
    "window in the image": convolution("1,5,6,4", "2,3,4,6", "1,4,4,6", "size=2x3"),
    "padding": convolution("2,4,5,6", "3,3,6,5", "2,4,5,5", "size=3x3 pad=1_1x1_1"),
    "strides": convolution("2,7,8,5", "3,2,5,4", "2,4,4,4", "size=3x2 stride=2x2 pad=1_1x0_0"),
    "holes": convolution("1,3,4,4", "3,2,4,3", "1,5,7,3", "size=3x2 pad=1_1x0_1 lhs_dilate=2x2"),
    "a wide window": convolution("1,6,7,4", "2,3,4,3", "1,6,5,3", "size=2x3 pad=1_1x1_1 rhs_dilate=2x2"),
    "a mirrored window": convolution("1,5,6,4", "2,3,4,3", "1,5,6,3", "size=2x3 pad=1_0x1_1 rhs_reversal=1x1"),
    "cut images": convolution("1,5,6,4", "2,3,4,3", "1,3,4,3", "size=2x3 pad=-1_0x0_0"),
    "features first": convolution(
        "2,4,5,6", "9,4,3,3", "2,9,5,6", "size=3x3 pad=1_1x1_1", ", dim_labels=bf01_oi01->bf01"
    ),
    "batches fastest": convolution("4,5,6,9", "2,3,4,8", "8,4,4,9", "size=2x3", ", dim_labels=f01b_01io->f01b"),
    "groups of features": convolution(
        "2,4,5,8", "3,3,4,6", "2,4,5,6", "size=3x3 pad=1_1x1_1", ", feature_group_count=2"
    ),
    "groups of batches": convolution("4,4,5,3", "3,3,3,4", "2,4,5,4", "size=3x3 pad=1_1x1_1", ", batch_group_count=2"),
    "one dimension": convolution("3,9,5", "4,5,6", "3,9,6", "size=4 pad=2_1", ", dim_labels=b0f_0io->b0f"),
    "no window": convolution("9,8", "8,12", "9,12", "", ", dim_labels=bf_io->bf"),
    "whole numbers": convolution("1,4,5,4", "3,3,4,6", "1,4,5,6", "size=3x3 pad=1_1x1_1", dtype="s32"),
    "bf16 images": convolution("1,4,5,4", "3,3,4,6", "1,4,5,6", "size=3x3 pad=1_1x1_1", dtype="bf16"),
}
"""Name → a convolution in tiles."""


def transposition(dims: str, result: str, order: str, dtype: str = "f32") -> str:
    return (
        f"HloModule m\nENTRY e {{ p = {dtype}[{dims}] parameter(0)\n"
        f" ROOT r = {dtype}[{result}] transpose(p), dimensions={{{order}}} }}"
    )


ACROSS = """HloModule m
ENTRY e {
 p = f32[70,61] parameter(0)
 q = f32[61,70] parameter(1)
 c = f32[70] parameter(2)
 t = f32[70,61] transpose(q), dimensions={1,0}
 s = f32[70,61] add(p, t)
 cb = f32[70,61] broadcast(c), dimensions={0}
 m = f32[70,61] multiply(t, cb)
 ROOT r = (f32[70,61], f32[70,61]) tuple(s, m)
}
"""

TRANSPOSITIONS = {
    "whole squares": transposition("64,72", "72,64", "1,0"),
    "cut squares": transposition("70,61", "61,70", "1,0"),
    "a dimension between": transposition("33,5,34", "34,5,33", "2,1,0"),
    "the first one last": transposition("40,3,37", "3,37,40", "1,2,0"),
    "bytes across": transposition("70,61", "61,70", "1,0", "u8"),
    "truth values across": transposition("70,61", "61,70", "1,0", "pred"),
    "bf16 across": transposition("70,61", "61,70", "1,0", "bf16"),
    "complex numbers across": transposition("70,61", "61,70", "1,0", "c64"),
    "f64 across": transposition("70,61", "61,70", "1,0", "f64"),
    "a sum of both orders": ACROSS,
}
"""Name → a program that reads across its results."""

SUMS_OF_COLUMNS = """HloModule m
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
max { d = f32[] parameter(0)
 e = f32[] parameter(1)
 ROOT f = f32[] maximum(d, e) }
ENTRY e {
 p = f32[3,21,13] parameter(0)
 q = f32[3,13] parameter(1)
 z = f32[] constant(1.5)
 low = f32[] constant(-inf)
 x = f32[3,21,13] exponential(p)
 s = f32[3,13] reduce(x, z), dimensions={1}, to_apply=add
 t = f32[3,13] reduce(p, low), dimensions={1}, to_apply=max
 u = f32[3,13] multiply(s, q)
 ROOT r = f32[3,13] add(u, t)
}
"""

COLUMNS = {
    "columns": reduction("f32", "add", "40,8", "0", "0", "8"),
    "columns and a beginning": reduction("f32", "add", "40,8", "0", "2.5", "8"),
    "odd columns": reduction("f32", "add", "41,9", "0", "0", "9"),
    "few odd rows": reduction("f32", "add", "5,9", "0", "0", "9"),
    "a dimension between": reduction("f32", "add", "3,17,9", "1", "0", "3,9"),
    "the outer dimensions": reduction("f32", "add", "3,7,9", "0,1", "0", "9"),
    "every second dimension": reduction("f32", "add", "3,4,7,9", "0,2", "0", "4,9"),
    "columns across": reduction("f32", "add", "9,40", "1", "0", "9").replace("p = f32[9,40]", "p = f32[9,40]{0,1}"),
    "greatest of columns": reduction("f32", "maximum", "37,11", "0", "-inf", "11"),
    "columns of integers": reduction("s32", "add", "37,11", "0", "-7", "11"),
    "columns of bytes": reduction("u8", "multiply", "33,10", "0", "1", "10"),
    "columns of truth values": reduction("pred", "or", "36,9", "0", "false", "9"),
    "columns of complex numbers": reduction("c64", "add", "40,9", "0", "(1,2)", "9"),
    "columns of bf16": reduction("bf16", "add", "48,9", "0", "0", "9"),
    "columns of f64": reduction("f64", "add", "48,9", "0", "0", "9"),
    "two sums of the same columns": SUMS_OF_COLUMNS,
}
"""Name → a program that reduces columns."""

PROGRAMS = {
    **COLUMNS,
    **CONVOLUTIONS,
    **TRANSPOSITIONS,
    "sum with a beginning": reduction("f32", "add", "7,64", "1", "2.5", "7"),
    "sum of all": reduction("f32", "add", "6,43", "0,1", "0", ""),
    "maximum of odd rows": reduction("f32", "maximum", "3,37", "1", "-inf", "3"),
    "minimum of integers": reduction("s32", "minimum", "4,40", "1", "2147483647", "4"),
    "product of bytes": reduction("u8", "multiply", "2,33", "1", "1", "2"),
    "and of truth values": reduction("pred", "and", "5,36", "1", "true", "5"),
    "or of truth values": reduction("pred", "or", "5,36", "1", "false", "5"),
    "sum of complex numbers": reduction("c64", "add", "3,40", "1", "(1,2)", "3"),
    "sum of bf16": reduction("bf16", "add", "3,48", "1", "0", "3"),
    "sum of f64": reduction("f64", "add", "3,48", "1", "0", "3"),
    "softmax": SOFTMAX,
    "product": product("12,8", "8,16", "12,16", PLAIN),
    "cut tiles": product("9,10", "10,11", "9,11", PLAIN),
    "transposed": product("8,9", "11,8", "9,11", "lhs_contracting_dims={0}, rhs_contracting_dims={1}"),
    "columns first": product("9,8", "8,12", "9,12", PLAIN).replace("[9,12] dot", "[9,12]{0,1} dot"),
    "batches": product(
        "3,9,8",
        "3,8,12",
        "3,9,12",
        "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}",
    ),
    "two sums": product("9,4,5", "4,5,12", "9,12", "lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}"),
    "integers": product("9,8", "8,12", "9,12", PLAIN, "s32"),
    "truth values": product("9,8", "8,12", "9,12", PLAIN, "pred"),
    "bf16": product("9,8", "8,12", "9,12", PLAIN, "bf16"),
    "f64": product("9,8", "8,12", "9,12", PLAIN, "f64"),
    "epilogue": EPILOGUE,
}
"""Name → a program whose kernel a group computes."""

TOLERANCE = {"f": 2e-6, "c": 2e-6, "d": 1e-13}


def _inputs(module) -> list[np.ndarray]:
    rng, made = np.random.default_rng(3), []
    for shape in module.parameter_shapes:
        dtype = np.dtype(shape.dtype.numpy)
        if dtype.kind in "biu":
            made.append(rng.integers(0 if dtype.kind != "i" else -4, 2 if dtype.kind == "b" else 5, shape.dims))
        elif dtype.kind == "c":
            made.append(rng.normal(size=shape.dims) + 1j * rng.normal(size=shape.dims))
        else:
            made.append(rng.normal(size=shape.dims))
        made[-1] = made[-1].astype(dtype)
    return made


def _compiled(text: str, stack: str, vectors: bool = False):
    module = parse_module(text)
    verify(module)
    compiler, options = threads(vectors).compiler(), CompileOptions(cache=None)
    made = compiler.compile(compiler.run_hlo_passes(module, options), emit_for(Flags.parse(stack)), options)
    return module, made


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_groups_compute_what_the_evaluator_does(name: str, stack: str):
    _check(*_compiled(PROGRAMS[name], stack))


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("name", [name for name, text in PROGRAMS.items() if " dot(" in text or name in CONVOLUTIONS])
def test_tiles_for_vectors_of_items_are_the_same(name: str, stack: str):
    _check(*_compiled(PROGRAMS[name], stack, vectors=True))


ROWS = {
    "softmax": (SOFTMAX.replace("[3,5", "[8,8"), 8),
    "means of their rows": (SOFTMAX.replace("[3,5", "[4,9"), 4),
    "sums": (reduction("f32", "add", "24,64", "1", "2.5", "24"), 2),
    "maxima of odd rows": (reduction("f32", "maximum", "64,37", "1", "-inf", "64"), 8),
    "sums of complex numbers": (reduction("c64", "add", "32,40", "1", "(1,2)", "32"), 4),
    "sums of bf16": (reduction("bf16", "add", "32,48", "1", "0", "32"), 4),
    "truth values": (reduction("pred", "or", "64,36", "1", "false", "64"), 8),
    "long rows": (reduction("f32", "add", "64,512", "1", "0", "64"), 2),
    "too long rows": (reduction("f32", "add", "16,1024", "1", "0", "16"), 1),
    "an odd number of rows": (reduction("f32", "add", "63,40", "1", "0", "63"), 1),
}
"""Name → (a row kernel, the rows that a group computes where items are vectors)."""


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("name", ROWS)
def test_a_group_computes_several_short_rows_where_items_are_vectors(name: str, stack: str):
    text, together = ROWS[name]
    for vectors in (True, False):
        module, executable = _compiled(text, stack, vectors)
        (entry,) = executable.entries.values()
        assert entry.work.group.down == (together if vectors else 1)
        _check(module, executable)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("order", ["{1}, rhs_contracting_dims={0}", "{0}, rhs_contracting_dims={1}"])
def test_vectors_of_items_see_that_they_copy_neighbours(order: str, stack: str):
    """No rest says which element an item copies."""
    module = parse_module(product("64,64", "64,64", "64,64", f"lhs_contracting_dims={order}"))
    (request,) = threads().compiler().run_hlo_passes(module, CompileOptions()).emitted
    counts = []
    for shape in (SPIRV.groups, replace(SPIRV.groups, vectors=False)):
        options = EmitOptions(SPIRV.target, strict=True, by_element=True, group=shape)
        text = emit_for(Flags.parse(stack))(request).emit([replace(request, partition=None)], options).llvm_ir
        counts.append(len(re.findall(r" = [us]rem ", text)))
    assert counts[1] - counts[0] >= 16, "one for each element of a side that an item copies"


def _check(module, executable) -> None:
    assert any(entry.work.group is not None for entry in executable.entries.values()), "a kernel for groups"
    inputs = _inputs(module)
    for found, wanted in zip(executable.execute(inputs), evaluate(module, inputs), strict=True):
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        if found.dtype == ml_dtypes.bfloat16:
            np.testing.assert_allclose(found.astype(np.float32), wanted.astype(np.float32), rtol=2**-7)
        elif found.dtype.kind in "fc":
            rtol = TOLERANCE["d" if found.dtype == np.float64 else "f"]
            np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * 10)
        else:
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("stack", STACKS)
def test_a_nan_is_the_maximum_of_its_row(stack: str):
    _, executable = _compiled(PROGRAMS["maximum of odd rows"], stack)
    x = np.linspace(-1, 1, 3 * 37, dtype=np.float32).reshape(3, 37)
    x[1, 36] = math.nan
    (found,) = executable.execute([x])
    assert found[[0, 2]].tolist() == x[[0, 2]].max(1).tolist() and math.isnan(found[1])


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("name", ["padding", "holes", "groups of batches", "batches fastest"])
def test_what_is_beside_an_image_is_no_term(name: str, stack: str):
    """An infinite element of the kernel is not multiplied by zeros of the padding, nor NaN by those behind the end."""
    module, executable = _compiled(CONVOLUTIONS[name], stack)
    image, kernel = _inputs(module)
    image.flat[-1] = math.nan
    kernel.flat[0] = kernel.flat[-1] = math.inf
    (found,), (wanted,) = executable.execute([image, kernel]), evaluate(module, [image, kernel])
    assert np.isfinite(wanted).any() and not np.isfinite(wanted).all()
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-5)


OTHERS = {
    "a short row": reduction("f32", "add", "9,31", "1", "0", "9"),
    "few rows of columns": reduction("f32", "add", "3,9", "0", "0", "9"),
    "columns of differences": reduction("f32", "subtract", "40,9", "0", "0", "9"),
    "columns of narrow integers": reduction("s4", "add", "40,9", "0", "0", "9"),
    "a difference": reduction("f32", "subtract", "4,40", "1", "0", "4"),
    "sums of narrow integers": reduction("s4", "add", "4,40", "1", "0", "4"),
    "few rows": product("7,8", "8,12", "7,12", PLAIN),
    "few columns": product("9,8", "8,1", "9,1", PLAIN),
    "a window for each feature": convolution("1,5,6,4", "2,3,1,4", "1,4,4,4", "size=2x3", ", feature_group_count=4"),
    "a few columns across": transposition("1,1200", "1200,1", "1,0"),
    "complex images": convolution("1,5,6,4", "2,3,4,6", "1,4,4,6", "size=2x3", dtype="c64"),
    "complex numbers": product("9,8", "8,12", "9,12", PLAIN, "c64"),
}
"""Name → a program that has another form: its sum has an order, or groups would have little work."""


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("name", OTHERS)
def test_other_kernels_are_computed_by_items_alone(name: str, stack: str):
    module, executable = _compiled(OTHERS[name], stack)
    assert all(entry.work.group is None for entry in executable.entries.values())
    inputs = _inputs(module)
    (found,), (wanted,) = executable.execute(inputs), evaluate(module, inputs)
    np.testing.assert_allclose(found.astype(np.complex128), wanted.astype(np.complex128), rtol=1e-5, atol=1e-5)


IN_PLACE = SOFTMAX.replace("ENTRY e {", "ENTRY e {").replace(
    " ROOT r = (f32[3,5,37], f32[3,5]) tuple(y, t)", " ROOT r = f32[3,5,37] add(y, p)"
)


@pytest.mark.parametrize("together", [1, 8])
@pytest.mark.parametrize("stack", STACKS)
def test_a_result_may_lie_on_the_operand_of_its_row(stack: str, together: int):
    """The plan puts the inner result on a temporary of the same size; no item reads what another has written."""
    text = IN_PLACE.replace(
        "p = f32[3,5,37] parameter(0)",
        "given = f32[3,5,37] parameter(0)\n p = f32[3,5,37] sort(given), dimensions={2}, to_apply=less",
    )
    text = text.replace(
        "ENTRY",
        "less { g = f32[] parameter(0)\n h = f32[] parameter(1)\n ROOT i = pred[] compare(g, h), direction=LT }\nENTRY",
    )
    vectors = together > 1
    module, executable = _compiled(text.replace("[3,5", "[8,8") if vectors else text, stack, vectors)
    plan = executable.plan
    shared = [r for r in plan.emitted if {*r.operands} & {*r.results}]
    groups = [group for r in shared if (group := executable.entries[r.name].work.group) is not None]
    assert [group.down for group in groups] == [together], "a group's result on its operand"
    inputs = _inputs(module)
    (found,), (wanted,) = executable.execute(inputs), evaluate(module, inputs)
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-6)


COLUMNS_IN_PLACE = """HloModule m, input_output_alias={ {}: (1, {}, may-alias) }
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
ENTRY e {
 p = f32[21,13] parameter(0)
 q = f32[13] parameter(1)
 z = f32[] constant(0)
 s = f32[13] reduce(p, z), dimensions={0}, to_apply=add
 ROOT r = f32[13] add(s, q)
}
"""


@pytest.mark.parametrize("stack", STACKS)
def test_columns_may_lie_on_what_is_added_to_them(stack: str):
    """The last group also reads columns of the one before it, and writes its own only."""
    module, executable = _compiled(COLUMNS_IN_PLACE, stack)
    (request,) = executable.plan.emitted
    assert {*request.operands} & {*request.results}, "columns on their operand"
    assert executable.entries[request.name].work.group is not None
    inputs = _inputs(module)
    (found,), (wanted,) = executable.execute(inputs), evaluate(module, inputs)
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-5)


def test_devices_have_groups_where_items_can_wait():
    assert SPIRV.groups is not None and "barrier" in SPIRV.barrier
    assert host_items().groups is None
    assert isinstance(threads().compiler(), DeviceCompiler)
