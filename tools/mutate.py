"""The mutation check: rows of the project's tables are replaced by wrong neighbours, and the tests must notice each.

    .venv/bin/python3 tools/mutate.py [--room ROOM …] [--only TEXT] [--sample N --seed S] [--jobs N] [--json FILE]

One process imports the tests once and runs them unchanged, noting which test reaches which row; then it forks for each
mutant, changes the row in the fork, and runs the tests that reach it until one fails. Results are kept in a state file,
so that a run that was cut short goes on; mutants that survived are tried again. See docs/adr/0022-mutation-check.md.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import json
import os
import random
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).absolute().parents[1]
ROOMS = ("hlo", "evaluator", "legacy", "mlir_emitters", "passes", "planning")
FILES = {"hlo": "opset", "passes": "algebra"}
"""The file of tools/mutations where it is not called like the room."""

GOAL = 0.98
"""The share of a room's mutants that must be noticed, not counting equivalent ones."""

MOST_EQUIVALENT = 0.03


@dataclass(frozen=True)
class Result:
    """state: noticed, survived, timed out, crashed, or what is wrong with the mutant; by: the test that noticed it."""

    state: str
    by: str = ""
    seconds: float = 0.0

    @property
    def is_noticed(self) -> bool:
        return self.state in ("noticed", "timed out") or self.state.startswith("crashed")


def load(room: str) -> ModuleType:
    """The file of mutants of a room; `testbed` is this checkout."""
    if "testbed" not in sys.modules:
        spec = importlib.util.spec_from_file_location("_names", ROOT / "tools/python/pytest_names.py")
        assert spec is not None and spec.loader is not None
        names = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(names)
        names.import_root(ROOT)
    return importlib.import_module(f"testbed.tools.mutations.{FILES.get(room, room)}")


class State:
    """The results so far, in a JSON file that is written after every few of them."""

    def __init__(self, path: Path):
        self.path = path
        known = json.loads(path.read_text()) if path.exists() else {}
        self.results = {name: Result(**row) for name, row in known.get("results", {}).items()}
        self.reached: dict[str, Any] = known.get("reached", {})
        self._unsaved = 0

    def add(self, name: str, result: Result) -> None:
        self.results[name] = result
        self._unsaved += 1
        if self._unsaved >= 20:
            self.save()

    def save(self) -> None:
        self._unsaved = 0
        self.path.parent.mkdir(parents=True, exist_ok=True)
        rows = {name: vars(r) for name, r in sorted(self.results.items())}
        temporary = self.path.with_suffix(".new")
        temporary.write_text(json.dumps({"results": rows, "reached": self.reached}))
        temporary.replace(self.path)


def fingerprint(room: str) -> str:
    """Digest of all Python files except the mutants of other rooms: if it changes, the tests are traced again."""
    digest = hashlib.sha256()
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).parts
        ours = parts[0] != "tools" or (path.name == "base.py" or path.name.startswith(FILES.get(room, room)))
        if ours and not any(part.startswith(".") for part in parts):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def chosen(mutants: Sequence[Any], options: argparse.Namespace) -> list[Any]:
    found = [m for m in mutants if not options.only or options.only in m.name]
    if options.sample is not None and options.sample < len(found):
        found = random.Random(options.seed).sample(found, options.sample)
    return found


def report(
    room: str, names: Sequence[str], results: dict[str, Result], equivalent: dict[str, str], show: Callable = print
) -> bool:
    """The share that was noticed, and what was not. Whether the room reaches its goal."""
    counted = [n for n in names if n in results and n not in equivalent]
    noticed = [n for n in counted if results[n].is_noticed]
    slow = sum(results[n].state == "timed out" for n in counted)
    share = len(noticed) / len(counted) if counted else 1.0
    same = [n for n in names if n in equivalent]
    wrong = [n for n in same if n in results and results[n].is_noticed]
    show(f"{room}: {len(noticed)} of {len(counted)} noticed ({share:.1%}), {slow} by the clock, {len(same)} equivalent")
    for name in counted:
        if not results[name].is_noticed:
            show(f"  {results[name].state}: {name}")
    for name in wrong:
        show(f"  noticed by {results[name].by}, so it is not equivalent: {name}")
    return share >= GOAL and not wrong


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--room", action="append", choices=ROOMS, help="one room; may be given again (default: all)")
    parser.add_argument("--only", metavar="TEXT", help="mutants whose name holds this")
    parser.add_argument("--sample", type=int, metavar="N", help="N of each room, by chance")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=60.0, metavar="SECONDS", help="for one mutant")
    parser.add_argument("--state", type=Path, default=ROOT / ".mutate/state.json", help="results so far")
    parser.add_argument("--fresh", action="store_true", help="forget the results so far")
    parser.add_argument("--again", action="store_true", help="try those again that were noticed")
    parser.add_argument("--list", action="store_true", help="name the mutants and stop")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results of this run")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    options = parse_arguments(argv)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # no threads of a library when this process forks
    os.environ["XDG_CACHE_HOME"] = str(options.state.absolute().parent / "cache")
    if options.fresh:
        options.state.unlink(missing_ok=True)
    rooms = options.room or list(ROOMS)
    if options.list:
        for room in rooms:
            print("\n".join(m.name for m in chosen(load(room).ROOM.mutants(), options)))
        return 0
    good = [run_room(room, options) for room in rooms]
    return 0 if all(good) else 1


def run_room(room: str, options: argparse.Namespace) -> bool:
    """In a process of its own: pytest collects in a process once."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    code = 1
    try:
        code = 0 if check_room(room, options) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def check_room(room: str, options: argparse.Namespace) -> bool:
    table = load(room).ROOM
    equivalent = importlib.import_module("testbed.tools.mutations.equivalent").EQUIVALENT
    runner = importlib.import_module("testbed.tools.mutations.runner")
    state = State(options.state)
    mutants = chosen(table.mutants(), options)
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        run = runner.Run(table, mutants, state, fingerprint(room), options, Path(folder))
        tried = run.start(ROOT)
    state.save()
    if tried is None:
        return False
    unknown = [n for n in equivalent if n.split("/")[0] == room and n not in {m.name for m in table.mutants()}]
    for name in unknown:
        print(f"  no such mutant in the table of equivalent ones: {name}")
    if options.json:
        known = json.loads(options.json.read_text()) if options.json.exists() else {}
        known[room] = {n: vars(state.results[n]) for n in tried if n in state.results}
        options.json.write_text(json.dumps(known, indent=1))
    few = sum(n in equivalent for n in tried) <= max(MOST_EQUIVALENT * len(tried), 1) or options.only or options.sample
    if not few:
        print(f"{room}: more than {MOST_EQUIVALENT:.0%} are called equivalent")
    return report(room, tried, state.results, equivalent) and not unknown and bool(few)


if __name__ == "__main__":
    sys.exit(main())
