"""`compile`, `exec` and `inspect`: programs as files on the command line."""

import json

import numpy as np
import pytest

from ...cli.main import main
from ...formats.arrays import save_io
from ...thunks.wire.container import FORMAT
from ..cases.modules import ADD

SUB = """HloModule sub
ENTRY e {
  a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  ROOT s = f32[2] subtract(a, b)
}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub.hlo").write_text(SUB)
    (tmp_path / "add.hlo").write_text(ADD)
    (tmp_path / "key").write_bytes(b"k" * 32)
    (tmp_path / "other").write_bytes(b"o" * 32)
    (tmp_path / "short").write_bytes(b"k" * 15)
    assert main(["compile", "sub.hlo", "-o", "sub.tbx", "--emitters", "mlir"]) == 0
    assert main(["compile", "add.hlo", "-o", "signed.tbx", "--sign", "key"]) == 0
    return tmp_path


def test_compile_says_what_it_wrote(folder, capsys):
    capsys.readouterr()
    assert main(["compile", "sub.hlo", "-o", "again.tbx", "--emitters", "mlir"]) == 0
    size = (folder / "again.tbx").stat().st_size
    assert capsys.readouterr().out.replace("\n  ", " ").startswith(f"again.tbx: {size:,} bytes; kernels: 1 mlir; for ")
    assert (folder / "again.tbx").read_bytes() == (folder / "sub.tbx").read_bytes()


@pytest.mark.parametrize(
    "options", [["--seed", "7"], ["--init", "iota"], [], ["--input", "{5,7}", "--input", "b={1,2}"]]
)
def test_exec_prints_what_run_prints(folder, options, capsys):
    capsys.readouterr()
    assert main(["run", "sub.hlo", "--emitters", "mlir", *options]) == 0
    wanted = capsys.readouterr().out
    assert main(["exec", "sub.tbx", *options]) == 0
    assert capsys.readouterr().out == wanted != ""


def test_exec_reads_and_saves_arrays(folder):
    a, b = np.float32([5, 7]), np.float32([1, 2])
    save_io(folder / "io.npz", [a, b], [])
    assert main(["exec", "sub.tbx", "--inputs", "io.npz", "-o", "out.npz"]) == 0
    with np.load(folder / "out.npz") as saved:
        assert saved["out0"].tolist() == [4, 5] and saved["in1"].tolist() == [1, 2]


def test_exec_as_json(folder, capsys):
    capsys.readouterr()
    assert main(["exec", "sub.tbx", "--init", "ones", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["results"] == [{"shape": "f32[2]", "values": [0.0, 0.0]}]
    assert (document["program"], document["name"], document["inputs"]) == ("sub.tbx", "sub", "--init ones")


def test_inspect_prints_each_part(folder, capsys):
    capsys.readouterr()
    assert main(["inspect", "sub.tbx"]) == 0
    out = capsys.readouterr().out
    for word in (f"sub.tbx: format {FORMAT}", "not signed", "target: ", "entry: sub(a: f32[2], b: f32[2]) -> f32[2]",
                 "constants", "parameter 1, f32[2]", "s_kernel  mlir", "sequence {\n  kernel "):  # fmt: skip
        assert word in out


@pytest.mark.default_emitters
def test_inspect_as_json(folder, capsys):
    capsys.readouterr()
    assert main(["inspect", "signed.tbx", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["signed"] is True and document["format"] == FORMAT and document["target"]["refused_here"] is None
    assert [s["name"] for s in document["sections"]] == ["target", "entry", "buffers", "program", "code", "constants"]
    assert document["thunks"].startswith("sequence {") and document["kernels"][0]["emitter"] == "mlir"


def test_inspect_prints_the_host_program(folder, capsys):
    assert main(["compile", "sub.hlo", "-o", "host.tbx", "--host-program", "compiled"]) == 0
    capsys.readouterr()
    assert main(["inspect", "host.tbx", "--host"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("module {") and "func.call @s_kernel" in text.replace(" call @", " func.call @")
    assert main(["inspect", "host.tbx", "--host", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["host"] == text and "host" in [s["name"] for s in document["sections"]]
    assert main(["inspect", "sub.tbx", "--host"]) == 2
    error = "testbed: error: sub.tbx: no MLIR of a host program is in it (compile the module again with --host-program"
    assert capsys.readouterr().err.startswith(error)


@pytest.mark.parametrize("command", ["exec", "inspect"])
def test_a_signature_is_asked_for_by_verify(folder, command, capsys):
    assert main([command, "signed.tbx", "--verify", "key"]) == 0
    capsys.readouterr()
    for arguments, message in (
        (["signed.tbx", "--verify", "other"], "signed.tbx: the signature is not of this key"),
        (["sub.tbx", "--verify", "key"], "sub.tbx: the file is not signed"),
        (["sub.tbx", "--verify", "short"], "short: a key of 15 bytes; it must have 16 to 4096 (make one: head -c 32"),
        (["sub.tbx", "--verify", "gone"], "gone: No such file or directory"),
        (["gone.tbx"], "gone.tbx: No such file or directory"),
        (["sub.hlo"], "sub.hlo: not a .tbx file: it does not begin with TBX (make one with testbed compile)"),
    ):
        assert main([command, *arguments]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"testbed: error: {message}") and error.count("\n") == 1, error


def test_errors_of_exec_and_compile_are_one_line(folder, capsys):
    capsys.readouterr()
    for arguments, message in (
        (["exec", "sub.tbx", "--input", "{1,2}"], "no value for parameter b of shape f32[2]"),
        (["exec", "sub.tbx", "--inputs", "gone.npz"], "gone.npz: no such file"),
        (["exec", "sub.tbx", "--init", "ones", "-o", "no/out.npz"], "no/out.npz: cannot write"),
        (["compile", "sub.hlo", "-o", "no/p.tbx"], "no/p.tbx: cannot write"),
        (["compile", "sub.hlo"], "Missing option '-o' / '--output'"),
        (["compile", "sub.hlo", "-o", "p.tbx", "--sign", "short"], "short: a key of 15 bytes"),
        (["compile", "sub.hlo", "-o", "p.tbx", "--emitters", "evaluator"], ""),
    ):
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"testbed: error: {message}") and error.count("\n") == 1, error
    assert not (folder / "p.tbx").exists()
