"""Row fusion: which programs become one kernel, and correct results on both stacks, including special values."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .... import legacy
from ....backends.base import CompileOptions
from ....codegen.options import EmitOptions, Target
from ....evaluator.evaluator import evaluate
from ....formats.text.parser import parse_module
from ....hlo.ir import Instruction
from ....hlo.opcodes import Op
from ....lhlo import from_kernels, parse_text, to_kernels
from ....migration import Flags, compile_module
from ....planning.inplace import reuses
from ....planning.planner import plan
from ...support.check import check, make_inputs
from ...support.passes import agree
from ...support.plan_interpreter import run_plan

REGIONS = """HloModule m
add.{t} {{ p = {t}[] parameter(0)
  q = {t}[] parameter(1)
  ROOT s = {t}[] add(p, q) }}
max.{t} {{ p = {t}[] parameter(0)
  q = {t}[] parameter(1)
  ROOT s = {t}[] maximum(p, q) }}
argmax {{ a = {t}[] parameter(0)
  i = s32[] parameter(1)
  b = {t}[] parameter(2)
  j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GE
  v = {t}[] select(g, a, b)
  n = s32[] select(g, i, j)
  ROOT r = ({t}[], s32[]) tuple(v, n) }}
"""

HEAD = """x = {t}[{r},{c}] parameter(0)
  zero = {t}[] constant(0)
  low = {t}[] constant(-inf)
"""

SOFTMAX = """m = {t}[{r}] reduce(x, low), dimensions={{1}}, to_apply=max.{t}
  mb = {t}[{r},{c}] broadcast(m), dimensions={{0}}
  d = {t}[{r},{c}] subtract(x, mb)
  e = {t}[{r},{c}] exponential(d)
  s = {t}[{r}] reduce(e, zero), dimensions={{1}}, to_apply=add.{t}
  sb = {t}[{r},{c}] broadcast(s), dimensions={{0}}
"""

MOMENTS = """n = {t}[] constant({c})
  nr = {t}[{r}] broadcast(n), dimensions={{}}
  s = {t}[{r}] reduce(x, zero), dimensions={{1}}, to_apply=add.{t}
  mean = {t}[{r}] divide(s, nr)
  mb = {t}[{r},{c}] broadcast(mean), dimensions={{0}}
  d = {t}[{r},{c}] subtract(x, mb)
  dd = {t}[{r},{c}] multiply(d, d)
  q = {t}[{r}] reduce(dd, zero), dimensions={{1}}, to_apply=add.{t}
  var = {t}[{r}] divide(q, nr)
"""

PATTERNS = {
    "softmax": SOFTMAX + "ROOT o = {t}[{r},{c}] divide(e, sb)",
    "log_softmax": SOFTMAX
    + """l = {t}[{r}] log(s)
  lb = {t}[{r},{c}] broadcast(l), dimensions={{0}}
  ROOT o = {t}[{r},{c}] subtract(d, lb)""",
    "logsumexp": SOFTMAX
    + """l = {t}[{r}] log(s)
  ROOT o = {t}[{r}] add(l, m)""",
    "softmax_with_its_sums": SOFTMAX
    + """o = {t}[{r},{c}] divide(e, sb)
  ROOT t = ({t}[{r},{c}], {t}[{r}], {t}[{r},{c}], {t}[{r}]) tuple(o, s, e, m)""",
    "variance": MOMENTS + "ROOT t = ({t}[{r}], {t}[{r}]) tuple(mean, var)",
    "layernorm": MOMENTS
    + """eps = {t}[] constant(1e-3)
  eb = {t}[{r}] broadcast(eps), dimensions={{}}
  ve = {t}[{r}] add(var, eb)
  rs = {t}[{r}] rsqrt(ve)
  rb = {t}[{r},{c}] broadcast(rs), dimensions={{0}}
  y = {t}[{r},{c}] multiply(d, rb)
  gamma = {t}[{c}] parameter(1)
  gb = {t}[{r},{c}] broadcast(gamma), dimensions={{1}}
  yg = {t}[{r},{c}] multiply(y, gb)
  beta = {t}[{c}] parameter(2)
  bb = {t}[{r},{c}] broadcast(beta), dimensions={{1}}
  ROOT o = {t}[{r},{c}] add(yg, bb)""",
    "rmsnorm": """xx = {t}[{r},{c}] multiply(x, x)
  q = {t}[{r}] reduce(xx, zero), dimensions={{1}}, to_apply=add.{t}
  n = {t}[] constant({c})
  nr = {t}[{r}] broadcast(n), dimensions={{}}
  ms = {t}[{r}] divide(q, nr)
  rs = {t}[{r}] rsqrt(ms)
  rb = {t}[{r},{c}] broadcast(rs), dimensions={{0}}
  ROOT o = {t}[{r},{c}] multiply(x, rb)""",
    "softmax_gradient": """g = {t}[{r},{c}] parameter(1)
  p = {t}[{r},{c}] multiply(x, g)
  s = {t}[{r}] reduce(p, zero), dimensions={{1}}, to_apply=add.{t}
  sb = {t}[{r},{c}] broadcast(s), dimensions={{0}}
  d = {t}[{r},{c}] subtract(g, sb)
  ROOT o = {t}[{r},{c}] multiply(d, x)""",
    "masked_softmax": """mask = pred[{c}] parameter(1)
  kb = pred[{r},{c}] broadcast(mask), dimensions={{1}}
  k = {t}[] constant(0.125)
  kf = {t}[{r},{c}] broadcast(k), dimensions={{}}
  xs = {t}[{r},{c}] multiply(x, kf)
  lb = {t}[{r},{c}] broadcast(low), dimensions={{}}
  xm = {t}[{r},{c}] select(kb, xs, lb)
