"""codegen/: optimising, emitting, loading; bad IR and missing symbols raise errors and never abort the process."""

import ctypes
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite.binding import ffi

from ...codegen import llvm as llvm_module
from ...codegen import unlocked
from ...codegen.errors import CodegenError
from ...codegen.llvm import compiler, parse, target_machine
from ...codegen.load import load
from ...codegen.optimize import assembly, build_object, compile_object, object_key, optimize, prepare
from ...codegen.options import EmitOptions, Target, vector_bits_of
from ...codegen.unlocked import emit_object, freed, is_known, run_passes
from ...hlo.errors import InputError

HOST = EmitOptions.host()

SCALE = """
define void @scale(ptr noalias align 64 %x, ptr noalias align 64 %y) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr inbounds float, ptr %x, i64 %i
  %v = load float, ptr %p, align 4
  %d = fmul float %v, 2.0
  %e = fadd float %d, 1.0
  %q = getelementptr inbounds float, ptr %y, i64 %i
  store float %e, ptr %q, align 4
  %next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %next, 1024
  br i1 %done, label %exit, label %loop
exit:
  ret void
}
"""


def call(code, symbol, *arrays):
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(code.address(symbol))(*[a.ctypes.data for a in arrays])


def aligned(size):
    raw = np.zeros(size * 4 + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size * 4].view(np.float32)


def test_a_kernel_compiles_loads_and_runs():
    x, y = aligned(1024), aligned(1024)
    x[:] = np.arange(1024)
    code = load([compile_object(SCALE, HOST, cache=None)])
    call(code, "scale", x, y)
    np.testing.assert_array_equal(y, x * 2 + 1)


def test_loops_vectorise_to_the_full_width_of_the_target():
    optimized = optimize(SCALE, HOST)
    assert f"<{HOST.target.vector_bits // 32} x float>" in optimized


@pytest.mark.skipif(Target.host().architecture != "x86_64", reason="names x86 instructions")
def test_without_the_optimiser_the_code_is_as_written_and_computes_the_same():
    plain = replace(HOST, optimized=False)
    assert "x float>" in optimize(SCALE, HOST) and "x float>" not in optimize(SCALE, plain)
    assert object_key(SCALE, plain) != object_key(SCALE, HOST)
    x = aligned(1024)
    x[:] = np.arange(1024)
    for options in (HOST, plain, HOST):
        code, y = load([compile_object(SCALE, options, cache=None)]), aligned(1024)
        call(code, "scale", x, y)
        np.testing.assert_array_equal(y, x * 2 + 1)


def test_multiply_and_add_contract_unless_strict():
    assert "vfmadd" in assembly(SCALE, HOST) or "+fma" not in HOST.target.features
    assert "vfmadd" not in assembly(SCALE, EmitOptions.host(strict=True))


def test_the_width_is_asked_for_after_the_parameters_whatever_stands_there():
    text = 'define void @"a b("(ptr noalias align(64) %x, ptr byref({ i32, [2 x i8] }) %y) local_unnamed_addr #0 {\n'
    prepared = prepare(text, EmitOptions(Target("x86_64-unknown-linux-gnu", "", "", 512), strict=True))
    estimates = '"reciprocal-estimates"="sqrtf:0,vec-sqrtf:0"'
    assert f') local_unnamed_addr "prefer-vector-width"="512" {estimates} #0 {{' in prepared


def test_cross_targets_emit_without_that_machine():
    aarch64 = EmitOptions(Target("aarch64-unknown-linux-gnu", "neoverse-v1", "+neon,+sve", 128))
    assert "fmad\tz" in assembly(SCALE, aarch64)


def test_levels_add_up_and_one_that_the_machine_lacks_is_refused(monkeypatch):
    from ...codegen import options

    assert [Target.level(name).vector_bits for name in options.LEVELS] == [128, 256, 512]
    assert [Target.level(name).has_fma for name in options.LEVELS] == [False, True, True]
    assert [Target.level(name).integer_products for name in options.LEVELS] == [2, 2, 2]
    assert Target("aarch64-unknown-linux-gnu", "cortex-a72", "", 128).has_fma
    assert "+sse4.2" in Target.level("x86-64-v4").features and "+avx2" not in Target.level("x86-64-v2").features
    old = Target("x86_64-unknown-linux-gnu", "old", Target.level("x86-64-v2").features, 128)
    monkeypatch.setattr(options, "_host", lambda: old)
    assert Target.of("x86-64-v2").vector_bits == 128
    with pytest.raises(
        InputError, match=r"cannot run code for x86-64-v3: it lacks avx, .*\(choose from host, x86-64-v2\)"
    ):
        Target.of("x86-64-v3")
    assert Target.levels() == ["x86-64-v2"]


