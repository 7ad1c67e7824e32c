"""Bad input on the command line: one line with location and remedy, exit status 2, no traceback, no partial file."""

import io
import os
import subprocess
import sys

import click
import numpy as np
import pytest

from ...cli.main import COMMANDS, main
from ...cli.output import make_safe
from ..cases.modules import ADD


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "add.hlo").write_text(ADD)
    (tmp_path / "typo.hlo").write_text(ADD.replace("add(p", "ad(p"))
    (tmp_path / "rule.hlo").write_text(ADD.replace("f32[2]{0} add", "f32[3]{0} add"))
    (tmp_path / "binary.hlo").write_bytes(b"\x80\x81\xff")
    (tmp_path / "empty").mkdir()
    np.savez(tmp_path / "shape.npz", in0=np.zeros(3, np.float32))
    np.savez(tmp_path / "dtype.npz", in0=np.zeros(2, np.int32))
    np.savez(tmp_path / "reshape.npz", in0=np.zeros((2, 1), np.float32))
    (tmp_path / "notzip.npz").write_text("hello")
    good = tmp_path / "good.npz"
    np.savez(good, in0=np.zeros(2, np.float32))
    for name, old, new in DAMAGED:
        assert old in good.read_bytes()
        (tmp_path / name).write_bytes(good.read_bytes().replace(old, new))
    with open(tmp_path / "one.npz", "wb") as file:
        np.save(file, np.zeros(2, np.float32))
    return tmp_path


DAMAGED = [
    ("version.npz", b"PK\x01\x02\x2d\x03\x2d", b"PK\x01\x02\x2d\x03\x6a"),
    ("header.npz", b"'fortran_order'", b"'fortran_order("),
]
"""Name, bytes of a good .npz file, and the bytes in their place."""

CASES = [
    (["run", "gone.hlo"], "gone.hlo: no such file", "folder with module.hlo"),
    *((c, "rule.hlo:5:", "add") for c in (["opt", "rule.hlo"], ["buffers", "rule.hlo"], ["show", "rule.hlo"])),
    (["run", "rule.hlo", "--seed", "1", "--emitters", "evaluator"], "rule.hlo:5:", "add"),
    (["diff", "empty"], "empty/module.hlo: no such file", "must hold module.hlo"),
    (["run", "binary.hlo"], "not UTF-8 text at byte 0", "HLO text"),
    (["run", "typo.hlo"], "typo.hlo:5:", "add"),
    (["diff", "typo.hlo"], "typo.hlo:5:", "add"),
    (["stages", "typo.hlo", "--dir", "out"], "typo.hlo:5:", "add"),
    (["bench", "typo.hlo"], "typo.hlo:5:", "add"),
    (
        ["run", "add.hlo", "--inputs", "shape.npz"],
        "shape.npz: in0: shape [3] does not match f32[2]",
        "give an array of shape [2]",
    ),
    (["run", "add.hlo", "--inputs", "reshape.npz"], "shape [2, 1] does not match f32[2]", "reshape it to [2]"),
    (["run", "add.hlo", "--inputs", "version.npz"], "version.npz: not a readable .npz file", "numpy.savez"),
    (["run", "add.hlo", "--inputs", "header.npz"], "header.npz: in0: not a readable .npz file", "numpy.savez"),
    (["run", "add.hlo", "--inputs", "one.npz"], "one.npz: one array, not an .npz file", "in0=array"),
    (["run", "add.hlo", "--inputs", "dtype.npz"], "dtype.npz: in0: dtype s32 does not match f32[2]", "float32"),
    (["run", "add.hlo", "--inputs", "notzip.npz"], "notzip.npz: not a readable .npz", "numpy.savez"),
    (["run", "add.hlo", "--inputs", "gone.npz"], "gone.npz: no such file", "in0"),
    (["run", "add.hlo", "--inputs", "shape.npz", "--seed", "1"], "exclude each other", "run --help"),
    (["run", "add.hlo", "--emitters", "mlri"], "mlri", "mlir"),
    (["run", "add.hlo", "--emitters", "mlir,tahn=legacy"], "tahn", "did you mean"),
    (["run", "add.hlo", "--output", "no/such/out.npz"], "cannot write", "writable"),
    (["run", "add.hlo", "--frobnicate"], "--frobnicate", "run --help"),
    (["run"], "MODULE", "run --help"),
    (["frobnicate"], "frobnicate", "--help"),
    (["diff", "add.hlo", "--stacks", "legacy,llvm"], "unknown stack 'llvm'", "mlir"),
    (["diff", "add.hlo", "--stacks", "legacy"], "two stacks", "diff --help"),
    (["bench", "add.hlo", "--ab", "legacy,legacy"], "twice", "choose from"),
    (["bench", "add.hlo", "--rounds", "0"], "--rounds", "bench --help"),
    (["conform", "empty"], "manifest.jsonl: no such file", "suite"),
    (["conform", "empty", "--stacks", "all"], "unknown stack 'all'", "parse"),
]


