"""--json: one document on standard output, errors too, with the keys of docs/json.md and no others."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ...cli.main import main
from ...differential.planted.fault import planted
from ...differential.planted.table import FAULTS
from ...hlo.ir import Computation, Module
from ...hlo.opcodes import Op
from ...migration.form_evidence import FormEvidence
from ...migration.ledger import Hold, judge, move, new_ledger
from ...passes import pipeline
from ..cases.modules import ADD
from ..support.ledgers import DAY, GOOD, ledger_file
from ..support.xla_dump import PREFIX, write_dump

PAGE = Path(__file__).resolve().parents[2] / "docs/json.md"
TEXTS = {"opcodes", "bounds.results", "machine", "versions"}
"""Keys whose objects and lists are values, not parts of the form."""

SPECIAL = """HloModule s
ENTRY e {
  a = f32[3] constant({nan, inf, -inf})
  b = c64[1] constant({(1,nan)})
  c = u64[] constant(18446744073709551615)
  d = bf16[] constant(1.5)
  f = f32[] constant(1)
  e = f32[5000] broadcast(f), dimensions={}
  ROOT t = (f32[3], c64[1], u64[], bf16[], f32[5000]) tuple(a, b, c, d, e)
}
"""


@pytest.fixture
def add(tmp_path):
    (tmp_path / "add.hlo").write_text(ADD)
    return str(tmp_path / "add.hlo")


FEED = """HloModule feed
ENTRY e {
  p = f32[2] parameter(0)
  k = token[] after-all()
  o = token[] outfeed(p, k), outfeed_shape=f32[2]
  ROOT n = f32[2] negate(p)
}
"""


def document(arguments, capsys, status=0):
    assert main(arguments) == status
    out = capsys.readouterr().out
    assert out.isascii()
    read = json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert (read["schema"], read["command"], read["status"]) == (1, arguments[0], status)
    return read


def sections() -> dict[str, set[str]]:
    """The keys of the page by command; '' for those of every document."""
    found: dict[str, set[str]] = {}
    name = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            name = "" if line == "## Every document" else line.removeprefix("## ")
        elif line.startswith("| `"):
            keys = re.findall(r"`([^`]*)`", line.split("|")[1])
            found.setdefault(name, set()).update(keys)
    return found


def keys_of(value, path="") -> set[str]:
    """The paths of a document's leaves."""
    if isinstance(value, dict) and path.split("[].")[-1] not in TEXTS:
        return {k for name, v in value.items() for k in keys_of(v, f"{path}.{name}" if path else name)}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return {k for v in value for k in keys_of(v, f"{path}[]")}
    return {path}


def held_ledger(folder):
    held = Hold(DAY, "slow")
    good = replace(GOOD, forms=(FormEvidence("mlir dot/tiled", "0" * 12, 2000, "exact", "0123abc", DAY),))
    return ledger_file(folder, judge(move(new_ledger(), "dot.half", "off", DAY, "", held), "dot.float", good))


def damaged_dump(folder):
    """A folder of XLA's with a copy, which has no kernel, and without one kernel that should be there."""
    dump = write_dump(folder / "dump")
    module = dump / f"{PREFIX}.cpu_after_optimizations.txt"
    text = module.read_text().replace("ROOT %update_fusion", "%update_fusion")
    module.write_text(text.removesuffix("}\n") + "  ROOT %copy = f32[4]{0} copy(%update_fusion)\n}\n")
    for file in dump.glob("*add_fusion*"):
        file.unlink()
    return str(dump)


QUICK = ["--seconds", "0.01", "--width", "9"]


def runs(command, add, folder):
    """Command lines that print every key of a command, with their statuses."""
    np.savez(folder / "wrong.npz", in0=np.float32([1, 2]), out0=np.float32([1, 2]))
    wrong = str(folder / "wrong.npz")
    (folder / "odd.hlo").write_text(
        'HloModule m\nENTRY e { p = f32[] parameter(0)\n ROOT r = f32[] custom-call(p), custom_call_target="x" }\n'
    )
    checked = [(["run", add, "--debug", "checksum"], 0), (["run", add, "--input", "{nan, 1}", "--debug", "nan"], 1)]
    checked.append((["run", add, "--emitters", "shadow"], 0))
    program = str(folder / "add.tbx")
    assert main(["compile", add, "-o", program, "--host-program", "compiled"]) == 0
    (folder / "feed.hlo").write_text(FEED)
    feed = str(folder / "feed.hlo")
    assert main(["compile", feed, "-o", str(folder / "feed.tbx"), "--replicas", "2"]) == 0
    return {
        "run": [
            (["run", add, add, "--iterations", "2"], 0),
            (["run", add, add, "--profile"], 0),
            (["run", feed], 0),
            *checked,
        ],
        "diff": [
            (["diff", add, "--stacks", "evaluator,legacy", "--inputs", wrong], 1),
            (["diff", str(folder / "odd.hlo"), "--stacks", "evaluator,legacy"], 1),
        ],
        "bench": [
            (["bench", add, "--ab", "evaluator,legacy", "--rounds", "3", "--seconds", "0.001"], 0),
            (["bench", "--kernels", add, "--least", "0", "--rounds", "3", "--seconds", "0.001"], 0),
        ],
        "ab": [
            (["ab", add, *QUICK, "--history", str(folder / "ab.jsonl")], 0),
            (["ab", add, *QUICK, "--calibrate", "1", "--planted", "50"], 0),
            (["ab", "--history", str(folder / "ab.jsonl")], 0),
        ],
        "show": [(["show", add], 0)],
        "exec": [(["exec", program], 0), (["exec", str(folder / "feed.tbx")], 0)],
        "inspect": [(["inspect", program, "--host"], 0)],
        "platforms": [(["platforms"], 0)],
        "opt": [(["opt", add, "--passes", "dce", "--print-after", "dce"], 0)],
        "import": [(["import", damaged_dump(folder)], 0)],
        "toggles": [(["toggles", "--ledger", str(held_ledger(folder))], 1)],
    }[command]


