"""Buffers: loops and branches without needless copies, parallel copies, results in place."""

from random import Random

import numpy as np
import pytest
from hypothesis import given

from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...planning.allocation import POOL_ALIGNMENT, AllocationKind
from ...planning.assignment_checker import check_assignment
from ...planning.plan import CopyStep, KernelStep, WhileStep
from ...planning.planner import plan
from ..generators.random_programs import Programs
from ..support.choices import CHOICES
from ..support.passes import agree
from ..support.plan_interpreter import run_plan
from ..support.planned import X, check, copies, loop


def test_loop_invariants_are_not_copied():
    made = check(
        loop(
            "f32[8], f32[8]",
            "x, y",
            "n = f32[8] add(s1, s2) -> n, s2",
            "ROOT r = f32[8] add(o1, o2)",
            head="x = f32[8] parameter(0)\n y = f32[8] parameter(1)",
        ),
        X,
        X + 1,
    )
    assert [c.source.size for c in copies(made)] == [32, 4]  # x, which the loop changes, and the counter
    assert all(c.instruction.name == "w" for c in copies(made))


def test_a_stacked_output_is_updated_in_place_without_copies():
    text = loop(
        "f32[8], f32[5,8]",
        "x, b",
        """r = f32[1,8] reshape(s1)
      u = f32[5,8] dynamic-update-slice(s2, r, i, zero)
      n = f32[8] tanh(s1) -> n, u""",
        "ROOT r = (f32[8], f32[5,8]) tuple(o1, o2)",
        head="x = f32[8] parameter(0)\n c = f32[] constant(0)\n b = f32[5,8] broadcast(c), dimensions={}",
    )
    made = check(text, X)
    assert sorted(c.source.size for c in copies(made)) == [32]  # before the loop: x; the counter is made in its place
    (body,) = [s.body for s in made.steps if isinstance(s, WhileStep)]
    assert not any(isinstance(s, CopyStep) for s in body)
    assert made.assignment.allocations[-1].size < 5 * 8 * 4  # the stack lives in the result


def test_swapped_elements_go_through_a_spare_buffer():
    made = check(
        loop(
            "f32[8], f32[8]",
            "x, y",
            " -> s2, s1",
            "ROOT r = (f32[8], f32[8]) tuple(o1, o2)",
            head="x = f32[8] parameter(0)\n y = f32[8] parameter(1)",
        ),
        X,
        X + 1,
    )
    (body,) = [s.body for s in made.steps if isinstance(s, WhileStep)]
    assert sum(isinstance(s, CopyStep) for s in body) == 3


def test_rotated_elements_need_one_spare_copy_only():
    made = check(
        loop(
            "f32[8], f32[8], f32[8]",
            "x, y, v",
            " -> s2, s3, s1",
            "ROOT r = (f32[8], f32[8], f32[8]) tuple(o1, o2, o3)",
            head="x = f32[8] parameter(0)\n y = f32[8] parameter(1)\n v = f32[8] parameter(2)",
        ),
        X,
        X + 1,
        X + 2,
    )
    (body,) = [s.body for s in made.steps if isinstance(s, WhileStep)]
    assert sum(isinstance(s, CopyStep) for s in body) == 4


def test_a_shifted_history_is_copied_in_an_order_that_keeps_it():
    made = check(
        loop(
            "f32[8], f32[8]",
            "x, y",
            "n = f32[8] add(s1, s2) -> n, s1",
            "ROOT r = (f32[8], f32[8]) tuple(o1, o2)",
            head="x = f32[8] parameter(0)\n y = f32[8] parameter(1)",
        ),
        X,
        X + 1,
    )
    (body,) = [s.body for s in made.steps if isinstance(s, WhileStep)]
    assert sum(isinstance(s, CopyStep) for s in body) <= 2


def test_one_value_in_two_elements():
    check(
        loop(
            "f32[8], f32[8]",
            "x, x",
            "n = f32[8] add(s1, s2) -> n, n",
            "ROOT r = (f32[8], f32[8], f32[8]) tuple(o1, o2, o1)",
            head="x = f32[8] parameter(0)",
        ),
        X,
    )


def test_a_loop_that_never_runs_gives_its_initial_values():
    check(
        loop(
            "f32[8]",
            "x",
            "n = f32[8] negate(s1) -> n",
            "ROOT r = f32[8] copy(o1)",
            head="x = f32[8] parameter(0)",
            trips=0,
        ),
        X,
    )


def test_a_value_needed_after_the_loop_survives_it():
    made = check(
        loop(
            "f32[8]",
            "v",
            "n = f32[8] tanh(s1) -> n",
            "ROOT r = f32[8] add(o1, v)",
            head="x = f32[8] parameter(0)\n v = f32[8] negate(x)",
        ),
        X,
    )
    assert 32 in [c.source.size for c in copies(made)]


def test_a_dying_value_moves_into_the_loop_without_a_copy():
    made = check(
        loop(
            "f32[8]",
            "v",
            "n = f32[8] tanh(s1) -> n",
            "ROOT r = f32[8] negate(o1)",
            head="x = f32[8] parameter(0)\n v = f32[8] negate(x)",
        ),
        X,
    )
    assert not copies(made)  # the counter is made in its place, too


