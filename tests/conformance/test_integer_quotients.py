"""Quotients and remainders of integers next to each multiple: both stacks make them of floats and of half products."""

import re

import numpy as np
import pytest

from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...migration.choose import emitter
from ...planning.planner import plan
from ..support.check import check, parsed

TYPES = ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"]
SIZE = 5000


def text_of(opcode: str, dtype: str) -> str:
    s = f"{dtype}[{SIZE}]"
    lines = (f"x = {s} parameter(0)", f"y = {s} parameter(1)", f"ROOT r = {s} {opcode}(x, y)")
    return "\n".join(["HloModule m", "", "ENTRY e {", *(f"  {line}" for line in lines), "}", ""])


def operands(dtype: str) -> list[np.ndarray]:
    """Multiples of random divisors, and their neighbours; divisors of every length, 0 and −1 among them; both ends."""
    info = np.iinfo({"s": "int", "u": "uint"}[dtype[0]] + dtype[1:])
    random = np.random.default_rng(3)
    y = random.integers(info.min, info.max, SIZE, dtype=info.dtype, endpoint=True)
    y >>= random.integers(0, info.bits, SIZE).astype(info.dtype)
    k = random.integers(info.min, info.max, SIZE, dtype=info.dtype, endpoint=True)
    x = k - k % np.where(y == 0, 1, y) + random.integers(-1, 2, SIZE).astype(info.dtype)
    x[:300], x[300:600] = info.min, info.max
    if info.bits == 64:  # remainders of an estimate are longest for the largest numbers, and odd about such divisors
        near = np.array([1, 3, 1 << 15, 1 << 48, 1 << 53, info.max], info.dtype)[np.arange(1200) % 6]
        y[600:1800] = near - (np.arange(1200) // 6).astype(info.dtype) + (near != info.max) * info.dtype.type(100)
        x[600:1800] = info.max - random.integers(0, 1 << 12, 1200).astype(info.dtype)
    y[::97], y[1::97] = 0, 1 if dtype[0] == "u" else -1
    return [x, y]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("opcode", ["divide", "remainder"])
@pytest.mark.parametrize("cpu", ["host", *Target.levels()], indirect=True)
@pytest.mark.filterwarnings("ignore:overflow")
def test_values(opcode, dtype, cpu):
    check(text_of(opcode, dtype), operands(dtype), ("evaluator", "legacy", "mlir"))


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("dtype", TYPES[:6])
def test_they_are_vectors(dtype, stack):
    """By elements, the remainders of 2¹⁸ u32 took 0.7 ms instead of 0.04."""
    options = EmitOptions(Target.level("x86-64-v3"))
    text = optimize(emitter(stack).emit(plan(parsed(text_of("remainder", dtype))).kernels, options).llvm_ir, options)
    assert re.search(r"fdiv (?:contract )?<\d+ x (?:float|double)>", text) and not re.search(
        r"= [us](?:rem|div) ", text
    )


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("opcode", ["divide", "remainder"])
@pytest.mark.parametrize("dtype", TYPES[6:])
def test_those_of_64_bits_are_vectors_where_floats_of_them_are(dtype, opcode, stack):
    """By elements they took three times as long with AVX-512; AVX2 has none of the conversions."""
    for level, found in (("x86-64-v4", True), ("x86-64-v3", False)):
        options = EmitOptions(Target.level(level), ranges=False)
        text = optimize(emitter(stack).emit(plan(parsed(text_of(opcode, dtype))).kernels, options).llvm_ir, options)
        assert bool(re.search(r"fdiv (?:contract )?<8 x double>", text)) == found
        assert bool(re.search(r"= [us](?:rem|div) i64 ", text)) != found


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_a_quotient_by_a_constant_is_a_product(stack):
    seven = "c = s32[] constant(7)\n  y = s32[5000] broadcast(c), dimensions={}"
    text = text_of("divide", "s32").replace("y = s32[5000] parameter(1)", seven)
    options = EmitOptions(Target.level("x86-64-v3"))
    made = optimize(emitter(stack).emit(plan(parsed(text)).kernels, options).llvm_ir, options)
    assert "fdiv" not in made and "= sdiv" in made


DIVISORS = {
    "s64": (3, 10, 7, 1 << 33, 3 << 40, 10**15 + 1, (1 << 62) + 1, (1 << 63) - 1, -3, -8, -(10**18), -1, 0, -(1 << 63)),
    "u64": (3, 10, 7, 14, 28 << 40, 641, 1 << 33, (1 << 63) - 1, (1 << 63) + 1, 3 << 62, (1 << 64) - 1, 0, 1 << 63),
}


def by_constants(opcode: str, dtype: str, divisors: tuple[int, ...], size: int) -> str:
    s = f"{dtype}[{size}]"
    lines = [f"x = {s} parameter(0)"]
    for k, divisor in enumerate(divisors):
        lines += [f"c{k} = {dtype}[] constant({divisor})", f"y{k} = {s} broadcast(c{k}), dimensions={{}}"]
        lines.append(f"r{k} = {s} {opcode}(x, y{k})")
    lines.append(
        f"ROOT r = ({', '.join([s] * len(divisors))}) tuple({', '.join(f'r{k}' for k in range(len(divisors)))})"
    )
    return "\n".join(["HloModule m", "", "ENTRY e {", *(f"  {line}" for line in lines), "}", ""])


@pytest.mark.parametrize("dtype", DIVISORS)
@pytest.mark.parametrize("opcode", ["divide", "remainder"])
@pytest.mark.parametrize("cpu", ["host", *Target.levels()], indirect=True)
@pytest.mark.filterwarnings("ignore:overflow")
def test_values_by_constants_of_64_bits(opcode, dtype, cpu):
    """Multiples of each divisor and their neighbours, up to both ends, where a factor's rounding carries first."""
    random = np.random.default_rng(5)
    least, most = (-(1 << 63), (1 << 63) - 1) if dtype == "s64" else (0, (1 << 64) - 1)
    numbers = [least, least + 1, most - 1, most, 0, 1]
    for divisor in filter(None, DIVISORS[dtype]):
        size = abs(divisor)
        for multiple in (
            least // size,
            most // size,
            *(int(random.integers(1 << 62)) % (most // size + 1) for _ in range(9)),
        ):
            numbers += [multiple * size + d for d in (-1, 0, 1)]
    numbers = [n for n in numbers if least <= n <= most]
    x = np.array(numbers, "int64" if dtype == "s64" else "uint64")
    check(by_constants(opcode, dtype, DIVISORS[dtype], x.size), [x], ("evaluator", "legacy", "mlir"))


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("divisor", [10, 7, -8])
@pytest.mark.parametrize("opcode", ["divide", "remainder"])
@pytest.mark.parametrize("dtype", DIVISORS)
def test_those_by_constants_of_64_bits_are_vectors(dtype, opcode, divisor, stack):
    """One product of 128 bits for each element took 1.3 to 2 times as long as XLA's."""
    text = by_constants(opcode, dtype, (divisor % (1 << 64) if dtype == "u64" else divisor,), SIZE)
    for level, lanes in (("x86-64-v4", 8), ("x86-64-v3", 4)):
        options = EmitOptions(Target.level(level), ranges=False)
        made = optimize(emitter(stack).emit(plan(parsed(text)).kernels, options).llvm_ir, options)
        assert f"store <{lanes} x i64>" in made and not re.search(r"= [us](?:rem|div) ", made)


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("number", ["iota(), iota_dimension=0", "convert(p)"])
def test_of_short_numbers_of_64_bits_llvm_divides_32(number, stack):
    """It knows how large a counter is, and so takes half of the time of products of halves with AVX2."""
    lines = (
        "p = s32[5000] parameter(0)",
        f"i = s64[5000] {number}",
        "c = s64[] constant(10)",
        "y = s64[5000] broadcast(c), dimensions={}",
        "a = s64[5000] add(i, y)",
        "ROOT r = s64[5000] remainder(a, y)",
    )
    text = "\n".join(["HloModule m", "", "ENTRY e {", *(f"  {line}" for line in lines), "}", ""])
    options = EmitOptions(Target.level("x86-64-v3"), ranges=False)
    made = emitter(stack).emit(plan(parsed(text)).kernels, options).llvm_ir
    assert re.search(r"= [us]rem i64 ", made)
