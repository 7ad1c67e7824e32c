"""Libraries are loaded when an object needs them. Missing ones are named; threads, Ctrl-C and fork() cause no harm."""

import ctypes
import multiprocessing
import subprocess
import sys
import threading

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...codegen.errors import CodegenError
from ...codegen.library import symbols
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module

TEXT = """HloModule m
ENTRY e {
  a = f32[8,40,40]{2,1,0} parameter(0)
  c = f32[8,40,40]{2,1,0} cholesky(a), lower=true
  ROOT s = f32[8,40,40]{2,1,0} add(c, c)
}
"""


def matrices() -> np.ndarray:
    a = np.random.default_rng(0).normal(size=(8, 40, 40))
    return (a @ a.swapaxes(1, 2) + 40 * np.eye(40)).astype(np.float32)


def close(result: np.ndarray) -> bool:
    return np.allclose(result, 2 * np.linalg.cholesky(matrices()), rtol=1e-3, atol=1e-3)


@pytest.fixture
def forgotten():
    """Make OpenBLAS count as not yet loaded, before and after the test."""
    symbols._openblas.cache_clear()
    yield
    symbols._openblas.cache_clear()


def refused() -> str:
    with pytest.raises(CodegenError) as error:
        compile_module(parse_module(TEXT), options=CompileOptions(cache=None))
    return str(error.value)


def test_a_library_that_is_not_installed_is_named(forgotten, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy_openblas32", None)
    assert "scipy-openblas32 is not installed" in refused()


def test_a_library_that_does_not_load_is_named(forgotten, monkeypatch, tmp_path):
    import scipy_openblas32

    (tmp_path / scipy_openblas32.get_library(fullname=True)).write_text("no library")
    monkeypatch.setattr(scipy_openblas32, "get_library", lambda fullname: str(tmp_path / "libscipy_openblas.so"))
    message = refused()
    assert "OpenBLAS does not load" in message and "reinstall" in message


def test_a_routine_that_the_library_lacks_is_named():
    with pytest.raises(CodegenError, match="OpenBLAS has no 'scipy_sfoo_'"):
        symbols.library_address("scipy_sfoo_")


def test_other_symbols_are_no_librarys():
    assert symbols.library_address("expf") is None


def test_openblas_stays_on_the_callers_thread():
    assert symbols.library_address("scipy_spotrf_")
    threads = symbols._openblas().scipy_openblas_get_num_threads
    threads.restype = ctypes.c_int
    assert threads() == 1


def test_a_stack_is_reported_as_library():
    executable = compile_module(parse_module(TEXT), Flags.parse("mlir"))
    assert [stack for _, stack in executable.kernels] == ["library", "mlir"]


def test_programs_without_library_ops_load_none():
    code = (
        "import sys, numpy as np\nimport testbed\n"
        "testbed.compile('HloModule m\\nENTRY e { p = f32[4]{0} parameter(0) ROOT r = f32[4]{0} add(p, p) }')\n"
        "assert 'scipy_openblas32' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_threads_call_a_library_at_once():
    executable, value, found = compile_module(parse_module(TEXT)), matrices(), []
    threads = [
        threading.Thread(target=lambda: found.extend(close(executable.execute([value])[0]) for _ in range(20)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 80


def _child(executable, value, queue) -> None:
    queue.put(close(executable.execute([value])[0]))


def test_a_forked_child_calls_a_library():
    executable, value = compile_module(parse_module(TEXT)), matrices()
    assert close(executable.execute([value])[0])
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(executable, value, queue))
    child.start()
    assert queue.get(timeout=60) is True
    child.join(60)
    assert child.exitcode == 0
