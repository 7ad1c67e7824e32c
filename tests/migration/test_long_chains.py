"""Loops over long chains of operations on both stacks: several vectors side by side."""

import pytest

from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...migration.choose import emitter, present
from ...planning.planner import plan

HINT = '"llvm.loop.interleave.count"'
MANY = 1 << 16

pytestmark = pytest.mark.parametrize("stack", present())


def code_of(stack: str, body: str, size: int, dtype: str = "f32", dims: str = "") -> str:
    """LLVM IR of a kernel. body: its lines, where S is the shape, and x and y its operands."""
    shape = f"{dtype}[{dims or size}]"
    lines = "\n  ".join(["x = S parameter(0)", "y = S parameter(1)", body.strip()]).replace("S ", f"{shape} ")
    module = parse_module(f"HloModule m\nENTRY e {{\n  {lines}\n}}\n")
    return emitter(stack).emit(plan(module).kernels, EmitOptions(Target.level("x86-64-v3"))).llvm_ir


@pytest.mark.parametrize("call", ["tan(x)", "cosine(x)", "atan2(x, y)", "power(x, y)"])
def test_functions_are(stack, call):
    """tan of f32 took 1.35 times as long with one vector at a time."""
    assert HINT in code_of(stack, f"ROOT r = S {call}", MANY)


def test_few_elements_are_not(stack):
    """The copies take longer to compile than they save."""
    assert HINT not in code_of(stack, "ROOT r = S tan(x)", MANY - 8)


@pytest.mark.parametrize("op", ["sqrt", "negate", "floor", "exponential", "log", "tanh"])
def test_short_chains_are_not(stack, op):
    """exp takes 1.2 times as long to compile with four vectors, and as long to run."""
    assert HINT not in code_of(stack, f"ROOT r = S {op}(x)", MANY)


def test_many_chains_beside_each_other_are_not(stack):
    """One vector of them has work enough."""
    calls = ("tan(x)", "log(x)", "tan(y)", "log(y)", "cbrt(x)", "cbrt(y)", "atan2(x, y)", "power(x, y)")
    lines = [f"f{n} = S {call}" for n, call in enumerate(calls)] + ["s0 = S negate(f0)"]
    lines += [f"s{n} = S add(s{n - 1}, f{n})" for n in range(1, len(calls))]
    assert HINT not in code_of(stack, "\n  ".join([*lines, "ROOT r = S negate(s7)"]), MANY)


def test_rows_are_too(stack):
    """A matrix whose rows have a common summand is no flat loop."""
    module = """HloModule m
ENTRY e {
  x = f32[64,4096] parameter(0)
  y = f32[4096] parameter(1)
  b = f32[64,4096] broadcast(y), dimensions={1}
  s = f32[64,4096] add(x, b)
  ROOT r = f32[64,4096] tan(s)
}
"""
    kernels = plan(parse_module(module)).kernels
    assert HINT in emitter(stack).emit(kernels, EmitOptions(Target.level("x86-64-v3"))).llvm_ir
