"""Expanders of ops with computations: scan, select-and-scatter, map, and conditionals and fusions that cannot be
kernels.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ....formats.text.parser import parse_module
from ....hlo.opcodes import Op
from ...support.check import check
from ...support.passes import fill, opcodes, run, same

REGIONS = """HloModule m
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
ge { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = pred[] compare(p, q), direction=GE }
lt { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = pred[] compare(p, q), direction=LT }
mix { p = f32[] parameter(0)
  q = f32[] parameter(1)
  t = f32[] constant(0.5)
  m = f32[] multiply(p, t)
  ROOT s = f32[] subtract(m, q) }
"""


def entry(*lines: str, regions: str = "") -> str:
    return REGIONS + regions + "ENTRY e {\n" + "\n".join(lines) + "\n}\n"


# --- scan ------------------------------------------------------------------------------------------------------------

SUMS = """sums { x = f32[3] parameter(0)
  n = s32[] parameter(1)
  c = f32[3] parameter(2)
  k = s32[] parameter(3)
  half = f32[] constant(0.5)
  halves = f32[3] broadcast(half), dimensions={}
  m = f32[3] multiply(c, halves)
  a = f32[3] add(x, m)
  z = f32[] constant(0)
  o = f32[] reduce(a, z), dimensions={0}, to_apply=add
  j = s32[] add(n, k)
  ROOT t = (f32[3], f32[], f32[3], s32[]) tuple(c, o, a, j) }
"""


@pytest.mark.parametrize("reverse", ["true", "false"])
@pytest.mark.parametrize("length", [0, 1, 5])
def test_scan_takes_slices_in_order(length, reverse):
    text = entry(
        f"x = f32[3,{length}]{{0,1}} parameter(0)", f"n = s32[{length}] parameter(1)", "c = f32[3] parameter(2)",
        "k = s32[] parameter(3)",
        f"y = f32[{length},3] transpose(x), dimensions={{1,0}}",
        f"ROOT s = (f32[{length},3], f32[{length}], f32[3], s32[]) scan(y, n, c, k), dimensions={{0}}, num_carries=2, "
        f"is_reverse={reverse}, to_apply=sums",
        regions=SUMS,
    )  # fmt: skip
    after = same(text, fill(parse_module(text), 1), "flatten", "expand-scan")
    assert Op.SCAN not in opcodes(after)
    check(text)


def test_scan_along_an_inner_dimension_within_a_scan():
    inner = """row { x = f32[] parameter(0)
  c = f32[] parameter(1)
  s = f32[] subtract(c, x)
  ROOT t = (f32[], f32[]) tuple(c, s) }
outer { x = f32[4] parameter(0)
  c = f32[] parameter(1)
  r = (f32[4], f32[]) scan(x, c), dimensions={0}, num_carries=1, to_apply=row
  y = f32[4] get-tuple-element(r), index=0
  d = f32[] get-tuple-element(r), index=1
  ROOT t = (f32[4], f32[]) tuple(y, d) }
"""
    text = entry(
        "x = f32[4,3] parameter(0)", "c = f32[] parameter(1)",
        "ROOT s = (f32[4,3], f32[]) scan(x, c), dimensions={1}, num_carries=1, to_apply=outer", regions=inner,
    )  # fmt: skip
    after = same(text, fill(parse_module(text), 2), "flatten", "expand-scan", exact=True)
    assert Op.SCAN not in opcodes(after)
    check(text)


@given(st.integers(1, 40), st.booleans(), st.integers(0, 99))
def test_an_associative_scan_takes_few_steps(length, reverse, seed):
    both = """both { x = s32[] parameter(0)
  y = s32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  a = s32[] add(x, c)
  w = s32[] maximum(y, d)
  ROOT t = (s32[], s32[], s32[], s32[]) tuple(a, w, a, w) }
