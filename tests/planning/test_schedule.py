"""The schedule's memory: never above depth-first order, near the optimum on small graphs, no copies of a few bytes."""

import random

import pytest

from ...formats.text.parser import parse_module
from ...hlo.ir import Module
from ...passes.pipeline import optimize
from ...planning.order_graph import OrderGraph
from ...planning.orders import post_order
from ...planning.schedule import best_order, schedule
from ...planning.scratch import scratch_bytes


def test_the_orders_of_a_chain_are_weighed_once(monkeypatch: pytest.MonkeyPatch):
    """They are the same one."""
    weighed = []
    peak = OrderGraph.peak
    monkeypatch.setattr(OrderGraph, "peak", lambda graph, order: weighed.append(order) or peak(graph, order))
    lines = [f"x{n + 1} = f32[8] reverse(x{n}), dimensions={{0}}" for n in range(9)]
    schedule(parse_module("HloModule chain\nENTRY e { x0 = f32[8] parameter(0)\n" + "\n".join(lines) + " }"))
    assert weighed == [list(range(10))]


def random_graph(seed: int) -> Module:
    """Up to ten ops that enlarge, reduce, join and keep arrays. Unused values become the result."""
    draw = random.Random(seed)
    lines, sizes = ["z = f32[] constant(0)", "p = f32[128] parameter(0)"], {"p": 128}
    unread = set()
    for n in range(draw.randint(4, 10)):
        name, recent = f"v{n}", list(sizes)[-5:]
        a, b = draw.choice(recent), draw.choice(recent)
        unread -= {a}
        kind = draw.choice(["join", "slice", "reverse", "pad", "negate"])
        if kind == "join" and sizes[a] + sizes[b] <= 300:
            size, op = sizes[a] + sizes[b], f"concatenate({a}, {b}), dimensions={{0}}"
            unread -= {b}
        elif kind == "slice":
            size = min(draw.choice([4, 8, 16]), sizes[a])
            op = f"slice({a}), slice={{[0:{size}]}}"
        elif kind == "pad":
            size = sizes[a] + draw.choice([1, 20, 100])
            op = f"pad({a}, z), padding=0_{size - sizes[a]}"
        else:
            size, op = sizes[a], f"negate({a})" if kind == "negate" else f"reverse({a}), dimensions={{0}}"
        lines.append(f"{name} = f32[{size}] {op}")
        sizes[name] = size
        unread.add(name)
    left = sorted(unread)
    lines.append(f"ROOT r = f32[{sum(sizes[v] for v in left)}] concatenate({', '.join(left)}), dimensions={{0}}")
    return parse_module("HloModule m\n\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n")


def least_peak(graph: OrderGraph) -> int:
    """The least peak over all orders, by dynamic programming over sets of executed instructions in order of size."""
    total = len(graph.instructions)
    readers: dict[int, list[int]] = {}
    for n, reads in enumerate(graph.reads):
        for b in reads:
            readers.setdefault(b, []).append(n)

    def left(b: int, done: frozenset[int]) -> int:
        return (b in graph.live_out) + sum(n not in done for n in readers.get(b, ()))

    states = {frozenset[int](): 0}
    for _ in range(total):
        following: dict[frozenset[int], int] = {}
        for done, height in states.items():
            live = sum(graph.sizes[b] for n in done for b in graph.defined[n] if left(b, done))
            counts = [left(b, done) for b in range(len(graph.sizes))]
            for n in range(total):
                if n in done or not graph.before[n] <= done:
                    continue
                made = sum(graph.sizes[b] for b in graph.defined[n])
                needed = live + made + graph.scratch[n] - graph.taken_over(n, counts)
                after = done | {n}
                following[after] = min(following.get(after, needed + height), max(height, needed))
        states = following
    return states[frozenset(range(total))]


def test_random_graphs_are_never_above_depth_first_and_nearly_always_optimal():
    ratios = []
    for seed in range(40):
        graph = OrderGraph(random_graph(seed).entry)
        _, most = best_order(graph)
        assert most <= graph.peak(post_order(graph))
        least = least_peak(graph)
        assert most >= least
        ratios.append(most / least)
    assert max(ratios) <= 1.1
    assert ratios.count(1) >= 36


WIDE = """HloModule m

ENTRY e {
  p = f32[64,64] parameter(0)
  a = f32[64,64] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[64,64] dot(p, p), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  c = f32[64,64] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ar = f32[1,1] slice(a), slice={[0:1], [0:1]}
  br = f32[1,1] slice(b), slice={[1:2], [0:1]}
  cr = f32[1,1] slice(c), slice={[2:3], [0:1]}
  ROOT r = f32[3,1] concatenate(ar, br, cr), dimensions={0}
}
"""


