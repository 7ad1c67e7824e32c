"""Runs mutants of one room: pytest collects the tests once; a fork for each mutant runs those that reach it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest
from _pytest.runner import runtestprotocol

from ..mutate import Result, State
from .base import Mutant, Room


@dataclass
class Child:
    """A process that runs the tests of one mutant. text: what it has written: the tests begun, and how it ended."""

    pid: int
    pipe: int
    mutant: Mutant
    start: float
    text: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True)
class Reached:
    """A run of the unchanged code. sites: the tests that reach each site; seconds: the duration of each test."""

    sites: dict[str, list[str]]
    seconds: dict[str, float]


class Run:
    """A plugin of pytest whose loop over the tests runs mutants instead."""

    def __init__(
        self, room: Room, mutants: Sequence[Mutant], state: State, print_: str, options: Namespace, folder: Path
    ):
        self.room, self.mutants, self.state, self.options, self.folder = room, mutants, state, options, folder
        self.fingerprint = print_
        self.tried: list[str] | None = None

    def start(self, root: Path) -> list[str] | None:
        """The names of the mutants that count, or None where the unchanged code fails."""
        paths = [str(root / "tests" / t) for t in self.room.tests]
        common = ["-q", "-s", "--tb=no", "--no-header", "--no-summary", "-p", "no:xdist"]
        code = pytest.main([f"--rootdir={root}", "-c", str(root / "pyproject.toml"), *common, *paths], plugins=[self])
        if self.tried is None:
            print(f"no mutant was tried (pytest: {code!r}): run the tests of the room to see why")
        return self.tried

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        from hypothesis import HealthCheck, Phase, settings

        slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
        phases = [Phase.explicit, Phase.generate]  # a failure need not be made simple
        settings.register_profile("mutate", settings.default, phases=phases, database=None, suppress_health_check=slow)
        settings.load_profile("mutate")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        no_repro()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        reached = self.reached(items)
        if reached is None:
            return True
        counted = [
            m
            for m in self.mutants
            if (not m.optional or m.site in reached.sites) and (not m.needs or m.needs in reached.sites)
        ]
        self.tried = [m.name for m in counted]
        known = self.state.results
        left = [m for m in counted if self.options.again or m.name not in known or not known[m.name].is_noticed]
        orders = {m.name: order(m, reached, list(items), self.options.limit) for m in left}
        self.run_all(left, lambda m: [items[n] for n in orders[m.name]])
        return True

    # --- the unchanged code -------------------------------------------------------------------------------------------
    def reached(self, items: dict[str, pytest.Item]) -> Reached | None:
        """Which tests reach which sites; None, with a message, if a test fails. Kept in the state."""
        key = f"{self.fingerprint} {sorted(self.room.tests)}"
        room = ",".join(sorted(self.room.tests))
        kept = self.state.reached.get(room)
        if kept is None or kept["key"] != key:
            kept = self.record(list(items.values()))
            if kept is None:
                return None
            self.state.reached[room] = {"key": key, **kept}
            self.state.save()
        return Reached(kept["sites"], kept["seconds"])

    def record(self, items: list[pytest.Item]) -> dict[str, Any] | None:
        path = self.folder / "reached.json"
        child = os.fork()
        if not child:
            with ended():
                quiet()
                record_in_child(self.room, items, path)
        os.waitpid(child, 0)
        if not path.exists():
            print("the unchanged code ends the process that runs its tests")
            return None
        found = json.loads(path.read_text())
        for name in found["failed"]:
            print(f"fails without any mutant: {name}")
        return None if found["failed"] else found

    # --- mutants ------------------------------------------------------------------------------------------------------
    def run_all(self, mutants: Sequence[Mutant], items_of: Callable[[Mutant], list[pytest.Item]]) -> None:
        waiting, running = list(reversed(mutants)), selectors.DefaultSelector()
        last = time.monotonic()
        while waiting or running.get_map():
            while waiting and len(running.get_map()) < self.options.jobs:
                mutant = waiting.pop()
                items = items_of(mutant)
                if items:
                    child = self.fork(mutant, items)
                    running.register(child.pipe, selectors.EVENT_READ, child)
                else:
                    self.state.add(mutant.name, Result("survived", "no test reaches it"))
            for key, _ in running.select(timeout=0.5):
                child = key.data
                data = os.read(child.pipe, 1 << 16)
                child.text += data
                if not data:
                    running.unregister(child.pipe)
                    self.finish(child, timed_out=False)
            for key in list(running.get_map().values()):
                if time.monotonic() - key.data.start > 1.5 * self.options.limit:
                    running.unregister(key.data.pipe)
                    self.finish(key.data, timed_out=True)
            if time.monotonic() - last > 30:
                last = time.monotonic()
                self.state.save()
                print(f"  {len(waiting)} left", flush=True)

    def fork(self, mutant: Mutant, items: list[pytest.Item]) -> Child:
        reader, writer = os.pipe()
        start = time.monotonic()
        pid = os.fork()
        if pid:
            os.close(writer)
            return Child(pid, reader, mutant, start)
        with ended():
            os.close(reader)
            os.setsid()
            quiet()
            run_in_child(mutant, items, writer)
        raise AssertionError("a fork has ended")

    def finish(self, child: Child, timed_out: bool) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # also what its tests have started
        _, status = os.waitpid(child.pid, 0)
        os.close(child.pipe)
        lines = child.text.decode().splitlines()
        begun = [line[2:] for line in lines if line.startswith("> ")]
        verdict = next((line[2:] for line in lines if line.startswith("! ")), None)
        test = begun[-1] if begun else ""
        seconds = round(time.monotonic() - child.start, 2)
        if verdict == "survived":
            result = Result("survived", f"{len(begun)} tests", seconds)
        elif verdict is not None:
            result = Result(verdict, test, seconds)
        else:
            result = Result("timed out" if timed_out else f"crashed ({status})", test, seconds)
        self.state.add(child.mutant.name, result)


def order(mutant: Mutant, reached: Reached, names: Sequence[str], limit: float) -> list[str]:
    """The tests that reach the mutant: those whose ids hold its words, then quick ones, within the limit."""
    wanted = [n for n in reached.sites.get(mutant.site, ()) if n in set(names)] if mutant.site else list(names)
    words = list(enumerate(mutant.words))
    ranked = sorted(wanted, key=lambda n: (next((k for k, w in words if w in n), 9), reached.seconds.get(n, 0.0)))
    found, total = [], 0.0
    for name in ranked:
        total += reached.seconds.get(name, 0.0)
        if total <= limit:
            found.append(name)
    return found


@contextlib.contextmanager
def ended() -> Any:
    """A forked process ends here, whatever happens."""
    try:
        yield
    except BaseException as error:
        print(f"mutate: {error!r}", file=sys.__stderr__, flush=True)
    finally:
        os._exit(0)


def quiet() -> None:
    """Discard the output of tests."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)