def test_levels_of_another_architecture_are_refused_by_name(monkeypatch):
    from ...codegen import options

    arm = Target("aarch64-unknown-linux-gnu", "neoverse-n1", "+neon", 128)
    monkeypatch.setattr(options, "_host", lambda: arm)
    assert Target.of("host") is arm and Target.levels() == []
    with pytest.raises(InputError, match=r"x86-64-v3: it is an aarch64 processor \(choose from host\)"):
        Target.of("x86-64-v3")
    with pytest.raises(InputError, match=r"unknown processor 'pdp11' \(choose from host\)"):
        Target.of("pdp11")


def test_vector_width_is_read_from_the_features():
    assert vector_bits_of("+avx2,+avx512f,+avx") == 512
    assert vector_bits_of("-avx512f,+avx") == 256
    assert vector_bits_of("-avx") == 64


@pytest.mark.parametrize(
    "text, words",
    [
        ("define void @f() {", "found end of file when expecting more instructions"),
        ("define void @f() {\n  %x = fadd float 1.0, %y\n  ret void\n}", "use of undefined value '%y'"),
        ("define float @f() {\n  ret void\n}", "value doesn't match function result type"),
        (
            "define void @f() {\n %y = add i32 %x, 1\n %x = add i32 1, 2\n ret void\n}",
            "Instruction does not dominate all uses",
        ),
        ('define void @f() {\n  call void asm "bogus", ""()\n  ret void\n}', "line 2 has inline assembly"),
        (
            "define void @f() {\n  call void @llvm.no.such.thing()\n  ret void\n}",
            "unknown intrinsic 'llvm.no.such.thing'",
        ),
        ("\ud800", "surrogates not allowed"),
    ],
)
def test_bad_ir_is_an_error_with_llvms_reason(text, words):
    with pytest.raises(CodegenError, match=words.replace("(", r"\(")):
        compile_object(text, HOST, cache=None)


def test_an_unknown_target_is_an_error():
    with pytest.raises(CodegenError, match="pdp11"):
        compile_object(SCALE, EmitOptions(Target("pdp11-unknown-linux", "", "", 64)), cache=None)


NEEDS = """
declare void @no_such_function(ptr)
declare float @another_missing_one(float)
declare float @fmodf(float, float)
define void @needs(ptr %x) {
  call void @no_such_function(ptr %x)
  %v = load float, ptr %x
  %w = call float @another_missing_one(float %v)
  %z = call float @fmodf(float %w, float %v)
  store float %z, ptr %x
  ret void
}
"""


def test_all_missing_symbols_are_listed_before_linking(capfd):
    data = compile_object(NEEDS, HOST, cache=None)
    with pytest.raises(CodegenError, match="does not have: another_missing_one, no_such_function"):
        load([data])
    assert capfd.readouterr().err == ""


def test_imports_are_bound_and_libm_is_found():
    seen = []
    keep = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(seen.append)
    square = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float)(lambda v: v * v)
    imports = {
        "no_such_function": ctypes.cast(keep, ctypes.c_void_p).value,
        "another_missing_one": ctypes.cast(square, ctypes.c_void_p).value,
    }
    x = np.array([2.5], np.float32)
    call(load([compile_object(NEEDS, HOST, cache=None)], imports), "needs", x)
    assert seen == [x.ctypes.data] and x[0] == np.fmod(np.float32(6.25), np.float32(2.5))


TWICE = """
define float @twice(float %x) {
  %y = fadd float %x, %x
  ret float %y
}
"""
CALLS_TWICE = """
declare float @twice(float)
define void @run(ptr %x) {
  %v = load float, ptr %x
  %w = call float @twice(float %v)
  store float %w, ptr %x
  ret void
}
"""


