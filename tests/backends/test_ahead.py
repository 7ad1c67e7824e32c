"""Programs compiled ahead of time: their bits are those of a run here, and their objects need libm only."""

import shutil
import struct
import subprocess
from dataclasses import replace

import pytest

from ...backends.base import CompileOptions
from ...backends.host.ahead import AheadOptions, entry_point, foreign
from ...backends.host.c_names import LIBRARIES, LONGEST, is_free
from ...codegen.elf import object_symbols
from ...codegen.options import EmitOptions, Target
from ...codegen.targets import BASELINES, target_of
from ...codegen.whole import needed_symbols
from ...differential.bounds import bounds_of
from ...differential.fake_inputs import fake_inputs
from ...differential.verdict import judge
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError
from ...migration.compile import compile_module
from ...migration.flags import Flags
from ...planning.planner import plan
from ..support.ahead import compile_there, lacking, run_there
from ..support.ahead_programs import PROGRAMS, bits, physical, program

MACHINES = {"x86_64": 62, "aarch64": 183, "riscv64": 243}
"""Architecture → ELF's number of it."""

HERE = Target.machine().architecture


@pytest.mark.skipif(bool(lacking(None)), reason=f"needs {lacking(None)}")
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_bits_are_those_of_a_run(name, stack, tmp_path):
    module = program(name)
    inputs, target = fake_inputs(module, 3), target_of(HERE, "host")
    expected = compile_module(module, Flags.parse(stack), CompileOptions(EmitOptions(target))).execute(inputs)
    folder = compile_there(module, target, tmp_path / "made", stack)
    assert bits(run_there(folder, target, physical(inputs, name), expected)) == bits(expected)


@pytest.mark.parametrize(
    ("architecture", "name"),
    [
        (architecture, name)
        for architecture in ("aarch64", "riscv64")
        for name in PROGRAMS
        if (architecture, name) != ("riscv64", "half")  # before 13, GCC has no conversions of f16 there
    ],
)
def test_programs_for_other_processors_agree_with_the_evaluator(name, architecture, tmp_path):
    if lacking(architecture):
        pytest.skip(f"needs {lacking(architecture)} (Debian: gcc-…-linux-gnu, qemu-user)")
    module, target = program(name), target_of(architecture)
    inputs = fake_inputs(module, 3)
    results = {"evaluator": evaluate(module, inputs)}
    for stack in ("legacy", "mlir"):
        folder = compile_there(module, target, tmp_path / stack, stack)
        results[stack] = run_there(folder, target, physical(inputs, name), results["evaluator"])
    assert judge(results, bounds_of(module)).agrees


@pytest.mark.parametrize("architecture", BASELINES)
def test_an_object_has_one_symbol_and_needs_libm(architecture, tmp_path):
    folder = compile_there(program("loop"), target_of(architecture), tmp_path / "made")
    data = (folder / "run_it.o").read_bytes()
    assert struct.unpack_from("<HH", data, 16) == (1, MACHINES[architecture])
    assert object_symbols(data).defined == {"run_it"}
    assert "sinf" in needed_symbols(data) or needed_symbols(data) <= LIBRARIES
    assert foreign(needed_symbols(data)) == []


@pytest.mark.parametrize(("features", "needed"), [(None, {"__extendhfsf2", "__truncsfhf2"}), ("+zfh", set())])
def test_features_are_used(features, needed, tmp_path):
    folder = compile_there(program("half"), target_of("riscv64", features=features), tmp_path / "made")
    conversions = {s for s in needed_symbols((folder / "run_it.o").read_bytes()) if s.startswith("__")}
    assert conversions == needed


@pytest.mark.skipif(bool(lacking(None)), reason=f"needs {lacking(None)}")
@pytest.mark.parametrize("relocation", ["static", "pie"])
def test_relocation_models_run(relocation, tmp_path):
    module, target = program("constants"), target_of(HERE)
    inputs = fake_inputs(module, 3)
    folder = compile_there(module, target, tmp_path / "made", relocation=relocation)
    assert bits(run_there(folder, target, inputs, evaluate(module, inputs))) == bits(evaluate(module, inputs))


LIBRARY = """HloModule m
ENTRY e {
  x = f32[4,4] parameter(0)
  ROOT c = f32[4,4] cholesky(x), lower=true
}"""