@pytest.mark.parametrize(("arguments", "what", "remedy"), CASES, ids=[" ".join(c[0]) for c in CASES])
def test_one_line_with_place_and_remedy(folder, monkeypatch, capsys, arguments, what, remedy):
    monkeypatch.chdir(folder)
    before = sorted(p.name for p in folder.rglob("*"))
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    first, *rest = err.splitlines()
    assert first.startswith("testbed: error: ") and what in first and remedy in first
    assert "Traceback" not in err and out == ""
    assert not rest or rest[-1].strip() == "^"  # a parse error shows the line and a caret, and nothing else follows
    assert sorted(p.name for p in folder.rglob("*")) == before


def test_standard_input_is_named_in_errors(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(ADD.replace("f32[2]{0} add", "f33[2]{0} add")))
    assert main(["run", "-"]) == 2
    assert "<stdin>:5:12: " in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, capsys):
    assert main([command, "--help"]) == 0
    assert "Usage: testbed " + command in capsys.readouterr().out


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["run", "show", "opt", "buffers"])
def test_a_full_disk_is_one_line(command, folder):
    script = f"import sys; from {main.__module__} import main; sys.exit(main({[command, str(folder / 'add.hlo')]}))"
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", script], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("testbed: error: cannot write the output: No space left on device")
    assert "Traceback" not in done.stderr


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "", "PATH": os.environ.get("PATH", "")}


@pytest.mark.parametrize("arguments", [["diff", "--stacks", "evaluator,mlir"], ["show"], ["buffers"], ["opt"]])
def test_output_to_an_ascii_pipe_is_ascii(arguments, folder):
    """Tables and messages hold dashes and arrows, and boxes are drawn."""
    script = f"import sys; from {main.__module__} import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, arguments[0], str(folder / "add.hlo"), *arguments[1:]]
    done = subprocess.run(command, capture_output=True, env={**os.environ, **ASCII})
    assert done.returncode == 0
    assert done.stdout and (done.stdout + done.stderr).isascii()


@pytest.mark.parametrize(
    ("encoding", "text", "shown"),
    [("ascii", "a – b → ü", b"a - b -> ?"), ("latin-1", "a – ü", b"a - \xfc"), ("utf-8", "–", "–".encode())],
)
def test_a_stream_replaces_what_its_encoding_lacks(encoding, text, shown):
    data = io.BytesIO()
    stream = io.TextIOWrapper(data, encoding=encoding)
    make_safe(stream)
    click.echo(text, file=stream, nl=False)
    stream.flush()
    assert data.getvalue() == shown


HUGE = "f32[1000000000000000]"
HUGE_MODULES = {
    "iota": (
        f"ROOT i = {HUGE} iota(), iota_dimension=0",
        f"2:16: out of memory: iota i, {HUGE},",
        f"output 0, {HUGE},",
    ),
    "parameter": (f"p = {HUGE} parameter(0)\nROOT n = {HUGE} negate(p)", f"2:11: out of memory: parameter p, {HUGE},"),
    "temporary": (
        f"i = {HUGE} iota(), iota_dimension=0\nROOT s = {HUGE} sort(i), dimensions={{0}}, to_apply=less\n",
        f"iota i, {HUGE},",
        f"{HUGE},",
    ),
}


@pytest.mark.parametrize("emitters", ["evaluator", "legacy", "mlir"])
@pytest.mark.parametrize("name", HUGE_MODULES)
def test_out_of_memory_names_the_array(folder, capsys, name, emitters):
    body, *wanted = HUGE_MODULES[name]
    less = "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = pred[] compare(a, b), direction=LT }\n"
    head = f"HloModule m\n{less if 'less' in body else ''}"
    (folder / "huge.hlo").write_text(f"{head}ENTRY e {{ {body} }}")
    assert main(["run", str(folder / "huge.hlo"), "--emitters", emitters]) == 2
    error = capsys.readouterr().err
    assert "out of memory: " in error and wanted[0 if emitters == "evaluator" else -1] in error
    assert error.count("\n") == 1


def test_interrupt_is_a_status_of_its_own(folder, monkeypatch, capsys):
    def interrupted(spec):
        raise KeyboardInterrupt

    monkeypatch.setattr("testbed.migration.programs.load_program", interrupted)
    assert main(["run", str(folder / "add.hlo")]) == 130
    assert capsys.readouterr().err.strip() == "testbed: interrupted"