def test_parameters_constants_and_repeated_results_are_copied_out():
    made = check(
        """HloModule m
ENTRY e { x = f32[4] parameter(0)
  c = f32[4] constant({1,2,3,4})
  n = f32[4] negate(x)
  i = (f32[4], f32[4]) tuple(n, x)
  ROOT t = (f32[4], f32[4], f32[4], (f32[4], f32[4])) tuple(x, c, n, i) }""",
        X[:4],
    )
    results = [a for a in made.assignment.allocations if a.kind is AllocationKind.RESULT]
    assert [r.number for r in results] == [0, 1, 2, 3, 4]
    assert len(copies(made)) == 4  # all but the one that the kernel writes


def test_branches_write_their_results_in_place_and_read_operands_where_they_are():
    made = check(
        """HloModule m
a { p = f32[8] parameter(0)
  ROOT n = f32[8] tanh(p) }
b { p = f32[8] parameter(0)
  n = f32[8] negate(p)
  ROOT m = f32[8] multiply(n, p) }
ENTRY e { x = f32[8] parameter(0)
  i = s32[] parameter(1)
  ROOT r = f32[8] conditional(i, x, x), branch_computations={a, b} }""",
        X,
        np.int32(1),
    )
    assert not copies(made)
    assert made.assignment.allocations[-1].size == 0


def test_a_branch_that_returns_its_operand_copies_it():
    for choice in (0, 1, 7, -1):
        made = check(
            """HloModule m
a { p = f32[8] parameter(0)
  ROOT n = f32[8] tanh(p) }
b { ROOT p = f32[8] parameter(0) }
ENTRY e { x = f32[8] parameter(0)
  i = s32[] parameter(1)
  ROOT r = f32[8] conditional(i, x, x), branch_computations={a, b} }""",
            X,
            np.int32(choice),
        )
    assert len(copies(made)) == 1


def test_elementwise_results_take_over_dying_operands():
    made = check(
        """HloModule m
ENTRY e { x = f32[64] parameter(0)
  y = f32[64] parameter(1)
  d = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  o = f32[64,64] dot(x, y), lhs_contracting_dims={}, rhs_contracting_dims={}
  k = f32[64,64] opt-barrier(o)
  b = f32[64,64] broadcast(d), dimensions={}
  s = f32[64,64] add(k, b)
  ROOT p = f32[64,64] dot(s, s), lhs_contracting_dims={1}, rhs_contracting_dims={0} }""",
        np.ones(64, np.float32),
        np.ones(64, np.float32),
    )
    add = next(s for s in made.walk() if isinstance(s, KernelStep) and "add" in s.instruction.name)
    assert set(add.kernel.results) & set(add.kernel.operands)
    assert made.assignment.allocations[-1].size <= 64 * 64 * 4 + POOL_ALIGNMENT


@pytest.mark.parametrize(
    "body",
    [
        "t = f32[8] tanh(v)\n r = f32[8] reverse(v), dimensions={0}\n ROOT a = f32[8] add(t, r)",
        "t = f32[8] tanh(v)\n r = f32[8] reverse(t), dimensions={0}\n ROOT a = f32[8] add(t, r)",
        "r = f32[8] reverse(v), dimensions={0}\n ROOT a = f32[8] tanh(r)",
        "s = f32[4] slice(v), slice={[2:6]}\n k = s32[] constant(0)\n ROOT a = f32[8] dynamic-update-slice(v, s, k)",
    ],
)
def test_kernels_that_read_elsewhere_are_not_computed_in_place(body: str):
    made = check(
        f"""HloModule m
ENTRY e {{ x = f32[8] parameter(0)
  y = f32[1] constant({{2}})
  w = f32[8,1] dot(x, y), lhs_contracting_dims={{}}, rhs_contracting_dims={{}}
  v = f32[8] reshape(w)
  {body} }}""",
        X,
    )
    last = [s for s in made.walk() if isinstance(s, KernelStep)][-1]
    assert not set(last.kernel.results) & set(last.kernel.operands)


def test_a_row_updated_from_itself_is_computed_in_place():
    made = check(
        loop(
            "f32[5,8]",
            "x",
            """r = f32[1,8] dynamic-slice(s1, i, zero), dynamic_slice_sizes={1,8}
      n = f32[1,8] negate(r)
      u = f32[5,8] dynamic-update-slice(s1, n, i, zero) -> u""",
            "ROOT r = f32[5,8] copy(o1)",
            head="x = f32[5,8] parameter(0)",
        ),
        np.arange(40, dtype=np.float32).reshape(5, 8),
    )
    update = next(s for s in made.walk() if isinstance(s, KernelStep) and "dynamic_update_slice" in s.instruction.name)
    assert set(update.kernel.results) & set(update.kernel.operands)


def test_tokens_and_empty_arrays_have_no_kernels():
    made = plan(
        parse_module("""HloModule m
ENTRY e { x = f32[0,4] parameter(0)
  n = f32[0,4] negate(x)
  k = token[] after-all()
  z = f32[] constant(0)
  p = f32[2,4] pad(n, z), padding=2_0x0_0
  ROOT t = (f32[0,4], f32[2,4], token[]) tuple(n, p, k) }""")
    )
    check_assignment(made)
    assert len(made.kernels) == 1


@given(CHOICES)
def test_random_programs_run_right_in_their_buffers(choices: Random):
    programs = Programs(choices, choices.randint(3, 15), choices.randint(0, 3))
    made = plan(programs.module)
    check_assignment(made)
    agree(programs.module, evaluate(programs.module, programs.inputs), run_plan(made, programs.inputs))
