"""Plans: steps, kernels and their sharing, schedules, texts; and whole corpus programs run in their buffers."""

import re
from dataclasses import replace

import numpy as np
import pytest

from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.analysis.leaves import moves_no_bytes
from ...hlo.errors import TestbedError, UnsupportedError
from ...hlo.ir import Module
from ...hlo.opcodes import Op
from ...hlo.verify.verifier import verify
from ...planning.assignment_checker import check_assignment
from ...planning.plan import ConditionalStep, CopyStep, KernelStep, Plan, WhileStep
from ...planning.plan_text import plan_to_text
from ...planning.planner import plan
from ...planning.schedule import schedule
from ..support.hlo_corpus import CorpusCase, each, evaluable
from ..support.passes import AS_WRITTEN, agree
from ..support.plan_interpreter import run_plan


def plan_text(body: str, head: str = "", header: str = "") -> Plan:
    made = plan(parse_module(f"HloModule m{header}\n{head}\nENTRY e {{ {body} }}"), AS_WRITTEN)
    check_assignment(made)
    return made


CHAIN = """x = f32[64,64] parameter(0)
  y = f32[64,64] parameter(1)
  a = f32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[64,64] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[64,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[64,64] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e1 = f32[64,64] dot(c, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT f = f32[64,64] dot(e1, d), lhs_contracting_dims={0}, rhs_contracting_dims={0}"""


def test_kernels_of_one_structure_are_shared_and_others_are_not():
    made = plan_text(CHAIN)
    steps = [s for s in made.walk() if isinstance(s, KernelStep)]
    kernel = {s.instruction.name: s.kernel.name for s in steps}
    assert kernel["a"] == kernel["b"]  # both read parameters
    assert kernel["c"] == kernel["e1"] != kernel["a"]  # better aligned operands
    assert kernel["d"] != kernel["c"]  # one operand twice
    assert kernel["f"] not in {v for k, v in kernel.items() if k != "f"}  # another contraction
    assert [k.name for k in made.kernels] == list(dict.fromkeys(s.kernel.name for s in steps))


def test_kernel_names_are_distinct_c_identifiers():
    made = plan_text("""x-1 = f32[4] parameter(0)
      exp = f32[4,4] dot(x-1, x-1), lhs_contracting_dims={}, rhs_contracting_dims={}
      a.b = f32[4,4] transpose(exp), dimensions={1,0}
      a_b = f32[4,4] dot(a.b, exp), lhs_contracting_dims={0}, rhs_contracting_dims={0}
      ROOT t = f32[4,4] dot(a_b, exp), lhs_contracting_dims={0}, rhs_contracting_dims={1}""")
    names = [k.name for k in made.kernels]
    assert len(set(names)) == len(names) and all(re.fullmatch(r"[A-Za-z_]\w*_kernel(_\d+)?", n) for n in names)


