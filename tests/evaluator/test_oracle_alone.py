"""The oracle shares no code with what it checks: who may run it, who may look inside, and what it may import itself.

An error in code that both sides use would be the same error on both sides, and no comparison would show it.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

# The real checkout, also from inside Bazel's sandbox.
ROOT = Path(__file__).resolve().parents[2]

# Every path below is a file, or a folder with all that is in it (a `/` at its end).
DOOR = "evaluator/evaluator.py"
INSIDE = (
    *("evaluator/elements.py", "evaluator/field.py", "evaluator/field_library.py", "evaluator/field_orders.py"),
    *("evaluator/lockstep.py", "evaluator/rules.py", "evaluator/reference/"),
)

MAY_RUN_IT = {
    "backends/interpreter/": "the evaluator as a back end",
    "backends/conformance/runs.py": "what a back end's runs are compared with",
    "benchmarks/suite/accuracy.py": "results in f64 for the errors that the suite prints",
    "benchmarks/xla_history.py": "how far a kernel of XLA's is off, version by version",
    "benchmarks/xla_kernels.py": "how far kernels of XLA's and ours are off",
    "cli/devices.py": "simulated devices: --replicas",
    "differential/case_runner.py": "what is expected of a device that keeps subnormals",
    "differential/reduce/case.py": "values that parameters take over where a reduced module is cut",
    "differential/replacement.py": "compares a hand-written kernel with the one that it replaces",
    "passes/cleanup/constant_folding.py": "constants are what the oracle says; the only pass that runs it",
    "differential/sums.py": "sums of the terms of other operands, by the function of the widened instruction",
    "differential/gate/other_tree.py": "judges the stacks of another checkout: they against the oracle",
    "differential/exact/check.py": "kernels over a finite field: both stacks against the oracle",
    "differential/choices.py": "the choices themselves: they keep subnormals around an op of the oracle",
    "differential/permitted.py": "what the float rules leave open: the oracle with other choices",
    "differential/precision.py": "who is far off: the oracle in double precision",
    "differential/preserving.py": "checks passes from above",
    "differential/replay/measure.py": "what programs of the replay suite give: versions of jaxlib against the oracle",
    "differential/row_check.py": "the gate of a ledger's row: both stacks against the oracle",
    "migration/api.py": "testbed.evaluate",
    "migration/stacks.py": "the evaluator as one of the stacks that are compared",
    "tools/mutations/evaluator.py": "makes it wrong, to see whether tests notice",
}
MAY_LOOK_INSIDE = {
    "cli/board/coverage.py": "shows which opcodes have a reference",
    "differential/exact/check.py": "gives the oracle its rules over a finite field",
    "differential/exact/draw.py": "draws elements of the field",
    "differential/exact/library.py": "a library's call over the field, in place of code that both stacks share",
    "differential/exact/program.py": "gives a library's calls their elements",
    "tools/mutations/evaluator.py": MAY_RUN_IT["tools/mutations/evaluator.py"],
}
LANGUAGE = (
    "hlo/analysis/nesting.py",
    "hlo/attributes.py",
    "hlo/conventions.py",
    "hlo/devices.py",
    "hlo/dtypes.py",
    "hlo/dynamic_border.py",
    "hlo/display.py",
    "hlo/errors.py",
    "hlo/ir.py",
    "hlo/later.py",
    "hlo/library/lapack.py",
    "hlo/library/lapack_checks.py",
    "hlo/library/lapack_options.py",
    "hlo/library/calls.py",
    "hlo/library/handlers.py",
    "hlo/library/transforms.py",
    "hlo/opcodes.py",
    "hlo/opset.py",
    "hlo/opset_rows.py",
    "hlo/records.py",
    "hlo/replica_groups.py",
    "hlo/shapes.py",
    "hlo/trees.py",
)
"""Files with facts about HLO. The oracle may import only these, directly or indirectly."""

ORACLE = (DOOR, *INSIDE)
NO_ROOM = ("tests/",)


def is_in(file: str, places) -> bool:
    return any(file == place or (place.endswith("/") and file.startswith(place)) for place in places)


def package_files() -> list[str]:
    """The Python files of all rooms, the repository's tools and the root package."""
    found = [*ROOT.glob("*.py"), *(p for top in ROOT.glob("*/__init__.py") for p in top.parent.rglob("*.py"))]
    names = (p.relative_to(ROOT).as_posix() for p in found)
    return sorted(n for n in names if not is_in(n, NO_ROOM) and "/." not in n)


