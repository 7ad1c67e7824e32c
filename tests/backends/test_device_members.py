"""Structs that a loop carries have a phi for each member in device code: needs no device."""

import pytest

from ...backends.accelerator.build import build_device_code
from ...backends.accelerator.compiler import emitted_for
from ...backends.accelerator.members import with_members
from ...backends.accelerator.targets import SPIRV
from ...codegen.llvm import parse
from ...formats.text.parser import parse_module
from ...migration.choose import emit_for
from ...migration.flags import Flags
from ...planning.planner import plan

CARRIED = """
define void @swapped(ptr %p, ptr %q, i64 %n) {{
entry:
  %a = insertvalue {{ ptr, [2 x i64] }} {first}, ptr %p, 0
  %b = insertvalue {{ ptr, [2 x i64] }} %a, i64 4, 1, 1
  %c = insertvalue {{ ptr, [2 x i64] }} poison, ptr %q, 0
  %d = insertvalue {{ ptr, [2 x i64] }} %c, [2 x i64] {second}, 1
  br label %loop
loop:
  %x = phi {{ ptr, [2 x i64] }} [ %y, %loop ], [ %b, %entry ]
  %y = phi {{ ptr, [2 x i64] }} [ %x, %loop ], [ %d, %entry ]
  %i = phi i64 [ %j, %loop ], [ 0, %entry ]
  %to = extractvalue {{ ptr, [2 x i64] }} %x, 0
  %by = extractvalue {{ ptr, [2 x i64] }} %y, 1, 1
  store i64 %by, ptr %to, align 8
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


def test_each_member_is_carried_by_itself():
    made = with_members(CARRIED.format(first="poison", second="poison"))
    assert str(parse(made))
    for line in (
        '%"member.x.0" = phi ptr [ %"member.y.0", %loop ], [ %p, %entry ]',
        '%"member.y.0" = phi ptr [ %"member.x.0", %loop ], [ %q, %entry ]',
        '%"member.x.1.1" = phi i64 [ %"member.y.1.1", %loop ], [ 4, %entry ]',
        '%"member.y.1.1" = phi i64 [ %"member.x.1.1", %loop ], [ poison, %entry ]',
        '%to = select i1 true, ptr %"member.x.0", ptr %"member.x.0"',
        '%by = select i1 true, i64 %"member.y.1.1", i64 %"member.y.1.1"',
    ):
        assert f"  {line}\n" in made


@pytest.mark.parametrize(
    "given", [{"first": "zeroinitializer", "second": "poison"}, {"first": "poison", "second": "[i64 1, i64 2]"}]
)
def test_members_that_nothing_says_stay_as_they_are(given):
    text = CARRIED.format(**given)
    assert str(parse(text)) and with_members(text) == text


SORTED = """HloModule m
less { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
ENTRY e {
  p = s32[300] parameter(0)
  ROOT s = s32[300] sort(p), dimensions={0}, is_stable=true, to_apply=less
}
"""


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_a_sort_of_two_buffers_in_turn_is_device_code(stack):
    (request,) = plan(parse_module(SORTED)).emitted
    made = emitted_for(SPIRV, emit_for(Flags.parse(stack))(request), request)
    assert build_device_code(made.text, SPIRV, None)
