"""Handlers from files that a command line names, and libraries in the current folder."""

import shutil
import subprocess

import numpy as np
import pytest

from ...cli.main import main
from ...evaluator.evaluator import evaluate
from ...ffi import from_files
from ...ffi.from_files import load_handlers
from ...ffi.registry import find, unregister
from ...ffi.static_library import register_symbols
from ...formats.program import save_io
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError, TestbedError

PACKAGE = TestbedError.__module__.partition(".")[0]
CALL = """HloModule m
ENTRY e {
  p = f32[4]{0} parameter(0)
  ROOT r = f32[4]{0} custom-call(p), custom_call_target="TARGET", api_version=API_VERSION_TYPED_FFI
}
"""
PLAIN = f"""
from {PACKAGE} import ffi

@ffi.handler
def NAME(x: ffi.Buffer[ffi.F32], y: ffi.Result[ffi.Buffer[ffi.F32]]):
    y[...] = x + 1
"""


@pytest.fixture
def handlers(tmp_path, request):
    """A file of handlers for a target of this test, and a module that calls it."""
    name = f"plus_one_of_{abs(hash(request.node.name))}"
    (tmp_path / "h.py").write_text(PLAIN.replace("NAME", name))
    (tmp_path / "m.hlo").write_text(CALL.replace("TARGET", name))
    yield tmp_path
    unregister(name)


@pytest.mark.parametrize("command", [
    ["run", "--emitters", "mlir"],
    ["run", "--emitters", "evaluator"],
    ["diff"],
    ["profile", "--iterations", "2"],
])  # fmt: skip
def test_commands_take_handlers(handlers, command, capsys):
    assert main([command[0], str(handlers / "m.hlo"), *command[1:], "--handlers", str(handlers / "h.py")]) == 0
    assert "Traceback" not in capsys.readouterr().err


def test_workers_load_them(handlers, capsys):
    x = np.arange(4, dtype=np.float32)
    load_handlers([str(handlers / "h.py")])
    save_io(handlers / "io.npz", [x], evaluate(parse_module((handlers / "m.hlo").read_text()), [x]))
    (handlers / "manifest.jsonl").write_text('{"id": "plus", "hlo": "m.hlo", "golden": "io.npz"}\n')
    given = ["conform", str(handlers), "--stacks", "evaluator,legacy,mlir", "--jobs", "1"]
    assert main(given) == 0 and "0 passed" in capsys.readouterr().out
    assert main([*given, "--handlers", str(handlers / "h.py")]) == 0
    assert "1 of 1 cases pass" in capsys.readouterr().out


@pytest.mark.parametrize("text, why", [
    ("x = 1\n", "h.py: registers no handler"),
    ("import nothing_of_this_name\n", "h.py:1: ModuleNotFoundError"),
    ("x = 1\nraise ValueError('no')\n", "h.py:2: ValueError: no"),
])  # fmt: skip
def test_what_is_wrong_with_a_file_is_one_line(tmp_path, text, why, capsys):
    (tmp_path / "h.py").write_text(text)
    (tmp_path / "m.hlo").write_text(CALL)
    assert main(["run", str(tmp_path / "m.hlo"), "--handlers", str(tmp_path / "h.py")]) == 2
    error = capsys.readouterr().err
    assert why in error and error.count("\n") == 1


@pytest.mark.parametrize("spec, why", [
    ("absent.py", "no such file"),
    ("absent.so:a=b", "no such file"),
    ("h.txt", "neither a shared library nor a Python file"),
    ("h.py:a=b", "names its handlers itself"),
])  # fmt: skip
def test_what_is_no_file_of_handlers(spec, why):
    with pytest.raises(InputError, match=why):
        load_handlers([spec])


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_a_library_in_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "add.c").write_text("void *add(void *frame) { return 0; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "add.so", "add.c"], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    try:
        register_symbols("add.so", {"in_this_folder.add": "add"})
        assert find("in_this_folder.add") is not None
        assert load_handlers(["add.so:in_this_folder.more=add"]) == ("in_this_folder.more",)
        with pytest.raises(InputError, match="has no symbol 'nothing'"):
            load_handlers(["add.so:nothing"])
        with pytest.raises(InputError, match="the library registers no handler"):
            load_handlers(["add.so"])
    finally:
        unregister("in_this_folder.add")
        unregister("in_this_folder.more")


TRIDIAGONAL = """HloModule m
ENTRY e {
  a = f32[3]{0} parameter(0)
  b = f32[3]{0} parameter(1)
  c = f32[3]{0} parameter(2)
  d = f32[3,1]{1,0} parameter(3)
  ROOT x = f32[3,1]{0,1} custom-call(a, b, c, d), custom_call_target="tridiagonal_solve_perturbed_ffi",
    operand_layout_constraints={f32[3]{0}, f32[3]{0}, f32[3]{0}, f32[3,1]{0,1}}, api_version=API_VERSION_TYPED_FFI
}
"""


def test_what_jaxlib_alone_has(tmp_path, capsys):
    (tmp_path / "m.hlo").write_text(TRIDIAGONAL)
    assert main(["run", str(tmp_path / "m.hlo")]) == 2
    assert "jaxlib has it: --handlers jaxlib" in capsys.readouterr().err
    pytest.importorskip("jaxlib")
    try:
        x = np.array([0, 1, 1], np.float32), np.full(3, 4, np.float32), np.array([1, 1, 0], np.float32)
        right = np.array([[5], [6], [5]], np.float32)
        save_io(tmp_path / "io.npz", [*x, right], [np.ones((3, 1), np.float32)])
        (tmp_path / "m.hlo").rename(tmp_path / "module.hlo")
        assert main(["diff", str(tmp_path), "--handlers", "jaxlib", "--stacks", "evaluator,legacy,mlir"]) == 0
        assert "agree" in capsys.readouterr().out
        assert find("lapack_sgetrf_ffi") is None  # our own library has it
    finally:
        unregister("tridiagonal_solve_perturbed_ffi")
        from_files._loaded.cache_clear()