"""
    + SOFTMAX.replace("(x,", "(xm,")
    + "ROOT o = {t}[{r},{c}] divide(e, sb)",
    "centred_at_its_argmax": """i = s32[{r},{c}] iota(), iota_dimension=1
  none = s32[] constant(0)
  a = ({t}[{r}], s32[{r}]) reduce(x, i, low, none), dimensions={{1}}, to_apply=argmax
  v = {t}[{r}] get-tuple-element(a), index=0
  n = s32[{r}] get-tuple-element(a), index=1
  vb = {t}[{r},{c}] broadcast(v), dimensions={{0}}
  d = {t}[{r},{c}] subtract(x, vb)
  ROOT t = ({t}[{r},{c}], s32[{r}]) tuple(d, n)""",
}


def text_of(pattern: str, t: str = "f32", r: int = 6, c: int = 37) -> str:
    return (REGIONS + "ENTRY e {{ " + HEAD + PATTERNS[pattern] + " }}").format(t=t, r=r, c=c)


def kernels(text: str) -> list[Instruction]:
    return [step.instruction for step in plan(parse_module(text)).walk()]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_is_one_kernel_without_temporaries(pattern):
    made = plan(parse_module(text_of(pattern)))
    assert [s.instruction.attributes["kind"] for s in made.walk()] == ["kInput"]
    assert not [a for a in made.assignment.allocations if a.kind.value == "temporary" and a.size]


SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, 3e38, 1.0], np.float32)


def special_rows(r: int, c: int) -> np.ndarray:
    """Rows filled with one special value, rows with one of them, and ordinary rows."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (r, c)).astype(np.float32)
    for n, value in enumerate(SPECIAL):
        if 2 * n + 1 < r:
            x[2 * n] = value
            x[2 * n + 1, (5 * n) % c] = value
    return x


@pytest.mark.parametrize("pattern", PATTERNS)
def test_special_values(pattern):
    r, c = 18, 33
    text = text_of(pattern, r=r, c=c)
    inputs = [special_rows(r, c)]
    for i in parse_module(text).entry.parameters[1:]:
        shape = i.shape
        rng = np.random.default_rng(1)
        if shape.dtype.value == "pred":
            inputs.append(rng.integers(0, 2, shape.dims).astype(bool))
        else:
            inputs.append(rng.uniform(0.5, 1.5, shape.dims).astype(np.float32))
    check(text, inputs)


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16"])
@pytest.mark.parametrize("pattern", ["softmax", "layernorm", "centred_at_its_argmax", "softmax_with_its_sums"])
def test_other_floats(pattern, dtype):
    check(text_of(pattern, t=dtype, r=5, c=80))


@pytest.mark.parametrize("r, c", [(1, 50), (3, 1), (1, 1), (0, 5), (5, 0), (2, 2), (1, 3000), (2, 40000)])
def test_rows_of_any_size(r, c):
    check(text_of("softmax", r=r, c=c))
    check(text_of("layernorm", r=r, c=max(c, 1)))


