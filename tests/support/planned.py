"""Plans programs with loops, checks their memory, and runs them in their buffers."""

import numpy as np

from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...planning.assignment_checker import check_assignment
from ...planning.plan import CopyStep, Plan
from ...planning.planner import plan
from .passes import AS_WRITTEN, agree
from .plan_interpreter import run_plan


def check(text: str, *inputs) -> Plan:
    """Plan a module, check its memory, run it and compare the results with the evaluator's. Returns the plan."""
    module = parse_module(text)
    values = [np.asarray(x) for x in inputs]
    made = plan(module, AS_WRITTEN)
    check_assignment(made)
    agree(module, evaluate(module, values), run_plan(made, values))
    return made


def copies(made: Plan) -> list[CopyStep]:
    return [s for s in made.walk() if isinstance(s, CopyStep)]


def loop(leaves: str, init: str, body: str, results: str, *, head: str = "", trips: int = 5) -> str:
    """A counted loop. `body` reads s1, s2, … (the leaves of its state) and ends with the leaves of the next state."""
    state = f"(s32[], {leaves})"
    shapes = leaves.split(", ")
    reads = "\n".join(f"s{n} = {s} get-tuple-element(s), index={n}" for n, s in enumerate(shapes, 1))
    body, values = body.rsplit("->", 1)
    outs = "\n".join(f"o{n} = {s} get-tuple-element(w), index={n}" for n, s in enumerate(shapes, 1))
    return f"""HloModule m
cond {{ s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({trips})
  ROOT l = pred[] compare(i, n), direction=LT }}
body {{ s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  zero = s32[] constant(0)
  j = s32[] add(i, one)
  {reads}
  {body}
  ROOT t = {state} tuple(j, {values}) }}
ENTRY e {{ {head}
  z = s32[] constant(0)
  t = {state} tuple(z, {init})
  w = {state} while(t), condition=cond, body=body
  {outs}
  {results} }}"""


X = np.arange(8, dtype=np.float32)
