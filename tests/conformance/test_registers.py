"""Tiles of products have as many sums as the processor has vector registers for, and keep them there."""

import re

import pytest

from ...codegen.optimize import assembly
from ...codegen.options import EmitOptions
from ...codegen.targets import target_of
from ...migration.choose import emitter
from ...planning.planner import plan
from ..support.check import parsed

PRODUCT = """
HloModule m
ENTRY e {{
  x = {0}[512,512] parameter(0)
  y = {0}[512,512] parameter(1)
  ROOT d = {0}[512,512] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""

SUM = re.compile(r"\t(?:fmla|vfmacc\.vf|vfmadd231p[sd])\t(.*)")
"""A multiplication whose product is added to a register, and its operands."""

STACK = re.compile(r"\bv\d+, .*\bsp\b|\bq\d+, .*\bsp\b|mm\d+, -?\d*\(%rsp\)")


def tiles(stack: str, dtype: str, options: EmitOptions) -> list[list[str]]:
    """The lines of the inner loops of tiles: from a label to the jump back to it."""
    helpers = emitter(stack).emit(plan(parsed(PRODUCT.format(dtype))).kernels, options).helpers
    code = "".join(assembly(text, options) for text in helpers)
    loops = re.finditer(r"^(\.\w+):(?:.*\n)((?:[^.].*\n)+?)\t[a-z.]+\t(?:.*, )?\1$", code, re.MULTILINE)
    bodies = [loop[2].splitlines() for loop in loops]
    return [body for body in bodies if sum(SUM.match(line) is not None for line in body) >= 4]


def sums(body: list[str], x86: bool) -> set[str]:
    """The registers that are added to: the last operand of x86, the first one elsewhere."""
    found = [match[1].split(", ") for match in map(SUM.match, body) if match]
    return {operands[-1 if x86 else 0].split(".")[0] for operands in found}


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(
    ("words", "most"),
    [
        (("x86_64", "x86-64-v3"), 12),  # 6 rows by 2 vectors, of 16 registers
        (("x86_64", "x86-64-v4"), 24),  # 6 by 4, of 32
        (("aarch64",), 24),
        (("riscv64", None, "+v"), 6),  # the same in groups of 4 registers
    ],
    ids=lambda x: x[0] if isinstance(x, tuple) else str(x),
)
def test_a_tile_fills_the_registers_and_no_more(words, most, dtype, stack):
    options = EmitOptions(target_of(*words))
    found = tiles(stack, dtype, options)
    assert max(len(sums(body, words[0] == "x86_64")) for body in found) == most
    assert not [line for body in found for line in body if STACK.search(line)]
