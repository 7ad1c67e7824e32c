"""Pairs of ops in one kernel on all values of types of 8 bits and less. Memory between two kernels rounds, wraps and
has one code for each value; inside a kernel, each op must leave what memory would have given the next one.
"""

import os
import random

import numpy as np
import pytest

from ...formats.text.parser import parse_module
from ...hlo.dtypes import BY_NAME, DType
from ...hlo.errors import TestbedError
from ...hlo.verify.verifier import verify
from ..support.check import check

TYPES = sorted(dtype.value for dtype in DType if dtype.is_array and dtype.bits <= 8 and not dtype.is_complex)
UNARY = (
    *(
        "abs",
        "cbrt",
        "ceil",
        "cosine",
        "count-leading-zeros",
        "erf",
        "exponential",
        "floor",
        "is-finite",
        "log",
        "logistic",
    ),
    *(
        "negate",
        "not",
        "popcnt",
        "round-nearest-afz",
        "round-nearest-even",
        "rsqrt",
        "sign",
        "sine",
        "sqrt",
        "tan",
        "tanh",
    ),
)
EXACT = frozenset(
    {
        *("abs", "ceil", "count-leading-zeros", "floor", "negate", "not", "popcnt", "round-nearest-afz"),
        *(
            "round-nearest-even",
            "sign",
            "sqrt",
            "add",
            "and",
            "divide",
            "maximum",
            "minimum",
            "multiply",
            "subtract",
            "xor",
        ),
    }
)
"""First ops, whose results are the same bits everywhere; another op would enlarge what they may differ in."""
BINARY = ("add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract", "and", "xor")
WIDER = ("f32", "s32")
SEED, EACH = 20, 2


def _is_valid(line: str, kind: str) -> bool:
    if "atan2" in line and not BY_NAME[kind].is_float:
        return False  # XLA's verifier takes it, no emitter has it
    text = f"HloModule m\nENTRY e {{\n  p = {kind}[2] parameter(0)\n  r = {kind}[2] copy(p)\n  ROOT {line}\n}}\n"
    try:
        verify(parse_module(text))
    except TestbedError:
        return False
    return True


def _second(kind: str) -> list[str]:
    """What reads r, and p: op names with operands and result types."""
    found = [(kind, f"{op}(r)") for op in UNARY] + [("pred", "is-finite(r)")] + [(w, "convert(r)") for w in WIDER]
    found += [(kind, f"{op}({operands})") for op in BINARY for operands in ("r, p", "p, r")]
    found += [("pred", "compare(r, p), direction=GT"), ("pred", "compare(r, r), direction=EQ")]
    return [f"{result}[N] {op}" for result, op in found if _is_valid(f"x = {result}[2] {op}", kind)]


def cases() -> list[tuple[str, str]]:
    """(a type, what r is) of all pairs' first ops."""
    firsts = [f"{op}(p)" for op in UNARY if op in EXACT] + [f"{op}(p, q)" for op in BINARY if op in EXACT]
    return [(kind, first) for kind in TYPES for first in firsts if _valid_first(kind, first)]


def _valid_first(kind: str, first: str) -> bool:
    return _is_valid(f"x = {kind}[2] {first.replace('q', 'r')}", kind)


def module_of(kind: str, first: str, count: int) -> str:
    lines = [f"  x{n} = {what.replace('N', str(count), 1)}" for n, what in enumerate(_second(kind))]
    shapes = ", ".join(line.split()[2] for line in lines)
    body, roots = "\n".join(lines), ", ".join(f"x{n}" for n in range(len(lines)))
    return (
        f"HloModule m\nENTRY e {{\n  p = {kind}[{count}] parameter(0)\n  q = {kind}[{count}] parameter(1)\n"
        f"  r = {kind}[{count}] {first}\n{body}\n  ROOT t = ({shapes}) tuple({roots})\n}}\n"
    )


def _values(kind: str) -> np.ndarray:
    dtype = BY_NAME[kind]
    codes = np.arange(256 if dtype.bits == 8 else 1 << dtype.bits).astype(np.uint8)
    if dtype is DType.PRED:
        return codes[:2].astype(bool)
    if dtype is DType.F8E8M0FNU:
        codes = np.maximum(codes, 1)  # code 0 is subnormal in f32, which some ops flush and some keep
    if dtype.bits == 8:
        return codes.view(dtype.numpy)
    if dtype.is_float:
        return codes.view(dtype.numpy)
    low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    return (codes.astype(np.int16) + low).astype(dtype.numpy)


def drawn() -> list[tuple[str, str]]:
    """All cases in a deep run; otherwise some of each type."""
    every = cases()
    if os.environ.get("TESTBED_DEEP"):
        return every
    draw, found = random.Random(SEED), []
    for kind in TYPES:
        own = [case for case in every if case[0] == kind]
        found += draw.sample(own, min(EACH, len(own)))
    return sorted(found)


@pytest.mark.parametrize("kind, first", drawn())
def test_an_op_reads_what_memory_would_have_given(kind, first):
    values = _values(kind)
    count = len(values)
    if "q" in first and count <= 16:
        values, others = (x.ravel() for x in np.meshgrid(values, values))
    else:
        others = values[(np.arange(count) * 77 + 5) % count]
    check(module_of(kind, first, len(values)), [values, others])