def test_rank_8_with_dimensions_of_1_and_reshapes_between():
    check("""HloModule m
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
ENTRY e { x = f32[2,1,3,2,1,4,5,1] parameter(0)
  zero = f32[] constant(0)
  s = f32[2,1,3,2,1] reduce(x, zero), dimensions={5,6,7}, to_apply=add
  sb = f32[2,1,3,2,1,4,5,1] broadcast(s), dimensions={0,1,2,3,4}
  d = f32[2,1,3,2,1,4,5,1] subtract(x, sb)
  f = f32[12,20] reshape(d)
  y = f32[12,20] parameter(1)
  g = f32[12,20] multiply(f, y)
  q = f32[12] reduce(g, zero), dimensions={1}, to_apply=add
  qb = f32[12,20] broadcast(q), dimensions={0}
  o = f32[12,20] add(qb, f)
  w = f32[6,2] parameter(2)
  u = f32[6,2] reshape(q)
  v = f32[6,2] add(u, w)
  ROOT t = (f32[12,20], f32[6,2]) tuple(o, v) }""")


MASKED = """HloModule m
add {{ p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }}
ENTRY e {{ x = f32[2,3,8,9]{0} parameter(0)
  mask = f32[8,9] parameter(1)
  zero = f32[] constant(0)
  mb = f32[2,3,8,9]{0} broadcast(mask), dimensions={{2,3}}
  xm = f32[2,3,8,9]{0} add(x, mb)
  e = f32[2,3,8,9]{0} exponential(xm)
  s = f32[2,3,8]{1} reduce(e, zero), dimensions={{3}}, to_apply=add
  sb = f32[2,3,8,9]{0} broadcast(s), dimensions={{0,1,2}}
  ROOT o = f32[2,3,8,9]{0} divide(e, sb) }}"""


def test_a_mask_that_rows_share_in_part():
    text = MASKED.format("{3,2,1,0}", "{2,1,0}")
    assert len(kernels(text)) == 1
    check(text)


def test_rows_that_do_not_lie_in_memory_one_after_the_other_stay_as_they_are():
    check(MASKED.format("{2,3,1,0}", "{2,1,0}"))
    check(MASKED.format("{3,2,0,1}", "{2,0,1}"))


def test_a_path_through_another_kernel_keeps_two_apart():
    text = """HloModule m
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
ENTRY e { x = f32[8,8] parameter(0)
  zero = f32[] constant(0)
  s = f32[8] reduce(x, zero), dimensions={1}, to_apply=add
  sb = f32[8,8] broadcast(s), dimensions={0}
  w = f32[8,8] dot(x, sb), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[8,8] subtract(w, x)
  q = f32[8] reduce(d, zero), dimensions={1}, to_apply=add
  ROOT t = (f32[8], f32[8], f32[8,8]) tuple(s, q, w) }"""
    found = kernels(text)
    assert [i.opcode for i in found] == [Op.FUSION, Op.DOT, Op.FUSION]
    check(text)


def test_a_dying_operand_is_overwritten_and_the_result_is_right():
    text = """HloModule m, input_output_alias={ {}: (0, {}, may-alias) }
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
ENTRY e { x = f32[9,70] parameter(0)
  zero = f32[] constant(0)
  e = f32[9,70] exponential(x)
  s = f32[9] reduce(e, zero), dimensions={1}, to_apply=add
  sb = f32[9,70] broadcast(s), dimensions={0}
  ROOT o = f32[9,70] divide(e, sb) }"""
    (kernel,) = kernels(text)
    assert reuses(kernel) == ((0, 0),)
    check(text)


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_strict_mode_adds_in_order(stack):
    text = text_of("softmax_with_its_sums", r=3, c=700)
    options = CompileOptions(EmitOptions.host(strict=True), cache=None)
    x = np.random.default_rng(0).uniform(-2, 2, (3, 700)).astype(np.float32)
    _, sums, e, _ = compile_module(parse_module(text), Flags.parse(stack), options).execute([x])
    in_order = np.zeros(3, np.float32)
    for k in range(700):
        in_order += e[:, k]
    np.testing.assert_array_equal(sums, in_order)


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("pattern", ["softmax_with_its_sums", "layernorm", "masked_softmax"])
def test_row_kernels_write_within_bounds(stack, pattern):
    options = CompileOptions(cache=None, red_zones=True)
    module = parse_module(text_of(pattern, r=3, c=35))
    results = compile_module(module, Flags.parse(stack), options).execute(make_inputs(module))
    agree(module, evaluate(module, make_inputs(module)), results)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_legacy_reads_the_same_kernel_from_lhlo(pattern):
    options = EmitOptions(Target.host())
    for kernel in plan(parse_module(text_of(pattern))).kernels:
        (read_back,) = to_kernels(parse_text(from_kernels([kernel]).to_text()))
        assert legacy.emit([read_back], options).llvm_ir == legacy.emit([kernel], options).llvm_ir