"""
    text = entry(
        f"x = s32[{length}] parameter(0)", f"y = s32[{length}] parameter(1)", "c = s32[] constant(7)",
        "d = s32[] constant(1)",
        f"ROOT s = (s32[{length}], s32[{length}], s32[], s32[]) scan(x, y, c, d), dimensions={{0}}, num_carries=2, "
        f"is_associative=true, is_reverse={str(reverse).lower()}, to_apply=both",
        regions=both,
    )  # fmt: skip
    after = same(text, fill(parse_module(text), seed), "flatten", "expand-scan", exact=True)
    assert not {Op.SCAN, Op.WHILE} & opcodes(after)
    assert sum(i.opcode is Op.ADD for i in after.entry.instructions) <= length.bit_length() + 1


# --- select-and-scatter ----------------------------------------------------------------------------------------------


@st.composite
def selections(draw) -> str:
    dims, source, sizes, strides, pads = [], [], [], [], []
    for _ in range(draw(st.integers(1, 2))):
        n, size, stride = draw(st.integers(1, 7)), draw(st.integers(1, 7)), draw(st.integers(1, 3))
        low, high = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        low += max(size - n - low - high, 0)
        dims.append(n), sizes.append(size), strides.append(stride), pads.append(f"{low}_{high}")
        source.append((n + low + high - size) // stride + 1)
    kind = draw(st.sampled_from(["f32", "f32", "f64"]))
    window = f"size={'x'.join(map(str, sizes))} stride={'x'.join(map(str, strides))} pad={'x'.join(pads)}"
    select, scatter = draw(st.sampled_from(["ge", "lt"])), draw(st.sampled_from(["add", "mix"]))
    shape, taken = ",".join(map(str, dims)), ",".join(map(str, source))
    text = entry(
        f"x = f32[{shape}] parameter(0)", f"s = f32[{taken}] parameter(1)", "z = f32[] constant(0.25)",
        f"ROOT r = f32[{shape}] select-and-scatter(x, s, z), window={{{window}}}, select={select}, scatter={scatter}",
    )  # fmt: skip
    return text.replace("f32", kind)


@given(selections(), st.integers(0, 99))
def test_select_and_scatter_becomes_selects_and_a_scatter(text, seed):
    inputs = fill(parse_module(text), seed, special=seed % 3 == 0)
    after = same(text, [np.round(x) for x in inputs], "flatten", "expand-select-and-scatter")  # ties
    assert Op.SELECT_AND_SCATTER not in opcodes(after)


@pytest.mark.parametrize("kind", ["f64", "f16", "s32"])
@pytest.mark.parametrize("window", ["size=2x2 stride=2x2", "size=3x2 stride=2x1 pad=1_1x0_1", "size=6x6 pad=0_0x1_0"])
def test_select_and_scatter_on_both_stacks(window, kind):
    source = {"size=2x2 stride=2x2": "3,3", "size=3x2 stride=2x1 pad=1_1x0_1": "3,6"}.get(window, "1,2")
    check(entry(
        "x = f32[6,6]{0,1} parameter(0)", f"s = f32[{source}] parameter(1)", "z = f32[] constant(0)",
        f"ROOT r = f32[6,6] select-and-scatter(x, s, z), window={{{window}}}, select=ge, scatter=add",
    ).replace("f32", kind).replace("0.5", "2" if kind == "s32" else "0.5"))  # fmt: skip


def test_empty_select_and_scatter():
    check(entry(
        "x = f32[0,4] parameter(0)", "s = f32[0,2] parameter(1)", "z = f32[] constant(0)",
        "ROOT r = f32[0,4] select-and-scatter(x, s, z), window={size=1x2 stride=1x2}, select=ge, scatter=add",
    ))  # fmt: skip


# --- map, conditionals, fusions --------------------------------------------------------------------------------------

CHOICE = """one { t = (f32[], f32[]) parameter(0)
  a = f32[] get-tuple-element(t), index=0
  ROOT r = f32[] negate(a) }
