"""What commands print at 80 columns, in a pipe, under LC_ALL=C: no line beyond the width, nothing that is not ASCII."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from ...benchmarks.tables import left, right, text_table
from ...cli import output
from ...cli.main import main
from ...cli.results import array_text
from ...formats.program import save_io

LONG = "a_value_with_a_name_that_is_longer_than_most_but_not_longer_than_some"
TEXT = f"""HloModule reading

sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

ENTRY e {{
  p = f32[16,40] parameter(0)
  q = bf16[40] parameter(1)
  {LONG} = f32[40] convert(q)
  w = f32[16,40] broadcast({LONG}), dimensions={{1}}
  m = f32[16,40] multiply(p, w)
  z = f32[] constant(0)
  r = f32[16] reduce(m, z), dimensions={{1}}, to_apply=sum
  g = f32[16] tanh(r)
  s = c64[16] complex(r, g)
  ROOT t = (f32[16,40], f32[16], c64[16], bf16[40]) tuple(m, g, s, q)
}}
"""
# Each argument is a command line; its output stands between lines that say its status.
SCRIPT = f"""import shlex, sys
from {main.__module__} import main
for line in sys.argv[1:]:
    print("==", main(shlex.split(line)), flush=True)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "module.hlo").write_text(TEXT)
    arrays = [np.linspace(-1, 1, 640, dtype=np.float32).reshape(16, 40), np.ones(40, np.uint16)]
    rows = [{"id": f"case_{n}_{LONG}", "hlo": "module.hlo", "golden": "bad.npz"} for n in range(2)]
    (tmp_path / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    outputs = [arrays[0], np.zeros(16, np.float32), np.zeros(16, np.complex64), np.zeros(40, np.uint16)]
    save_io(tmp_path / "bad.npz", arrays, outputs)
    return tmp_path


STACKS = "evaluator,optimized,legacy"
COMMANDS = {
    "run module.hlo": 0,
    "run module.hlo module.hlo --iterations 2 --emitters evaluator": 0,
    f"diff module.hlo --stacks {STACKS}": 0,
    f"diff module.hlo --stacks {STACKS} --all --atol 1": 0,
    f"diff module.hlo --stacks {STACKS} --inputs bad.npz": 1,
    "show module.hlo": 0,
    "opt module.hlo": 0,
    "opt --list": 0,
    "opt --list-rules": 0,
    "conform . --stacks evaluator --jobs 1": 1,
    f"bench module.hlo --ab {STACKS} --rounds 3 --seconds 0.001": 0,
    "buffers module.hlo": 0,
}
"""Command lines and their statuses."""


def is_free(line):
    """Whether a line could be shorter: it is no HLO text, and no word in it (a name, a path) is nearly as wide."""
    return " = " not in line and max(map(len, line.split() or [""])) < 50


def test_lines_in_an_ascii_pipe_have_80_columns(folder):
    environment = {**os.environ, "COLUMNS": "", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": ""}
    done = subprocess.run([sys.executable, "-c", SCRIPT, *COMMANDS], capture_output=True, cwd=folder, env=environment)
    assert done.returncode == 0 and b"Traceback" not in done.stderr
    assert done.stdout.isascii() and done.stderr.isascii()
    parts = re.split(r"^== (\d)\n", done.stdout.decode(), flags=re.M)
    assert dict(zip(COMMANDS, map(int, parts[1::2]))) == COMMANDS and all(parts[0:-1:2])
    lines = (done.stdout + done.stderr).decode().splitlines()
    assert [line for line in lines if len(line) > 80 and is_free(line)] == []


@pytest.mark.parametrize("columns", [60, 132])
@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith(("diff", "show"))])
def test_tables_fit_the_columns_that_are_asked_for(command, columns, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(command.split()) == COMMANDS[command]
    widths = [len(line) for line in capsys.readouterr().out.splitlines() if is_free(line)]
    assert max(widths) <= columns


def test_text_that_is_read_back_keeps_the_users_letters(folder, monkeypatch, capsys):
    text = TEXT.replace("tanh(r)", 'tanh(r), metadata={op_name="größe → 2"}')
    (folder / "module.hlo").write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    assert main(["opt", "module.hlo", "--passes", ""]) == 0
    assert 'op_name="größe → 2"' in capsys.readouterr().out


class Terminal:
    encoding = "UTF-8"

    def __init__(self, is_terminal):
        self.isatty = lambda: is_terminal


def test_signs_are_kept_on_a_terminal_that_shows_them(monkeypatch):
    assert output._is_rich(Terminal(True)) and not output._is_rich(Terminal(False))
    monkeypatch.setattr(Terminal, "encoding", "latin-1")
    assert not output._is_rich(Terminal(True))
    assert output.plain("a → b – … ≤ ü") == "a -> b - ... <= ü"


def test_tables_wrap_words_and_never_numbers(monkeypatch):
    columns = [left("name"), right("ms"), left("what it is")]
    text = text_table(columns, [("a_name_without_blanks", "12345.678", "some words that say what it is")], width=40)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 40 and "12345.678" in text
    assert "".join(re.sub(r"\s", "", line[:8]) for line in lines[1:]) and "some" in text and "is" in lines[-1]


def test_arrays_wrap_and_are_shortened(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    small, large = np.arange(3), np.arange(4000, dtype=np.float32).reshape(40, 100)
    assert array_text("out0 int64[3] ", small) == "out0 int64[3] [0, 1, 2]"
    lines = array_text("out1 float32[40, 100] ", large).splitlines()
    assert lines[0] == "out1 float32[40, 100]" and max(map(len, lines)) < 50 and "..." in "".join(lines)
    lines = array_text("out2 int64[60] ", np.arange(60)).splitlines()
    assert len(lines) > 3 and " 59]" in lines[-1]


def test_short_times_are_not_shown_as_nothing():
    assert [output.milliseconds(s) for s in (1.5, 2e-5, 1.84e-7, 0.0)] == ["1500.000", "0.020", "0.00018", "0.000"]
