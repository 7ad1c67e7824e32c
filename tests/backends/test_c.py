"""The platform c: C99 from the Plan agrees with the evaluator here, and on another processor under an emulator."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from ...backends.base import AheadOptions, CompileOptions
from ...backends.c.contract import fused
from ...backends.c.helpers import _functions, runtime
from ...backends.c.kernel import RULES, emit_kernel
from ...backends.c.program import kernels_text
from ...backends.c.scalars import SCALARS
from ...backends.registry import platform, status
from ...codegen import c_compiler
from ...codegen.errors import CodegenError
from ...codegen.options import EmitOptions
from ...codegen.targets import target_of
from ...differential.bounds import bounds_of
from ...differential.fake_inputs import fake_inputs
from ...differential.filled_inputs import filled_inputs
from ...differential.row_programs import cases_of
from ...differential.verdict import judge
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...formats.whole_files import write_folder
from ...hlo.errors import InputError
from ...hlo.opclasses import ELEMENTWISE
from ...hlo.opcodes import Op
from ...migration import Flags, compile_module
from ...migration.units import CLASSES, UNITS
from ...planning.planner import plan
from ..support.ahead import lacking, run_there
from ..support.ahead_programs import PROGRAMS, physical, program

needs_cc = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
OPTIONS = EmitOptions.host()

AXPY = """HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  s = f32[8] multiply(p, q)
  ROOT r = f32[8] add(s, p)
}
"""


def agree(module, inputs, flags="c"):
    with np.errstate(all="ignore"):
        expected = evaluate(module, inputs)
    found = compile_module(module, Flags.parse(flags)).execute(inputs)
    verdict = judge({"evaluator": expected, "c": found}, bounds_of(module))
    assert verdict.agrees, verdict.sentence


@needs_cc
@pytest.mark.parametrize("unit", UNITS)
def test_rows_of_every_class_agree_with_the_evaluator(unit):
    """A program of each class of types, and one with special values."""
    for number, dtypes in enumerate(CLASSES):
        text = cases_of(unit, dtypes, len(CLASSES) + number + 1)[-1]
        module = parse_module(text)
        agree(module, filled_inputs(module, "nan" if number == 1 else "random", number))


def test_every_opcode_that_the_other_stacks_emit_has_a_row():
    emitted = frozenset().union(*UNITS.values())
    assert emitted - {Op.STOCHASTIC_CONVERT} <= SCALARS.keys() | RULES.keys()
    assert SCALARS.keys() <= ELEMENTWISE | {Op.OPT_BARRIER} and not SCALARS.keys() & RULES.keys()


def test_a_program_gets_the_helpers_that_it_calls():
    text = runtime("float f(float x) { return tb_tanh_f32(x); }")
    assert (
        "tb_tanh_f32" in text and "tb_exp_f32" not in text and "tb_" not in runtime("int f(void);").replace("tb_c", "")
    )
    assert "complex.h" in runtime("tb_tan_c64(x)") and "complex.h" not in runtime("tb_mul_c64(x, y)")


@needs_cc
def test_every_helper_compiles_without_a_warning():
    """Each stands behind those that it calls: the compiler knows no function that is declared later."""
    text = "".join(body for body, _ in _functions().values())
    head = runtime("").replace("#include <math.h>", "#include <complex.h>\n#include <math.h>")
    compiler = c_compiler.c_compiler()
    strict = [f for f in compiler.flags(OPTIONS) if f != "-w"]
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-Wno-type-limits", "-Wno-sign-compare"]
    assert c_compiler.run_compiler(compiler, head + text.replace("\nstatic", "\n\nstatic"), [*strict, *warnings, "-c"])


def small(name):
    """A program of the emulator: 300,000 iterations take half a minute there."""
    return parse_module(f"HloModule m\n{PROGRAMS[name].replace('300000', '300')}") if name == "loop" else program(name)


@needs_cc
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_c_file_computes_the_program_on_aarch64(name, tmp_path):
    """Cross-compiled without warnings of the header or the example, and run by the emulator."""
    if lacking("aarch64"):
        pytest.skip(f"needs {lacking('aarch64')} (Debian: gcc-aarch64-linux-gnu, qemu-user)")
    module, target = small(name), target_of("aarch64")
    files = (
        platform("c").compiler().compile_ahead_of_time(plan(module), None, AheadOptions(EmitOptions(target), "run_it"))
    )
    assert set(files) == {"run_it.c", "run_it.h", "main.c", "Makefile"}
    write_folder(tmp_path / "made", lambda work: [(work / n).write_bytes(data) for n, data in files.items()])
    inputs = fake_inputs(module, 3)
    expected = evaluate(module, inputs)
    found = run_there(tmp_path / "made", target, physical(inputs, name), expected)
    assert judge({"evaluator": expected, "c": found}, bounds_of(module)).agrees


def test_what_needs_a_library_is_refused_ahead_of_time():
    text = "HloModule m\nENTRY e { x = f32[2,2] parameter(0)\n ROOT r = f32[2,2] cholesky(x), lower=true }"
    module = parse_module(text)
    with pytest.raises(InputError, match=r"cholesky r needs more than a C compiler \(testbed compile"):
        platform("c").compiler().compile_ahead_of_time(plan(module), None, AheadOptions(OPTIONS))


@needs_cc
def test_a_library_op_stands_beside_c():
    text = "HloModule m\nENTRY e { x = f32[2,2] parameter(0)\n n = f32[2,2] add(x, x)\n"
    module = parse_module(f"{text} ROOT r = f32[2,2] cholesky(n), lower=true }}")
    executable = compile_module(module, Flags.parse("c"))
    assert {emitter for _, emitter in executable.kernels} == {"c", "library"}
    x = np.array([[4, 2], [2, 5]], np.float32)
    np.testing.assert_allclose(executable.execute([x])[0], np.linalg.cholesky(2 * x), rtol=1e-6)


@needs_cc
def test_kernels_of_three_stacks_in_one_program():
    module = parse_module(
        "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
        "ENTRY e { x = f32[40,50] parameter(0)\n z = f32[] constant(0)\n"
        " y = f32[50,40] transpose(x), dimensions={1,0}\n"
        " d = f32[50,50] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
        " r = f32[50] reduce(d, z), dimensions={1}, to_apply=add\n ROOT n = f32[50] negate(r) }"
    )
    inputs = fake_inputs(module, 1)
    flags = "mlir,dot=c,reduce=legacy,elementwise=legacy"
    executable = compile_module(module, Flags.parse(flags))
    assert {"c", "legacy"} <= {emitter for _, emitter in executable.kernels}
    agree(module, inputs, flags)


MIXED = (
    "bf16 bf16 s32",
    "s8 s8 s32",
    "s32 s32 f32",
    "f32 f32 f64",
    "f64 f64 f32",
    "f8e4m3fn bf16 f32",
    "f8e4m3fn f8e4m3fn f8e4m3fn",
)


@needs_cc
@pytest.mark.parametrize("types", MIXED)
def test_products_of_other_types_than_the_results(types):
    a, b, r = types.split()
    body = f"x = {a}[3,40] parameter(0)\n y = {b}[40,5] parameter(1)\n"
    body += f" ROOT d = {r}[3,5] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
    module = parse_module(f"HloModule m\nENTRY e {{ {body} }}")
    inputs = filled_inputs(module, "random", 1)
    agree(module, inputs)


@needs_cc
def test_long_sums_are_accurate():
    """A million equal terms: added one by one in f32 they are 1 % off, and in f64 by a hundred roundings."""
    add = "add { a = TYPE[] parameter(0)\n b = TYPE[] parameter(1)\n ROOT s = TYPE[] add(a, b) }\n"
    body = "ENTRY e { x = TYPE[1000000] parameter(0)\n z = TYPE[] constant(0)\n"
    body += " ROOT r = TYPE[] reduce(x, z), dimensions={0}, to_apply=add }"
    for name, dtype in (("f32", np.float32), ("f64", np.float64)):
        x = np.full(1_000_000, 0.1, dtype)
        module = parse_module(f"HloModule m\n{add}{body}".replace("TYPE", name))
        (found,) = compile_module(module, Flags.parse("c")).execute([x])
        exact = float(x[0]) * 1_000_000
        assert abs(float(found) - exact) <= np.spacing(dtype(exact))


@needs_cc
def test_infinities_survive_long_sums():
    text = "add { a = f64[] parameter(0)\n b = f64[] parameter(1)\n ROOT s = f64[] add(a, b) }\nENTRY e {\n"
    text += " x = f64[3,100] parameter(0)\n z = f64[] constant(-0)\n"
    text += " ROOT r = f64[3] reduce(x, z), dimensions={1}, to_apply=add }"
    x = np.full((3, 100), -0.0)
    x[0, 7], x[1, 8], x[1, 9] = np.inf, np.inf, -np.inf
    (found,) = compile_module(parse_module(f"HloModule m\n{text}"), Flags.parse("c")).execute([x])
    assert found[0] == np.inf and np.isnan(found[1]) and found[2] == 0 and np.signbit(found[2])


@needs_cc
def test_the_file_of_a_program_does_not_depend_on_the_process():
    module = program("results")
    requests = plan(module).emitted
    assert kernels_text(requests, OPTIONS) == kernels_text(plan(program("results")).emitted, OPTIONS)
    stages = dict(compile_module(module, Flags.parse("c"), CompileOptions(cache=None, keep_stages=True)).stages)
    assert stages["c.1.c"] == kernels_text(requests, OPTIONS) and ".text" in stages["c.2.s"]


CONTRACTED = {
    "a product on the left": (["v1 = a1 * a2", "v2 = v1 + a3"], ["v2 = tb_mad_f32(a1, a2, a3)"]),
    "two products: the left one": (
        ["v1 = a1 * a2", "v2 = a3 * a4", "v3 = v1 + v2"],
        ["v2 = a3 * a4", "v3 = tb_mad_f32(a1, a2, v2)"],
    ),
    "a product with two uses stays": (
        ["v1 = a1 * a2", "v2 = v1 + a3", "v3 = v1 - v2"],
        ["v1 = a1 * a2", "v2 = v1 + a3", "v3 = v1 - v2"],
    ),
    "a difference from a product": (["v1 = a1 * a2", "v2 = v1 - a3"], ["v2 = tb_mad_f32(a1, a2, -a3)"]),
    "a product is taken away": (["v1 = a1 * (-0x1p+0f)", "v2 = a3 - v1"], ["v2 = tb_mad_f32(-a1, (-0x1p+0f), a3)"]),
}
"""What is declared as `const float` → the same after contraction, as LLVM does it (tests/codegen/test_contract.py)."""


@pytest.mark.parametrize("name", CONTRACTED)
def test_products_and_sums_contract_as_in_llvm(name):
    given, wanted = ([f"  const float {line};" for line in lines] for lines in CONTRACTED[name])
    assert fused("\n".join(["void f() {", *given, "}"])).splitlines() == ["void f() {", *wanted, "}"]


@pytest.mark.parametrize("between", ["  if (a3 > 0) {", "  a1 = a3;", "  arg0[0] = a3;"])
def test_a_product_joins_no_sum_behind_a_change(between):
    text = f"void f() {{\n  const float v1 = a1 * a2;\n{between}\n  const float v2 = v1 + a3;\n}}\n"
    assert fused(text) == text


def test_strict_programs_contract_nothing():
    requests = plan(parse_module(AXPY)).emitted
    assert "tb_mad_f32(" in kernels_text(requests, OPTIONS)
    assert "tb_mad" not in kernels_text(requests, replace(OPTIONS, strict=True))


def test_without_a_compiler_there_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    module = program("elementwise")
    with pytest.raises(CodegenError, match=r"there is no C compiler: none of gcc, .* \(install gcc, clang or tcc"):
        compile_module(module, Flags.parse("c"), CompileOptions(cache=None))
    assert "there is no C compiler" in status("c").why and status("c").devices == ()
    monkeypatch.setattr(c_compiler, "_chosen", "no-such-compiler")
    with pytest.raises(CodegenError, match="there is no C compiler 'no-such-compiler'"):
        compile_module(module, Flags.parse("c"), CompileOptions(cache=None))


@needs_cc
def test_each_compiler_that_is_here_gives_the_results(monkeypatch):
    """Debian: gcc, clang, tcc. One with arguments, as CC may have them, is one, too."""
    here = [name for name in c_compiler.NAMES if shutil.which(name)]
    module = program("half")
    inputs = fake_inputs(module, 2)
    expected = evaluate(module, inputs)
    for name in [*here, f"{here[0]} -DUNUSED=1"]:
        monkeypatch.setattr(c_compiler, "_chosen", name)
        found = compile_module(module, Flags.parse("c"), CompileOptions(cache=None)).execute(inputs)
        assert judge({"evaluator": expected, name: found}, bounds_of(module)).agrees
    assert c_compiler.c_compiler().arguments == ("-DUNUSED=1",)


@needs_cc
def test_a_compiler_that_refuses_the_file_is_one_line(tmp_path, monkeypatch):
    fake = tmp_path / "fakecc"
    fake.write_text(
        '#!/bin/sh\ncase "$1" in --version) echo fake 1.0;; *) echo "x.c:1: error: no"; exit 1;; esac >&2\n'
    )
    fake.chmod(0o755)
    monkeypatch.setattr(c_compiler, "_chosen", str(fake))
    with pytest.raises(CodegenError, match=r"fakecc .*: x.c:1: error: no \(set CC") as caught:
        compile_module(program("elementwise"), Flags.parse("c"), CompileOptions(cache=None))
    assert "\n" not in str(caught.value)


def test_operands_of_a_concatenation_share_what_they_have_in_common():
    """Element by element, each would compute it again: bits of Philox took twelve times as long."""
    text = """HloModule m
ENTRY e { x = f32[300] parameter(0)
  y = f32[300] parameter(1)
  d = f32[300] divide(x, y)
  n = f32[300] negate(d)
  p = f32[300,1] reshape(d)
  q = f32[300,1] reshape(n)
  ROOT r = f32[300,2] concatenate(p, q), dimensions={1} }
"""
    (kernel,) = plan(parse_module(text)).kernels
    assert emit_kernel(kernel, False).count(" / ") == 1
