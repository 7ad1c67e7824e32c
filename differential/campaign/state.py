"""What a campaign has done so far, and its file, from which it goes on."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...formats.documents import json_of
from ...formats.whole_files import write_text
from ...hlo.errors import InputError
from .cause import Cause
from .coverage import FormKey, Key

STATE_FILE = "campaign.json"
SCHEMA = 1


@dataclass
class Known:
    """A cause, how often it was met, and a blob of its smallest task. culprit: of the bisector; None: not asked yet.
    root: the name of its root cause, empty if there is none; size: instructions of the small case.
    """

    cause: Cause
    blob: str
    sentence: str
    flaky: bool = False
    count: int = 1
    culprit: str | None = None
    root: str = ""
    size: int = 0


@dataclass
class State:
    """seconds: of all runs of the campaign together; rounds: the next round of each process.

    unrepeated: blobs of tasks that ended a process once, and not when they were run again. undecided: blobs of tasks
    whose results differ, where there was no time to find out whether the float rules permit it.
    options: of what is drawn, as the command line has them; None in files that say nothing of them.
    """

    seed: int
    cases: int = 0
    refused: int = 0
    seconds: float = 0.0
    rounds: dict[int, int] = field(default_factory=dict)
    coverage: Counter[Key] = field(default_factory=Counter)
    causes: list[Known] = field(default_factory=list)
    unrepeated: list[str] = field(default_factory=list)
    options: dict[str, Any] | None = None
    undecided: list[str] = field(default_factory=list)
    forms: Counter[FormKey] = field(default_factory=Counter)

    @property
    def rate(self) -> float:
        """Cases a second, of all processes together."""
        return self.cases / self.seconds if self.seconds else 0.0

    @property
    def findings(self) -> int:
        return len(self.causes) + len(self.unrepeated)

    def meet(self, cause: Cause, blob: str, sentence: str, flaky: bool) -> bool:
        """Note a finding. Returns whether its cause is new: two processes may find one at the same time."""
        for known in self.causes:
            if known.cause == cause:
                known.count += 1
                return False
        self.causes.append(Known(cause, blob, sentence, flaky))
        return True

    def met_again(self, names: dict[str, int]) -> None:
        for known in self.causes:
            known.count += names.get(known.cause.name, 0)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "seed": self.seed,
            "options": self.options,
            "cases": self.cases,
            "refused": self.refused,
            "seconds": round(self.seconds, 3),
            "rounds": {str(n): r for n, r in sorted(self.rounds.items())},
            "findings": [
                {
                    **known.cause.to_json(),
                    "name": known.cause.name,
                    "count": known.count,
                    "flaky": known.flaky,
                    "sentence": known.sentence,
                    "blob": known.blob,
                    "culprit": known.culprit,
                    "root": known.root,
                    "size": known.size,
                }
                for known in self.causes
            ],
            "unrepeated": self.unrepeated,
            "undecided": self.undecided,
            "coverage": [[*key, count] for key, count in sorted(self.coverage.items())],
            "forms": [[*key, count] for key, count in sorted(self.forms.items())],
        }

    def save(self, folder: Path) -> None:
        write_text(folder / STATE_FILE, json.dumps(self.to_json(), indent=1) + "\n")


def read_state(folder: Path) -> State:
    """The state of the campaign in a folder. Raises InputError if there is none, or it is damaged."""
    file = folder / STATE_FILE
    try:
        found = json_of(file.read_text(encoding="utf-8"))
        if found["schema"] != SCHEMA:
            raise InputError(
                f"{file}: schema {found['schema']}, not {SCHEMA}", remedy="begin a campaign in a new folder"
            )
        return State(
            int(found["seed"]),
            int(found["cases"]),
            int(found["refused"]),
            float(found["seconds"]),
            {int(n): int(r) for n, r in found["rounds"].items()},
            Counter({(str(op), str(dtype), str(stack)): int(n) for op, dtype, stack, n in found["coverage"]}),
            [
                Known(
                    *(Cause.from_json(f), str(f["blob"]), str(f["sentence"]), bool(f["flaky"]), int(f["count"])),
                    culprit=f.get("culprit"),
                    root=str(f.get("root", "")),
                    size=int(f.get("size", 0)),
                )
                for f in found["findings"]
            ],
            [str(blob) for blob in found["unrepeated"]],
            dict(found["options"]) if found.get("options") is not None else None,
            [str(blob) for blob in found.get("undecided", ())],
            Counter({(str(stack), str(form)): int(n) for stack, form, n in found.get("forms", ())}),
        )
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}", remedy="leave out --resume to begin a campaign") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{file}: not the state of a campaign: {error!r}", remedy="begin one in a new folder"
        ) from None
