"""gather and scatter: random dimension numbers, layouts, dtypes and indices on the evaluator and both stacks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ... import legacy, mlir_emitters
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...hlo.errors import UnsupportedError
from ...lhlo import from_kernels, parse_text, to_kernels
from ...passes.pipeline import PipelineOptions
from ...planning.planner import PlanOptions, plan
from ..cases.indexing_cases import gathers, scatters
from ..support.check import check


@given(gathers())
def test_gather(case):
    check(*case)


@given(scatters())
def test_scatter(case):
    check(*case)


@given(st.one_of(gathers(), scatters()))
def test_legacy_reads_them_from_hlo_and_from_lhlo_alike(case):
    options = EmitOptions(Target.host())
    for kernel in plan(parse_module(case[0])).kernels:
        (again,) = to_kernels(parse_text(from_kernels([kernel]).to_text()))
        assert legacy.emit([again], options).llvm_ir == legacy.emit([kernel], options).llvm_ir


@pytest.mark.parametrize("emit", [legacy.emit, mlir_emitters.emit])
def test_a_scatter_that_is_no_result_of_its_kernel_is_refused(emit):
    text = """HloModule m
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
fused { x = f32[5] parameter(0)
  i = s32[3] parameter(1)
  u = f32[3] parameter(2)
  s = f32[5] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},
    index_vector_dim=1, to_apply=add
  ROOT n = f32[5] negate(s) }
ENTRY e { x = f32[5] parameter(0)
  i = s32[3] parameter(1)
  u = f32[3] parameter(2)
  ROOT f = f32[5] fusion(x, i, u), kind=kLoop, calls=fused }
"""
    as_written = PlanOptions(PipelineOptions(("flatten", "layouts")))
    with pytest.raises(UnsupportedError, match="scatter inside a fusion"):
        emit(plan(parse_module(text), as_written).kernels, EmitOptions(Target.host()))


def test_eight_dimensions_in_a_layout_of_their_own():
    dims, order = "2,1,3,2,2,1,2,3", "{2,0,7,4,1,6,3,5}"
    text = f"""HloModule m
top {{ p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] maximum(p, q) }}
ENTRY e {{ x = f32[{dims}]{order} parameter(0)
  i = s8[4,3] parameter(1)
  u = f32[4,2,1,2,2,1,1,3]{{0,7,1,6,2,5,3,4}} parameter(2)
  g = f32[4,2,1,2,2,1,1,3]{{7,0,6,1,5,2,4,3}} gather(x, i), offset_dims={{1,2,3,4,5,6,7}}, collapsed_slice_dims={{4}},
    start_index_map={{2,4,6}}, index_vector_dim=1, slice_sizes={{2,1,2,2,1,1,1,3}}
  s = f32[{dims}]{order} scatter(x, i, u), update_window_dims={{1,2,3,4,5,6,7}}, inserted_window_dims={{4}},
    scatter_dims_to_operand_dims={{2,4,6}}, index_vector_dim=1, to_apply=top
  ROOT t = (f32[4,2,1,2,2,1,1,3], f32[{dims}]) tuple(g, s) }}
"""
    check(text)
