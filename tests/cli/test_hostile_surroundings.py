"""Closed standard streams, names of files that are no text, numbers and sizes that nothing holds: one line, or none."""

import json
import os
import subprocess
import sys

import pytest

from ...cli.main import main
from ...formats.documents import json_of, toml_of
from ...hlo.errors import InputError
from ...migration.ledger import LedgerError
from ...migration.ledger_file import parse_ledger
from ...migration.weights import read_weights

NEGATE = "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] negate(x)\n}\n"
START = f"{main.__module__.rpartition('.')[0]}.start"


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "m.hlo"
    path.write_text(NEGATE)
    return str(path)


def started(arguments: list[str], closing: str = "", **more) -> subprocess.CompletedProcess:
    """A command in a process of its own. closing: redirections of a shell."""
    boot = f"from {START} import run; run()"
    words = [sys.executable, "-c", boot, *arguments]
    return subprocess.run(["sh", "-c", f'"$@" {closing}', "sh", *words], capture_output=True, **more)


def test_closed_streams(module):
    done = started(["run", module, "--init", "ones"], ">&-")
    assert done.returncode == 0 and not done.stdout and b"Traceback" not in done.stderr
    done = started(["run", module, "--init", "ones"], "2>&-")
    assert done.returncode == 0 and b"out0" in done.stdout and not done.stderr
    done = started(["run", module, "--init", "ones"], "<&- >&- 2>&-")
    assert done.returncode == 0
    done = started(["run", "-"], "<&-")
    assert done.returncode == 2
    assert done.stderr.decode().startswith("testbed: error: standard input is closed (")


def test_a_file_that_is_written_does_not_get_the_output(module, tmp_path):
    program = tmp_path / "m.tbx"
    done = started(["compile", module, "-o", str(program)], ">&- 2>&-")
    assert done.returncode == 0 and program.read_bytes().startswith(b"TBX")


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_name_that_is_no_text(tmp_path, encoding):
    path = os.fsencode(tmp_path) + b"/n\xff.hlo"
    with open(path, "w") as file:
        file.write(NEGATE)
    name = os.fsdecode(path)
    done = started(
        ["diff", name, name, "--stacks", "evaluator,legacy"], env={**os.environ, "PYTHONIOENCODING": encoding}
    )
    shown = {"utf-8": b"/n\\udcff.hlo", "ascii": b"/n?.hlo"}[encoding]
    assert done.returncode == 0 and b"Traceback" not in done.stderr and done.stdout.count(shown) == 2


@pytest.mark.parametrize("command", ["run", "diff", "bisect", "reduce"])
def test_a_negative_seed(module, command, capsys):
    assert main([command, module, "--seed", "-1"]) == 2
    assert "'--seed': -1 is not in the range" in capsys.readouterr().err


@pytest.mark.parametrize("shape, why", [
    (f"f32[{','.join(['1'] * 65)}]", "has 65 dimensions, 64 at most are possible"),
    ("f32[2147483648,2147483648,0]", "is too large to be addressed"),
])  # fmt: skip
def test_what_numpy_cannot_name(tmp_path, shape, why, capsys):
    (tmp_path / "m.hlo").write_text(NEGATE.replace("f32[4]", shape))
    for command in ("run", "diff"):
        assert main([command, str(tmp_path / "m.hlo")]) == 2
        error = capsys.readouterr().err
        assert "m.hlo:3:3: parameter 'x':" in error and why in error


def test_the_largest_that_numpy_can_name(tmp_path, capsys):
    shape = f"f32[{','.join(['1'] * 64)}]"
    (tmp_path / "m.hlo").write_text(NEGATE.replace("f32[4]", shape))
    assert main(["diff", str(tmp_path / "m.hlo"), "--stacks", "evaluator,legacy,mlir"]) == 0
    (tmp_path / "m.hlo").write_text(NEGATE.replace("f32[4]", "f32[2147483648,0]"))
    assert main(["diff", str(tmp_path / "m.hlo"), "--stacks", "evaluator,legacy,mlir"]) == 0


DEEP = 100_000


def test_what_nests_too_deep_is_an_error_of_its_format(tmp_path):
    for text in ("[" * DEEP, b"[" * DEEP, '{"a":' * DEEP):
        with pytest.raises(json.JSONDecodeError, match="nests too deep"):
            json_of(text)
    deep = "a = " + "[" * DEEP
    with pytest.raises(ValueError, match="nests too deep"):
        toml_of(deep)
    with pytest.raises(LedgerError, match="not TOML: nests too deep"):
        parse_ledger(deep, "l.toml")
    (tmp_path / "w.toml").write_text(deep)
    with pytest.raises(InputError, match=r"w\.toml: no weights: nests too deep"):
        read_weights(tmp_path / "w.toml")


@pytest.mark.parametrize("arguments, name", [
    (["ab", "--history", "{}/f.json"], "f.json:1"),
    (["bisect", "{}"], "case.json"),
    (["fuzz", "--resume", "-o", "{}"], "campaign.json"),
    (["conform", "{}"], "manifest.jsonl:1:1"),
    (["exhaustive", "-o", "{}/f.json"], "f.json"),
])  # fmt: skip
def test_commands_name_the_file(tmp_path, arguments, name, capsys):
    (tmp_path / "module.hlo").write_text(NEGATE)
    for file in ("f.json", "case.json", "campaign.json", "manifest.jsonl"):
        (tmp_path / file).write_text("[" * DEEP)
    assert main([word.replace("{}", str(tmp_path)) for word in arguments]) == 2
    error = capsys.readouterr().err
    assert name in error and "the module nests" not in error and error.count("\n") == 1


def test_no_command_is_the_help(capsys):
    assert main([]) == 2
    error = capsys.readouterr().err
    assert error.startswith("Usage: testbed") and "\n  diff " in error and "error:" not in error


@pytest.mark.parametrize("options", [["buffers", "--plot"], ["profile", "--trace"]])
def test_a_file_is_written_whole_though_the_reader_is_gone(module, tmp_path, options):
    file = tmp_path / ("p.svg" if options[0] == "buffers" else "p.json")
    started([options[0], module, options[1], str(file)], "| true")
    assert file.stat().st_size > 100