def test_objects_call_each_other_and_may_not_define_a_symbol_twice():
    callee, caller = (compile_object(text, HOST, cache=None) for text in (TWICE, CALLS_TWICE))
    x = np.array([3], np.float32)
    call(load([caller, callee]), "run", x)
    assert x[0] == 6
    with pytest.raises(CodegenError, match="two objects define twice"):
        load([callee, caller, callee])


def test_an_unknown_symbol_and_a_damaged_object_are_errors():
    data = compile_object(SCALE, HOST, cache=None)
    with pytest.raises(CodegenError, match=r"does not define 'scales'.*defined: scale"):
        load([data]).address("scales")
    with pytest.raises(CodegenError, match="not a 64-bit little-endian ELF object"):
        load([b"nonsense"])
    with pytest.raises(CodegenError, match="damaged ELF object"):
        load([data[:100]])


def test_threads_compile_and_load_at_once():
    def one(n):
        text = SCALE.replace("2.0", f"{float(n)}").replace("@scale", f"@scale{n}")
        x, y = aligned(1024), aligned(1024)
        x[:] = 1
        call(load([compile_object(text, HOST, cache=None)]), f"scale{n}", x, y)
        return float(y[5])

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(one, range(24))) == [n + 1.0 for n in range(24)]


SCRIPT = """
import pathlib, sys
root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root / "tools/python"))
from pytest_names import import_root
import_root(root)
from testbed.codegen.load import load
from testbed.codegen.optimize import compile_object
from testbed.codegen.options import EmitOptions
code = load([compile_object(sys.argv[2], EmitOptions.host(), cache=None)])
"""


def test_loaded_code_at_exit_leaves_the_process_in_peace():
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", SCRIPT, str(root), SCALE]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")


def test_passes_are_freed():
    with compiler(HOST.target) as lent, freed(lent.pass_builder().getModulePassManager()) as manager:
        run_passes(manager, parse(prepare(SCALE, HOST)), lent.pass_builder())
    assert manager.closed


def test_pass_builders_are_renewed_and_make_the_same_code(monkeypatch):
    monkeypatch.setattr(llvm_module, "BUILDER_MODULES", 3)
    with compiler(HOST.target) as lent:
        builders = [lent.pass_builder() for _ in range(7)]
    assert len(set(map(id, builders))) == 3
    assert len({compile_object(SCALE, HOST, cache=None) for _ in range(8)}) == 1


def test_timings_are_recorded():
    built = build_object(SCALE, HOST, cache=None)
    assert built.optimize_seconds > 0 and built.codegen_seconds > 0 and not built.cached


def test_threads_get_the_objects_that_one_thread_gets():
    texts = [SCALE.replace("2.0", f"{n}.0").replace("1024", str(64 * n)) for n in range(1, 25)]
    alone = [compile_object(text, HOST, cache=None) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda text: compile_object(text, HOST, cache=None), texts)) == alone


def test_passes_and_code_generation_do_not_wait_for_other_threads():
    """llvmlite's lock admits one thread to LLVM at a time: long operations must not wait for it."""
    module = parse(prepare(SCALE, HOST))
    with target_machine(HOST.target) as machine:
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
        manager = builder.getModulePassManager()
        with ThreadPoolExecutor(1) as pool, ffi.lib._lock:
            pool.submit(run_passes, manager, module, builder).result(timeout=60)
        assert "x float>" in str(module)
        assert emit_object(machine, module) == machine.emit_object(module)


RISC = EmitOptions(Target("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c,+v", 128))
"""A target that libLLVM.so has no generator of."""


def test_an_unknown_llvmlite_compiles_by_its_public_functions_and_says_so(monkeypatch):
    assert is_known(llvmlite.__version__), "check codegen/unlocked.py against this llvmlite, then add it to KNOWN"
    expected = compile_object(SCALE, RISC, cache=None)
    monkeypatch.setattr(llvmlite, "__version__", "0.99.1")
    monkeypatch.setattr(unlocked, "_unlocked", None)  # not to be called
    with pytest.warns(RuntimeWarning, match=r"llvmlite 0\.99\.1 .* one at a time"):
        assert compile_object(SCALE, RISC, cache=None) == expected


def test_target_machines_are_lent_to_one_at_a_time_and_kept():
    with target_machine(HOST.target) as one, target_machine(HOST.target) as two:
        assert one is not two
    with target_machine(HOST.target) as again:
        assert again in (one, two)
