"""`testbed diff --platforms`: each platform compiles and runs the program, and all are compared."""

import json
import shutil

import pytest

from ...backends.interpreter.executable import InterpreterExecutable
from ...backends.interpreter.platform import InterpreterCompiler, InterpreterPlatform
from ...backends.registry import register_platform, unregister_platform
from ...cli.main import main
from ...codegen import c_compiler

PROGRAM = """HloModule small
ENTRY e {
  x = f32[3] parameter(0)
  ROOT y = f32[3] multiply(x, x)
}
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "small.hlo").write_text(PROGRAM)
    return str(tmp_path / "small.hlo")


class Wrong(InterpreterPlatform):
    """Its results are one too large."""

    name = "wrong"

    def compiler(self):
        class Compiler(InterpreterCompiler):
            def compile(self, program, emit_for, options):
                class Executable(InterpreterExecutable):
                    def execute(self, inputs, outputs=None, *, donated=()):
                        return [r + 1 for r in super().execute(inputs, outputs, donated=donated)]

                return Executable(program)

        return Compiler()


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_three_platforms_agree(file, capsys):
    assert main(["diff", file, "--platforms", "host,c,interpreter", "--json"]) == 0
    stacks = json.loads(capsys.readouterr().out)["programs"][0]["stacks"]
    assert [row["name"] for row in stacks] == ["host", "c", "interpreter"]
    assert main(["diff", file, "--platforms", "host,interpreter", "--emitters", "mlir"]) == 0
    assert "1 by mlir" in capsys.readouterr().out


def test_a_wrong_platform_is_told(file, capsys):
    register_platform("wrong", Wrong)
    try:
        assert main(["diff", file, "--platforms", "host,interpreter,wrong"]) == 1
    finally:
        unregister_platform("wrong")
    assert "wrong" in capsys.readouterr().out.partition("verdict:")[2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--platforms", "host"], "does not name two different platforms"),
        (["--platforms", "host,host"], "does not name two different platforms"),
        (["--platforms", "host,hots"], "did you mean 'host'?"),
        (["--platforms", "host,interpreter", "--stacks", "legacy,mlir"], "exclude each other"),
    ],
)
def test_wrong_names_are_a_line(file, arguments, words, capsys):
    assert main(["diff", file, *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_a_platform_without_a_device_is_a_line(file, capsys):
    class Absent(InterpreterPlatform):
        name = "absent"

        def unavailable(self):
            return "no driver"

    register_platform("absent", Absent)
    try:
        assert main(["diff", file, "--platforms", "host,absent"]) == 2
    finally:
        unregister_platform("absent")
    assert "platform absent: no driver (testbed platforms lists what there is)" in capsys.readouterr().err


def test_cc_names_the_c_compiler(file, capsys):
    for arguments in (["diff", file, "--platforms", "host,c"], ["run", file, "--emitters", "c", "--cache-limit", "0"]):
        assert main([*arguments, "--cc", "no-such-compiler"]) == 2
        assert "there is no C compiler 'no-such-compiler' (install gcc" in capsys.readouterr().err
    assert c_compiler.chosen_c_compiler() is None
