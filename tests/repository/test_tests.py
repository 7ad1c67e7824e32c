"""Tests that can fail: each asserts something, no error is swallowed, and a skip names what would make the test run."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

from hypothesis import settings

# The real checkout, also from inside Bazel's sandbox, where a test sees no other test.
ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
ME = Path(__file__).resolve()

DOORS = {
    "verify": "hlo/verify: raises unless a module is valid",
    "check_assignment": "planning/assignment_checker.py: raises unless a plan's memory is proved",
    "exec": "runs a block of a document, whose errors and assertions are the test's",
}
"""Functions that raise when what they are given is wrong: a call of one is an assertion."""

PREPARING = ("support/corpus.py", "support/hlo_corpus.py", "cases/", "generators/", "corpus/")
"""Files of tests that make what is tested: an assertion there says nothing of a result."""

MAY_SKIP = {
    "benchmarks/test_against_checkout.py": "an environment in the checkout",
    "cli/test_report_browser.py": "Chromium",
    "differential/test_exact_proof.py": "z3-solver (./testbed setup --dev)",
    "passes/algebra/test_algebra_proofs.py": "z3-solver (./testbed setup --dev)",
    "repository/test_installs.py": "setuptools, other Pythons and a package index",
    "repository/test_words.py": "a checkout of Git",
    "codegen/test_other_processors.py": "cross compilers for AArch64 and RISC-V, and QEMU",
    "backends/test_ahead.py": "cross compilers for AArch64 and RISC-V, and QEMU",
    "cli/test_toggles_checks.py": "a processor of that level",
    "backends/test_c.py": "a cross compiler for AArch64, and QEMU",
    "formats/test_proto.py": "jaxlib 0.12, which has the field",
    "support/processors.py": "a processor of that level",
    "evaluator/test_processors.py": "a processor for whose extensions NumPy has loops",
    "support/cpp.py": "g++, and jaxlib for its header (./testbed setup --xla)",
    "ffi/test_third_party.py": "klujax, jax-finufft and celerite2 (./testbed setup --handlers)",
    "pjrt/test_api.py": "a package registry with the wheel xla-cpu-pjrt; or TESTBED_PJRT_HEADER names its header",
    "support/corpus.py": "the shared corpora: TESTBED_CORPUS names them",
    "mlir_emitters/test_math.py": "a CPU with vectors of 256 bits",
    "mlir_emitters/test_complex_dot.py": "a CPU with vectors of 256 bits",
    "repository/test_launcher.py": "a Python with ensurepip",
}
"""Files that may call pytest.skip, each with what makes the test run. Marks say their reason themselves."""


class Function(NamedTuple):
    """A function by its file and name."""

    file: Path
    name: str


@cache
def nodes(file: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(file.read_bytes())))


@cache
def functions(file: Path) -> dict[str, ast.FunctionDef]:
    """The functions of a file by name, wherever they stand: methods and inner functions too."""
    return {node.name: node for node in nodes(file) if isinstance(node, ast.FunctionDef)}


@cache
def reachable(file: Path) -> dict[str, Function]:
    """The functions that a file can call by name: its own, and those imported from other files of the tests."""
    found = {name: Function(file, name) for name in functions(file)}
    for node in nodes(file):
        if isinstance(node, ast.ImportFrom) and node.level and node.module:
            source = file.parents[node.level - 1] / (node.module.replace(".", "/") + ".py")
            if source.is_relative_to(TESTS) and source.is_file():
                found |= {alias.asname or alias.name: Function(source, alias.name) for alias in node.names}
    return found


def called(node: ast.AST) -> str:
    """The name of what a call calls, without what stands before its last dot; empty for other nodes."""
    if not isinstance(node, ast.Call):
        return ""
    return getattr(node.func, "id", "") or getattr(node.func, "attr", "")


def raises_assertion(node: ast.AST) -> bool:
    return isinstance(node, ast.Raise) and node.exc is not None and "AssertionError" in ast.unparse(node.exc)


@cache
def facts(function: Function) -> tuple[bool, frozenset[Function]]:
    """Whether a function asserts anything itself, and what it calls in its file and in helpers of the tests."""
    definition = functions(function.file).get(function.name)
    if definition is None or function.file.relative_to(TESTS).as_posix().startswith(PREPARING):
        return False, frozenset()
    inside = [node for statement in definition.body for node in ast.walk(statement)]  # without the decorators
    names = {called(node) for node in inside}
    direct = any(name in {"raises", "fail", *DOORS} or name.startswith("assert_") for name in names)
    direct = direct or any(isinstance(node, ast.Assert) or raises_assertion(node) for node in inside)
    known = reachable(function.file)
    return direct, frozenset(known[name] for name in names & known.keys())


def asserts(function: Function) -> bool:
    """Whether a function asserts anything, itself or through what it calls."""
    seen: set[Function] = set()
    waiting = {function}
    while waiting:
        found = waiting.pop()
        seen.add(found)
        direct, calls = facts(found)
        if direct:
            return True
        waiting |= calls - seen
    return False


def swallows(handler: ast.ExceptHandler) -> bool:
    """Whether an error goes on as if nothing had happened, or ends in a skip: nothing raised, kept or returned."""
    inside = [node for statement in handler.body for node in ast.walk(statement)]
    if any(called(node) == "skip" for node in inside):
        return True
    answers = any(isinstance(n, ast.Return) and n.value is not None and ast.unparse(n.value) != "None" for n in inside)
    kept = any(isinstance(node, ast.Name) and node.id == handler.name for node in inside)
    return not (answers or kept or any(isinstance(node, (ast.Raise, ast.Assert)) for node in inside))


def files() -> list[Path]:
    return [path for path in sorted(TESTS.rglob("*.py")) if path != ME]


def test_every_test_asserts_something():
    tests = [Function(f, name) for f in files() for name in functions(f) if name.startswith("test_")]
    assert [f"{t.file.relative_to(TESTS)}::{t.name}" for t in tests if not asserts(t)] == []
    assert {t.file for t in tests} == {f for f in files() if f.name.startswith("test_")}


def test_no_error_is_swallowed():
    found = [
        f"{file.relative_to(TESTS)}:{node.lineno}"
        for file in files()
        for node in nodes(file)
        if (isinstance(node, ast.ExceptHandler) and swallows(node)) or called(node) == "suppress"
    ]
    assert not found, "let the error fail the test, or count what was refused and raise above a bound"


def test_skips_name_what_they_wait_for():
    skipping = {f.relative_to(TESTS).as_posix() for f in files() if any(called(n) == "skip" for n in nodes(f))}
    assert skipping == MAY_SKIP.keys()
    marks = [n for f in files() for n in nodes(f) if called(n) == "skipif"]
    assert [ast.unparse(m) for m in marks if not any(k.arg == "reason" for k in m.keywords)] == []


def test_the_number_of_examples_follows_the_profile():
    fixed = [
        f"{file.relative_to(TESTS)}:{node.lineno}: {ast.unparse(keyword.value)}"
        for file in files()
        for node in nodes(file)
        if called(node) == "settings"
        for keyword in node.keywords
        if keyword.arg == "max_examples" and isinstance(keyword.value, ast.Constant)
    ]
    assert not fixed, "a share of settings().max_examples, so that deep runs and campaigns draw more"


def test_only_the_default_run_draws_the_same_examples_again():
    profiles = {name: settings.get_profile(name) for name in ("fast", "deep", "campaign")}
    assert [name for name, profile in profiles.items() if profile.derandomize] == ["fast"]
    assert [profile.max_examples for profile in profiles.values()] == [30, 1_000, 10_000]
    drawing = [profiles["deep"], profiles["campaign"]]
    assert all(profile.print_blob and ".hypothesis" in repr(profile.database) for profile in drawing)


PLANTED = """
import pytest
from ..support.check import check
def helper(x):
    assert x
