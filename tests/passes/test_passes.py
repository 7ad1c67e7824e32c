"""Each pass alone keeps the results of modules and does what its name says."""

from random import Random

import numpy as np
import pytest
from hypothesis import given

from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...formats.text.printer import print_module
from ...hlo.dtypes import DType
from ...hlo.errors import TestbedError
from ...hlo.ir import Literal, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from ...hlo.verify.verifier import verify
from ...passes.pipeline import OPTIMIZE, PASSES, Pass, count_instructions, optimize, run_pipeline, select
from ..generators.random_programs import Programs
from ..support.choices import CHOICES
from ..support.hlo_corpus import each, evaluable
from ..support.passes import agree


def run(text: str, *names: str) -> Module:
    return run_pipeline(parse_module(text), select(names))


def root_of(text: str, *names: str):
    return run(text, *names).entry.root


CALLS = """HloModule m
inner { p = f32[2] parameter(0)
  ROOT n = f32[2] negate(p) }
outer { p = f32[2] parameter(0)
  c = f32[2] call(p), to_apply=inner
  d = f32[2] call(c), to_apply=inner
  ROOT s = f32[2] add(c, d) }
ENTRY main { x = f32[2] parameter(0)
  a = f32[2] call(x), to_apply=outer
  t = pred[] constant(true)
  ROOT r = f32[2] conditional(t, a, x), true_computation=inner, false_computation=inner }
"""


def test_flatten_inlines_calls_and_gives_each_caller_its_own_computation():
    module = run(CALLS, "flatten")
    verify(module)
    assert not any(i.opcode is Op.CALL for i in module.instructions())
    called = [c for i in module.instructions() for c in i.called()]
    assert len(called) == len(set(called)) == 2
    names = [i.name for i in module.instructions()]
    assert len(names) == len(set(names))
    x = np.array([1, -2], np.float32)
    agree(parse_module(CALLS), evaluate(parse_module(CALLS), [x]), evaluate(module, [x]))


def test_flatten_inlines_nested_fusions_but_keeps_outer_ones():
    text = """HloModule m
inner { p = f32[2] parameter(0)
  ROOT n = f32[2] negate(p) }
outer { p = f32[2] parameter(0)
  f = f32[2] fusion(p), kind=kLoop, calls=inner
  ROOT e = f32[2] exponential(f) }
ENTRY main { x = f32[2] parameter(0)
  ROOT f = f32[2] fusion(x), kind=kLoop, calls=outer }
"""
    module = run(text, "flatten")
    assert module.entry.root.opcode is Op.FUSION
    assert [i.opcode for i in module.entry.root.called()[0].instructions] == [Op.PARAMETER, Op.NEGATE, Op.EXPONENTIAL]


def test_fusions_of_tuples_take_their_leaves():
    text = """HloModule m
body { p = (f32[2], (f32[2], s32[])) parameter(0)
  q = f32[2] parameter(1)
  a = f32[2] get-tuple-element(p), index=0
  t = (f32[2], s32[]) get-tuple-element(p), index=1
  b = f32[2] get-tuple-element(t), index=0
  s = f32[2] subtract(a, b)
  ROOT r = f32[2] add(s, q) }
ENTRY main { x = (f32[2], (f32[2], s32[])) parameter(0)
  y = f32[2] parameter(1)
  ROOT f = f32[2] fusion(x, y), kind=kLoop, calls=body }
"""
    module = run(text, "flatten", "untuple", "simplify", "dce")
    verify(module)
    assert [o.shape.is_array for o in module.entry.root.operands] == [True] * len(module.entry.root.operands)
    x = [np.array([1, 2], np.float32), np.array([5, 7], np.float32), np.int32(3), np.array([10, 20], np.float32)]
    agree(parse_module(text), evaluate(parse_module(text), x), evaluate(module, x))


