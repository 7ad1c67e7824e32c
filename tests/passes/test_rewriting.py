"""Orders of dependence that passes build their computations in."""

from __future__ import annotations

import random

import pytest

from ...formats.text.parser import parse_module
from ...passes.rewriting import group_order, topological_order


@pytest.mark.parametrize("seed", range(10))
def test_numbers_come_after_what_they_need_and_the_least_that_can_comes_first(seed):
    draw = random.Random(seed)
    names = draw.sample(range(100), 12)  # an order that they may stand in
    needs = {n: set(draw.sample(names[:at], min(at, draw.randint(0, 3)))) for at, n in enumerate(names)}
    order = topological_order(needs)
    assert sorted(order) == sorted(names)
    for at, n in enumerate(order):
        ready = [m for m in names if m not in order[:at] and needs[m] <= set(order[:at])]
        assert n == min(ready)


def test_a_circle_is_named():
    with pytest.raises(ValueError, match=r"circle: \[2, 3\]"):
        topological_order({1: [], 2: [1, 3], 3: [2]})


MODULE = """HloModule m

ENTRY e {
  a = f32[4] parameter(0)
  b = f32[4] negate(a)
  c = f32[4] exponential(b)
  d = f32[4] cosine(a), control-predecessors={c}
  f = f32[4] sine(a)
  ROOT r = f32[4] add(c, f)
}
"""


@pytest.mark.parametrize(
    ("group", "wanted"),
    [
        ("", ["a", "b", "c", "d", "f", "r"]),
        ("bf", ["a", "bf", "c", "d", "r"]),
        ("bd", None),  # d waits for c, which reads b
        ("df", ["a", "b", "c", "df", "r"]),
        ("cf", ["a", "b", "cf", "d", "r"]),
    ],
)
def test_a_group_stands_where_all_that_it_needs_is_there(group, wanted):
    entry = parse_module(MODULE).entry
    members = tuple(i for i in entry.instructions if i.name in group)
    groups = dict.fromkeys(members, members)
    if wanted is None:
        with pytest.raises(ValueError, match="circle"):
            group_order(entry, groups)
        return
    order = group_order(entry, groups)
    assert ["".join(i.name for i in (u if isinstance(u, tuple) else (u,))) for u in order] == wanted