DYNAMIC = "HloModule m\nENTRY e { x = f32[<=5] parameter(0)\n ROOT r = f32[<=5] negate(x) }"


def refusal(text, folder, **options):
    with pytest.raises(InputError) as caught:
        compile_there(parse_module(text), target_of("x86_64"), folder, **options)
    assert not folder.exists()
    return str(caught.value)


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_another_library_is_refused_with_the_instruction(stack, tmp_path):
    message = refusal(LIBRARY, tmp_path / "made", stack=stack)
    assert "4:" in message and "cholesky c" in message and "scipy_spotrf_" in message


def test_dynamic_dimensions_are_refused(tmp_path):
    assert "no dynamic dimension 0 of input 0" in refusal(DYNAMIC, tmp_path / "made")


@pytest.mark.parametrize("name", ["main", "while", "exp", "memcpy", "abs", "status", "2nd", "a-b", "testbed_x", ""])
def test_names_that_c_does_not_allow_are_refused(name, tmp_path):
    assert f"{name!r}" in refusal("HloModule m\n" + PROGRAMS["constants"], tmp_path / "made", name=name)


@pytest.mark.skipif(bool(lacking(None)), reason=f"needs {lacking(None)}")
@pytest.mark.parametrize("name", ["fusion", "add", "x", "tanh_multiply_fusion_kernel"])
def test_the_function_may_have_a_kernels_name(name, tmp_path):
    module, target = program("elementwise"), target_of(HERE, "host")
    inputs = fake_inputs(module, 3)
    expected = compile_module(module, Flags.parse("legacy"), CompileOptions(EmitOptions(target))).execute(inputs)
    folder = compile_there(module, target, tmp_path / "made", name=name)
    assert bits(run_there(folder, target, inputs, expected)) == bits(expected)


TWO = """
#include <string.h>
#include "one/one.h"
#include "two/two.h"
int main() {
  alignas(64) int input[4] = {1, 2, 3, 4}, first[4], second[4];
  const void *inputs[] = {input};
  void *firsts[] = {first}, *seconds[] = {second}, *wrong[] = {(char *)first + 1};
  if (one(inputs, firsts, nullptr) != ONE_DONE || two(inputs, seconds, nullptr) != TWO_DONE) return 1;
  if (one(inputs, wrong, nullptr) != ONE_MISALIGNED) return 2;
  return memcmp(first, second, sizeof first) == 0 && first[0] == (1 ^ 7) ? 0 : 3;
}
"""


@pytest.mark.skipif(not shutil.which("c++"), reason="needs c++")
def test_two_programs_in_one_executable_of_cpp(tmp_path):
    for name in ("one", "two"):
        compile_there(program("constants"), target_of(HERE), tmp_path / name, name=name)
    (tmp_path / "main.cpp").write_text(TWO)
    files = ["main.cpp", "one/one.o", "two/two.o", "-lm"]
    subprocess.run(["c++", "-Wall", "-Wextra", "-Werror", "-o", "both", *files], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "both"]).returncode == 0


def test_an_output_that_is_an_input_may_be_another_array(tmp_path):
    aliased = "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n"
    module, target = parse_module(aliased + PROGRAMS["constants"]), target_of(HERE)
    inputs = fake_inputs(module, 3)
    folder = compile_there(module, target, tmp_path / "made")
    assert "Output 0 is input 0" in (folder / "run_it.h").read_text()
    if not lacking(None):
        assert bits(run_there(folder, target, inputs, evaluate(module, inputs))) == bits(evaluate(module, inputs))


def test_foreign_symbols_are_those_of_other_libraries():
    assert foreign(frozenset({"tanhf", "memcpy", "__divti3", "scipy_dgetrf_"})) == ["scipy_dgetrf_"]


@pytest.mark.parametrize("name", ["model", "main", "M_PI", "uint8_t", "run_t", "testbed_x", "a" * 300, "9_lives"])
def test_whatever_a_module_is_called_its_function_has_a_name_that_c_leaves_free(name):
    made = plan(replace(program("none"), name=name))
    found = entry_point(made, AheadOptions(EmitOptions(target_of(HERE))))
    assert is_free(found) and len(found) <= LONGEST
    assert entry_point(made, AheadOptions(EmitOptions(target_of(HERE)), found)) == found
