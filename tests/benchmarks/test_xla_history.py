"""Versions of jaxlib side by side: kernels of one computation in one row, the page, installing, the child's answers."""

import shutil
import sys

import numpy as np
import pytest

from ...backends.xla import installed, versions
from ...backends.xla.dump import version
from ...backends.xla.versions import Ran, XlaVersion, dump_with, provided, run_with
from ...benchmarks import xla_history
from ...benchmarks.xla_history import Cell, History, HistoryRow, Whole
from ...benchmarks.xla_history_report import document
from ...benchmarks.xla_kernels import key_of
from ...cli.main import main
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError
from ...migration.xla_programs import read_program
from ...xla_kernels.folder import one_module
from ..support.xla_dump import write_dump

needs_xla = pytest.mark.skipif(not installed(), reason="needs jaxlib (./testbed setup --xla)")


@pytest.fixture
def dump(tmp_path):
    return write_dump(tmp_path / "dump")


def test_versions_stand_side_by_side(dump, tmp_path, monkeypatch, capsys):
    """Two versions that give the same kernels, and one that gives none."""

    def give(version, module, folder):
        shutil.copytree(dump, folder)

    def run(version, module, inputs, runs):
        if version.version == "0.4.30":
            raise InputError("no kernels here")
        return Ran(0.5, 2e-6, (np.zeros(4, np.float32),))

    monkeypatch.setattr(xla_history, "dump_with", give)
    monkeypatch.setattr(xla_history, "run_with", run)
    monkeypatch.setattr(versions, "provided", lambda version, *_: XlaVersion(version, tmp_path, "python"))
    page = tmp_path / "page.md"
    common = ["--jaxlib", "0.4.30,0.7.2,0.10.2", "--rounds", "3", "--seconds", "0.00001", "-o", str(page)]
    assert main(["history", str(dump), *common]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.count("loop_fusion") == 4
    assert "0.4.30: no kernels here" in out
    assert "0.7.2: whole program 2 us in jaxlib" in out and "2 computations" in out
    text = page.read_text()
    assert "| all | – | loop_fusion 2 | loop_fusion 2 |" in text
    assert "| 0.7.2 → 0.10.2 | 2 | 0 |" in text
    assert "- 0.4.30: no kernels here (1 of 1 programs)" in text


def test_the_page_counts_emitters_and_says_which_kernels_have_no_ir():
    row = HistoryRow("sum", "reduce", {"0.7.2": Cell("elemental", "a", 2e-6, 1.0), "0.12": Cell("", "b", 1e-6, 0.0)})
    whole = {"0.7.2": Whole(0.5, 3e-6, 0.0), "0.12": Whole(0.25, 2e-6, 0.0)}
    text = document([History("p", [row], whole)], ["0.7.2", "0.12"])
    assert "| reduce | elemental 1 | ? 1 |" in text
    assert "| 0.7.2 → 0.12 | 1 | 1 | 0.50 | 0.50 | 0.50 | 0 of 1 |" in text
    assert "| p | 3.0, 0.50 s | 2.0, 0.25 s |" in text
    assert "1 kernels have no IR in the dump, and show as `?`." in text


WRAPPED = """HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
alone { x = f32[4,8] parameter(0) z = f32[] parameter(1) ROOT r = f32[4] reduce(x, z), dimensions={1}, to_apply=add }
turned { z = f32[] parameter(0) x = f32[4,8] parameter(1) ROOT r = f32[4] reduce(x, z), dimensions={1}, to_apply=add }
ENTRY e {
  x = f32[4,8] parameter(0)
  z = f32[] parameter(1)
  bare = f32[4] reduce(x, z), dimensions={1}, to_apply=add
  wrapped = f32[4] fusion(x, z), kind=kLoop, calls=alone
  other = f32[4] fusion(z, x), kind=kLoop, calls=turned
  ROOT t = (f32[4], f32[4], f32[4]) tuple(bare, wrapped, other)
}
"""


def test_an_op_and_the_fusion_of_it_alone_are_one_computation():
    at = parse_module(WRAPPED, "m.hlo").entry.by_name
    assert key_of(at["bare"]) == key_of(at["wrapped"])
    assert key_of(at["bare"]) != key_of(at["other"]), "its arguments come in another order"


def test_a_version_that_cannot_be_installed_is_one_line(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="'new' is no version of jaxlib"):
        provided("new", tmp_path)

    def fail(version, python, folder):
        raise InputError("No matching distribution found for jaxlib==9.9.9")

    monkeypatch.setattr(versions, "_install", fail)
    with pytest.raises(InputError, match=r"jaxlib 9\.9\.9: not installed: Python 3\.\d+: No matching distribution"):
        provided("9.9.9", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_python_of_pyenv_is_found_where_the_shim_on_path_does_not_start(tmp_path, monkeypatch):
    shim, own = tmp_path / "python3.99", tmp_path / "versions" / "3.99.1" / "bin" / "python3"
    own.parent.mkdir(parents=True)
    for path, status in ((shim, 127), (own, 0)):
        path.write_text(f"#!/bin/sh\nexit {status}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(versions, "PYTHONS", ("3.99",))
    assert [python.path for python in versions._pythons(tmp_path)] == [sys.executable, str(own)]


ADD = """HloModule add
ENTRY e {
  x = f32[4] parameter(0)
  h = bf16[4] parameter(1)
  w = f32[4] convert(h)
  s = f32[4] add(x, w)
  ROOT t = (f32[4], bf16[4]) tuple(s, h)
}
"""


@needs_xla
def test_a_version_compiles_runs_and_dumps_a_program(tmp_path):
    """The jaxlib of this environment, by way of the script for other ones."""
    this = XlaVersion(version(), tmp_path / "nothing", sys.executable)
    module = parse_module(ADD, "add.hlo")
    x = np.arange(4, dtype=np.float32)
    h = x.astype(module.parameter_shapes[1].dtype.numpy)
    ran = run_with(this, module, [x, h], 2)
    assert [r.tobytes() for r in ran.results] == [(2 * x).tobytes(), h.tobytes()]
    assert ran.compile_seconds > ran.seconds > 0
    dump_with(this, module, tmp_path / "dump", ("--xla_no_such_flag=1",))
    made = read_program(one_module(tmp_path / "dump"))
    emitters = {match.kernel.emitter for match in made.matches.found.values()}
    assert emitters and emitters <= {"tiled_emitter", "loop_fusion"}
