"""The part of a module that feeds some results: what is asked of the oracle again, and what is not."""

import numpy as np

from ...differential import permitted
from ...differential.bounds import bounds_of
from ...differential.feeding import part_feeding
from ...differential.permitted import Permitted
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module

MODULE = parse_module("""HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  i = s32[4] parameter(1)
  t = f32[4] tanh(x)
  s = f32[4] sine(t)
  c = f32[4] cosine(x)
  n = s32[4] negate(i)
  pair = (f32[4], s32[4]) tuple(c, n)
  ROOT r = (f32[4], (f32[4], s32[4]), f32[4], s32[4]) tuple(s, pair, t, n)
}
""")
X = [np.array([0.5, 1, 2, 3], np.float32), np.array([1, 2, 3, 4], np.int32)]


def opcodes(leaves):
    return {i.opcode.value for i in part_feeding(MODULE, leaves)[0].entry.instructions}


def test_only_what_feeds_the_results_is_left():
    assert "cosine" not in opcodes([0]) and {"tanh", "sine"} < opcodes([0])
    assert not {"sine", "tanh"} & opcodes([1]) and {"cosine", "negate"} < opcodes([1])
    assert not {"sine", "cosine", "tanh"} & opcodes([4])


def test_leaves_have_their_values():
    whole = evaluate(MODULE, X)
    for leaves in ([0], [1], [2], [3], [4], [0, 2], [1, 4], [0, 1, 2, 3, 4]):
        part, place = part_feeding(MODULE, leaves)
        values = evaluate(part, X)
        assert set(leaves) <= set(place)
        for leaf, number in place.items():
            np.testing.assert_array_equal(values[number], whole[leaf])


def test_a_module_without_a_tuple_and_one_with_effects_stay_right():
    single = parse_module("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT r = f32[4] sine(x)\n}\n")
    assert part_feeding(single, [0]) == (single, {0: 0})
    drawing = parse_module("""HloModule m
ENTRY e {
  a = f32[] constant(0)
  b = f32[] constant(1)
  first = f32[4] rng(a, b), distribution=rng_uniform
  second = f32[4] rng(a, b), distribution=rng_uniform
  ROOT r = (f32[4], f32[4]) tuple(first, second)
}
""")
    part, place = part_feeding(drawing, [1])
    np.testing.assert_array_equal(evaluate(part, [])[place[1]], evaluate(drawing, [])[1])


def test_it_is_run_no_more_often_than_the_answer_needs(monkeypatch):
    ran = []
    monkeypatch.setattr(permitted, "evaluate", lambda m, *a, **k: ran.append(m) or evaluate(m, *a, **k))
    right, found, bound = evaluate(MODULE, X), Permitted(MODULE, X), bounds_of(MODULE)[0]
    everywhere = np.ones(4, bool)
    assert found.permits(0, [right[0]], bound, everywhere) is True and len(ran) == 2
    assert found.permits(0, [right[0] + 1], bound, everywhere) is False and len(ran) == permitted.RUNS
    assert all("cosine" not in {i.opcode.value for i in m.entry.instructions} for m in ran)
    assert found.permits(4, [right[4] + 1], bounds_of(MODULE)[4], everywhere) is False
    assert len(ran) == permitted.RUNS


def test_leaves_asked_about_together_share_their_runs(monkeypatch):
    ran = []
    monkeypatch.setattr(permitted, "evaluate", lambda m, *a, **k: ran.append(m) or evaluate(m, *a, **k))
    right, found, bounds = evaluate(MODULE, X), Permitted(MODULE, X), bounds_of(MODULE)
    found.ask_about([0, 2])
    for leaf in (0, 2):
        assert found.permits(leaf, [right[leaf] + 1], bounds[leaf], np.ones(4, bool)) is False
    assert len(ran) == permitted.RUNS
