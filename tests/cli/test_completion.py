"""Completion: what the command answers a shell, and that bash, zsh and fish take the script that it prints."""

import os
import shutil
import subprocess
import sys

import pytest

from ...cli.completion import SHELLS, VARIABLE
from ...cli.main import COMMANDS, main

SCRIPT = f"import sys; from {main.__module__} import main; sys.argv[0] = 'testbed'; sys.exit(main())"

ON_DEVICES = ("@opencl", "@cuda", "@rocm")
"""Behind the name of a stack: the stack's kernels on a device."""


def answers(line: str) -> list[str]:
    """What bash is offered for the last word of a command line: kind and value."""
    words = line.split(" ")
    environment = {**os.environ, VARIABLE: "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("testbed co", ["plain,compile", "plain,convert", "plain,conform", "plain,completion"]),
        ("testbed run --red", ["plain,--red-zones"]),
        ("testbed run --init i", ["plain,iota"]),
        ("testbed run exam", ["file,exam"]),
        ("testbed run --output o", ["file,o"]),
        ("testbed diff --stacks evaluator,l", [f"plain,evaluator,legacy{end}" for end in ("", *ON_DEVICES)]),
        ("testbed diff --stacks legacy,legac", [f"plain,legacy,legacy{end}" for end in ON_DEVICES]),
        ("testbed opt --passes dce,fuse-ro", ["plain,dce,fuse-rows", "plain,dce,fuse-rotations"]),
        ("testbed conform --stacks evaluator,pars", ["plain,evaluator,parse"]),
        ("testbed completion f", ["plain,fish"]),
    ],
)
def test_what_is_offered(line, offered):
    assert answers(line) == offered


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_for_its_shell(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"{VARIABLE}={shell}_complete" in script and "testbed" in script
    if (program := shutil.which(shell)) is not None:
        assert subprocess.run([program, "-n"], input=script, text=True, capture_output=True).stderr == ""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_a_command(tmp_path, capsys):
    (tmp_path / "testbed").write_text(f"#!{sys.executable}\n{SCRIPT.replace('; ', chr(10))}\n")
    (tmp_path / "testbed").chmod(0o755)
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    asking = 'COMP_WORDS=(testbed st); COMP_CWORD=1; _testbed_completion testbed; echo "${COMPREPLY[@]}"'
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", f"{script}\n{asking}"], env=environment, capture_output=True, text=True)
    assert done.stdout.split() == [name for name in COMMANDS if name.startswith("st")], done.stderr
