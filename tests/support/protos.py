"""A module with much that protos hold, a snapshot, and XLA's own reader and printer of protos."""

from __future__ import annotations

import numpy as np
import pytest

from ...formats.proto.proto import Snapshot, literal_of
from ...formats.text.parser import parse_module
from ...hlo.ir import Literal

MANY = """HloModule many, is_scheduled=true, \
input_output_alias={ {0}: (0, {}, must-alias) }, buffer_donor={ (1, {}) }, \
entry_computation_layout={(f32[8,4]{0,1}, s32[4]{0})->(f32[8,4]{1,0}, s32[4]{0})}, frontend_attributes={a="b",c={d=1}}

FileNames
1 "a.py"

FunctionNames
1 "f\\"g"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=2 end_column=4}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=1 parent_frame_id=2}

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

less {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  ROOT z = pred[] compare(x, y), direction=LT
}

ENTRY e {
  p = f32[8,4]{0,1} parameter(0), sharding={devices=[2,1,2]<=[2,2]T(1,0) last_tile_dims={replicated}}
  q = s32[4]{0} parameter(1), sharding={maximal device=1 metadata={op_name="s"}}, parameter_replication={true}
  zero = f32[] constant(0), metadata={op_type="t" op_name="a\\\\b" source_line=3 stack_frame_id=2}
  w = f32[2,3]{0,1} constant({ { 1, -0.0, nan }, { inf, -inf, 1e-45 } }), statistics={visualizing_index=1,s=2.5}
  n = s4[3]{0} constant({ 1, -3, 7 }), origin={({"v"}, {"w" {1,2}})}
  t = (pred[2]{0}, c64[1]{0}, bf16[]) constant(( { 1, 0 }, { (1, -2) }, 3 ))
  r = f32[8]{0} reduce(p, zero), dimensions={1}, to_apply=sum, backend_config={"k":[1]}
  s = s32[4]{0} sort(q), dimensions={0}, is_stable=true, to_apply=less, control-predecessors={r}
  d = f32[8,8]{1,0} dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={1}, operand_precision={high,default}, \
algorithm=dot_bf16_bf16_f32
  k = f32[8,4]{1,0} custom-call(p, d), custom_call_target="t", operand_layout_constraints={f32[8,4]{1,0}, \
f32[8,8]{0,1}}, custom_call_has_side_effect=true, api_version=API_VERSION_TYPED_FFI, backend_config="{a=", \
output_to_operand_aliasing={{}: (0, {})}, literal=( s32[] 5, f32[2]{0} { 1, 2 } ), schedule=SCHEDULE_LATEST
  m = f32[8,4]{1,0} sqrt(k), result_accuracy={tolerance={atol=0,rtol=0.5,ulps=2}}
  g = f32[10,6]{1,0:T(8,128)E(32)S(1)} pad(k, zero), padding=1_1_0x0_2_0
  h = f32[4]{0} reduce-window(r, zero), window={size=2 stride=2}, to_apply=sum
  ar = f32[8]{0} all-reduce(r), replica_groups=[2,2]<=[2,2]T(1,0), channel_id=1, \
use_global_device_ids=true, to_apply=sum
  ROOT o = (f32[8,4]{1,0}, s32[4]{0}) tuple(m, s)
}
"""

ADD = "HloModule m\n\nENTRY e {\n p = f32[2,3]{0,1} parameter(0)\n ROOT r = (f32[2,3]{1,0}) tuple(p)\n}\n"


def snapshot():
    module, value = parse_module(ADD), np.arange(6, dtype=np.float32).reshape(2, 3)
    p = module.parameter_shapes[0]
    return Snapshot(module, (Literal(p, value),), literal_of([value], module.result_shape), "cpu"), value


def xla_hlo():
    """jaxlib's module _hlo, and options that print whole constants; skips the test where there is no jaxlib."""
    pytest.importorskip("jaxlib", reason="needs jaxlib (./testbed setup --xla)")
    from jaxlib import _hlo

    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    return _hlo, options
