"""docs/adr: the index has each decision with its state; successors and predecessors name each other; gaps are said."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "adr"
FILES = {int(path.name[:4]): path for path in sorted(FOLDER.glob("0*.md"))}
INVERSE = {"Changes": "Changed by", "Refines": "Refined by", "Continues": "Continued by"}
LINKS = r"((?:\[ADR \d+\]\([^)]*\)(?:,| and|\.)? ?)+)"


def status(number: int) -> str:
    """The Status of a decision, as one line."""
    head = FILES[number].read_text(encoding="utf-8").partition("\n## ")[0]
    return " ".join(head.splitlines()[1:]).strip()


def named(number: int, verb: str) -> list[int]:
    """The decisions behind a verb in a Status."""
    found = re.search(rf"\b{verb} {LINKS}", status(number))
    return [int(n) for n in re.findall(r"ADR (\d+)", found[1])] if found else []


def index() -> dict[int, tuple[str, str]]:
    """Number → file and state, as the index says."""
    rows = re.findall(
        r"^\| (\d+) \| \[.*\]\(([^)]+)\) \| (.*) \|$", (FOLDER / "README.md").read_text(encoding="utf-8"), re.M
    )
    assert len({n for n, _, _ in rows}) == len(rows), "a decision is listed twice"
    return {int(n): (file, state) for n, file, state in rows}


def state(number: int) -> str:
    words = [(verb.lower(), named(number, verb)) for verb in INVERSE.values()]
    return "; ".join(f"{verb} {', '.join(map(str, found))}" for verb, found in words if found) or "accepted"


@pytest.mark.parametrize("number", FILES)
def test_the_index_has_the_decision_and_its_state(number):
    assert index()[number] == (FILES[number].name, state(number))


def test_the_index_has_nothing_else_and_says_the_gaps():
    assert sorted(index()) == sorted(FILES)
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    said = re.search(r"^Numbers that never .*: (.*)\.$", text, re.M)[1]
    assert [int(n) for n in said.split(", ")] == [n for n in range(1, max(FILES) + 1) if n not in FILES]


@pytest.mark.parametrize("number", FILES)
def test_successors_and_predecessors_name_each_other(number):
    assert status(number).startswith("Status: accepted")
    for verb, other in INVERSE.items():
        assert [p for p in named(number, verb) if number not in named(p, other)] == []
        assert [s for s in named(number, other) if number not in named(s, verb)] == []


@pytest.mark.parametrize("number", FILES)
def test_what_is_no_longer_true_says_so_in_its_first_line(number):
    first = FILES[number].read_text(encoding="utf-8").splitlines()[0]
    changed = named(number, "Changed by")
    said = re.search(r"\(no longer true in part: ADR ([\d, ]+)\)$", first)
    assert [int(n) for n in said[1].split(", ")] == changed if said else not changed
    assert first.startswith(f"# {number}. ")
