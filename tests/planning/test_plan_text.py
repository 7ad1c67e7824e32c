"""A Plan parses back from its text: the same thunks, IR and results; what does not parse is refused with its place."""

import os
import random
import re
import sys

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...backends.host.compiler import HostCompiler
from ...differential.corpus import load_case, read_suite
from ...differential.fake_inputs import fake_inputs
from ...formats.text.parser import parse_module
from ...hlo.errors import ParseError, TestbedError
from ...lhlo import from_plan as lhlo_of
from ...lhlo.to_plan import to_plan
from ...migration.choose import emit_for
from ...migration.flags import Flags
from ...planning.assignment_checker import check_assignment
from ...planning.parse_plan import plan_from_text
from ...planning.plan_text import plan_to_text, standalone
from ...planning.planner import PlanOptions, plan
from ...thunks import to_text
from ...thunks.lowering import from_plan
from ..support.corpus import SMALL, some
from ..support.passes import AS_WRITTEN

CASES = read_suite(SMALL)
STACKS = ("legacy", "mlir")

EVERY = """HloModule every
no { a = f32[4] parameter(0)
  ROOT b = f32[4] abs(a) }
yes { a = f32[4] parameter(0)
  ROOT b = f32[4] cosine(a) }
cond { s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT l = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[4] sine(x)
  ROOT t = (s32[], f32[4]) tuple(j, y) }
ENTRY e { x = f32[4] parameter(0)
  p = pred[] parameter(1)
  k = f32[4] constant({1, 2, -0, nan})
  z = s32[] constant(0)
  sum = f32[4] add(x, k)
  t = (s32[], f32[4]) tuple(z, sum)
  w = (s32[], f32[4]) while(t), condition=cond, body=body
  o = f32[4] get-tuple-element(w), index=1
  c = f32[4] conditional(p, o, x), true_computation=yes, false_computation=no
  ROOT r = (f32[4], f32[4]) tuple(c, k) }
"""


def plans_of(module):
    """The planner's plan, and the one that comes back from its LHLO."""
    made = plan(module, AS_WRITTEN if module.name == "every" else PlanOptions())
    return made, to_plan(lhlo_of(made))


def test_programs_of_the_small_corpus_parse_back():
    for case in some(CASES, 60, 5):
        for made in plans_of(load_case(case).module):
            text = plan_to_text(made)
            again = plan_from_text(text)
            assert plan_to_text(again) == text, case.id
            assert to_text(from_plan(again)) == to_text(from_plan(made)), case.id
            if made.assignment.scratch or made.module.attributes.get("is_scheduled"):
                check_assignment(again)


@pytest.mark.parametrize("stack", STACKS)
def test_the_parsed_plan_compiles_to_the_same_code_and_results(stack):
    options = CompileOptions(cache=None, keep_stages=True)
    modules = [parse_module(EVERY), *(load_case(case).module for case in some(CASES, 4, 7))]
    for module in modules:
        inputs = fake_inputs(module, 3)
        for made in plans_of(module):
            first, second = (
                HostCompiler().compile(p, emit_for(Flags.parse(stack)), options)
                for p in (made, plan_from_text(plan_to_text(made)))
            )
            assert first.stages == second.stages, module.name
            for a, b in zip(first.execute(inputs), second.execute(inputs), strict=True):
                assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), module.name


def test_names_that_no_text_can_hold_are_replaced_everywhere():
    made = plan(parse_module(EVERY))
    object.__setattr__(made.steps[0].instruction, "name", "f 32/é")  # as a proto may name it
    text = plan_to_text(made)
    assert plan_to_text(plan_from_text(text)) == text and "%f_32__" in text


@pytest.mark.parametrize("text, place, message", [
    ("", "1:1", "there is no HLO module behind the plan (end the text with: HloModule name …)"),
    ("plan m {\n", "2:1", "there is no HLO module behind the plan"),
    ("{0}", "1:1", "expected 'plan', found the end"),
])  # fmt: skip
def test_what_is_no_plan_is_refused(text, place, message):
    with pytest.raises(ParseError) as caught:
        plan_from_text(text.replace("{0}", EVERY), "a.plan")
    assert str(caught.value).startswith(f"a.plan:{place}: ") and message in str(caught.value)