def test_by_helper(): helper(1)
def test_by_door(): check("HloModule m")
def test_by_raises():
    with pytest.raises(ValueError): int("x")
def test_nothing(): print(1)
def test_loops_back(): test_nothing(); test_loops_back()
def swallowed():
    try: f()
    except ValueError: pass
    try: f()
    except ValueError as e: pytest.skip(str(e))
    try: f()
    except ValueError: return None
def answered():
    try: f()
    except ValueError as e: found = str(e)
    try: f()
    except ValueError: return False
    try: f()
    except ValueError: raise AssertionError from None
"""


def test_the_rules_find_what_they_are_for(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "TESTS", tmp_path)
    sources = {"support/check.py": "def check(text):\n    assert text\n", "room/test_planted.py": PLANTED}
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    file = tmp_path / "room/test_planted.py"
    asserting = {name for name in functions(file) if name.startswith("test_") and asserts(Function(file, name))}
    assert asserting == {"test_by_helper", "test_by_door", "test_by_raises"}
    swallowing = {
        function.name: [swallows(node) for node in ast.walk(function) if isinstance(node, ast.ExceptHandler)]
        for function in functions(file).values()
        if function.name in ("swallowed", "answered")
    }
    assert swallowing == {"swallowed": [True] * 3, "answered": [False] * 3}
