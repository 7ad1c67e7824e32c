"""docs/troubleshooting.md: each message that it explains stands in the source; names of files in prose exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from ...hlo.errors import UnsupportedError

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
MESSAGES = re.findall(r"^### `(.+)`$", PAGE.read_text(encoding="utf-8"), re.M)
SKIPPED = ("tests", "examples", ".venv", ".git")


@cache
def texts() -> tuple[str, ...]:
    """The strings of each source file, joined: an f-string is broken where a value stands."""
    made = [str(UnsupportedError(stage, "")) for stage in ("legacy", "ffi")]
    found = ["\0".join([(ROOT / "testbed").read_text(encoding="utf-8"), *made])]
    for path in sorted(ROOT.rglob("*.py")):
        if path.relative_to(ROOT).parts[0] in SKIPPED:
            continue
        nodes = ast.walk(ast.parse(path.read_bytes()))
        strings = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        found.append("\0".join(strings))
    return tuple(found)


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_in_the_source(message):
    parts = [part for part in re.split(r"…|, (?=given)|[()]", message) if len(part.strip(" :,.")) > 3]
    assert parts, "a message needs words"
    missing = [part for part in parts if not any(part.strip() in text for text in texts())]
    assert not missing


def test_the_page_has_messages_of_each_kind():
    assert len(MESSAGES) >= 20 and len(set(MESSAGES)) == len(MESSAGES)


@pytest.mark.parametrize("document", ["adding-an-op", "where", "adding-a-backend", "migrating", "algebra"])
def test_files_and_tables_named_in_prose_exist(document):
    """`FILE` is there; `NAME` of `FILE` is a name in it."""
    text = (ROOT / "docs" / f"{document}.md").read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    files = re.findall(r"`((?:\w+/)+[\w.]*\.(?:py|toml|md|cc))`", text)
    assert not [name for name in files if not (ROOT / name).exists()]
    folders = re.findall(r"`((?:\w+/)+)`", text)
    assert not [name for name in folders if not (ROOT / name).is_dir() and not name.startswith(("small/", "io/"))]
    lists = r"((?:`\w+`(?:,|\s+and)?\s+)+)(?:of|in)\s+`((?:\w+/)+\w+\.py)`"
    named = [(name, file) for names, file in re.findall(lists, text) for name in re.findall(r"`(\w+)`", names)]
    sources = {file: (ROOT / file).read_text(encoding="utf-8") for _, file in named}
    assert not [f"{file}: {name}" for name, file in named if not re.search(rf"\b{name}\b", sources[file])]
    assert named or document != "adding-an-op"