CHANGES = [
    ("allocation 1 =", "allocation 2 =", "expected allocation 1, found 2"),
    ("parameter 1 pred[] size=1 align=16", "parameter 0 pred[] size=1 align=16", "parameter 0 has two allocations"),
    ("parameter 1 pred[] size=1 align=16", "parameter 1 pred[] size=2 align=16", "parameter 1 is pred[], of 1 bytes"),
    ("size=16 align=64", "size=16 align=48", "the alignment 48 is no power of two up to 64"),
    ("trip_count=10", "trip_count=11", "the trip count of 'w' is 10, not 11"),
    ("conditional pred", "conditional index", "a selector has one byte (pred) or four (index)"),
    ("branch 1", "branch 2", "expected branch 1 of 2"),
    ("values e {", "values f {", "the module has no computation 'f'"),
    ("    %sum ", "    %sums ", "computation 'e' has no instruction 'sums'"),
    ("    %sum ", "    sum ", "expected an instruction of the module, found 'sum'"),
    ("} do {", "} dont {", "expected 'do', found 'dont'"),
    ("operands=[0, 1]", "operands=[0, 7]", "operands need a number of an argument each"),
    ("(in 0[0:16] align 16", "(in 0[0:16] align 8", "argument 0 is 16-byte aligned, not 8"),
    ("(in 0[0:16]", "(out 0[0:16]", "the arguments are"),
    ("(in 0[0:16]", "(in 0[0:17]", "are no part of allocation 0, which has 16"),
    ("(in 0[0:16]", "(in 90[0:16]", "there is no allocation 90"),
    ("  steps {", "  steps {\n    wait", "expected kernel or copy or while or conditional or profile, found 'wait'"),
    ("  steps {", "  steps {\n    copy 0[0:16] -> 0[0:16] %x", "allocation 0, a parameter, is read-only"),
    ("  steps {", "  steps {\n    copy 2[0:16] -> 2[0:16] %x", "that do not overlap"),
    ("kernel @sum_kernel(0[0:16], 5[0:16], 2[0:16])", "kernel @sum_kernel(0[0:16], 2[0:16], 2[0:16])", "overlap"),
    ("operands=[0, 1] results=[2]", "operands=[0] results=[2]", "2 operands need a number of an argument each"),
]  # fmt: skip


@pytest.mark.parametrize("old, new, message", CHANGES)
def test_a_change_is_refused_with_its_line(old, new, message):
    text = plan_to_text(plan(parse_module(EVERY), AS_WRITTEN))
    assert old in text
    with pytest.raises(ParseError) as caught:
        plan_from_text(text.replace(old, new, 1), "a.plan")
    assert message in str(caught.value) and caught.value.location.file == "a.plan"
    changed = [
        n for n, (a, b) in enumerate(zip(text.splitlines(), text.replace(old, new, 1).splitlines()), 1) if a != b
    ]
    assert caught.value.location.line in (changed[0], changed[0] + 1)


def outcome(text: str, proves: bool) -> str:
    try:
        made = plan_from_text(text)
    except TestbedError as error:
        assert error.location is not None, error
        return "refused"
    if proves:
        try:
            check_assignment(made)
        except TestbedError:
            return "disproved"
    return "right"


@pytest.mark.parametrize("number, proves", [(0, True), (1, False)], ids=["planner", "lhlo"])
def test_no_damage_ends_in_a_traceback(number, proves):
    text = plan_to_text(plans_of(parse_module(EVERY))[number])
    lines = text.splitlines(keepends=True)
    plan_lines = text.partition("\nHloModule")[0].count("\n")
    for n, line in enumerate(lines[:plan_lines]):
        found = outcome("".join(lines[:n] + lines[n + 1 :]), proves)
        assert found != "right" or not proves or line == "\n" or " size=0 " in line, line
    chosen = random.Random(11)
    places = list(re.finditer(r"\d+", text.partition("\nHloModule")[0]))
    seen = set()
    for m in chosen.sample(places, min(len(places), 150)):
        for value in (int(m[0]) + 1, 0, 10**18):
            seen.add(outcome(f"{text[: m.start()]}{value}{text[m.end() :]}", proves))
    for _ in range(100):
        at = chosen.randrange(len(text))
        seen.add(outcome(text[:at] + chosen.choice('{}[]%@,=:0a "') + text[at + 1 :], proves))
    assert "refused" in seen


