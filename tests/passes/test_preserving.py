"""All passes and the schedule keep the results of a module, compared by the evaluator on samples of the corpora.

What the evaluator cannot run and what has no defined order is left out, by name.
"""

import numpy as np

from ...differential.case_runner import run_case
from ...differential.preserving import Meaning
from ...formats.text.parser import parse_module
from ...hlo.ir import Module
from ...hlo.opcodes import Op
from ...hlo.verify.verifier import verify
from ...migration.stacks import prepare
from ...passes.pipeline import optimize
from ...planning.schedule import schedule
from ..support.corpus import small_cases
from ..support.hlo_corpus import each, whole

NO_ORDER = frozenset({"c16fde39fdeaab5a", "dc64aba0d07276bd"})
"""Sorts by a comparator that is no strict weak order: any permutation is valid."""


def keeps(module: Module, inputs: list[np.ndarray]) -> str | None:
    """The difference after all passes and the schedule; None if there is none."""
    meaning = Meaning.of(module, inputs)
    after = schedule(optimize(module))
    verify(after)
    return meaning.change(after)


@each("op_cases", 60)
def test_op_cases(case):
    assert keeps(case.module(), case.inputs()) is None


@each("jax_programs", 20, seed=3)
def test_jax_programs(case):
    assert keeps(case.module(), case.inputs()) is None


@each("jax_programs", 8, seed=4)
def test_programs_as_xla_optimised_them(case):
    assert keeps(case.module(optimized=True), case.inputs()) is None


@each("xla_modules", 140, seed=5, where=lambda case: whole(case) and case.name not in NO_ORDER)
def test_xla_modules(case):
    assert keeps(case.module(), case.inputs()) is None


def test_conform_knows_the_stack():
    case = next(c for c in small_cases("op_cases") if c.id.startswith("tanh."))
    assert [(r.stack, r.status) for r in (run_case(case, s) for s in ("evaluator", "optimized"))] == [
        ("evaluator", "passed"),
        ("optimized", "passed"),
    ]


def test_a_change_is_described():
    def of(line: str) -> Module:
        return parse_module(f"HloModule m\nENTRY e {{ x = f32[2] parameter(0)\n ROOT r = {line} }}")

    meaning = Meaning.of(of("f32[2] negate(x)"), [np.array([1, 2], np.float32)])
    assert meaning.change(of("f32[2] negate(x)")) is None
    assert (
        meaning.change(of("f32[2] abs(x)"))
        == "result 0: 2 elements differ, first at [0]; allowed: the same bits (at most 4 apart)"
    )
    assert "int32[2] where float32[2] belongs" in str(meaning.change(of("s32[2] convert(x)")))


def test_optimized_runs_what_a_plan_is_made_of(monkeypatch):
    from ...formats.program import Program
    from ...passes import pipeline

    text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n a = f32[2] negate(x)\n ROOT r = f32[2] negate(a) }"
    program = Program("m", text, parse_module(text))
    seen = []
    monkeypatch.setattr(pipeline, "run_pipeline", lambda m, passes, observer: seen.extend(p.name for p in passes) or m)
    (result,) = prepare("optimized", program).run([np.ones(2, np.float32)])
    assert tuple(seen) == pipeline.OPTIMIZE and result.tolist() == [1, 1]
    assert Op.NEGATE in {i.opcode for i in program.module.instructions()}
