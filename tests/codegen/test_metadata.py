"""What kernels tell LLVM besides the code: on both stacks, each kind by itself, and nothing where it is off."""

import re
from dataclasses import replace

import pytest

from ...codegen.inline import inlinable, with_kernels
from ...codegen.metadata import DEFAULT_METADATA, METADATA, assume_metadata, assumed_metadata, metadata_of
from ...codegen.optimize import optimize as optimize_ir
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError
from ...migration.choose import emitter
from ...passes.pipeline import optimize
from ...planning.planner import plan
from ..support.check import check

FIXED = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+fma", 512), ranges=True)
STACKS = ("legacy", "mlir")
TEXT = """HloModule m
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y) }
ENTRY e {
  p = f32[512,512] parameter(0)
  q = f32[512,512] parameter(1)
  a = f32[512,512] add(p, q)
  z = f32[] constant(0)
  ROOT r = f32[512] reduce(a, z), dimensions={1}, to_apply=add
}
"""
SIGNS = {
    "arguments": r"noalias.*readonly|readonly.*noalias",
    "scopes": r"!alias\.scope !\d+, !noalias !\d+",
    "invariant": r"!invariant\.load !\d+",
    "ranges": r"i64 (?:noundef )?range\(i64 0, 512\) [^,]*, i64 (?:noundef )?range\(i64 1, 513\)",
    "loops": r"!llvm\.loop !\d+",
}


def emitted(stack: str, metadata: tuple[str, ...], text: str = TEXT) -> str:
    (request,) = plan(optimize(parse_module(text))).kernels
    return emitter(stack).emit([request], replace(FIXED, metadata=metadata)).llvm_ir


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("kind", METADATA)
def test_each_kind_is_there_where_it_is_on(stack, kind):
    for metadata in ((), (kind,), tuple(k for k in METADATA if k != kind), tuple(METADATA)):
        text = emitted(stack, metadata)
        assert bool(re.search(SIGNS[kind], text)) == (kind in metadata), metadata


@pytest.mark.parametrize("stack", STACKS)
def test_every_access_of_an_array_has_a_scope_and_loads_of_operands_are_invariant(stack):
    text = emitted(stack, tuple(METADATA))
    accesses = re.findall(r"^  (?:\S+ = load|store) .*$", text, re.M)
    loads = [line for line in accesses if "!invariant.load" in line]
    assert len(accesses) >= 3 and len(loads) >= 2
    assert all("!noalias" in line for line in accesses)
    assert all(" = load " in line and "!alias.scope" in line for line in loads)
    optimize_ir(text, FIXED)  # LLVM takes it


@pytest.mark.parametrize("stack", STACKS)
def test_scopes_of_two_arrays_exclude_each_other(stack):
    text = emitted(stack, ("scopes",))
    lists = {
        n: set(re.findall(r"!\d+", o)) for n, o in re.findall(r"^(!\d+) = !\{ ?((?:!\d+(?:, )?)+) ?\}$", text, re.M)
    }
    pairs = set(re.findall(r"!alias\.scope (!\d+), !noalias (!\d+)", text))
    assert len(pairs) == 3
    for own, others in pairs:
        assert len(lists[own]) == 1 and len(lists[others]) == 2 and not lists[own] & lists[others]


@pytest.mark.parametrize("names", [",".join(METADATA), "none"])
def test_results_are_right_with_all_and_with_none(names):
    before = assumed_metadata()
    assume_metadata(metadata_of(names))
    try:
        check(TEXT.replace("HloModule m", f"HloModule m_{len(names)}"))
    finally:
        assume_metadata(before)


def test_names():
    assert metadata_of("default") == DEFAULT_METADATA == EmitOptions.host().metadata
    assert metadata_of("all") == tuple(METADATA) and metadata_of("none") == ()
    assert metadata_of("loops, arguments") == ("arguments", "loops")
    with pytest.raises(InputError, match="unknown metadata 'loop'") as error:
        metadata_of("loop")
    assert "arguments" in error.value.remedy


KERNEL = """
define void @kernel(ptr noalias readonly align 4 dereferenceable(4) %x, ptr noalias align 4 dereferenceable(4) %y) {
  %a = load float, ptr %x, align 4, !invariant.load !0, !alias.scope !4, !noalias !5
  %b = fneg float %a
  store float %b, ptr %y, align 4, !alias.scope !5, !noalias !4
  ret void
}
!0 = !{}
!1 = distinct !{!1}
!2 = distinct !{!2, !1}
!3 = distinct !{!3, !1}
!4 = !{!2}
!5 = !{!3}
"""
CALLER = """
declare void @kernel(ptr, ptr)

define void @run(ptr %x, ptr %y) {
  call void @kernel(ptr %x, ptr %y)
  call void @kernel(ptr %y, ptr %x)
  ret void
}
"""


def test_what_holds_in_a_kernel_only_is_not_inlined():
    """The second call writes what the first one reads: an invariant load could move behind it."""
    text = with_kernels(CALLER, inlinable([KERNEL], FIXED), FIXED)
    body = text[text.index("define void @run") : text.index("}", text.index("define void @run"))]
    assert "call void @kernel" not in body and body.count(" = load float") >= 1
    assert "invariant.load" not in body
