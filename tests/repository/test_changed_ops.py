"""What `fuzz --since` draws for: opcodes and forms of the files that changed, or everything, with the reason."""

import subprocess

import pytest

from ...migration.forms import form_tables
from ...tools.changed_ops import OPCODES, Wanted, ops_of_form, wanted_of, wanted_since
from ...tools.dependencies import ROOT, Checkout

HERE = Checkout(ROOT)


@pytest.mark.parametrize(
    ("file", "ops", "forms"),
    [
        ("legacy/products/dot_micro.py", {"dot"}, {"dot/narrow", "dot/tiled"}),
        ("mlir_emitters/products/dot_tile.py", {"dot"}, {"dot/tiled"}),
        ("mlir_emitters/movement/planes.py", {"slice", "transpose"}, {"nest/channels"}),
        ("mlir_emitters/reductions/pool_lines.py", {"reduce-window"}, {"window/phases"}),
        ("mlir_emitters/reductions/extremum.py", {"reduce"}, None),
    ],
)
def test_a_file_of_a_form_is_that_form_and_its_opcodes(file, ops, forms):
    found = wanted_of(HERE, [file])
    assert not found.everything and ops <= found.ops and len(found.ops) < 6
    assert forms is None or {form for _, form in found.forms} == forms
    assert all(why.startswith(file) for why in found.why)


def test_a_file_of_rules_is_the_opcodes_of_its_rules():
    found = wanted_of(HERE, ["legacy/numerics/integer.py"])
    assert {"divide", "remainder", "shift-left"} <= found.ops and not {"tanh", "sort", "dot"} & found.ops
    assert "fft" in wanted_of(HERE, ["evaluator/reference/linalg.py"]).ops


@pytest.mark.parametrize(
    "file",
    [
        "passes/algebra/dot.py",
        "planning/packing.py",
        "codegen/glue.py",
        "legacy/core/builder.py",
        "legacy/loops/form.py",
        "mlir_emitters/choice.py",
        "legacy/loops/loops.py",
        "differential/generate/focus.py",
        "locks/requirements.txt",
    ],
)
def test_what_all_programs_go_through_is_everything_and_is_said(file):
    found = wanted_of(HERE, [file, "legacy/products/dot_micro.py"])
    assert found.everything and any(why.startswith("everything: ") and file in why for why in found.why)


def test_what_no_program_goes_through_says_nothing():
    only = wanted_of(HERE, ["docs/fuzzing.md", "cli/fuzz.py", "tests/cli/test_fuzz.py"])
    assert only == Wanted(everything=True, why=["everything: no file changed that programs go through"])
    beside = wanted_of(HERE, ["docs/fuzzing.md", "differential/found.py", "legacy/products/dot_micro.py"])
    assert not beside.everything and beside.ops == {"dot"}


def test_forms_of_devices_are_not_drawn_for():
    found = wanted_of(HERE, ["mlir_emitters/devices/group_dot.py"])
    assert not found.ops and "not drawn" in found.why[0]


def test_each_family_with_opcodes_is_one_of_the_tables():
    names = {form.name for table in form_tables().values() for form in table}
    assert {key for key in OPCODES if not any(n == key or n.startswith(key + "/") for n in names)} == set()
    assert ops_of_form("dot/tiled") == ("dot",) and ops_of_form("nest/plain") == ()


def test_a_revision_that_is_not_there_is_everything(tmp_path):
    for arguments in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"],
    ):
        subprocess.run(["git", "-C", tmp_path, *arguments], check=True)
    found = wanted_since("HEAD~20", tmp_path)  # as in a clone without history
    assert found.everything and "since HEAD~20 is not known" in found.why[0]
    assert wanted_since("HEAD", tmp_path / "nowhere").everything
