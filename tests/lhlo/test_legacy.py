"""The legacy stack reads HLO and LHLO alike: byte-identical LLVM IR from both sources."""

import pytest

from ... import legacy
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...hlo.library.calls import LIBRARY
from ...lhlo import from_kernels, parse_text, to_kernels
from ...planning.planner import plan
from ..support.corpus import sample


@pytest.mark.parametrize(
    "pattern, count",
    [("jax_programs/*/module.hlo", 3), ("jax_programs/*/xla_optimized.hlo", 2), ("op_cases/*.hlo", 8)],
)
def test_same_llvm_ir_from_hlo_and_lhlo(pattern, count):
    options = EmitOptions(Target.host())
    for path in sample(pattern, count, seed=5):
        kernels = plan(parse_module(path.read_text(), str(path))).kernels
        emitted = [k for k in kernels if k.instruction.opcode not in LIBRARY]
        for kernel in emitted:
            (read_back,) = to_kernels(parse_text(from_kernels([kernel]).to_text()))
            expected = legacy.emit([kernel], options).llvm_ir
            assert legacy.emit([read_back], options).llvm_ir == expected, f"{path}: {kernel.name}"


ROWS = """HloModule m
by { p = f32[] parameter(0)
  q = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT s = pred[] compare(p, q), direction=LT, type=TOTALORDER }
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
ENTRY e { x = f32[700,3] parameter(0)
  i = s32[700,3] iota(), iota_dimension=0
  n = f32[700,3] negate(x)
  s = (f32[700,3], s32[700,3]) sort(n, i), dimensions={0}, to_apply=by
  k = f32[700,3] get-tuple-element(s), index=0
  z = f32[] constant(0)
  c = f32[700,3] reduce-window(k, z), window={size=700x1 pad=699_0x0_0}, to_apply=add
  w = f32[350,3] reduce-window(k, z), window={size=3x1 stride=2x1 pad=1_0x0_0}, to_apply=add
  o = s32[700,3] get-tuple-element(s), index=1
  ROOT r = (f32[700,3], f32[350,3], s32[700,3]) tuple(c, w, o) }"""


def test_sorts_with_scratch_memory_and_windows():
    options = EmitOptions(Target.host())
    kernels = plan(parse_module(ROWS)).kernels
    assert any(k.scratch >= 0 for k in kernels) and len(kernels) == 3
    for kernel in kernels:
        (read_back,) = to_kernels(parse_text(from_kernels([kernel]).to_text()))
        assert legacy.emit([read_back], options).llvm_ir == legacy.emit([kernel], options).llvm_ir