def test_masks_do_not_keep_a_maximum_from_using_vectors():
    text = text_of("masked_softmax", r=64, c=256)
    for stack in ("legacy", "mlir"):
        options = CompileOptions(cache=None, keep_stages=True)
        stages = compile_module(parse_module(text), Flags.parse(stack), options).stages
        (optimized,) = [t for name, t in stages if name.startswith(stack) and name.endswith("optimized.ll")]
        assert re.search(r"@llvm\.vector\.reduce\.fmax\.v\d+f32", optimized)


OPS = {
    "full": ["add({f}, {g})", "subtract({f}, {g})", "multiply({f}, {g})", "exponential({f})", "negate({f})"],
    "row": ["add({n}, {k})", "multiply({n}, {k})", "tanh({n})"],
}


@st.composite
def chains(draw) -> str:
    """Programs on rows: elementwise ops, reductions, broadcasts back. Some intermediate values are results too."""
    r, c = draw(st.sampled_from([(3, 5), (1, 40), (7, 33)]))
    lines, full, row = [], ["x", "y"], []
    for n in range(draw(st.integers(3, 14))):
        f, g = draw(st.sampled_from(full)), draw(st.sampled_from(full))
        kind = draw(st.sampled_from(["full", "reduce", "spread", "row"]))
        if kind == "full" or (kind != "reduce" and not row):
            lines.append(f"v{n} = f32[{r},{c}] {draw(st.sampled_from(OPS['full'])).format(f=f, g=g)}")
            lines.append(f"f{n} = f32[{r},{c}] tanh(v{n})")  # keeps values small
            full.append(f"f{n}")
        elif kind == "reduce":
            init, region = draw(st.sampled_from([("zero", "add.f32"), ("low", "max.f32")]))
            lines.append(f"u{n} = f32[{r}] reduce({f}, {init}), dimensions={{1}}, to_apply={region}")
            row.append(f"u{n}")
        elif kind == "spread":
            lines.append(f"f{n} = f32[{r},{c}] broadcast({draw(st.sampled_from(row))}), dimensions={{0}}")
            full.append(f"f{n}")
        else:
            rule = draw(st.sampled_from(OPS["row"]))
            op = rule.format(n=draw(st.sampled_from(row)), k=draw(st.sampled_from(row)))
            lines.append(f"u{n} = f32[{r}] {op}")
            row.append(f"u{n}")
    results = list(dict.fromkeys([full[-1], *row[-1:], draw(st.sampled_from(full + row))]))
    shapes = [f"f32[{r},{c}]" if name in full else f"f32[{r}]" for name in results]
    body = "\n  ".join([HEAD.format(t="f32", r=r, c=c) + f"y = f32[{r},{c}] parameter(1)", *lines])
    return (
        REGIONS.format(t="f32") + f"ENTRY e {{ {body}\n  ROOT t = ({', '.join(shapes)}) tuple({', '.join(results)}) }}"
    )


@given(chains())
def test_chains_of_reductions_and_elementwise_work(text):
    check(text)
    run_plan(plan(parse_module(text)), make_inputs(parse_module(text)))  # checks in-place results


@pytest.mark.parametrize(("columns", "merged"), [(3, False), (16, False), (32, False), (33, True)])
def test_expensive_ops_on_results_of_short_rows_are_no_row_kernel(columns: int, merged: bool):
    """They are computed for several rows at once. One by one, the power of a distance in space took 17 ns, not 5."""
    body = f"""x = f32[512,{columns}] parameter(0)
  zero = f32[] constant(0)
  s = f32[512] reduce(x, zero), dimensions={{1}}, to_apply=add.f32
  ROOT p = f32[512] exponential(s)
"""
    text = REGIONS.format(t="f32") + "ENTRY e { " + body + "}\n"
    kernels = plan(parse_module(text)).kernels
    rows = [k for k in kernels if k.instruction.name.startswith("reduce_exponential_row_fusion")]
    assert bool(rows) is merged
    check(text, make_inputs(parse_module(text)))


@pytest.mark.parametrize(
    ("pattern", "columns", "count"),
    [("softmax", 3, 2), ("softmax", 8, 1), ("softmax", 9, 1), ("log_softmax", 10, 1), ("layernorm", 10, 1)],
)
def test_short_rows_are_one_kernel_if_that_is_no_work_row_by_row(pattern, columns, count):
    """Roots and quotients of results are: one takes as long as a few elements. Functions are where rows are computed
    side by side.
    """
    made = kernels(text_of(pattern, r=512, c=columns))
    assert len(made) == 1 if count == 1 else len(made) >= count
    check(text_of(pattern, r=512, c=columns))