def test_flatten_moves_control_predecessors_of_calls_to_what_they_become():
    text = """HloModule m
work { p = f32[] parameter(0)
  ROOT n = f32[] negate(p) }
ENTRY main { x = f32[] parameter(0)
  c = f32[] call(x), to_apply=work
  a = f32[] abs(x), control-predecessors={c}
  d = f32[] call(x), to_apply=work, control-predecessors={a}
  ROOT t = (f32[], f32[], f32[]) tuple(c, a, d) }
"""
    module = run(text, "flatten")
    verify(module)
    first, middle, last = module.entry.root.operands
    assert middle.attributes["control-predecessors"] == (first.name,)
    assert last.attributes["control-predecessors"] == (middle.name,)


def test_dead_code_goes_and_side_effects_and_their_predecessors_stay():
    text = """HloModule m
ENTRY main { x = f32[] parameter(0)
  unused = f32[] parameter(1)
  dead = f32[] negate(x)
  before = f32[] exponential(x)
  t = token[] after-all(), control-predecessors={before}
  out = token[] outfeed(x, t), outfeed_shape=f32[]
  ROOT r = f32[] abs(x) }
"""
    names = {i.name for i in run(text, "dce").entry.instructions}
    assert names == {"x", "unused", "before", "t", "out", "r"}


def test_dead_computations_go():
    module = run(CALLS, "flatten", "dce")
    assert len(module.computations) == 3  # two branches and the entry


def test_cse_merges_equal_ops_but_not_random_or_pinned_ones():
    text = """HloModule m
ENTRY main { x = f32[2] parameter(0)
  zero = f32[] constant(0)
  zero2 = f32[] constant(0)
  one = f32[] constant(1)
  a = f32[2] broadcast(zero), dimensions={}
  b = f32[2] broadcast(zero2), dimensions={}
  r1 = f32[2] rng(zero, one), distribution=rng_uniform
  r2 = f32[2] rng(zero, one), distribution=rng_uniform
  n1 = f32[2] negate(x)
  n2 = f32[2] negate(x), control-predecessors={n1}
  ROOT t = (f32[2], f32[2], f32[2], f32[2], f32[2], f32[2]) tuple(a, b, r1, r2, n1, n2) }
"""
    a, b, r1, r2, n1, n2 = root_of(text, "cse").operands
    assert a is b and r1 is not r2 and n1 is not n2


def test_cse_tells_attributes_regions_and_signed_zeros_apart():
    text = """HloModule m
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
more { p2 = f32[] parameter(0)
  q2 = f32[] parameter(1)
  ROOT s2 = f32[] add(p2, q2) }
most { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] maximum(p, q) }
ENTRY main { x = f32[2,2] parameter(0)
  z = f32[] constant(0)
  m = f32[] constant(-0)
  a = f32[2] reduce(x, z), dimensions={0}, to_apply=add
  b = f32[2] reduce(x, z), dimensions={0}, to_apply=more
  c = f32[2] reduce(x, z), dimensions={0}, to_apply=most
  d = f32[2] reduce(x, z), dimensions={1}, to_apply=add
  e = f32[2] reduce(x, m), dimensions={0}, to_apply=add
  ROOT t = (f32[2], f32[2], f32[2], f32[2], f32[2]) tuple(a, b, c, d, e) }
"""
    a, b, c, d, e = root_of(text, "cse").operands
    assert a is b and len({a, c, d, e}) == 4


