"""Large products of a batch on the way to another product are made in a loop over the batch; results do not change."""

import pytest

from ....formats.text.parser import parse_module
from ....hlo.opcodes import Op
from ....passes.canonical import batch_loops
from ....passes.pipeline import optimize
from ....planning.plan import AllocationKind
from ....planning.planner import plan
from ...support.check import check

HEAD = """HloModule m
max { a = T[] parameter(0)
  b = T[] parameter(1)
  ROOT s = T[] maximum(a, b) }
add { a = T[] parameter(0)
  b = T[] parameter(1)
  ROOT s = T[] add(a, b) }
ENTRY e {
"""

SCORES = """q = T[BATCH,40,16] parameter(0)
  k = T[BATCH,30,16] parameter(1)
  v = T[BATCH,30,16] parameter(2)
  s = T[BATCH,40,30] dot(q, k), lhs_batch_dims={B}, rhs_batch_dims={B}, lhs_contracting_dims={D},
    rhs_contracting_dims={D}
"""

SOFTMAX = """l = T[] constant(-inf)
  m = T[BATCH,40] reduce(x, l), dimensions={D}, to_apply=max
  mb = T[BATCH,40,30] broadcast(m), dimensions={B,C}
  d = T[BATCH,40,30] subtract(x, mb)
  e = T[BATCH,40,30] exponential(d)
  z = T[] constant(0)
  t = T[BATCH,40] reduce(e, z), dimensions={D}, to_apply=add
  tb = T[BATCH,40,30] broadcast(t), dimensions={B,C}
  p = T[BATCH,40,30] divide(e, tb)
"""

PLAIN = "x = T[BATCH,40,30] negate(s)\n"

MASKED = """g = T[40,30] parameter(3)
  w = T[40,30] tanh(g)
  wb = T[BATCH,40,30] broadcast(w), dimensions={C,D}
  x = T[BATCH,40,30] add(s, wb)
"""

BIASED = """g = T[BATCH] parameter(3)
  wb = T[BATCH,40,30] broadcast(g), dimensions={B}
  a = T[BATCH,40,30] multiply(s, wb)
  x = T[BATCH,40,30] add(a, a)
"""

AFTER = """ROOT r = T[BATCH,40,16] dot(p, v), lhs_batch_dims={B}, rhs_batch_dims={B}, lhs_contracting_dims={D},
    rhs_contracting_dims={C}
}
"""

BEFORE = """ROOT r = T[BATCH,16,40] dot(v, p), lhs_batch_dims={B}, rhs_batch_dims={B}, lhs_contracting_dims={C},
    rhs_contracting_dims={D}
}
"""

TWO = AFTER.replace("ROOT ", "")[:-2] + "  ROOT both = (T[BATCH,40,16], T[BATCH,40,30]) tuple(r, s)\n}\n"


def program(*parts: str, batch: str = "6", dtype: str = "f32") -> str:
    rank = batch.count(",") + 1
    text = HEAD + "  " + "  ".join(parts)
    text = text.replace("BATCH", batch).replace("{B}", "{" + ",".join(map(str, range(rank))) + "}")
    text = text.replace("{B,C}", "{" + ",".join(map(str, range(rank + 1))) + "}").replace(
        "{C,D}", f"{{{rank},{rank + 1}}}"
    )
    return text.replace("{C}", f"{{{rank}}}").replace("{D}", f"{{{rank + 1}}}").replace("T[", dtype + "[")


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(batch_loops, "LARGE", 1 << 10)
    monkeypatch.setattr(batch_loops, "PART", 1 << 13)


def has_loop(text: str) -> bool:
    return any(i.opcode is Op.WHILE for i in optimize(parse_module(text)).entry.instructions)


WHOLE = {
    "softmax": program(SCORES, PLAIN, SOFTMAX, AFTER),
    "softmax behind": program(SCORES, PLAIN, SOFTMAX, BEFORE),
    "two dimensions": program(SCORES, PLAIN, SOFTMAX, AFTER, batch="2,3"),
    "one of a dimension": program(SCORES, PLAIN, SOFTMAX, AFTER, batch="1,5"),
    "a mask": program(SCORES, MASKED, SOFTMAX, AFTER),
    "a number of each": program(SCORES, BIASED, SOFTMAX, AFTER),
    "no softmax": program(SCORES, PLAIN.replace("x =", "p ="), AFTER),
    "bare": program(SCORES.replace("s =", "p ="), AFTER),
    "a parameter as large as the scores": program(SCORES, "u = T[BATCH,40,30] parameter(3)\n",
                                                  "p = T[BATCH,40,30] add(s, u)\n", AFTER),
    "bf16": program(SCORES, PLAIN, SOFTMAX, AFTER, dtype="bf16"),
    "f64": program(SCORES, PLAIN, SOFTMAX, AFTER, dtype="f64"),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_scores_are_made_in_parts_and_results_stay(name, small):
    assert has_loop(WHOLE[name])
    check(WHOLE[name])


STAYS = {
    "scores are a result": program(SCORES, PLAIN, SOFTMAX, TWO),
    "a reduction of the batch": program(SCORES, """z = T[] constant(0)
  m = T[40,30] reduce(s, z), dimensions={B}, to_apply=add
  x = T[BATCH,40,30] broadcast(m), dimensions={C,D}
  p = T[BATCH,40,30] subtract(s, x)
""", AFTER),
    "an array as large as the scores": program(SCORES, "u = T[BATCH,40,30] iota(), iota_dimension=1\n",
                                               "p = T[BATCH,40,30] add(s, u)\n", AFTER),
    "a batch of one": program(SCORES, PLAIN, SOFTMAX, AFTER, batch="1"),
}  # fmt: skip


@pytest.mark.parametrize("name", STAYS)
def test_what_parts_would_share_stays(name, small):
    text = STAYS[name]
    assert not has_loop(text)
    check(text)


def test_only_large_products_are_made_in_parts():
    assert not any(has_loop(text) for text in WHOLE.values())


def test_the_arena_holds_one_part():
    """96 heads of 1024 x 64 took 403 MB."""
    text = WHOLE["softmax"].replace("[6,", "[96,").replace("40", "1024").replace("30", "1024")
    arena = sum(a.size for a in plan(parse_module(text)).assignment.allocations if a.kind is AllocationKind.TEMPORARY)
    assert arena < 6 << 20
