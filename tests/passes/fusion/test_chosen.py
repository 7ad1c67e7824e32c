"""Concatenations are not fused into one another: each element would choose between operands at each of them."""

import pytest

from ....formats.text.parser import parse_module
from ....hlo.opcodes import Op
from ....passes.fusion.loop import CHOSEN
from ....planning.planner import plan


def kernels(size: int) -> list[int]:
    """How many concatenations each kernel has."""
    half = size // 2
    module = parse_module(f"""HloModule m
ENTRY e {{
  x = f32[{half}] parameter(0)
  y = f32[{half}] parameter(1)
  a = f32[{size}] concatenate(x, y), dimensions={{0}}
  n = f32[{size}] negate(a)
  z = f32[9] parameter(2)
  ROOT r = f32[{size + 9}] concatenate(n, z), dimensions={{0}}
}}
""")
    bodies = [kernel.body.instructions if kernel.body else (kernel.instruction,) for kernel in plan(module).kernels]
    return [sum(i.opcode is Op.CONCATENATE for i in body) for body in bodies]


@pytest.mark.parametrize(("size", "found"), [(CHOSEN, [2]), (CHOSEN + 2, [1, 1])])
def test_a_kernel_has_one_of_many_elements(size, found):
    assert kernels(size) == found


def test_the_levels_of_an_associative_scan_are_kernels_of_their_own():
    jax = pytest.importorskip("jax", reason="needs ./testbed setup --xla")
    from ....formats.files import load_module

    def scan(x):
        return jax.lax.associative_scan(jax.lax.add, x)

    text = jax.jit(scan).lower(jax.ShapeDtypeStruct((512, 64), "float32")).as_text()
    found = plan(load_module(text.encode(), "scan.mlir").module).kernels
    large = [k for k in found if k.body and sum(i.opcode is Op.CONCATENATE for i in k.body.instructions) > 1]
    assert all(k.instruction.shape.size <= 2 * CHOSEN for k in large)
    assert not any(i.opcode is Op.PAD for k in found if k.body for i in k.body.instructions)


def test_what_turns_around_one_value_is_taken_in():
    """The neighbours on a torus: places of one array are chosen, not values (a game of life)."""
    module = parse_module("""HloModule m
ENTRY e {
  p = f32[32,32] parameter(0)
  a = f32[31,32] slice(p), slice={[1:32], [0:32]}
  b = f32[1,32] slice(p), slice={[0:1], [0:32]}
  c = f32[32,32] concatenate(a, b), dimensions={0}
  d = f32[32,31] slice(c), slice={[0:32], [1:32]}
  f = f32[32,1] slice(c), slice={[0:32], [0:1]}
  g = f32[32,32] concatenate(d, f), dimensions={1}
  ROOT r = f32[32,32] add(g, c)
}
""")
    assert len(plan(module).kernels) == 1
