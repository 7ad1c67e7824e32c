"""The default of --emitters: the ledger, or TESTBED_EMITTERS, which is also the stack that `check` runs; Bazel's
configurations set it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ...cli.main import main
from ...migration import Flags, default
from ...migration.ledger import move, new_ledger
from ..cases.modules import ADD
from ..support import check
from ..support.ledgers import DAY, ledger_file

# The real checkout, also from inside Bazel's sandbox.
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def add(tmp_path):
    (tmp_path / "add.hlo").write_text(ADD)
    return str(tmp_path / "add.hlo")


def stack_of_add(add, capsys, *options):
    """The stack of the kernel of a compiled file, as `inspect` names it."""
    assert main(["compile", add, "-o", "add.tbx", *options]) == 0
    capsys.readouterr()
    assert main(["inspect", "add.tbx", "--json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    return kernel["emitter"]


def test_the_ledger_is_the_default_and_legacy_the_way_back(add, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("TESTBED_EMITTERS", raising=False)
    monkeypatch.chdir(tmp_path)
    on = new_ledger()
    for name in on.rows:
        on = move(on, name, "on", DAY, "for this test")
    path = ledger_file(tmp_path, on)
    monkeypatch.setattr(default, "FILE", path)
    assert main(["run", add, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["programs"][0]["emitters"] == "ledger"
    assert stack_of_add(add, capsys) == "mlir" and stack_of_add(add, capsys, "--emitters", "legacy") == "legacy"
    monkeypatch.setenv("TESTBED_EMITTERS", "legacy")
    assert stack_of_add(add, capsys) == "legacy" and stack_of_add(add, capsys, "--emitters", "ledger") == "mlir"
    monkeypatch.delenv("TESTBED_EMITTERS")
    assert main(["toggles", "--ledger", str(path), "rollback", "elemental.float"]) == 0
    assert stack_of_add(add, capsys) == "legacy" and stack_of_add(add, capsys, "--emitters", "mlir") == "mlir"


@pytest.mark.parametrize("emitters", ["legacy", "mlir", "mlir,reduce=legacy", "evaluator"])
def test_the_environment_is_the_default(emitters, add, monkeypatch, capsys):
    monkeypatch.setenv("TESTBED_EMITTERS", emitters)
    assert main(["run", add, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["programs"][0]["emitters"] == emitters


def test_the_option_is_stronger(add, monkeypatch, capsys):
    monkeypatch.setenv("TESTBED_EMITTERS", "mlir")
    assert main(["run", add, "--emitters", "legacy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["programs"][0]["emitters"] == "legacy"


def test_a_wrong_value_is_one_line(add, monkeypatch, capsys):
    monkeypatch.setenv("TESTBED_EMITTERS", "mlri")
    assert main(["run", add]) == 2
    assert "unknown stack 'mlri' in 'mlri' (did you mean 'mlir'?)" in capsys.readouterr().err


def test_check_runs_the_stack_that_the_environment_names():
    code = f"from {check.__name__} import STACKS; print(*STACKS)"
    for emitters, stacks in (("", "evaluator legacy mlir"), ("mlir", "evaluator mlir"), ("ledger", "evaluator ledger")):
        environ = {**os.environ, "TESTBED_EMITTERS": emitters}
        done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
        assert done.stdout.strip() == stacks, done.stderr


def test_bazels_configurations_are_flags():
    found = dict(re.findall(r"^test:(\w+) --test_env=TESTBED_EMITTERS=(\w+)$", (ROOT / ".bazelrc").read_text(), re.M))
    assert {"legacy", "mlir", "ledger", "shadow"} <= found.keys()
    for name, value in found.items():
        assert name == value and Flags.parse(value)
