"""The documents' code blocks, and a `./testbed` for them that does not install or start long work."""

import re
from pathlib import Path
from typing import NamedTuple

# The real checkout, also from inside Bazel's sandbox.
ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])

# `./testbed` in a block: the command line itself, except for subcommands that take long or change the checkout.
TESTBED = """#!{python}
import sys
sys.path.insert(0, {packages!r})
if __name__ == "__main__" and {{"test", "setup", "bench", "conform"}}.isdisjoint(sys.argv[1:2]):
    from testbed.cli.main import main
    sys.exit(main())
"""


class Block(NamedTuple):
    document: str
    line: int
    language: str
    file: str | None
    text: str

    @property
    def id(self) -> str:
        return f"{self.document}:{self.line}"


def blocks() -> list[Block]:
    found = []
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        for match in re.finditer(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", text, re.M | re.S):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(path.relative_to(ROOT).as_posix(), line, match[1], match[2], match[3]))
    return found


BLOCKS = blocks()
