"""Messages of commits: a subject of at most 72 characters, an empty line, and a body (cause, change, evidence)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).absolute().parents[1]
SUBJECT_CHARACTERS = 72


def complaints(message: str) -> list[str]:
    """What is wrong with a message."""
    subject, _, rest = message.strip("\n").partition("\n")
    found = []
    if len(subject) > SUBJECT_CHARACTERS:
        found.append(f"the subject has {len(subject)} characters, {SUBJECT_CHARACTERS} at most")
    if not rest.strip():
        found.append("there is no body: say cause, change and evidence")
    elif rest.partition("\n")[0].strip():
        found.append("the line after the subject is not empty")
    return found


def check(revisions: str, root: Path = ROOT) -> bool:
    """Check the messages of a range of commits, such as main.., except merges; print what is wrong."""
    command = ["git", "log", "--no-merges", "--format=%h%x00%B%x01", revisions]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if listed.returncode:
        print(listed.stderr.strip())
        return False
    commits = [entry.strip("\n").split("\0", 1) for entry in listed.stdout.split("\1") if entry.strip()]
    wrong = [f"{commit}: {text}" for commit, message in commits for text in complaints(message)]
    print("\n".join([*wrong, f"{len(commits)} commits, {len(wrong)} complaints"]))
    return not wrong


if __name__ == "__main__":
    sys.exit(0 if check(sys.argv[1]) else 1)
