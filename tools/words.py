"""Phrases that a reader stumbles over, and what to write instead: tools/lint.py refuses them in comments and texts."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).absolute().parents[1]

PHRASES = {
    r"from which on": "at least N, from N up, or: minimum … for which",
    r"of as many": "of the same number of",
    r"the same of": "say what it is once more, or: as above, for",
    r"dear(?:er|est)?": "expensive",
    r"parted": "split",
    r"so many": "this many, or the number itself",
    r"(?<![.`])rests(?!`)": "remainders",
    r"(?<=, )beside(?! (?:each|the (?:plot|loop|module|checkout)|ours))": "besides, or next to",
    r"(?:nothing|everything|all|others?|much|may|has|have) beside(?! each)": "besides",
    r"Beside": "besides, or next to",
}
"""Regular expression, of whole words → what to write."""

ENDS = (".py", ".md", ".toml", ".jinja", ".js", ".css", ".html", ".sh", ".bzl", ".c", ".proto")

EXEMPT = ("tools/words.py", "tests/repository/test_words.py")

_FOUND = re.compile("|".join(rf"(?P<p{n}>\b(?:{phrase})\b)" for n, phrase in enumerate(PHRASES)))
_ANY_CASE = re.compile(r"\b(?:from which on|of as many|the same of|so many|rests)\b", re.IGNORECASE)


class Found(NamedTuple):
    """A phrase in a file, with what to write instead."""

    path: str
    line: int
    words: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: '{self.words}': write {self.instead}"


def found_in(path: str, text: str) -> list[Found]:
    """The phrases of a file: of Python in its comments and strings, of others anywhere."""
    return [
        Found(path, line, match.group(), list(PHRASES.values())[int(str(match.lastgroup)[1:])])
        for line, words in (_python(text) if path.endswith(".py") else enumerate(text.splitlines(), 1))
        for match in _FOUND.finditer(_ANY_CASE.sub(lambda m: m.group().lower(), words))
    ]


def _python(text: str) -> Iterator[tuple[int, str]]:
    """(line, text) of each line of the comments and strings."""
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds:
            yield from enumerate(token.string.splitlines(), token.start[0])


def found_in_tree(root: Path = ROOT) -> list[Found]:
    """The phrases of all tracked files."""
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout
    paths = [p for p in listed.splitlines() if p.endswith(ENDS) and p not in EXEMPT and (root / p).is_file()]
    return [f for path in paths for f in found_in(path, (root / path).read_text(encoding="utf-8"))]


def check() -> bool:
    """Print the phrases of the tree, and their number."""
    found = found_in_tree()
    for one in found:
        print(one)
    print(f"{len(found)} known phrases" if found else "no known phrase")
    return not found


if __name__ == "__main__":
    sys.exit(0 if check() else 1)