FILES = package_files()


@functools.cache
def file_of(module: tuple[str, ...]) -> str | None:
    """The file of a module of the package; None if there is none."""
    name = "/".join(module)
    return next((f for f in (f"{name}.py", f"{name}/__init__.py") if module and f in FILES), None)


def imports(file: str, text: str) -> Iterator[tuple[str, str, int]]:
    """(file, name, line) of what a file imports of the package, wherever in it the import stands; name '' for all."""
    here = Path(file).parent.parts
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                package, *rest = alias.name.split(".")
                if package == "testbed" and (found := file_of(tuple(rest))):
                    yield found, "", node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = tuple((node.module or "").split(".")) if node.module else ()
            if node.level:
                base = (*here[: len(here) - node.level + 1], *base)
            elif base[0] == "testbed":
                base = base[1:]
            else:
                continue
            for alias in node.names:
                if found := file_of((*base, alias.name)):
                    yield found, "", node.lineno
                elif found := file_of(base):
                    yield found, alias.name, node.lineno


@functools.cache
def imports_of(file: str) -> list[tuple[str, str, int]]:
    return list(imports(file, (ROOT / file).read_text(encoding="utf-8")))


def importers(places) -> dict[str, str]:
    """The files outside the oracle that import one of these places, and the first such line."""
    return {
        file: f"{file}:{line} imports {target}"
        for file in FILES
        if not is_in(file, ORACLE)
        for target, _, line in reversed(imports_of(file))
        if is_in(target, places)
    }


@pytest.mark.parametrize("line", [
    "from ..evaluator.reference import region",
    "from ..evaluator.reference.region import taps",
    "from ..evaluator import reference",
    "def f():\n    from ..evaluator.reference import region",
    "if TYPE_CHECKING:\n    from ..evaluator.reference.region import *",
    "import testbed.evaluator.reference.region as r",
    "from testbed.evaluator.reference import region",
])  # fmt: skip
def test_an_import_is_seen_wherever_it_stands(line):
    found = [target for target, _, _ in imports("passes/new.py", line)]
    assert len(found) == 1 and is_in(found[0], INSIDE)


def test_every_place_in_the_tables_exists():
    places = [*ORACLE, *MAY_RUN_IT, *MAY_LOOK_INSIDE, *LANGUAGE]
    assert not [place for place in places if not any(is_in(file, [place]) for file in FILES)]


def test_only_these_run_the_oracle():
    found = importers([DOOR])
    assert not [where for file, where in found.items() if not is_in(file, MAY_RUN_IT)]
    assert not [place for place in MAY_RUN_IT if not any(is_in(f, [place]) for f in found)], "no longer needed"


def test_nobody_looks_inside():
    found = importers(INSIDE)
    assert not [where for file, where in found.items() if not is_in(file, MAY_LOOK_INSIDE)]
    assert set(found) == set(MAY_LOOK_INSIDE), "no longer needed"


def test_constant_folding_goes_through_the_front_door():
    (file,) = [place for place in MAY_RUN_IT if place.endswith("/constant_folding.py")]
    assert [name for target, name, _ in imports_of(file) if target == DOOR] == ["evaluate"]


def test_the_oracle_knows_the_language_only():
    allowed = (*ORACLE, *LANGUAGE)
    reached = [file for file in FILES if is_in(file, ORACLE)]
    strangers = []
    for file in reached:  # grows on the way
        for target, _, line in imports_of(file):
            if not is_in(target, allowed):
                strangers.append(f"{file}:{line} imports {target}")
            elif target not in reached:
                reached.append(target)
    assert not strangers
    assert {file for file in FILES if is_in(file, LANGUAGE)} <= set(reached), "more than the oracle needs to know"
