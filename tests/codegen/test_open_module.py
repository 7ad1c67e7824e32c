"""Modules in libLLVM.so: the code is that of llvmlite, and errors are in words and leave the next module in peace."""

import platform
import sys
from dataclasses import replace

import llvmlite
import llvmlite.binding as llvm
import pytest

from ...codegen import libllvm, pass_list
from ...codegen import open_module as open_module_
from ...codegen.errors import CodegenError
from ...codegen.libllvm import library_version, processor
from ...codegen.library_llvm import LibraryMachine, LibraryModule
from ...codegen.llvm import compiler, parse
from ...codegen.open_module import open_module, passes_of, versions
from ...codegen.optimize import assembly, build_object, compile_object, object_key
from ...codegen.options import EmitOptions, Target
from ...codegen.unlocked import emit_object, freed, run_passes
from ...formats.text.parser import parse_module
from ...migration.choose import emitter
from ...passes.pipeline import optimize
from ...planning.planner import plan

HOST = EmitOptions.host()

REDUCED = """
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[512,300] parameter(0)
  y = f32[300,64] parameter(1)
  z = f32[] constant(0)
  s = f32[512] reduce(x, z), dimensions={1}, to_apply=add
  d = f32[512,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[512,64] tanh(d)
  ROOT r = (f32[512], f32[512,64]) tuple(s, t) }
"""

SUM = """
define void @sum(ptr noalias align 64 %x, ptr noalias align 64 %y) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr inbounds float, ptr %x, i64 %i
  %v = load float, ptr %p, align 4
  %q = getelementptr inbounds float, ptr %y, i64 %i
  %w = load float, ptr %q, align 4
  %s = fadd float %v, %w
  store float %s, ptr %q, align 4
  %next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %next, 1000
  br i1 %done, label %exit, label %loop
exit:
  ret void
}
"""


def test_no_target_of_the_library_is_compiled_by_llvmlite(monkeypatch):
    monkeypatch.setitem(sys.modules, "testbed.codegen.lite_module", None)  # not to be imported
    for target in (
        HOST.target,
        Target.level("x86-64-v3"),
        Target("aarch64-unknown-linux-gnu", "generic", "+neon", 128),
    ):
        assert build_object(SUM, EmitOptions(target), cache=None).data.startswith(b"\x7fELF")


def test_the_code_is_that_of_llvmlite():
    target = Target.level("x86-64-v3")
    with compiler(target) as lent, freed(lent.pass_builder().getModulePassManager()) as manager:
        module = parse(SUM)
        module.triple, module.data_layout = target.triple, str(lent.machine.target_data)
        run_passes(manager, module, lent.pass_builder())
        expected = emit_object(lent.machine, module)
    with open_module(SUM, target, "all") as module:
        module.optimize()
        assert module.object() == expected


def test_kernels_for_x86_have_passes_of_their_own_others_those_of_o3():
    aarch64 = Target("aarch64-unknown-linux-gnu", "generic", "+neon", 128)
    assert passes_of(HOST.target, "all") == pass_list.KERNELS and passes_of(aarch64, "all") == "default<O3>"
    assert passes_of(HOST.target, "none") == "default<O0>"


def test_the_passes_make_vectors_inline_functions_and_drop_what_nobody_calls():
    callee = "define internal float @twice(float %v) {\n  %t = fadd float %v, %v\n  ret float %t\n}\n"
    text = SUM.replace("fadd float %v, %w", "call float @twice(float %v)").replace(
        "define void", f"{callee}define void"
    )
    with open_module(text, Target.level("x86-64-v3"), "all") as module:
        module.optimize()
        assert [name for name, _ in module.functions()] == ["sum"]
        assert "fadd <8 x float>" in module.text() and "call" not in module.text()


CALLS = """
declare void @f(ptr, ptr)
define void @line(ptr %bases) {
  %a = load ptr, ptr %bases
  %at = getelementptr i8, ptr %bases, i64 8
  %b = load ptr, ptr %at
LINES  ret void
}
"""


def test_of_a_straight_line_of_calls_the_same_code_is_made_with_less_work():
    pair = (
        "  %pN = getelementptr i8, ptr %a, i64 64\n  call void @f(ptr %pN, ptr %b)\n  call void @f(ptr %b, ptr %pN)\n"
    )
    lines = "".join(pair.replace("N", str(n)) for n in range(40))
    text = CALLS.replace("LINES", lines)
    options = EmitOptions(Target.level("x86-64-v3"))
    few, most = (assembly(text, replace(options, straight=straight)) for straight in (True, False))

    def moves(code):
        return [line for line in code.splitlines() if "rsp" in line and "push" not in line and "pop" not in line]

    assert few.count("f@PLT") == most.count("f@PLT") == 80 and len(few.splitlines()) <= len(most.splitlines()) + 8
    assert len(moves(few)) <= len(moves(most)) + 2 < 20  # nothing is read from the stack for a call
    assert object_key(text, replace(HOST, straight=True)) != object_key(text, HOST)


def test_the_functions_of_a_module_have_names_and_blocks():
    with open_module("declare void @g()\n" + SUM, HOST.target, "all") as module:
        assert dict(module.functions()) == {"g": 0, "sum": 3}


def test_the_version_of_the_library_is_part_of_the_keys_of_objects(monkeypatch):
    assert library_version() in versions() and f"llvmlite {llvmlite.__version__}" in versions()
    assert library_version() != "unknown"
    before = object_key(SUM, HOST)
    monkeypatch.setattr("testbed.codegen.optimize.versions", lambda: "another")
    assert object_key(SUM, HOST) != before


def test_both_libraries_see_the_same_processor():
    seen = llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    assert processor() == seen
    host = Target.machine()
    assert (host.triple, host.cpu, host.features) == seen


def test_passes_that_do_not_exist_are_an_error():
    module = LibraryModule(SUM, LibraryMachine(HOST.target, 3))
    try:
        with pytest.raises(CodegenError, match="cannot run the passes: unknown pass name 'polish'"):
            module.run("polish")
    finally:
        module.close()


def test_a_module_that_is_refused_leaves_the_machine_for_the_next():
    for _ in range(3):
        with pytest.raises(CodegenError, match="expected"):
            compile_object("define nothing", HOST, cache=None)
    assert compile_object(SUM, HOST, cache=None)


def test_both_libraries_are_of_one_major_version():
    assert library_version().split("-")[1].split(".")[0] == str(llvm.llvm_version_info[0])


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_llvm_with_and_without_assertions_makes_the_same_bytes(stack, level, monkeypatch):
    options = EmitOptions(Target.level(level), ranges=True)
    module = parse_module(f"HloModule m\n{REDUCED}")
    made = emitter(stack).emit(plan(optimize(module)).kernels, options)
    objects = {}
    for file in {libllvm.library_file("x86_64"), libllvm.library_file("aarch64")}:
        monkeypatch.setattr(libllvm, "library_file", lambda architecture, file=file: file)
        monkeypatch.setattr(open_module_, "_IDLE", {})
        objects[file] = [compile_object(text, options, None) for text in (made.llvm_ir, *made.helpers)]
    assert len({tuple(found) for found in objects.values()}) == 1


def test_the_library_for_this_machine_has_no_assertions():
    """Where the lock has such a library: on x86-64. It is found beside the wheels of MLIR."""
    if platform.machine() == "x86_64":
        assert libllvm.library_file("x86_64") != libllvm.library_file("aarch64")
        assert libllvm.RELEASED in library_version()