two { t = (f32[], f32[]) parameter(0)
  a = f32[] get-tuple-element(t), index=1
  ROOT r = f32[] exponential(a) }
three { t = (f32[], f32[]) parameter(0)
  a = f32[] get-tuple-element(t), index=0
  p = pred[] constant(false)
  ROOT r = f32[] conditional(p, t, t), true_computation=one, false_computation=two }
choose { p = f32[] parameter(0)
  q = f32[] parameter(1)
  n = s32[] convert(p)
  t = (f32[], f32[]) tuple(p, q)
  ROOT r = f32[] conditional(n, t, t, t), branch_computations={one, two, three} }
"""


@pytest.mark.parametrize("dims", ["", "7", "2,3", "0"])
def test_map_of_conditionals(dims):
    """Branch indices out of range select the last branch, also in kernels."""
    text = entry(
        f"p = f32[{dims}] parameter(0)", f"q = f32[{dims}] parameter(1)",
        f"ROOT m = f32[{dims}] map(p, q), dimensions={{{','.join(map(str, range(len(dims) + 1 >> 1)))}}}, "
        "to_apply=choose",
        regions=CHOICE,
    )  # fmt: skip
    inputs = [x * 2 for x in fill(parse_module(text), 3)]
    after = same(text, inputs, "flatten", "expand-conditional", "simplify", "expand-map", "dce")
    assert not {Op.MAP, Op.CONDITIONAL} & opcodes(after)
    check(text, inputs)


def test_map_of_arrays_becomes_a_loop():
    region = """norm { p = f32[] parameter(0)
  z = f32[] constant(0)
  v = f32[4] broadcast(p), dimensions={}
  w = f32[4] iota(), iota_dimension=0
  u = f32[4] multiply(v, w)
  ROOT r = f32[] reduce(u, z), dimensions={0}, to_apply=add }
"""
    text = entry("p = f32[2,3]{0,1} parameter(0)", "ROOT m = f32[2,3] map(p), dimensions={0,1}, to_apply=norm",
                 regions=region)  # fmt: skip
    after = same(text, fill(parse_module(text), 4), "flatten", "expand-map")
    assert Op.WHILE in opcodes(after) and Op.MAP not in opcodes(after)
    check(text)


def test_fusions_that_are_no_kernels_are_taken_apart():
    body = """before { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT, type=TOTALORDER }
body { p = f32[8] parameter(0)
  s = f32[8] sort(p), dimensions={0}, to_apply=before
  ROOT n = f32[8] negate(s) }
"""
    text = entry("p = f32[8] parameter(0)", "ROOT f = f32[8] fusion(p), kind=kLoop, calls=body", regions=body)
    module = run(text, "flatten", "unfuse")
    assert Op.FUSION not in opcodes(module)
    check(text)


@pytest.mark.parametrize("number", [0, 1])
def test_a_fusion_of_one_result_of_a_sort_is_taken_apart(number):
    """Its other result may have been removed before: a kernel writes all results of a sort."""
    body = f"""before {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT e = pred[] compare(a, b), direction=LT, type=TOTALORDER }}
body {{ p = f32[8] parameter(0)
  n = s32[8] iota(), iota_dimension=0
  s = (f32[8], s32[8]) sort(p, n), dimensions={{0}}, is_stable=true, to_apply=before
  ROOT r = {("f32", "s32")[number]}[8] get-tuple-element(s), index={number} }}
"""
    kind = ("f32", "s32")[number]
    text = entry("p = f32[8] parameter(0)", f"ROOT f = {kind}[8] fusion(p), kind=kLoop, calls=body", regions=body)
    assert Op.FUSION not in opcodes(run(text, "flatten", "dce", "unfuse"))
    check(text)


def test_a_fusion_that_gives_back_its_operand():
    check(entry("p = f32[8] parameter(0)", "ROOT f = f32[8] fusion(p), kind=kLoop, calls=body",
                regions="body { ROOT p = f32[8] parameter(0) }\n"))  # fmt: skip
