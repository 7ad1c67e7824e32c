"""The first example of docs/adding-a-custom-call.md, word for word: a handler in C++ from the command line."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ...cli.main import main
from ...ffi.registry import unregister

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "adding-a-custom-call.md"


def blocks(language):
    """The code blocks of the guide's first part."""
    first = GUIDE.read_text().partition("From Python:")[0]
    return [block.partition("```")[0] for block in first.split(f"```{language}\n")[1:]]


@pytest.mark.xla
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_guides_example_works_word_for_word(tmp_path, monkeypatch, capsys):
    pytest.importorskip("jax")
    (source,), (program, commands) = blocks("c++"), [b for b in blocks("") if "HloModule" in b or "g++" in b]
    (tmp_path / "add.cc").write_text(source)
    (tmp_path / "add.hlo").write_text(program)
    monkeypatch.chdir(tmp_path)
    build, *uses = commands.splitlines()
    subprocess.run(build.replace("$(python ", f"$({sys.executable} "), shell=True, check=True, timeout=300)
    try:
        for line in uses:
            assert main(line.removeprefix("./testbed ").split()) == 0, line
        assert "evaluator, legacy, mlir agree" in capsys.readouterr().out
    finally:
        unregister("my.add")
