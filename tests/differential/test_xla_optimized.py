"""XLA's optimised text of whole programs, given to XLA again as `diff` does: all compare, no process ends."""

from pathlib import Path

import numpy as np
import pytest

from ...backends.xla import installed
from ...differential.bounds import bounds_of
from ...differential.verdict import judge
from ...formats.program import load_io, load_program, parameter_leaves, result_leaves
from ...migration.stacks import prepare
from ..support.corpus import CORPUS, SMALL, shared_root

pytestmark = [pytest.mark.xla, pytest.mark.skipif(not installed(), reason="needs jaxlib (./testbed setup --xla)")]

FILES = sorted((SMALL / "jax_programs").glob("*/xla_optimized.hlo"))
SHARED = sorted(path for suite in ("jax_programs", "jax012") for path in (CORPUS / suite).glob("*/xla_optimized.hlo"))
STACKS = ("evaluator", "legacy", "mlir", "xla")


def agree(file: Path, stacks: tuple[str, ...]) -> str:
    """The verdict of `diff` on a program and its inputs; '' if all stacks agree."""
    program = load_program(str(file))
    module = program.module
    inputs, _ = load_io(file.with_name("io.npz"), parameter_leaves(module), result_leaves(module))
    with np.errstate(all="ignore"):
        results = {stack: prepare(stack, program).run(inputs) for stack in stacks}
    verdict = judge(results, bounds_of(module))
    return "" if verdict.agrees else verdict.sentence


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_xla_agrees_with_the_evaluator_on_what_its_optimiser_wrote(file):
    assert agree(file, ("evaluator", "xla")) == ""


@pytest.mark.deep
def test_at_least_95_of_100_programs_of_both_jaxlibs_compare():
    shared_root()
    verdicts = {f"{file.parts[-3]}/{file.parts[-2]}": agree(file, STACKS) for file in SHARED}
    wrong = {name: sentence for name, sentence in verdicts.items() if sentence}
    assert len(wrong) <= len(SHARED) // 20, wrong
