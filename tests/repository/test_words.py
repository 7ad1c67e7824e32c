"""Known phrases are refused in texts and comments, not in names; messages of commits have a subject and a body."""

import subprocess
from pathlib import Path

import pytest

from ...tools import commits, words

ROOT = Path(__file__).resolve().parents[2]

BAD = (
    ("from which on", "# elements from which on it pays"),
    ("of as many", '"""A block of as many rows."""'),
    ("the same of", '"""The same of columns."""'),
    ("dear", "x = 1  # a dear operation"),
    ("parted", "# rows are parted"),
    ("so many", "# by so many bytes"),
    ("rests", '"""Quotients and rests."""'),
    ("beside", "# seconds of a run, beside what others have"),
    ("nothing beside", "# there is nothing beside the keys"),
    ("Beside", '"""Beside the images are no terms."""'),
)


@pytest.mark.parametrize("phrase, line", BAD)
def test_a_phrase_is_found_in_a_comment_and_in_a_document(phrase, line):
    for path, text in (("a.py", f"\n{line}\n"), ("a.md", f"\n{line}\n")):
        (found,) = words.found_in(path, text)
        assert (found.line, found.words) == (2, phrase) and found.instead in str(found)


@pytest.mark.parametrize("line", [
    "dear, parted, rests, beside = 1, 2, 3, 4",
    "# a file beside the module",
    '"""A frame beside it, and one beside each box."""',
    "# the rest of the row",
])  # fmt: skip
def test_names_and_other_words_are_left_alone(line):
    assert words.found_in("a.py", line + "\n") == []


def test_the_tree_has_none():
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout of Git")
    assert [str(found) for found in words.found_in_tree(ROOT)] == []


@pytest.mark.parametrize("message, complaint", [
    ("A subject\n\nA body.\n", None),
    ("A subject\n", "there is no body"),
    ("x" * 73 + "\n\nA body.\n", "the subject has 73 characters, 72 at most"),
    ("A subject\nand more\n", "the line after the subject is not empty"),
])  # fmt: skip
def test_messages_of_commits(message, complaint):
    found = commits.complaints(message)
    assert bool(found) == (complaint is not None) and (not complaint or complaint in found[0])


def test_a_range_of_commits(tmp_path, capsys):
    def git(*arguments):
        name = ("-c", "user.name=n", "-c", "user.email=e@example.org")
        subprocess.run(["git", *name, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    for message in ("First\n\nBody.", "Second"):
        git("commit", "-q", "--allow-empty", "-m", message)
    assert commits.check("HEAD~1", tmp_path) and "1 commits, 0 complaints" in capsys.readouterr().out
    assert not commits.check("HEAD~1..", tmp_path) and "there is no body" in capsys.readouterr().out
    assert not commits.check("nothing..", tmp_path)
