"""The generator draws sizes around the limits of the stacks' forms, and what has forms of its own."""

from collections import Counter

import pytest

from ...codegen.options import EmitOptions, Target
from ...differential.campaign.coverage import forms_left
from ...differential.generate.idioms import IDIOMS, Idiom, idioms_of
from ...differential.generate.program import FORM_LIMITS, MOST_ELEMENTS, Body, Limits, Program, near
from ...differential.generate.source import Seeded
from ...hlo.dtypes import DType
from ...hlo.ir import Module
from ...hlo.opcodes import Op
from ...hlo.verify.verifier import verify
from ...legacy import forms_of as legacy_forms
from ...migration.forms import form_tables
from ...mlir_emitters import forms_of as mlir_forms
from ...planning.planner import plan

HOST = EmitOptions(Target.level("x86-64-v3"), ranges=True)


def test_limits_are_those_of_the_stacks():
    """Change them, and VERSION in source.py, when a stack's limit moves."""
    limits = {x.value for table in form_tables().values() for form in table for x in form.limits}
    assert tuple(sorted(n for n in limits if n <= MOST_ELEMENTS)) == FORM_LIMITS


def test_sizes_lie_on_both_sides_of_limits():
    assert near((1, 8)) == (1, 2, 8, 7, 9)
    sizes = Counter(n for seed in range(2000) for n in Program(Seeded(seed), Limits()).limited_dims())
    assert {*sizes} == {*near(FORM_LIMITS)}


def drawn(idiom: Idiom, seed: int) -> Module:
    program = Program(Seeded(seed), Limits())
    body = Body(program, 2, entry=True)
    body.parameter(program.types[0], program.shapes[0])
    idiom.add(body)
    entry = program.done("main", body.instructions, body.values[-1].instruction)
    return Module("drawn", tuple(program.computations), entry, {})


RARE = {
    "softmax": {"rows/softmax", "rows/abreast", "rows/walks"},
    "alone": {"rows/abreast"},
    "columns": {"reduce/run", "reduce/columns"},
    "depthwise": {"convolution/channels", "convolution/columns"},
    "joined": {"regions"},
    "padded": {"padded/rows"},
    "planes": {"nest/channels"},
    "crossed": {"nest/tiles"},
    "batched": {"dot/columns"},
}
"""Idiom → forms that it is drawn for."""


def test_each_idiom_is_drawn_for_a_form():
    assert list(RARE) == [idiom.add.__name__ for idiom in IDIOMS]


@pytest.mark.parametrize("idiom", IDIOMS, ids=lambda idiom: idiom.add.__name__)
def test_an_idiom_reaches_its_forms_on_both_stacks(idiom):
    found: Counter[tuple[str, str]] = Counter()
    for seed in range(80):
        module = drawn(idiom, seed)
        verify(module)
        for kernel in plan(module).kernels:
            for stack, forms_of in (("legacy", legacy_forms), ("mlir", mlir_forms)):
                found.update((stack, name) for name in forms_of(kernel, HOST).names)
    for stack in ("legacy", "mlir"):
        assert RARE[idiom.add.__name__] <= {form for of, form in found if of == stack}, (stack, found)


def test_idioms_have_no_other_ops_than_those_that_may_be_drawn():
    few = Limits(ops=frozenset({Op.PAD, Op.REDUCE}))
    assert {idiom.add.__name__ for idiom in idioms_of(few)} == {"alone", "columns", "padded"}
    assert not idioms_of(Limits(dtypes=(DType.S32,)))


def test_coverage_counts_the_forms_of_hosts():
    """Not those of devices; a stack without a table has none."""
    tables = form_tables()
    names = [row.name for row in tables["legacy"] if not row.for_devices]
    assert "nest/elements" not in names and not any(name.startswith("groups/") for name in names)
    left = forms_left({("legacy", name): 1 for name in names[1:]}, ("evaluator", "legacy"))
    assert left == {"legacy": (len(names), (names[0],))}
    assert forms_left({}, ("mlir",))["mlir"][0] == sum(not row.for_devices for row in tables["mlir"])
