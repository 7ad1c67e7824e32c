"""The mutation check itself: what it calls noticed, on a table of three numbers and tests of two of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ...tools.mutate import ROOMS, Result, load, report
from ...tools.mutations.equivalent import EQUIVALENT

ROOT = Path(__file__).absolute().parents[2]

TABLE = """TABLE = {"one": 1, "two": 2, "three": 3}
def one(): return TABLE["one"]
def two(): return TABLE["two"]
"""

TESTS = """import table
def test_one(): assert table.one() == 1
def test_two(): assert table.two() == 2
"""

SCRIPT = """
import json, os, sys, time
from argparse import Namespace
from pathlib import Path
sys.path.insert(0, "{tools}")
import mutate
mutate.load("hlo")
from testbed.tools.mutate import State
from testbed.tools.mutations.base import Mutant, Room
from testbed.tools.mutations.runner import Run
sys.path.insert(0, "{folder}")
import table

def hang(): table.one = lambda: time.sleep(100)
def put(key, value): return lambda: table.TABLE.update({{key: value}})
def fail(): raise ValueError("no such row")
def record(note):
    one = table.one
    table.one = lambda: (note("one"), one())[1]

MUTANTS = [
    Mutant("noticed", "one", put("one", 2)),
    Mutant("the same", "one", put("one", 1.0)),
    Mutant("not reached", "three", put("three", 4)),
    Mutant("not counted", "three", put("three", 4), optional=True),
    Mutant("nothing reads it", "one", put("one", 2), needs="three"),
    Mutant("by any test", "", put("two", 3)),
    Mutant("crash", "one", lambda: setattr(table, "one", os.abort)),
    Mutant("hang", "one", hang),
    Mutant("cannot be applied", "one", fail),
    Mutant("known", "one", fail),
]
state = State(Path("{folder}/state.json"))
options = Namespace(jobs=2, limit=1.0, again=False)
run = Run(Room(("test_table.py",), lambda: MUTANTS, record), MUTANTS, state, "print", options, Path("{folder}"))
tried = run.start(Path("{folder}"))
print("tried", json.dumps(tried))
state.save()
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> dict:
    """The names that count, and the result of each."""
    folder = tmp_path_factory.mktemp("mutate")
    (folder / "table.py").write_text(TABLE)
    (folder / "tests").mkdir()
    (folder / "tests/test_table.py").write_text(TESTS)
    (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "-p no:cacheprovider"\n')
    known = {"known": {"state": "noticed", "by": "a run before", "seconds": 0.0}}
    (folder / "state.json").write_text(json.dumps({"results": known, "reached": {}}))
    script = SCRIPT.format(tools=ROOT / "tools", folder=folder)
    environ = {**os.environ, "PYTEST_ADDOPTS": "", "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, cwd=folder, env=environ
    )
    assert run.returncode == 0, run.stdout + run.stderr
    tried = next(line[6:] for line in run.stdout.splitlines() if line.startswith("tried "))
    return {"tried": json.loads(tried), **json.loads((folder / "state.json").read_text())["results"]}


def test_a_wrong_row_is_noticed_and_its_test_is_named(results):
    assert results["noticed"]["state"] == "noticed" and "test_one" in results["noticed"]["by"]
    assert results["by any test"]["state"] == "noticed" and "test_two" in results["by any test"]["by"]


def test_an_equivalent_row_and_one_that_no_test_reaches_survive(results):
    assert results["the same"]["state"] == "survived"
    assert results["not reached"] == {"state": "survived", "by": "no test reaches it", "seconds": 0.0}


def test_a_crash_and_a_hang_are_told_apart_and_a_bad_mutant_is_not_noticed(results):
    assert results["crash"]["state"].startswith("crashed")
    assert results["hang"]["state"] == "timed out"
    assert results["cannot be applied"]["state"].startswith("cannot be applied")
    assert not Result(results["cannot be applied"]["state"]).is_noticed


def test_what_no_test_can_show_is_not_counted_and_what_was_noticed_is_not_tried_again(results):
    assert not {"not counted", "nothing reads it"} & set(results["tried"])
    assert results["known"]["by"] == "a run before"


def test_the_report_counts_and_refuses_an_equivalent_mutant_that_was_noticed():
    results = {f"r/{n}": Result("noticed", "test_x") for n in range(98)}
    results |= {"r/98": Result("survived"), "r/99": Result("survived")}
    lines: list[str] = []
    assert report("r", list(results), results, {}, lines.append)
    assert lines == [
        "r: 98 of 100 noticed (98.0%), 0 by the clock, 0 equivalent",
        "  survived: r/98",
        "  survived: r/99",
    ]
    assert not report("r", list(results)[1:], results, {}, lines.append)
    assert report("r", list(results)[1:], results, {"r/98": "the same"}, lines.append)
    assert not report("r", list(results), results, {"r/0": "the same"}, lines.append)
    assert lines[-1] == "  noticed by test_x, so it is not equivalent: r/0"


@pytest.mark.parametrize("room", ROOMS)
def test_the_mutants_of_a_room_have_names_of_their_own(room):
    names = [m.name for m in load(room).ROOM.mutants()]
    assert len(set(names)) == len(names) > 100
    assert all(name.startswith(f"{room}/") for name in names)
    assert {name for name in EQUIVALENT if name.startswith(f"{room}/")} <= set(names)
