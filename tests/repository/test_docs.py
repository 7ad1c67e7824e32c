"""The documents' code: Python blocks and commands run, quotes equal the file that they name, options exist.

Blocks: ```python runs; ```python file=PATH quotes PATH line by line; ```sh runs if it holds nothing but `./testbed` and
`cat`, and is checked word by word otherwise. Words in capitals (MODULE, DIR) stand for something: such lines are only
parsed, and so are the commands that take long. ```mlir blocks are tested by tests/lhlo/test_docs.py.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from ...backends.registry import platforms, unregister_platform
from ...cli.main import COMMANDS
from ...tools.python.link_package import link_package
from ...tools.run_tests import parse_arguments
from ..support.documents import BLOCKS, DOCUMENTS, TESTBED, Block

ROOT = Path(__file__).resolve().parents[2]


def some(language: str, quoted: bool = False) -> pytest.MarkDecorator:
    chosen = [b for b in BLOCKS if b.language == language and bool(b.file) is quoted]
    return pytest.mark.parametrize("block", chosen, ids=[b.id for b in chosen])


def shell_lines(text: str) -> list[list[str]]:
    """The commands of a block, split into words, without here-documents and comments."""
    text = re.sub(r"<<'(\w+)'.*?^\1$", "", text, flags=re.M | re.S)
    return [words for line in text.splitlines() if (words := shlex.split(line, comments=True))]


def stands_for_something(words: list[str]) -> bool:
    return any(re.fullmatch(r"[A-Z]+", word) for word in words)


def check_testbed(words: list[str]) -> None:
    """Check that the subcommand and the options of a `./testbed …` line exist, and that no argument is missing."""
    if words[1:2] and words[1].startswith("-"):
        assert words[1] in ("--help", "--version")
        return
    assert words[1] in COMMANDS, f"{words[1]} is no subcommand"
    arguments = words[2:]
    if words[1] == "test":
        assert not parse_arguments(arguments).rest
    else:
        command: click.Command = import_module(f"testbed.cli.{words[1]}").command
        command.make_context(words[1], arguments)


def test_the_documents_hold_blocks_of_every_kind():
    kinds = {(block.language, bool(block.file)) for block in BLOCKS}
    assert {("python", False), ("python", True), ("sh", False)} <= kinds
    assert not {block.id for block in BLOCKS if block.language in ("bash", "shell", "console", "py")}


@pytest.fixture
def platforms_as_before():
    """Unregister the platforms that a block registers: another test of the process may use the name."""
    before = set(platforms())
    yield
    for name in set(platforms()) - before:
        unregister_platform(name)


@some("python")
def test_python_blocks_run(block, tmp_path, monkeypatch, platforms_as_before):
    monkeypatch.chdir(tmp_path)
    exec(compile("\n" * block.line + block.text, ROOT / block.document, "exec"), {"__name__": "__main__"})


@some("python", quoted=True)
def test_quotes_stand_in_their_file(block):
    lines = {line.strip() for line in (ROOT / block.file).read_text(encoding="utf-8").splitlines()}
    missing = [line for line in block.text.splitlines() if line.strip() not in lines]
    assert not missing, f"not in {block.file}"


@some("sh")
def test_shell_blocks_name_what_exists(block):
    for words in shell_lines(block.text):
        if words[0] == "./testbed":
            check_testbed(words)
        for word in words:
            if re.fullmatch(r"(?:\./)?(?:tools|tests|examples|\.ci)/[\w./-]+", word):
                assert (ROOT / word).exists(), word


def runnable(block: Block) -> bool:
    lines = shell_lines(block.text)
    return all(words[0] in ("./testbed", "cat") and not stands_for_something(words) for words in lines)


IN_ORDER = ("docs/from-jax.md",)
"""Documents whose blocks continue each other: test_from_jax.py runs them all."""

RUNNABLE = [b for b in BLOCKS if b.language == "sh" and b.document not in IN_ORDER and runnable(b)]


@pytest.mark.parametrize("block", RUNNABLE, ids=[b.id for b in RUNNABLE])
def test_shell_blocks_run(block, tmp_path):
    packages = tmp_path / "packages"
    packages.mkdir()
    link_package(packages, ROOT)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shutil.copytree(ROOT / "migration", tmp_path / "migration", ignore=shutil.ignore_patterns("*.py*", "__pycache__"))
    (tmp_path / "testbed").write_text(TESTBED.format(python=sys.executable, packages=str(packages)))
    (tmp_path / "testbed").chmod(0o755)
    # A path under /tmp in a document becomes a path in the test's own folder.
    script = block.text.replace("/tmp/", f"{tmp_path}/")
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        ["sh", "-eu", "-c", script], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_commands_and_options_named_in_the_text_exist():
    wrong = []
    for path in DOCUMENTS:
        text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
        for named in re.findall(r"`\./testbed ([^`]+)`", text):
            name, *words = re.split(r"[\s\[\]|\\…]+", named.partition(" -- ")[0])
            if name.startswith("-"):
                continue
            if name not in COMMANDS:
                wrong.append(f"{path.name}: {named}")
            elif name != "test":
                command = import_module(f"testbed.cli.{name}").command
                if isinstance(command, click.Group) and words:
                    command = command.commands.get(words[0], command)
                options = {o for p in command.params for o in p.opts}
                wrong += [f"{path.name}: {named}: {w}" for w in words if w.startswith("-") and w not in options]
    assert not wrong


@pytest.mark.parametrize("arguments", [["--frobnicate", "x.hlo"], ["x.hlo", "--seed", "y"], []])
def test_the_check_itself_notices(arguments):
    with pytest.raises(click.UsageError):
        check_testbed(["./testbed", "run", *arguments])