def long_plan(size: int) -> str:
    """A plan of 10 · size steps on as many kernels' arguments, parameters, constants and results as `size`."""
    leaves = range(size)
    bytes_of = [f"{n}[0:16]" for n in range(3 * size)]
    lines = [f"allocation {n} = parameter {n} f32[4] size=16 align=16" for n in leaves]
    lines += [f"allocation {size + n} = result {n} f32[4] size=16 align=64" for n in leaves]
    lines += [f"allocation {2 * size + n} = constant f32[4] size=16 align=64 holds %k{n} in e" for n in leaves]
    values = [f"%p{n} {bytes_of[n]}\n%k{n} {bytes_of[2 * size + n]}\n%a{n} {bytes_of[size + n]}" for n in leaves]
    root = ", ".join(f"{{{n}}} {bytes_of[size + n]}" for n in leaves)
    lines += ["values e {", *values, f"%r {root}", "}"]
    wide = ", ".join(f"{'in' if n < size else 'out'} {bytes_of[n]} align 16" for n in range(2 * size))
    lines += ["kernel @add(in 0[0:16] align 16, in 0[0:16] align 16, out 0[0:16] align 16)"]
    lines[-1] += " operands=[0, 1] results=[2] = %a0 in e"
    lines += [f"kernel @wide({wide}) operands={list(leaves)} results={list(range(size, 2 * size))} = %r in e"]
    step = [f"kernel @add({bytes_of[n]}, {bytes_of[2 * size + n]}, {bytes_of[size + n]}) %a{n}" for n in leaves]
    lines += ["steps {", *step * 10, f"kernel @wide({', '.join(bytes_of[: 2 * size])}) %r", "}"]
    module = [f"p{n} = f32[4] parameter({n})\nk{n} = f32[4] constant({{1, 2, {n}, 3}})" for n in leaves]
    module += [f"a{n} = f32[4] add(p{n}, k{n})" for n in leaves]
    module += [f"ROOT r = ({', '.join(['f32[4]'] * size)}) tuple({', '.join(f'a{n}' for n in leaves)})"]
    return "\n".join(["plan m {", *lines, "}", "", "HloModule m, is_scheduled=true", "ENTRY e {", *module, "}"])


def test_reading_a_plan_takes_operations_in_proportion_to_its_length():
    def lines_run(text: str) -> int:
        count = 0

        def watch(frame, event, _):
            nonlocal count
            count += event == "line"
            return watch

        def enter(frame, event, _):
            return watch if f"{os.sep}planning{os.sep}" in frame.f_code.co_filename else None

        before = sys.gettrace()
        sys.settrace(enter)
        try:
            made = plan_from_text(text)
        finally:
            sys.settrace(before)
        assert len(made.steps) == text.count("kernel @add") + text.count("kernel @wide") - 2
        return count

    short, long = long_plan(200), long_plan(2000)
    assert long.count("\nkernel @add") > 20_000
    assert lines_run(long) < 11 * lines_run(short)


def test_computations_that_many_call_are_visited_once():
    """Each of 40 computations calls the next one twice, so that there are 2^40 ways to the last."""
    calls = "\n".join(
        f"c{n} {{ p = f32[] parameter(0)\n  a = f32[] call(p), to_apply=c{n - 1}\n"
        f"  b = f32[] call(p), to_apply=c{n - 1}\n  ROOT r = f32[] add(a, b) }}"
        for n in range(1, 40)
    )
    module = parse_module(
        f"HloModule m\nc0 {{ p = f32[] parameter(0)\n  ROOT r = f32[] negate(p) }}\n{calls}\n"
        "ENTRY e { x = f32[] parameter(0)\n  ROOT r = f32[] call(x), to_apply=c39 }\n"
    )
    made = standalone(module.entry.root, "alone")
    assert [c.name for c in made.computations] == [*(f"c{n}" for n in range(40)), "entry"]