def test_names_of_other_code_are_left_to_it():
    """XLA's objects define `dot_kernel`, too, where its kernels run beside ours."""
    body = (
        "x = f32[4,4] parameter(0)\n ROOT dot = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    )
    module = parse_module(f"HloModule m\nENTRY e {{ {body} }}")
    made = [plan(module, replace(AS_WRITTEN, taken=taken)) for taken in ((), ("dot_kernel", "dot_kernel_2"))]
    assert [[k.name for k in p.kernels] for p in made] == [["dot_kernel"], ["dot_kernel_1"]]


def test_arguments_are_distinct_and_operands_that_are_one_value_share_one():
    made = plan_text("""x = f32[8,8] parameter(0)
      ROOT d = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}""")
    (kernel,) = made.kernels
    assert kernel.operands == (0, 0) and kernel.results == (1,)
    assert [(a.alignment, a.written) for a in kernel.arguments] == [(16, False), (64, True)]


def test_what_moves_no_bytes_has_no_kernel():
    made = plan_text("""x = f32[2,3,4] parameter(0)
      d = f32[6,4] reshape(x)
      e1 = f32[4,4] dot(d, d), lhs_contracting_dims={0}, rhs_contracting_dims={0}
      f = f32[2,2,2,2] reshape(e1)
      t = (f32[2,2,2,2]) tuple(f)
      g = f32[2,2,2,2] get-tuple-element(t), index=0
      o = f32[2,2,2,2] opt-barrier(g)
      ROOT b = f32[16] bitcast(o)""")
    assert [s.instruction.name for s in made.steps] == ["e1"]


def test_copies_between_layouts_are_kernels_and_plain_copies_are_steps():
    """A reshape of another layout than row-major is such a copy, and then the same memory."""
    made = plan_text("""x = f32[2,3]{0,1} parameter(0)
      a = f32[6]{0} reshape(x)
      b = f32[2,3]{1,0} copy(x)
      ROOT t = (f32[6]{0}, f32[2,3]{1,0}, f32[2,3]{0,1}) tuple(a, b, x)""")
    kinds = {type(s).__name__: [r.instruction.name for r in made.steps if type(r) is type(s)] for s in made.steps}
    assert sorted(kinds["KernelStep"]) == ["b", "x.layout"] and kinds["CopyStep"] == ["t"]


def test_an_opcode_that_no_emitter_knows_is_a_kernel_of_its_own():
    made = plan_text("""x = f32[8] parameter(0)
      n = f32[8] negate(x)
      ROOT c = f32[8] custom-call(n), custom_call_target="nobody" """)
    assert [s.instruction.opcode for s in made.steps] == [Op.NEGATE, Op.CUSTOM_CALL]


def test_a_call_of_a_tuple_gets_its_elements():
    made = plan_text("""x = f32[8] parameter(0)
      t = (f32[8], f32[8]) tuple(x, x)
      ROOT c = f32[8] custom-call(t), custom_call_target="nobody" """)
    assert [kernel.operands for kernel in made.kernels] == [(0, 0)]


def test_requests_that_cannot_be_planned_say_so():
    with pytest.raises(UnsupportedError, match=r"must-alias of parameter 0 .*give both one layout"):
        plan_text(
            """x = f32[2,3]{1,0} parameter(0)
            ROOT n = f32[2,3]{0,1} copy(x)""",
            header=", input_output_alias={ {}: (0, {}, must-alias) }",
        )
    with pytest.raises(UnsupportedError, match="dynamic dimensions"):
        plan_text("""x = f32[8] parameter(0)
          n = s32[] parameter(1)
          d = f32[<=8] set-dimension-size(x, n), dimensions={0}
          ROOT c = f32[8] custom-call(d), custom_call_target="nobody" """)


LOOP = """cond {{ s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({limit})
  ROOT l = pred[] compare({test}), direction={direction} }}
body {{ s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[] get-tuple-element(s), index=1
  c = s32[] constant({step})
  j = s32[] add({sum})
  y = f32[] sine(x)
  ROOT t = (s32[], f32[]) tuple(j, y) }}"""


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, 10),
        ({"step": 3}, 4),
        ({"start": 4}, 6),
        ({"start": 10}, 0),
        ({"start": 12}, 0),
        ({"direction": "LE"}, 11),
        ({"sum": "c, i"}, 10),
        ({"step": 0}, None),
        ({"step": -1}, None),
        ({"direction": "NE"}, 10),
        ({"direction": "NE", "step": 5}, 2),
        ({"direction": "NE", "step": 3}, None),
        ({"direction": "NE", "start": 10}, 0),
        ({"direction": "EQ"}, 0),
        ({"direction": "EQ", "start": 10}, 1),
        ({"direction": "GT", "start": 10, "limit": 0, "step": -3}, 4),
        ({"direction": "GE", "start": 10, "limit": 0, "step": -5}, 3),
        ({"direction": "GE", "start": -2147483647, "limit": -2147483648, "step": -2}, None),
        ({"direction": "GT"}, 0),
        ({"test": "n, i"}, 0),
        ({"test": "n, i", "direction": "GT"}, 10),
        ({"sum": "j0, c", "extra": True}, None),
        ({"limit": 2147483647, "step": 2}, None),  # the counter would wrap around
    ],
)
def test_trip_counts_of_counted_loops(values: dict, expected: int | None):
    given = {"limit": 10, "step": 1, "start": 0, "direction": "LT", "test": "i, n", "sum": "i, c"} | values
    head = LOOP.format(**given)
    if "extra" in values:
        head = head.replace("  j = s32[] add", "  j0 = s32[] multiply(i, c)\n  j = s32[] add")
    made = plan_text(
        f"""x = f32[] parameter(0)
      z = s32[] constant({given["start"]})
      t = (s32[], f32[]) tuple(z, x)
      ROOT w = (s32[], f32[]) while(t), condition=cond, body=body""",
        head,
    )
    (loop,) = [s for s in made.walk() if isinstance(s, WhileStep)]
    assert loop.trip_count == expected
    if expected is not None:
        run_plan(made, [np.float32(1)])  # asserts the count


def test_a_counter_that_starts_at_run_time_has_no_trip_count():
    made = plan_text(
        """x = f32[] parameter(0)
      z = s32[] parameter(1)
      t = (s32[], f32[]) tuple(z, x)
      ROOT w = (s32[], f32[]) while(t), condition=cond, body=body, backend_config={"known_trip_count":{"n":"7"}}""",
        LOOP.format(limit=10, step=1, direction="LT", test="i, n", sum="i, c"),
    )
    assert [s.trip_count for s in made.walk() if isinstance(s, WhileStep)] == [None]


def test_a_schedule_that_comes_with_the_module_is_kept():
    text = """x = f32[64,64] parameter(0)
      c = f32[64,64] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
      b = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      a = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
      d = f32[64,64] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}
      e1 = f32[64,64] dot(b, d), lhs_contracting_dims={1}, rhs_contracting_dims={1}
      ROOT f = f32[64,64] dot(c, e1), lhs_contracting_dims={1}, rhs_contracting_dims={1}"""
    kept = plan_text(text, header=", is_scheduled=true")
    assert [s.instruction.name for s in kept.steps] == ["c", "b", "a", "d", "e1", "f"]
    ours = plan_text(text)
    assert ours.assignment.allocations[-1].size < kept.assignment.allocations[-1].size