def checks_of_memory(folder, capsys):
    """The document of a run that the checking mode ended: a fault has to be planted."""
    fault = FAULTS["legacy-reverse-from-before"]
    (folder / "reverse.hlo").write_text(fault.text)
    arguments = ["run", str(folder / "reverse.hlo"), "--emitters", "legacy", "--debug", "memory", "--json"]
    with planted(fault):
        found = document(arguments, capsys, 1)
    assert found["programs"][0].pop("iterations") == []
    return found


@pytest.mark.parametrize(
    "command", ["run", "diff", "bench", "ab", "show", "opt", "exec", "inspect", "import", "platforms", "toggles"]
)
def test_documents_have_the_keys_of_the_page(command, add, tmp_path, capsys):
    page = sections()
    head = {k for k in page[""] if not k.startswith(("error", "programs"))}
    programs = {k for k in page[""] if k.startswith("programs")} if command in ("run", "diff", "bench", "ab") else set()
    found = set()
    for arguments, status in runs(command, add, tmp_path):
        capsys.readouterr()
        found |= keys_of(document([*arguments, "--json"], capsys, status))
    if command == "run":
        found |= keys_of(checks_of_memory(tmp_path, capsys))
    empty = "programs[].stacks[].kernels", "programs[].stacks[].compile_stages"
    lists = *empty, *(f"programs[].iterations[].comparisons{end}" for end in ("", "[].worst"))
    assert found - set(lists) == head | programs | page[command]  # these are empty here and there


@pytest.mark.parametrize("command", ["run", "diff", "bench", "ab", "show", "opt"])
def test_an_error_is_a_document_with_its_place(command, tmp_path, capsys):
    (tmp_path / "typo.hlo").write_text(ADD.replace("add(p", "ad(p"))
    file = str(tmp_path / "typo.hlo")
    error = document([command, file, "--json"], capsys, 2)["error"]
    assert error["place"] == {"file": file, "line": 5, "column": 22} and "ad" in error["message"] and error["remedy"]
    assert document([command, "--json"], capsys, 2)["error"]["place"] is None
    assert "no such file" in document([command, "gone.hlo", "--json"], capsys, 2)["error"]["message"]


@pytest.mark.parametrize("command", ["reduce", "bisect"])
def test_documents_on_a_case_on_which_stacks_agree(command, add, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = sections()
    head = {k for k in page[""] if not k.startswith(("error", "programs"))}
    assert keys_of(document([command, add, "--json"], capsys, 1)) == head | page[command]
    assert "no such file" in document([command, "gone.hlo", "--json"], capsys, 2)["error"]["message"]


def test_one_of_several_programs_fails(add, capsys):
    good, bad = document(["run", add, "gone.hlo", "--json"], capsys, 2)["programs"]
    assert good["status"] == 0 and bad["status"] == 2 and bad["error"]["message"] == "gone.hlo: no such file"
    assert set(bad) == {"module", "status", "error"}


def test_numbers_that_json_lacks_and_large_arrays(tmp_path, capsys):
    (tmp_path / "s.hlo").write_text(SPECIAL)
    (program,) = document(["run", str(tmp_path / "s.hlo"), "--emitters", "evaluator", "--json"], capsys)["programs"]
    results = program["iterations"][0]["replicas"][0]["results"]
    assert [r["values"] for r in results] == [["nan", "inf", "-inf"], [[1.0, "nan"]], 2**64 - 1, 1.5, None]
    assert [r["shape"] for r in results] == ["f32[3]", "c64[1]", "u64[]", "bf16[]", "f32[5000]"]


def test_opt_says_which_pass_is_wrong(add, capsys, monkeypatch):
    monkeypatch.setitem(pipeline.PASSES, "wrong", pipeline.Pass("wrong", wrong))
    done = document(["opt", add, "--passes", "wrong", "--evaluate-each", "--json"], capsys, 1)
    assert done["wrong"][0].startswith("wrong changes the results: ") and done["hlo"] is None


def wrong(given):
    """A pass with a bug: its root is another opcode."""
    entry = given.entry
    root = entry.root.replace(opcode=Op.MULTIPLY)
    changed = Computation(entry.name, (*entry.instructions[:-1], root), root)
    return Module(given.name, (*given.computations[:-1], changed), changed)


def test_an_interrupt_is_a_document(add, capsys, monkeypatch):
    def interrupted(spec):
        raise KeyboardInterrupt

    monkeypatch.setattr("testbed.migration.programs.load_program", interrupted)
    assert document(["run", add, "--json"], capsys, 130)["error"]["message"] == "interrupted"