SIMPLE = [
    ("f32[4]", "r = f32[2,2] reshape(x)\n ROOT o = f32[4] reshape(r)", Op.PARAMETER),
    ("f32[4]", "r = f32[2,2] reshape(x)\n ROOT o = f32[4,1] reshape(r)", Op.RESHAPE),
    ("f32[4]", "ROOT o = f32[4] broadcast(x), dimensions={0}", Op.PARAMETER),
    ("f32[4]", "ROOT o = f32[1,4] broadcast(x), dimensions={1}", Op.RESHAPE),
    (
        "f32[4]",
        "b = f32[1,4] broadcast(x), dimensions={1}\n ROOT o = f32[3,1,4] broadcast(b), dimensions={1,2}",
        Op.BROADCAST,
    ),
    ("f32[2,3]", "ROOT o = f32[2,3] transpose(x), dimensions={0,1}", Op.PARAMETER),
    (
        "f32[2,3]",
        "t = f32[3,2] transpose(x), dimensions={1,0}\n ROOT o = f32[2,3] transpose(t), dimensions={1,0}",
        Op.PARAMETER,
    ),
    ("f32[1,3]", "ROOT o = f32[3,1] transpose(x), dimensions={1,0}", Op.RESHAPE),
    ("f32[2,3]", "ROOT o = f32[3,2] transpose(x), dimensions={1,0}", Op.TRANSPOSE),
    ("f32[3]", "ROOT o = f32[3] convert(x)", Op.PARAMETER),
    ("f32[3]", "ROOT o = f64[3] convert(x)", Op.CONVERT),
    ("f32[3]", "ROOT o = f32[3] copy(x)", Op.PARAMETER),
    ("f32[2,2]{1,0}", "ROOT o = f32[2,2]{0,1} copy(x)", Op.COPY),
    ("f32[8]", "ROOT o = f32[8] slice(x), slice={[0:8]}", Op.PARAMETER),
    ("f32[8]", "s = f32[4] slice(x), slice={[1:8:2]}\n ROOT o = f32[2] slice(s), slice={[1:4:2]}", Op.SLICE),
    ("f32[8]", "ROOT o = f32[8] concatenate(x), dimensions={0}", Op.PARAMETER),
    ("f32[1,3]", "ROOT o = f32[1,3] reverse(x), dimensions={0}", Op.PARAMETER),
    ("f32[3]", "z = f32[] constant(0)\n ROOT o = f32[3] pad(x, z), padding=0_0", Op.PARAMETER),
    ("f32[3]", "t = (f32[3], f32[3]) tuple(x, x)\n ROOT o = f32[3] get-tuple-element(t), index=1", Op.PARAMETER),
    ("f32[3]", "ROOT o = s32[] get-dimension-size(x), dimensions={0}", Op.CONSTANT),
]


@pytest.mark.parametrize(("shape", "body", "expected"), SIMPLE, ids=range(len(SIMPLE)))
def test_simplify(shape: str, body: str, expected: Op):
    text = f"HloModule m\nENTRY e {{ x = {shape} parameter(0)\n {body} }}"
    before, after = parse_module(text), run(text, "simplify", "dce")
    verify(after)
    assert after.entry.root.opcode is expected
    if expected in (Op.BROADCAST, Op.SLICE):
        assert after.entry.root.operands[0].opcode is Op.PARAMETER
    x = np.arange(before.entry.parameters[0].shape.size, dtype=np.float32).reshape(
        before.entry.parameters[0].shape.dims
    )
    agree(before, evaluate(before, [x]), evaluate(after, [x]))


def test_reduce_of_degenerate_dimensions_becomes_elementwise():
    text = """HloModule m
most { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] maximum(p, q) }
ENTRY e { x = f32[1,3] parameter(0)
  z = f32[] constant(0.5)
  ROOT r = f32[3] reduce(x, z), dimensions={0}, to_apply=most }
"""
    module = run(text, "simplify", "dce")
    verify(module)
    assert module.entry.root.opcode is Op.MAXIMUM
    assert evaluate(module, [np.array([[0, 1, np.nan]], np.float32)])[0].tolist()[:2] == [0.5, 1]


def test_a_region_of_more_than_its_root_stays_where_dimensions_are_degenerate():
    text = """HloModule m
chain { p = s32[] parameter(0)
  q = s32[] parameter(1)
  twice = s32[] add(p, p)
  ROOT s = s32[] add(twice, q) }
ENTRY e { x = s32[1,3] parameter(0)
  z = s32[] constant(5)
  ROOT r = s32[3] reduce(x, z), dimensions={0}, to_apply=chain }
"""
    module, given = run(text, "simplify", "dce"), np.array([[0, 1, -2]], np.int32)
    assert evaluate(module, [given])[0].tolist() == [10, 11, 8] == evaluate(parse_module(text), [given])[0].tolist()


