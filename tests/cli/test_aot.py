"""`testbed aot`: what it writes, and that a folder appears whole or not at all."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...cli import aot
from ...cli.main import main
from ...codegen import whole
from ...codegen.options import EmitOptions, Target
from ...codegen.targets import target_of
from ...migration.compile import compile_program
from ...migration.flags import Flags
from ...migration.programs import load_program
from ..support.ahead import lacking, run_there

EXAMPLES = Path(__file__).parents[2] / "examples"

SMALL = "HloModule small\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] tanh(x)\n}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "small.hlo").write_text(SMALL)
    (tmp_path / "file").write_text("kept")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_files_and_what_is_printed(folder, capsys):
    assert main(["aot", "small.hlo", "-o", "made/deep"]) == 0
    assert {path.name for path in (folder / "made/deep").iterdir()} == {"small.o", "small.h", "main.c", "Makefile"}
    assert "small.o (" in capsys.readouterr().out
    header = (folder / "made/deep/small.h").read_text()
    assert "int small(" in header and "#define SMALL_INPUT_0_DIMS {4}" in header
    assert (folder / "made/deep").stat().st_mode & 0o777 == 0o777 & ~umask()


def umask():
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("target", ["x86_64", "aarch64", "riscv64", "aarch64-unknown-linux-musl"])
def test_equal_programs_give_equal_objects(target, folder):
    for number in range(2):
        assert main(["aot", "small.hlo", "--target", target, "--entry-point", "run", "-o", f"made{number}"]) == 0
    assert (folder / "made0/run.o").read_bytes() == (folder / "made1/run.o").read_bytes()


@pytest.mark.skipif(bool(lacking(None)), reason=f"needs {lacking(None)}")
@pytest.mark.parametrize("emitters", ["legacy", "mlir"])
@pytest.mark.parametrize("name", ["gpt2_block", "mlp_adam", "lstm_scan", "nbody_while", "switch_cond"])
def test_examples_give_the_bits_of_a_run(name, emitters, tmp_path):
    program, made = load_program(str(EXAMPLES / name)), tmp_path / "made"
    command = ["aot", str(EXAMPLES / name), "--cpu", "host", "--emitters", emitters, "--entry-point", "run", "-o", made]
    assert main([*map(str, command)]) == 0
    target = target_of(Target.machine().architecture, "host")
    options = CompileOptions(EmitOptions(target))
    executable = compile_program(program, Flags.parse(emitters), options)
    expected = executable.execute(list(program.inputs))
    results = run_there(made, target, program.inputs, expected)
    assert [r.tobytes() for r in results] == [np.asarray(e).tobytes() for e in expected]


@pytest.mark.parametrize(("name", "function"), [("jit_step", "jit_step"), ("abs", "run_abs"), ("a.b-c", "a_b_c")])
def test_the_function_has_the_modules_name(name, function, folder):
    (folder / "small.hlo").write_text(SMALL.replace("HloModule small", f"HloModule {name}"))
    assert main(["aot", "small.hlo", "-o", "made"]) == 0
    assert f"int {function}(" in (folder / f"made/{function}.h").read_text()


def test_the_relocation_models_are_those_of_code_generation():
    assert tuple(whole.RELOCATIONS) == aot.RELOCATIONS


CASES = [
    (["--target", "mips"], "unknown target 'mips' (choose from x86_64, aarch64, riscv64"),
    (["--target", "aarch64-apple-darwin"], "unknown target"),
    (["--cpu", "i9000"], "LLVM knows no processor 'i9000'"),
    (["--features", "+nothing"], "LLVM knows no feature 'nothing'"),
    (["--features", "avx2"], "the features 'avx2' are no list"),
    *(
        (["--entry-point", name], f"no C function can be called '{name}'")
        for name in (
            "main",
            "M_PI",
            "uint8_t",
            "INT_MAX",
            "linux",
            "isnan",
            "htole32",
            "static_assert",
            "sinl",
            "a" * 300,
        )
    ),
    (["--relocation-model", "ropi"], "'ropi' is not one of"),
    (["-o", "file"], "file: exists and is not an empty folder"),
    (["-o", "."], ".: exists and is not an empty folder"),
    (["-o", "file/made"], "file/made: cannot write: File exists"),
    (["-o", "/dev/null/made"], "/dev/null/made: cannot write: File exists"),
]


def test_the_current_folder_is_refused_even_if_it_is_empty(tmp_path, folder, monkeypatch, capsys):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert main(["aot", "../small.hlo", "-o", "."]) == 2
    assert ".: cannot write: Invalid argument" in capsys.readouterr().err
    assert [*(tmp_path / "empty").iterdir()] == []


@pytest.mark.parametrize(("arguments", "message"), CASES)
def test_bad_input_is_one_line(arguments, message, folder, capsys):
    before = sorted(folder.iterdir())
    assert main(["aot", "small.hlo", "-o", "made", *arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and message in lines[0]
    assert sorted(folder.iterdir()) == before and (folder / "file").read_text() == "kept"


@pytest.mark.skipif(not (shutil.which("cc") and shutil.which("make")), reason="needs cc and make")
def test_a_c_file_instead_of_an_object(folder, capsys):
    assert main(["aot", "small.hlo", "--emitters", "c", "--entry-point", "run", "-o", "made"]) == 0
    assert sorted(p.name for p in (folder / "made").iterdir()) == ["Makefile", "main.c", "run.c", "run.h"]
    assert subprocess.run(["make", "-s", "-C", "made"], cwd=folder, capture_output=True).returncode == 0
    assert subprocess.run(["made/example"], cwd=folder, capture_output=True).returncode == 0
    assert main(["aot", "small.hlo", "--emitters", "legacy,elementwise=c", "-o", "mixed"]) == 2
    assert "--emitters c for all of them, or for none" in capsys.readouterr().err
    assert not (folder / "mixed").exists()
