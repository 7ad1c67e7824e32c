"""The installed package: what the wheel holds, and that commands, examples and type checkers work with it elsewhere."""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ...hlo.remedies import adding
from ...migration.ledger_file import RECORDS
from ...tools.python import packages
from ..support.installed import PROJECT, contents, environ, environment

# The real checkout, also from inside Bazel's sandbox.
ROOT = Path(__file__).resolve().parents[2]

MODULE = """HloModule m
add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[4,8] parameter(0)
  z = f32[] constant(0)
  r = f32[4] reduce(x, z), dimensions={1}, to_apply=add
  b = f32[4,8] broadcast(r), dimensions={0}
  ROOT y = f32[4,8] divide(x, b)
}
"""

USER = """
import inspect
from typing import Annotated

import numpy as np

import testbed
from testbed import XlaBuilder, XlaOp, ffi, ops


class Count:
    calls = 0


@ffi.handler(stage="instantiate")
def begin(options: ffi.Attrs) -> Count:
    assert options.get("n", ffi.int64) > 0
    return Count()


@ffi.handler
def scale(
    x: ffi.Buffer[ffi.F32],
    y: ffi.Result[ffi.BufferR1[ffi.F32]],
    k: Annotated[float, ffi.Attr[ffi.float32]("k")],
    last: ffi.OptionalArg[ffi.AnyBuffer],
    count: ffi.State[Count],
    scratch: ffi.ScratchAllocator,
) -> ffi.Error | None:
    count.calls += 1
    y[...] = x * k + scratch.array(x.shape, np.float32)
    return None if last is None else ffi.Error(ffi.ErrorCode.ABORTED, str(last.dtype))


stages: dict[str, ffi.Handler] = {"instantiate": begin, "execute": scale}
explicit: ffi.Handler = ffi.bind().arg(ffi.Buffer[ffi.F32]).ret(ffi.AnyBuffer).attr(ffi.int32, "n").to(print)
ffi.register("scale", stages, platform="Host")
address: int = explicit.ffi_address


def softmax(x: XlaOp) -> XlaOp:
    e = ops.exp(x)
    return e / ops.broadcast_in_dim(ops.reduce(e, 0.0, ops.add, [1]), x.dims, [0])


b = XlaBuilder("softmax")
module: testbed.Module = b.build(softmax(ops.parameter(b, 0, "f32[2,3]", "x")))
executable: testbed.Executable = testbed.compile(module, "mlir")
x = np.ones((2, 3), np.float32)
y = executable(x)
np.testing.assert_allclose(y, 1 / 3, rtol=1e-6)
again: list[np.ndarray] = testbed.run(testbed.to_text(module), [x])
assert list(inspect.signature(executable).parameters) == ["x"]
try:
    testbed.load("nosuch.hlo")
except testbed.InputError as error:
    assert error.remedy
shape: testbed.Shape = module.result_shape
dtype: testbed.DType = shape.dtype
print(executable)
"""