def test_wide_values_are_used_before_the_next_is_made():
    ordered = [i.name for i in schedule(parse_module(WIDE)).entry.instructions]
    assert all(ordered.index(f"{v}r") == ordered.index(v) + 1 for v in "abc")


PAIR = """HloModule m

ENTRY e {
  p = f32[4] parameter(0)
  x = f32[4] negate(p)
  a = f32[4] add(x, p)
  b = f32[4] multiply(a, x)
  s = f32[4] custom-call(x), custom_call_target="start", schedule=SCHEDULE_EARLIEST
  d = f32[4] custom-call(s), custom_call_target="done", schedule=SCHEDULE_LATEST
  c = f32[4] subtract(b, p)
  f = f32[4] divide(c, p)
  ROOT r = f32[4] add(f, d)
}
"""


@pytest.mark.parametrize("given, wanted", [(PAIR, "pxsabcfdr"), (PAIR.replace("SCHEDULE_", "SCHEDULE_NO"), None)])
def test_custom_calls_run_as_early_and_as_late_as_they_ask(given, wanted):
    """As in XLA:GPU: a call that starts something and the one that waits enclose what does not depend on them."""
    ordered = "".join(i.name for i in schedule(parse_module(given)).entry.instructions)
    assert sorted(ordered) == sorted("pxabsdcfr")
    assert (ordered == wanted) is (wanted is not None)


@pytest.mark.parametrize("wish", ["SCHEDULE_EARLIEST", "SCHEDULE_LATEST"])
def test_effects_keep_their_order_whatever_calls_ask(wish):
    text = PAIR.replace('"start",', '"start", custom_call_has_side_effect=true,')
    text = text.replace(
        '"done", schedule=SCHEDULE_LATEST', f'"done", custom_call_has_side_effect=true, schedule={wish}'
    )
    first = 'q = f32[4] custom-call(p), custom_call_target="first", custom_call_has_side_effect=true'
    ordered = [i.name for i in schedule(parse_module(text.replace("  s =", f"  {first}\n  s ="))).entry.instructions]
    assert [name for name in ordered if name in "qsd"] == ["q", "s", "d"]


LOOP = """HloModule m

condition {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}

body {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  i.f = f32[] convert(i)
  i.b = f32[8] broadcast(i.f), dimensions={}
  e = f32[8] add(x, i.b)
  ROOT t = (s32[], f32[8]) tuple(j, e)
}

ENTRY e {
  p = f32[8] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[8]) tuple(zero, p)
  l = (s32[], f32[8]) while(init), condition=condition, body=body
  ROOT r = f32[8] get-tuple-element(l), index=1
}
"""


def test_a_loops_counter_is_advanced_after_its_last_use():
    body = next(c for c in schedule(parse_module(LOOP)).computations if c.name == "body")
    ordered = [i.name for i in body.instructions]
    assert ordered.index("j") > ordered.index("i.f")


def test_what_a_loop_and_a_kernel_need_while_they_run_counts():
    made = schedule(parse_module(LOOP))
    for inside in (0, 1000):
        graph = OrderGraph(made.entry, peaks={"body": inside})
        order = list(range(len(graph.instructions)))
        assert graph.peak(order) == 4 + 32 + inside
    sort = "ROOT s = f32[1,5000] sort(n), dimensions={1}, to_apply=less"
    text = (
        "HloModule m\n\nless {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = pred[] compare(a, b), "
    )
    text += (
        f"direction=LT\n}}\n\nENTRY e {{\n  p = f32[1,5000] parameter(0)\n  n = f32[1,5000] negate(p)\n  {sort}\n}}\n"
    )
    graph = OrderGraph(parse_module(text).entry)
    assert graph.peak([0, 1, 2]) == 5000 * 4 + scratch_bytes(graph.instructions[2])


def test_what_replaces_an_op_stands_behind_its_control_predecessors():
    """A loop with constants, which stood before an op that the replaced one had to wait for."""
    text = """HloModule m
ge { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT c = pred[] compare(x, y), direction=GE }
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y) }
ENTRY e {
  i = f32[3,3,2,1,1,2,1] iota(), iota_dimension=0
  s = f32[1,1,1,1,1,1,1] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[3,3,2,1,1,2,1] select-and-scatter(i, s, z), window={size=3x3x2x1x1x2x1}, select=ge, scatter=add,
    control-predecessors={i}
}
"""
    scheduled = schedule(optimize(parse_module(text)))
    for computation in scheduled.computations:
        names = [i.name for i in computation.instructions]
        for n, i in enumerate(computation.instructions):
            assert all(names.index(p) < n for p in i.attributes.get("control-predecessors", ()) if p in names)
