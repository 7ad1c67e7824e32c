"""The small corpus: complete, small, of every family, right on every stack, and what tests/corpus/make.py makes."""

import json
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from ...differential.case_runner import run_case
from ...formats.text.parser import parse_module
from ...hlo.opset import OPSET
from ...hlo.opset_rows import Family
from ..support.corpus import SMALL, small_cases

ROWS = [json.loads(line) for line in (SMALL / "manifest.jsonl").read_text(encoding="utf-8").splitlines()]

ONE_DEVICE = {Family.ASYNC, Family.COLLECTIVE, Family.IO}
"""Families without a case: XLA:CPU has no second device, no feed and no asynchronous work to compare with."""

STACKS = {
    "op_cases": ("optimized", "parse"),  # the tests of each stack run these
    "xla_modules": ("optimized", "legacy", "mlir", "parse"),
    "jax_programs": ("optimized", "legacy", "mlir", "parse"),
}


def test_files_are_those_of_the_manifest_and_small():
    listed = {row[key] for row in ROWS for key in ("hlo", "golden", "stablehlo") if key in row}
    listed |= {f"{Path(row['hlo']).parent}/xla_optimized.hlo" for row in ROWS if row["suite"] == "jax_programs"}
    kept = [path for path in SMALL.rglob("*") if path.is_file() and ".py" not in path.suffix]
    files = [path for path in kept if path.relative_to(SMALL).parts[0] != "found"]  # what fuzz found: test_found.py
    assert {path.relative_to(SMALL).as_posix() for path in files} == {"manifest.jsonl", *listed}
    assert len({row["id"] for row in ROWS}) == len(ROWS)
    assert sum(path.stat().st_size for path in files) < 1_500_000


def test_every_family_of_opcodes_is_seen():
    modules = [parse_module((SMALL / row["hlo"]).read_text(encoding="utf-8")) for row in ROWS]
    seen = {OPSET[i.opcode].family for module in modules for i in module.instructions()}
    assert seen == {*Family} - ONE_DEVICE
    one_op = [(row["id"].split(".")[0], m) for row, m in zip(ROWS, modules) if row["suite"] == "op_cases"]
    assert [name for name, m in one_op if m.entry.root.opcode.value != name] == []


@pytest.mark.parametrize("suite", STACKS)
def test_every_case_passes(suite):
    rows = [run_case(case, stack) for case in small_cases(suite) for stack in STACKS[suite]]
    assert [row for row in rows if row.status != "passed"] == []
    assert len(rows) == len(STACKS[suite]) * len(small_cases(suite))


WRITER = find_spec("jaxlib") is not None and version("jaxlib").startswith("0.10.")


@pytest.mark.xla
@pytest.mark.skipif(not WRITER, reason="needs the jaxlib that wrote the corpus, 0.10, which Python 3.11 has")
def test_making_it_again_changes_nothing(capsys):
    pytest.importorskip("jax", reason="needs ./testbed setup --xla")
    from ..corpus.make import main

    assert main(["--check"]) == 0, capsys.readouterr().err