WRONG_USER = """
import testbed
from testbed import XlaBuilder, ffi, ops

b = XlaBuilder("m")
x = ops.parameter(b, 0, "f32[2]")
ops.tanh(x, x, x)
ops.reduce(x)
testbed.compile("HloModule m", stack="mlir")
testbed.nosuch
b.build(x).nosuch
text: int = testbed.to_text(b.build(x))
ffi.bind().argument(ffi.AnyBuffer)
ffi.nosuch
text = ffi.handler(print).ffi_name
def wrong(x: ffi.Buffer[int]) -> None: ...
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return environment(tmp_path_factory.mktemp("installed") / "venv")


@pytest.fixture
def module(tmp_path):
    (tmp_path / "m.hlo").write_text(MODULE)
    return "m.hlo"


def call(python, folder, *arguments, status=0):
    done = subprocess.run([python, *arguments], cwd=folder, env=environ(), capture_output=True, text=True, timeout=300)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_package_is_the_installed_one(python, tmp_path):
    place = call(python, tmp_path, "-c", "import testbed; print(testbed.__file__)").strip()
    assert Path(place).is_relative_to(Path(python).parents[1])


# -- the wheel --------------------------------------------------------------------------------------------------------
def backend() -> str:
    """Why the wheel cannot be built here; '' if it can."""
    wanted = PROJECT["build-system"]["requires"][0].removeprefix("setuptools>=")
    try:
        found = importlib.metadata.version("setuptools")
    except importlib.metadata.PackageNotFoundError:
        return f"needs setuptools >= {wanted} to build a wheel"
    return "" if int(found.split(".")[0]) >= int(wanted) else f"needs setuptools >= {wanted}, found {found}"


@pytest.mark.skipif(backend() != "", reason=backend())
def test_the_wheel_holds_the_package_and_nothing_else(tmp_path):
    checkout = tmp_path / "checkout"
    ignored = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "corpus", "bazel-*")
    shutil.copytree(ROOT, checkout, ignore=ignored)
    build = "import setuptools.build_meta as b; print(b.build_wheel('dist'))"
    done = subprocess.run([sys.executable, "-c", build], cwd=checkout, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (wheel,) = (checkout / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        (points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        assert "testbed = testbed.cli.start:run" in archive.read(points).decode()
    assert sorted(names) == list(contents())


def test_the_list_has_what_is_read_at_run_time_and_no_tests():
    names = set(contents())
    assert {"testbed/__main__.py", "testbed/py.typed", "testbed/formats/builder/elementwise.pyi"} <= names
    assert {"testbed/formats/proto/hlo.proto", "testbed/formats/stablehlo/worker.py"} <= names
    assert not [n for n in names if n.startswith(("testbed/tests/", "testbed/tools/", "testbed/examples/"))]
    assert "testbed/conftest.py" not in names
    listed = set(contents().values())
    for package in packages.found(ROOT)[1:]:
        folder = ROOT.joinpath(*package.split(".")[1:])
        assert {p.name for p in folder.iterdir() if p.is_file() and p not in listed} <= {"BUILD", *RECORDS}, package


# -- commands ---------------------------------------------------------------------------------------------------------
def test_python_m_testbed_is_the_command(python, tmp_path):
    assert call(python, tmp_path, "-m", "testbed", "--version").startswith("testbed ")
    assert "no such command 'nosuch'" in call(python, tmp_path, "-m", "testbed", "nosuch", status=2).lower()


COMMANDS = {
    "run": (["m.hlo", "--output", "io.npz"], "out0"),
    "diff": (["m.hlo"], "agree"),
    "show": (["m.hlo", "--graph", "m.svg"], "opcodes"),
    "opt": (["m.hlo"], "HloModule"),
    "stages": (["m.hlo", "--dir", "d"], ""),
    "buffers": (["m.hlo"], "arena"),
    "report": (["-o", "board"], "open board/index.html"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_works_from_an_installed_package(python, module, tmp_path, name):
    arguments, says = COMMANDS[name]
    assert says in call(python, tmp_path, "-m", "testbed", name, *arguments)


@pytest.mark.parametrize("name", ["test", "setup"])
def test_what_needs_a_checkout_says_so(python, tmp_path, name):
    answer = call(python, tmp_path, "-m", "testbed", name, status=2)
    assert "only a checkout has" in answer and len(answer.splitlines()) == 1


def test_a_remedy_names_what_an_installed_package_can_do(python, tmp_path):
    """The packages of this environment are there, so the check is of the words."""
    words = "from testbed.hlo.remedies import adding; print(adding('xla'))"
    assert call(python, tmp_path, "-c", words).strip() == "pip install 'xla-testbed[xla]'"
    assert adding("xla") == "./testbed setup --xla"


def test_an_example_of_the_checkout_runs(python, tmp_path):
    assert "out2" in call(python, tmp_path, "-m", "testbed", "run", str(ROOT / "examples/heat_stencil"))


@pytest.mark.skipif("TEST_SRCDIR" in os.environ, reason="needs an interpreter that the checkout is linked to")
def test_the_checkout_itself_runs_by_python_m(tmp_path):
    assert call(sys.executable, tmp_path, "-m", "testbed", "--version").startswith("testbed ")


# -- a user's program -------------------------------------------------------------------------------------------------
def test_a_users_program_runs(python, tmp_path):
    (tmp_path / "user.py").write_text(USER)
    assert "softmax(x: f32[2,3]) -> f32[2,3]" in call(python, tmp_path, "user.py")


def check_types(folder, command):
    """Run a type checker on the right program and on the wrong one, and compare the lines that it complains about."""
    (folder / "right.py").write_text(USER)
    (folder / "wrong.py").write_text(WRONG_USER)
    command = [*command, "right.py", "wrong.py"]
    done = subprocess.run(command, cwd=folder, env=environ(), capture_output=True, text=True, timeout=600)
    found = re.findall(r"(right|wrong)\.py:(\d+)(?::\d+)?(?: -|:) error", done.stdout)
    wanted = {("wrong", str(line)) for line in range(7, 17)}
    assert done.returncode == 1 and set(found) == wanted, done.stdout + done.stderr


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="needs mypy")
def test_mypy_knows_the_public_names_from_outside(python, tmp_path):
    options = ["--strict", "--python-executable", python, "--cache-dir", tmp_path / "cache"]
    check_types(tmp_path, [sys.executable, "-m", "mypy", *options])


@pytest.mark.skipif(shutil.which("pyright") is None, reason="needs pyright on PATH")
def test_pyright_knows_the_public_names_from_outside(python, tmp_path):
    check_types(tmp_path, ["pyright", "--pythonpath", str(python)])


def test_the_two_lists_of_public_names_are_equal():
    import testbed

    text = (ROOT / "__init__.py").read_text(encoding="utf-8")
    typed = {row.split(" as ")[-1].strip() for row in text.splitlines() if row.startswith("    from .")}
    assert typed == set(testbed._PUBLIC)
    for name, room in testbed._PUBLIC.items():
        path = room.removesuffix(":").replace(".", "/")
        place = room.rpartition(".")[0] if room.endswith(":") else room
        assert (ROOT / f"{path}.py").exists() or (ROOT / path / "__init__.py").exists()
        assert f"from .{place} import {name} as {name}" in text