def run_in_child(mutant: Mutant, items: list[pytest.Item], pipe: int) -> None:
    def say(text: str) -> None:
        os.write(pipe, f"{text}\n".encode())

    try:
        mutant.apply()
    except Exception as error:
        say(f"! cannot be applied: {error!r}")
        return
    for item, following in zip(items, [*items[1:], None]):
        say(f"> {item.nodeid}")
        failure = failed(item, following)
        if failure is not None:
            say(f"! {own_fault(failure) or 'noticed'}")
            return
    say("! survived")


def failed(item: pytest.Item, following: pytest.Item | None) -> pytest.TestReport | None:
    reports = runtestprotocol(item, log=False, nextitem=following)
    return next((r for r in reports if r.failed), None)


def own_fault(report: pytest.TestReport) -> str:
    """Where the mutant's own code raised what made the test fail, if it did: nothing was noticed then."""
    crash = getattr(report.longrepr, "reprcrash", None)
    path = str(getattr(crash, "path", ""))
    ours = "tools/mutations" in path and not path.endswith("runner.py")
    return f"broken mutant ({Path(path).name}:{crash.lineno})" if crash is not None and ours else ""


def record_in_child(room: Room, items: list[pytest.Item], path: Path) -> None:
    sites: dict[str, list[str]] = {}
    current: list[str] = [""]

    def note(site: str) -> None:
        tests = sites.setdefault(site, [])
        if not tests or tests[-1] != current[0]:
            tests.append(current[0])

    room.record(note)
    seconds, failing = {}, []
    for item, following in zip(items, [*items[1:], None]):
        current[0] = item.nodeid
        forget()
        start = time.perf_counter()
        if failed(item, following) is not None:
            failing.append(item.nodeid)
        seconds[item.nodeid] = round(time.perf_counter() - start, 4)
    path.write_text(json.dumps({"sites": sites, "seconds": seconds, "failed": failing}))


def support() -> Any:
    """tests/support/check.py, once a test has imported it."""
    return sys.modules.get(__name__.replace("tools.mutations.runner", "tests.support.check"))


def forget() -> None:
    """Each test compiles for itself while it is noted what it reaches."""
    check = support()
    for name in ("parsed", "compiled"):
        clear = getattr(getattr(check, name, None), "cache_clear", None)
        if clear is not None:
            clear()


def no_repro() -> None:
    """A test that fails need not write the folder that repeats it."""

    def refuse(*_: Any) -> NoReturn:
        raise AssertionError("stacks differ")

    check = support()
    if hasattr(check, "write_repro"):
        check.write_repro = refuse
