"""No pass removes, repeats or reorders side effects or drops control dependencies; tested for every pass of PASSES."""

import re
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings

from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.ir import Computation, Module
from ...hlo.opclasses import CONTROL_PREDECESSORS
from ...hlo.verify.verifier import verify
from ...passes.pipeline import PASSES, complete, optimize, run_pipeline, select
from ...planning.schedule import schedule
from ..generators.random_worlds import World
from ..support.choices import CHOICES
from ..support.corpus import DEEP

TIED = re.compile(r"(act|out|in|rng|pin)\d+")
X = np.array([0.5, -1, 2, 0], np.float32)


def history(module: Module) -> list[tuple[str, bytes]]:
    """The side effects of a run, in order, followed by its results."""
    log: list[tuple[str, bytes]] = []

    class Targets(dict):
        def get(self, target, default=None):
            return lambda i, operands, context: note(target, operands[0])

    def note(target: str, x: np.ndarray) -> np.ndarray:
        log.append((target, np.asarray(x).tobytes()))
        return (x * np.float32(0.5) + np.float32(len(log))).astype(np.float32)

    class Outfeed(list):
        def append(self, value):
            log.append(("out", np.asarray(value).tobytes()))

    feed = [(np.full(4, n, np.float32)) for n in range(400)]
    inputs = [X, np.array(True)]
    results = evaluate(module, inputs, custom_calls=Targets(any=note), infeed=feed, outfeed=Outfeed())
    return log + [("result", r.tobytes()) for r in results]


def ties(module: Module) -> Iterator[tuple[str, str]]:
    """(first, then): instructions with a control dependency in the text, by the stems of their names."""
    for computation in module.computations:
        for i in computation.instructions:
            for name in i.attributes.get(CONTROL_PREDECESSORS, ()):
                if TIED.fullmatch(name) and TIED.fullmatch(i.name):
                    yield name, i.name


def broken_ties(before: Module, after: Module) -> list[tuple[str, str]]:
    """Control dependencies whose ends are in one computation, but whose second end no longer waits for the first."""
    wanted = set(ties(before))
    found = []
    for computation in after.computations:
        stems = {i: match[0] for i in computation.instructions if (match := TIED.match(i.name))}
        waits = _waits(computation)
        for first, then in wanted:
            firsts = {i for i, stem in stems.items() if stem == first}
            for i in (i for i, stem in stems.items() if stem == then):
                if firsts and not firsts & waits[i]:
                    found.append((first, then))
    return found


def _waits(computation: Computation) -> dict:
    """For each instruction, all instructions that it depends on by data or control."""
    waits: dict = {}
    for i in computation.instructions:
        needs = [*i.operands, *(computation.by_name[n] for n in i.attributes.get(CONTROL_PREDECESSORS, ()))]
        waits[i] = set(needs).union(*(waits[n] for n in needs)) if needs else set()
    return waits


def check_world(before: Module, after: Module) -> None:
    verify(after)
    wanted = history(before)
    assert history(after) == wanted
    assert not broken_ties(before, after)
    ordered = schedule(after)
    verify(ordered)
    assert history(ordered) == wanted


@pytest.mark.parametrize("name", PASSES)
@settings(max_examples=settings().max_examples if DEEP else 6)
@given(CHOICES)
def test_a_pass_leaves_the_world_alone(name: str, choices: Random):
    before = parse_module(World(choices).text)
    verify(before)
    check_world(before, run_pipeline(before, complete(select([name]))))


@given(CHOICES)
def test_the_pipeline_leaves_the_world_alone(choices: Random):
    before = parse_module(World(choices, size=10).text)
    check_world(before, optimize(before))


def test_what_is_removed_or_reordered_is_seen():
    text = """HloModule m
ENTRY e { x = f32[4] parameter(0)
  p = pred[] parameter(1)
  act1 = f32[4] custom-call(x), custom_call_target="act1", custom_call_has_side_effect=true
  ROOT act2 = f32[4] custom-call(x), custom_call_target="act2", custom_call_has_side_effect=true, TIE }
""".replace("TIE", "control-predecessors={act1}")
    before = parse_module(text)
    swapped = parse_module(text.replace("act1", "act3").replace("act2", "act1").replace("act3", "act2"))
    assert history(before) != history(swapped)
    assert broken_ties(before, parse_module(text.replace(", control-predecessors={act1}", ""))) == [("act1", "act2")]
