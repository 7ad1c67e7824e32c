"""Hunts for planted faults: for each one a campaign of its own, whose processes have the fault, until it is caught."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from ...codegen.options import Target
from ...formats.documents import json_of
from ...formats.whole_files import write_text
from ...hlo.errors import InputError
from ..campaign.campaign import Campaign
from ..campaign.cause import blamed_of
from ..campaign.state import State
from ..campaign.task import Orders
from ..child import Child
from ..finding import read_finding
from ..follow_up import REDUCE_SECONDS, FollowUp, follow_up
from .fault import Fault
from .table import FAULTS, plant

RESULTS_FILE = "planted.json"
SCHEMA = 1

LIMIT = 60.0
"""Seconds that a task may take before it counts as a hang."""

SHRINK_SECONDS = 4.0
"""How long Hypothesis makes a catch smaller, before it is reduced: most are reduced in as much from what was drawn."""

UNSTEADY = 3
"""Catches that do not come again, after which a hunt ends."""


@dataclass(frozen=True)
class Caught:
    """What became of a fault. cases, seconds: of the campaign, until it was met; all of them if it was not.

    kind, blamed: of the small case, with mixtures of stacks only where no stack is blamed alone. before, after:
    instructions of the case as Hypothesis left it, and reduced. reducing: seconds, of both. alarms: findings that the
    healthy testbed has, too.
    """

    name: str
    caught: bool
    cases: int
    seconds: float
    kind: str = ""
    blamed: tuple[str, ...] = ()
    blame_right: bool = False
    culprit: str = ""
    culprit_right: bool = False
    before: int = 0
    after: int = 0
    reducing: float = 0.0
    alarms: int = 0
    folder: str = ""


@dataclass
class Hunts:
    """The results of a folder, by name of the fault. seed: of the campaigns."""

    folder: Path
    seed: int
    done: dict[str, Caught] = field(default_factory=dict)

    def save(self) -> None:
        rows = [asdict(self.done[name]) for name in FAULTS if name in self.done]
        text = json.dumps({"schema": SCHEMA, "seed": self.seed, "faults": rows}, indent=1) + "\n"
        write_text(self.folder / RESULTS_FILE, text)


def read_hunts(folder: Path) -> Hunts:
    """The results in a folder. Raises InputError if there are none, or they are damaged."""
    file = folder / RESULTS_FILE
    try:
        found = json_of(file.read_text(encoding="utf-8"))
        if found["schema"] != SCHEMA:
            raise InputError(f"{file}: schema {found['schema']}, not {SCHEMA}", remedy="begin in a new folder")
        rows = [Caught(**{**row, "blamed": tuple(row["blamed"])}) for row in found["faults"]]
        return Hunts(folder, int(found["seed"]), {row.name: row for row in rows if row.name in FAULTS})
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}", remedy="leave out --resume to begin") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{file}: no results of planted faults: {error!r}", remedy="begin in a new folder") from None


@dataclass(frozen=True)
class Hunter:
    """How a fault is hunted. jobs: processes. seconds: for each fault until it is met.

    reduce_seconds: of Hypothesis and the reducer together, at most.
    """

    orders: Orders
    jobs: int
    seconds: float
    target: Target | None = None
    reduce_seconds: float = REDUCE_SECONDS

    def hunt(self, hunts: Hunts, names: Sequence[str]) -> Iterator[Caught]:
        """Hunt the faults that have no result yet. The results are saved after each."""
        hunts.save()
        for name in names:
            if name in hunts.done:
                continue
            hunts.done[name] = self.one(FAULTS[name], hunts.folder / name, hunts.seed)
            hunts.save()
            yield hunts.done[name]

    def one(self, fault: Fault, folder: Path, seed: int) -> Caught:
        """Draw until a finding is met that the healthy testbed does not have, and that can be repeated."""
        begin = partial(plant, fault.name)
        folder = _unused(folder)
        state, alarms, spent = State(seed), 0, 0.0
        unsteady: list[Caught] = []
        while spent < self.seconds and len(unsteady) < UNSTEADY:
            campaign = Campaign(
                self.orders, folder, state, self.jobs, self.seconds - spent, LIMIT, self.target,
                begin=begin, first=True, shrink_seconds=min(SHRINK_SECONDS, self.reduce_seconds / 2),
            )  # fmt: skip
            known, before = len(state.causes), state.seconds
            campaign.run()
            if len(state.causes) == known:  # time is over, or a process died over a task once only
                spent += state.seconds - before
                continue
            assert campaign.met is not None
            spent += campaign.met[1] - before
            found = state.causes[-1].cause.folder(folder)
            if _is_alarm(found):
                alarms += 1
                continue
            shrinking = state.seconds - campaign.met[1]
            left = self.reduce_seconds - shrinking
            small = follow_up(found, begin=begin, jobs=self.jobs, seconds=left, cache=False)
            row = Caught(fault.name, True, campaign.met[0], round(spent, 3), alarms=alarms, folder=str(found))
            if small is not None:
                return _judged(row, fault, small, shrinking)
            # What the fault reads has other contents now: a later catch, of the same cause too, may be steady.
            state.causes.pop()
            aside = found.rename(_unused(found.with_name(f"{found.name}-unsteady")))
            unsteady.append(replace(row, folder=str(aside)))
        return unsteady[0] if unsteady else Caught(fault.name, False, state.cases, round(spent, 3), alarms=alarms)


def _unused(folder: Path) -> Path:
    """The folder, or one with a number where an earlier hunt was cut short."""
    number = 0
    while (found := folder if not number else folder.with_name(f"{folder.name}.{number}")).exists():
        number += 1
    return found


def _is_alarm(folder: Path) -> bool:
    """Whether the finding in a folder is one without the fault, too."""
    case = read_finding(folder)
    setting = replace(case.setting, cache=False)
    with Child() as child:
        return child.outcome(case.module, case.inputs, case.stacks, LIMIT, setting).is_finding


def _judged(row: Caught, fault: Fault, small: FollowUp, shrinking: float) -> Caught:
    blamed = blamed_of(small.blamed)
    return replace(
        row,
        kind=small.kind,
        blamed=blamed,
        blame_right=set(blamed) == set(fault.blamed),
        culprit=small.culprit,
        culprit_right=any(word in small.culprit for word in fault.culprits),
        before=small.before,
        after=small.after,
        reducing=round(shrinking + small.seconds, 3),
    )


@dataclass(frozen=True)
class Summary:
    """Numbers of faults: caught; of those, blame and culprit right. Medians: instructions, seconds of reducing."""

    faults: int
    caught: int
    blame_right: int
    culprit_right: int
    instructions: float
    reducing: float
    alarms: int

    @staticmethod
    def of(rows: Sequence[Caught]) -> Summary:
        import statistics

        caught = [row for row in rows if row.caught]
        small = [row for row in caught if row.after]
        return Summary(
            len(rows),
            len(caught),
            sum(row.blame_right for row in caught),
            sum(row.culprit_right for row in caught),
            statistics.median([row.after for row in small] or [0]),
            round(statistics.median([row.reducing for row in small] or [0.0]), 3),
            sum(row.alarms for row in rows),
        )
