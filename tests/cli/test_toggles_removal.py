"""`testbed toggles --rehearse-removal`: what is removed, what depends on it, and that the package works without it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ...cli import toggles_removal
from ...cli.main import main
from ...cli.toggles_removal import dependents, elemental_only, remove
from ...migration.choose import ROOMS, present
from ..cases.modules import ADD

# The real checkout, also from inside Bazel's sandbox.
ROOT = Path(__file__).resolve().parents[2]
SMALL = "tests/hlo/test_trees.py"
GONE = ("elementwise", "integer", "typed")


@pytest.fixture
def small(tmp_path):
    """A checkout with a few emitters."""
    files = {
        "legacy/__init__.py": "from .kernel import emit\n",
        "legacy/kernel.py": "from .products import dot\nfrom .numerics.elementwise import EMIT\n",
        "legacy/products/dot.py": "from ..numerics.math import exp\n",
        "legacy/numerics/elementwise.py": "from . import integer\nfrom .math import exp\nfrom .typed import Typed\n",
        "legacy/numerics/integer.py": "from ..bits import count\n",
        "legacy/bits.py": "",
        "legacy/numerics/math.py": "",
        "legacy/numerics/typed.py": "from .elementwise import Emit\n",
        "cli/run.py": "from ..legacy.numerics.integer import add\nfrom .. import legacy\n",
        "cli/show.py": "from ..hlo import ir\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_elemental_files_are_those_that_only_the_table_needs(small):
    assert elemental_only(small / "legacy") == ["bits.py", *(f"numerics/{n}.py" for n in GONE)]
    gone = remove(small, "legacy:elemental")
    assert gone == ["legacy/bits.py", *(f"legacy/numerics/{n}.py" for n in GONE)]
    left = sorted(path.name for path in (small / "legacy").rglob("*.py"))
    assert left == ["__init__.py", "dot.py", "elementwise.py", "kernel.py", "math.py"]
    assert "EMIT: dict = {}" in (small / "legacy/numerics/elementwise.py").read_text()
    assert dependents(small, gone) == ["cli/run.py still depends on them (imports legacy.numerics.integer)"]


def test_the_whole_room(small):
    assert len(remove(small, "legacy")) == 8 and not (small / "legacy").exists()
    gone = ["legacy/__init__.py", "legacy/numerics/integer.py"]
    assert dependents(small, gone) == ["cli/run.py still depends on them (imports legacy, legacy.numerics.integer)"]


def test_no_room_depends_on_the_old_stack(tmp_path):
    """Only tests, tools and faults planted into it do: the package is whole without legacy/."""
    for room in ("migration", "backends", "differential", "benchmarks", "cli", "codegen", "legacy", "pjrt"):
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    left = dependents(tmp_path, remove(tmp_path, "legacy"))
    assert [line for line in left if not line.startswith("differential/planted/")] == []


def test_without_the_room_the_flags_say_so(tmp_path, monkeypatch, capsys):
    (tmp_path / "add.hlo").write_text(ADD)
    monkeypatch.setitem(ROOMS, "legacy", "..gone")
    assert present() == ("mlir",)
    assert main(["run", str(tmp_path / "add.hlo"), "--emitters", "legacy"]) == 2
    assert "this testbed has no legacy emitters: they are removed (use --emitters mlir)" in capsys.readouterr().err
    assert main(["run", str(tmp_path / "add.hlo"), "--emitters", "mlir"]) == 0


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_rehearsal_runs_what_is_left(capsys):
    before = subprocess.run(["git", "status", "--short"], cwd=ROOT, capture_output=True, text=True).stdout
    assert main(["toggles", "--rehearse-removal", "legacy", "--tests", SMALL]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^removed \d+ files: legacy/__init__.py", out)
    assert "conformance: passed" in out and "tests: passed" in out and re.search(r"\d+ passed", out)
    after = subprocess.run(["git", "status", "--short"], cwd=ROOT, capture_output=True, text=True).stdout
    assert after == before


@pytest.mark.deep
def test_a_rehearsal_without_the_elemental_emitters(capsys):
    assert main(["toggles", "--rehearse-removal", "legacy:elemental", "--tests", SMALL]) == 0
    out = capsys.readouterr().out
    assert "legacy without them: reduce: needs add" in out
    assert "legacy without them: transpose: needs nothing of them" in out
    assert "legacy/numerics/complex_math.py stays: dot.py needs it" in out


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--rehearse-removal", "legcy"], "'legcy' is not one of"),
        (["--rehearse-removal", "legacy", "--tests", "tests/gone.py"], "tests/gone.py: no such file"),
        (["--tests", SMALL], "--tests are those of --rehearse-removal"),
    ],
)
def test_what_is_refused_is_one_line(arguments, what, capsys):
    assert main(["toggles", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert what in line


def test_an_installed_package_cannot_be_rehearsed_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(toggles_removal, "ROOT", tmp_path)
    assert main(["toggles", "--rehearse-removal", "legacy"]) == 2
    assert "only a checkout with its history" in capsys.readouterr().err