def test_schedules_keep_side_effects_and_control_dependencies_in_order():
    module = parse_module("""HloModule m
ENTRY e { x = f32[4] parameter(0)
  k = token[] after-all()
  o1 = token[] outfeed(x, k), outfeed_shape=f32[4]
  n = f32[4] negate(x)
  o2 = token[] outfeed(n, k), outfeed_shape=f32[4]
  one = f32[] constant(1)
  big = f32[1024] broadcast(one), dimensions={}, control-predecessors={o2}
  ROOT r = f32[1024] abs(big) }""")
    order = [i.name for i in schedule(module).entry.instructions]
    assert order.index("o1") < order.index("o2") < order.index("big")


def test_a_scheduled_module_verifies_and_is_marked():
    module = schedule(parse_module(f"HloModule m\nENTRY e {{ {CHAIN} }}"))
    verify(module)
    assert module.attributes["is_scheduled"] is True


def test_text_of_a_plan_shows_allocations_kernels_and_nested_steps():
    made = plan_text(
        """x = f32[] parameter(0)
      z = s32[] constant(0)
      t = (s32[], f32[]) tuple(z, x)
      w = (s32[], f32[]) while(t), condition=cond, body=body
      p = pred[] parameter(1)
      v = f32[] get-tuple-element(w), index=1
      ROOT c = f32[] conditional(p, v, v), true_computation=yes, false_computation=no""",
        LOOP.format(limit=10, step=1, direction="LT", test="i, n", sum="i, c")
        + """
yes { a = f32[] parameter(0)
  ROOT b = f32[] negate(a) }
no { a = f32[] parameter(0)
  ROOT b = f32[] abs(a) }""",
    )
    text = plan_to_text(made)
    assert text == plan_to_text(made)
    for line in (
        "allocation 0 = parameter 0 f32[] size=4 align=16",
        "trip_count=10",
        "} do {",
        "conditional pred",
        "branch 1 {",
    ):
        assert line in text
    assert text.count("kernel @") == len(made.kernels) + sum(isinstance(s, KernelStep) for s in made.walk())


def test_every_plan_error_is_one_line():
    with pytest.raises(TestbedError) as caught:
        plan_text(
            "x = f32[8] parameter(0)\n n = s32[] parameter(1)\n"
            "d = f32[<=8] set-dimension-size(x, n), dimensions={0}\n"
            'ROOT c = f32[8] custom-call(d), custom_call_target="n" '
        )
    assert "\n" not in str(caught.value) and "<string>:" in str(caught.value)


# -- the corpus -------------------------------------------------------------------------------------------------------
def check_program(module: Module, inputs: list[np.ndarray]) -> Plan:
    """Plan, prove, run in its buffers, and compare with the module's own evaluation."""
    made = plan(module)
    check_assignment(made)
    check_steps(made)
    verify(made.module)
    expected = evaluate(module, inputs)
    actual = run_plan(made, inputs)
    agree(module, expected, actual)
    return made


def check_steps(made: Plan) -> None:
    """Check the guarantees of KernelRequest for every kernel."""
    for step in made.walk():
        i = step.instruction
        if isinstance(step, KernelStep):
            assert i.opcode not in (Op.CALL, Op.TUPLE, Op.WHILE, Op.CONDITIONAL) and not moves_no_bytes(i)
            assert all(not o.shape.is_tuple for o in i.operands)
            assert len(step.arguments) == len(step.kernel.arguments)
            assert i.opcode is not Op.FUSION or not any(
                m.opcode in (Op.FUSION, Op.CALL) for m in i.called()[0].instructions
            )
        elif isinstance(step, CopyStep):
            assert step.source.size == step.destination.size > 0
        elif isinstance(step, ConditionalStep):
            assert len(step.branches) == len(i.operands) - 1


def evaluable_as_xla_optimised(case: CorpusCase) -> bool:
    return " custom-call(" not in case.path.with_name("xla_optimized.hlo").read_text()


@each("jax_programs", 10, biggest=25_000, seed=3)
def test_jax_programs_run_in_their_buffers(case):
    check_program(case.module(), case.inputs())


@each("jax_programs", 6, biggest=18_000, seed=4, where=evaluable_as_xla_optimised)
def test_programs_with_fusions_of_xla_run_in_their_buffers(case):
    made = check_program(case.module(optimized=True), case.inputs())
    assert any(s.instruction.opcode is Op.FUSION for s in made.walk())


@each("xla_modules", 75, biggest=8_000, seed=5, where=evaluable)
def test_xla_modules_run_in_their_buffers(case):
    check_program(case.module(), case.inputs())
