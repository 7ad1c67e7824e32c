"""Examples that fuzzing found: all of the corpus agree now; a new one is kept whole, once, and tried first."""

from functools import partial
from pathlib import Path

import pytest

from ...differential.child import Child
from ...differential.finding import case_of, read_finding, write_finding
from ...differential.found import BLOB_FILE, COMMIT_FILE, examples, keep, try_example, try_examples
from ...formats.program import Program
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError
from ..support.planted_tanh import plant

FOUND = Path(__file__).resolve().parents[1] / "corpus/found"

TANH = """HloModule tanh

ENTRY e {
  p = f32[4] parameter(0)
  ROOT r = f32[4] tanh(p)
}
"""


def test_what_fuzzing_found_agrees_now():
    with Child() as child:
        for place in examples(FOUND):
            outcome = try_example(place, child, 20.0)
            assert not outcome.is_finding, f"{place.name}: {outcome.sentence}"
            assert {"blob", "commit", "verdict.txt"} <= {f.name for f in place.iterdir()}


@pytest.fixture
def finding(tmp_path):
    """A finding of a campaign whose evaluator has a fault."""
    case = case_of(Program("tanh", TANH, parse_module(TANH)), ("evaluator", "legacy"))
    with Child(partial(plant, "wrong")) as child:
        outcome = child.outcome(case.module, case.inputs, case.stacks)
    folder = write_finding(tmp_path / "findings/differ-tanh", case.concluded(outcome), stages={})
    (folder / "blob").write_text("t1.0\n")
    return folder


def test_an_example_is_kept_once_and_fails_until_mended(finding, tmp_path):
    kept = keep(finding, tmp_path / "found", "abc123")
    assert kept == tmp_path / "found/differ-tanh" and examples(tmp_path / "found") == [kept]
    assert {f.name for f in kept.iterdir()} == {"module.hlo", "io.npz", "case.json", "verdict.txt", "blob", "commit"}
    assert (kept / COMMIT_FILE).read_text() == "abc123\n" and (kept / BLOB_FILE).read_text() == "t1.0\n"
    assert read_finding(kept).stacks == ("evaluator", "legacy")
    assert keep(finding, tmp_path / "found", "later") is None and (kept / COMMIT_FILE).read_text() == "abc123\n"
    (bad,) = try_examples(tmp_path / "found", 20.0, partial(plant, "wrong"))
    assert bad.name == "differ-tanh" and bad.outcome.is_finding
    (good,) = try_examples(tmp_path / "found", 20.0)
    assert not good.outcome.is_finding


def test_the_reduced_case_is_kept_where_there_is_one(finding, tmp_path):
    small = TANH.replace("[4]", "[1]")
    case = case_of(Program("tanh", small, parse_module(small)), ("evaluator", "legacy"))
    write_finding(finding / "small", case, stages={})
    kept = keep(finding, tmp_path / "found", "abc123")
    assert "f32[1]" in (kept / "module.hlo").read_text() and (kept / BLOB_FILE).exists()


def test_a_folder_without_examples_has_none(tmp_path):
    assert examples(tmp_path / "nowhere") == [] and list(try_examples(tmp_path / "nowhere", 20.0)) == []
    (tmp_path / "a").mkdir()
    (tmp_path / "a/case.json").write_text("{}")
    with pytest.raises(InputError, match="not a case"):
        list(try_examples(tmp_path, 20.0))