def test_layouts_agree_after_the_pass_at_every_border():
    text = """HloModule m
cond { s = (s32[], f32[2,3]{0,1}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT l = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[2,3]{0,1}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[2,3]{0,1} get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[2,3]{1,0} negate(x)
  ROOT t = (s32[], f32[2,3]{1,0}) tuple(j, y) }
ENTRY e { x = f32[2,3]{1,0} parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[2,3]{1,0}) tuple(z, x)
  w = (s32[], f32[2,3]{0,1}) while(t), condition=cond, body=body
  ROOT r = f32[2,3]{0,1} get-tuple-element(w), index=1 }
"""
    module = run(text, "flatten", "layouts")
    loop = next(i for i in module.entry.instructions if i.opcode is Op.WHILE)
    body = loop.attributes["body"]
    wanted = body.parameters[0].shape
    assert loop.operands[0].shape == loop.shape == body.root.shape == wanted
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    agree(module, [-x], evaluate(module, [x]))


def test_a_pipeline_refuses_passes_out_of_order_and_unknown_names():
    with pytest.raises(TestbedError, match=r"fuse requires .*flat.* before it"):
        run_pipeline(parse_module(CALLS), select(["fuse"]))
    with pytest.raises(TestbedError, match=r"no pass named 'fold'.*flatten"):
        select(["fold"])


def test_the_observer_sees_each_pass_with_counts():
    seen = []
    module = optimize(parse_module(CALLS), observer=seen.append)
    assert [r.name for r in seen] == list(OPTIMIZE)
    assert seen[0].before == count_instructions(parse_module(CALLS))
    assert seen[-1].after == count_instructions(module) and seen[-1].module is module
    assert all(r.seconds >= 0 for r in seen)


def check_each_pass(module: Module, inputs: list[np.ndarray]) -> None:
    """Run OPTIMIZE one pass at a time; after each the module verifies, and its results are the same."""
    expected = evaluate(module, inputs)
    before, done = module, list[Pass]()
    for name in OPTIMIZE:
        done.append(PASSES[name])
        module = PASSES[name].run(module)
        verify(module)
        agree(before, expected, evaluate(module, inputs))
    again = parse_module(print_module(module))
    agree(before, expected, evaluate(again, inputs))


@each("xla_modules", 55, biggest=20_000, seed=2, where=evaluable)
def test_passes_keep_the_meaning_of_xla_modules(case):
    check_each_pass(case.module(), case.inputs())


@each("jax_programs", 8, biggest=20_000, seed=2)
def test_passes_keep_the_meaning_of_jax_programs(case):
    check_each_pass(case.module(), case.inputs())


@given(CHOICES)
def test_passes_keep_the_meaning_of_random_programs(choices: Random):
    programs = Programs(choices, size=6)
    check_each_pass(programs.module, programs.inputs)


def test_equal_literals_hash_alike_and_others_mostly_not():
    def literal(array: np.ndarray) -> Literal:
        return Literal(Shape(DType.F32, array.shape), array)

    nan = np.array(np.nan, np.float32)
    assert literal(nan) == literal(nan.copy()) and hash(literal(nan)) == hash(literal(nan.copy()))
    spread = np.broadcast_to(np.float32(3), (4, 2))
    assert literal(spread) == literal(spread.copy()) and hash(literal(spread)) == hash(literal(spread.copy()))
    assert len({hash(literal(np.array(n, np.float32))) for n in range(100)}) > 90
    assert literal(np.array(0.0, np.float32)) != literal(np.array(-0.0, np.float32))


def test_simplify_leaves_alone_what_control_dependencies_hold_wherever_it_meets_it():
    text = """HloModule m
ENTRY e { x = f32[] parameter(0)
  b = f32[3] broadcast(x), dimensions={}
  v = f32[2,3] broadcast(b), dimensions={1}
  c = f32[] negate(x), control-predecessors={v}
  t = (f32[2,3], f32[]) tuple(v, c)
  g = f32[2,3] get-tuple-element(t), index=0
  ROOT r = (f32[2,3], f32[2,3], f32[]) tuple(g, v, c) }
"""
    after = run(text, "simplify")
    verify(after)
    assert [i.name for i in after.entry.instructions].count("v") == 1
