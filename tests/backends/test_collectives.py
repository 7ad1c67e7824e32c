"""Collectives in compiled programs: bit for bit what the evaluator gives, on both stacks and in every form."""

import numpy as np
import pytest

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ..support.several_devices import ALL_FORMS, agree, module_of


def numbers(dtype: np.dtype, dims: tuple[int, ...], device: int) -> np.ndarray:
    """Small whole numbers, which sums of any dtype hold exactly, different on each device."""
    values = (np.arange(np.prod(dims, dtype=int)).reshape(dims) * 3 + device) % 3
    return values.astype(dtype)


def floats(count: int, *dims: int) -> list[list[np.ndarray]]:
    return [[np.random.default_rng(d).standard_normal(dims).astype(np.float32)] for d in range(count)]


MOVES = """  g = {t}[4,2] all-gather(p), dimensions={{1}}
  t = {t}[4,1] all-to-all(p), dimensions={{0}}
  c = {t}[4,1] collective-permute(p), source_target_pairs={{{{1,0}}}}
  b = {t}[4,1] collective-broadcast(p), replica_groups={{{{1,0}}}}
"""


ARRAYS = [d for d in DType if d not in (DType.TUPLE, DType.TOKEN, DType.OPAQUE)]


@pytest.mark.parametrize("op", ["add", "multiply", "maximum", "minimum", "and", "or", "xor"])
def test_reducers_of_every_dtype(op: str):
    """One program with every dtype that has the op."""
    lines, roots, inputs, regions = [], [], [[], []], []
    dtypes = [d for d in ARRAYS if d in OPSET[Op(op)].dtypes]
    assert len(dtypes) >= 9
    for dtype in dtypes:
        t, n = dtype.value, len(roots)
        regions.append(f"r{n} {{ x = {t}[] parameter(0)\n  y = {t}[] parameter(1)\n  ROOT z = {t}[] {op}(x, y) }}\n")
        lines.append(f"  p{n} = {t}[4,3] parameter({n})\n  a{n} = {t}[4,3] all-reduce(p{n}), to_apply=r{n}")
        lines.append(f"  s{n} = {t}[2,3] reduce-scatter(p{n}), dimensions={{0}}, to_apply=r{n}")
        lines.append(f"  n{n} = ({t}[4,3], {t}[2,3]) tuple(a{n}, s{n})")
        roots.append(f"n{n}")
        for device in range(2):
            inputs[device].append(numbers(dtype.numpy, (4, 3), device))
    shape = ", ".join(f"({d.value}[4,3], {d.value}[2,3])" for d in dtypes)
    lines.append(f"  ROOT all = ({shape}) tuple({', '.join(roots)})")
    agree(module_of("\n".join(lines), "".join(regions)), inputs, replicas=2)


def test_moves_of_every_dtype():
    """Data movement, of narrow floats and integers of four bits, too."""
    lines, roots, shapes, inputs = [], [], [], [[], []]
    for n, dtype in enumerate(ARRAYS):
        t = dtype.value
        body = f"  p = {t}[4,1] parameter({n})\n" + MOVES.format(t=t)
        for name in "pgtcb":
            body = body.replace(f" {name} =", f" {name}{n} =").replace("(p)", f"(p{n})")
        lines.append(body)
        roots += [f"{name}{n}" for name in "gtcb"]
        shapes += [f"{t}[4,2]", *[f"{t}[4,1]"] * 3]
        for device in range(2):
            inputs[device].append(numbers(dtype.numpy, (4, 1), device))
    lines.append(f"  ROOT all = ({', '.join(shapes)}) tuple({', '.join(roots)})")
    agree(module_of("".join(lines)), inputs, replicas=2)


FORMS = {
    "all": (4, 1, ""),
    "lists": (4, 1, "replica_groups={{0,2},{3,1}}"),
    "iota": (4, 1, "replica_groups=[2,2]<=[2,2]T(1,0)"),
    "mesh": (4, 1, "replica_groups=mesh['a'=2,'b'=2] {'a'}"),
    "eight": (8, 1, "replica_groups=[4,2]<=[8]"),
    "replicas of a partition": (2, 2, "replica_groups={{1,0}}"),
    "replicas with partitions": (2, 2, "replica_groups={{0},{1}}, channel_id=1"),
    "partitions": (1, 4, "replica_groups={{0,3},{2,1}}, channel_id=1, use_global_device_ids=true"),
    "devices": (2, 4, "replica_groups={{0,3},{5,6},{2,1},{7,4}}, channel_id=1, use_global_device_ids=true"),
    "both": (2, 2, "replica_groups={{0,1}}, channel_id=1"),
}

ROWS = {
    "replicas with partitions": "replica_groups={{0,1}}, channel_id=1",
    "devices": "replica_groups={{0,3},{2,1}}, channel_id=1",
    "both": "replica_groups={{0,1}}, channel_id=1",
}
"""Groups of all-to-all and broadcast, whose ids number something else."""


@pytest.mark.parametrize("form", FORMS)
def test_groups_in_all_forms(form: str):
    replicas, partitions, groups = FORMS[form]
    count, size = replicas * partitions, {"all": 4, "both": 4}.get(form, 2)
    rest = f", {groups}" if groups else ""
    plain = f", {ROWS[form]}" if form in ROWS else rest.replace(", use_global_device_ids=true", "")
    body = f"""  p = f32[8,4] parameter(0)
  a = f32[8,4] all-reduce(p){rest}, to_apply=add
  g = f32[8,{4 * size}] all-gather(p){rest}, dimensions={{1}}
  h = f32[{8 * size},4] all-gather(p){rest}, dimensions={{0}}
  s = f32[8,{4 // size}] reduce-scatter(p){rest}, dimensions={{1}}, to_apply=add
  t = f32[8,4] all-to-all(p){plain}, dimensions={{1}}
  b = f32[8,4] collective-broadcast(p){plain}
  r = u32[] replica-id()
  q = u32[] partition-id()
  ROOT all = (f32[8,4], f32[8,{4 * size}], f32[{8 * size},4], f32[8,{4 // size}], f32[8,4], f32[8,4], u32[], u32[])
    tuple(a, g, h, s, t, b, r, q)"""
    results = agree(module_of(body), floats(count, 8, 4), replicas, partitions)
    assert [(int(r[6]), int(r[7])) for r in results] == [divmod(d, partitions) for d in range(count)]


PERMUTES = {
    "ring": (4, 1, "source_target_pairs={{0,1},{1,2},{2,3},{3,0}}"),
    "some": (4, 1, "source_target_pairs={{0,1},{1,2},{3,3}}"),
    "one to many": (3, 1, "source_target_pairs={{0,1},{0,2}}"),
    "nobody": (2, 1, "source_target_pairs={}"),
    "replicas": (2, 2, "source_target_pairs={{0,1}}"),
    "partitions": (2, 4, "source_target_pairs={{0,1},{1,2},{3,3}}, channel_id=1"),
}


@pytest.mark.parametrize("form", PERMUTES)
def test_permutes(form: str):
    replicas, partitions, pairs = PERMUTES[form]
    body = f"""  p = f32[5] parameter(0)
  n = f32[5] negate(p)
  one = f32[5] collective-permute(p), {pairs}
  two = (f32[5], f32[5]) collective-permute(p, n), {pairs}
  ROOT r = (f32[5], (f32[5], f32[5])) tuple(one, two)"""
    agree(module_of(body), floats(replicas * partitions, 5), replicas, partitions)


def test_sums_are_folded_in_the_order_of_the_group():
    """Sums of floats whose bits depend on the order, small and large, of sizes that the devices do not divide."""
    body = """  p = f32[7,4681] parameter(0)
  q = f32[3] slice(r), slice={[0:3]}
  s = f32[7,4681] all-reduce(p), replica_groups={{3,1,0},{4,2,5}}, to_apply=add
  t = f32[3] all-reduce(q), replica_groups={{3,1,0},{4,2,5}}, to_apply=add
  ROOT u = (f32[7,4681], f32[3]) tuple(s, t)"""
    body = body.replace("  q =", "  f = f32[32767] reshape(p)\n  r = f32[32767] sine(f)\n  q =")
    results = agree(module_of(body), floats(6, 7, 4681), replicas=6)
    assert results[0][0].tobytes() == results[3][0].tobytes() != results[2][0].tobytes()


def test_groups_of_different_sizes():
    body = """  p = f32[2] parameter(0)
  ROOT s = f32[2] all-reduce(p), replica_groups={{0,2,3},{1}}, to_apply=add"""
    agree(module_of(body), floats(4, 2), replicas=4)


def test_several_operands_scalars_and_a_region_that_is_not_elementwise():
    far = """far { x = f32[] parameter(0)
  y = f32[] parameter(1)
  a = f32[] abs(x)
  b = f32[] abs(y)
  ROOT m = f32[] maximum(a, b) }
yes { ROOT x = f32[] parameter(0) }
no { x = f32[] parameter(0)
  ROOT y = f32[] negate(x) }
odd { x = f32[] parameter(0)
  y = f32[] parameter(1)
  less = pred[] compare(x, y), direction=LT
  ROOT c = f32[] conditional(less, x, y), true_computation=yes, false_computation=no }
"""
    body = """  p = f32[2] parameter(0)
  q = f32[] parameter(1)
  o = f32[2] all-reduce(p), to_apply=odd
  r = (f32[2], f32[]) all-reduce(p, q), to_apply=far
  s = (f32[2], f32[2]) all-gather(p, p), replica_groups={{0},{1},{2}}, dimensions={0}
  t = (f32[2], f32[2], f32[2]) all-to-all(p, o, p), replica_groups={{2,0,1}}
  ROOT all = (f32[2], (f32[2], f32[]), (f32[2], f32[2]), (f32[2], f32[2], f32[2])) tuple(o, r, s, t)"""
    inputs = [[x[0], np.float32(d - 5)] for d, x in enumerate(floats(3, 2))]
    agree(module_of(body, far), inputs, replicas=3)


@pytest.mark.parametrize(("replicas", "partitions"), [(3, 1), (1, 2), (2, 2)])
def test_each_device_draws_its_own_numbers(replicas: int, partitions: int):
    body = """  z = u32[] constant(0)
  w = u32[] constant(1000000)
  u = u32[5] rng(z, w), distribution=rng_uniform
  v = u32[5] rng(z, w), distribution=rng_uniform
  ROOT r = (u32[5], u32[5]) tuple(u, v)"""
    results = agree(module_of(body), [[]] * replicas * partitions, replicas, partitions)
    assert len({leaf.tobytes() for leaves in results for leaf in leaves}) == 2 * len(results)


@pytest.mark.parametrize("header", ["", ", is_scheduled=true"])
def test_starts_and_dones(header: str):
    wrapped = """w { p = f32[2] parameter(0)
  ROOT r = f32[2] all-to-all(p), replica_groups={{1,0}}, dimensions={0} }
"""
    body = """  p = f32[2] parameter(0)
  a = f32[2] all-reduce-start(p), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
  g = (f32[2], f32[4]) all-gather-start(p), channel_id=2, replica_groups={{0,1}}, use_global_device_ids=true,
    dimensions={0}
  c = (f32[2], f32[2], u32[], u32[]) collective-permute-start(p), source_target_pairs={{0,1}}
  w = ((f32[2]), f32[2]) async-start(p), calls=w
  cd = f32[2] collective-permute-done(c)
  gd = f32[4] all-gather-done(g)
  ad = f32[2] all-reduce-done(a)
  wd = f32[2] async-done(w)
  ROOT t = (f32[2], f32[4], f32[2], f32[2]) tuple(ad, gd, cd, wd)"""
    agree(module_of(body, wrapped, header), floats(2, 2), replicas=2)


LOOP = """c { s = (s32[], f32[1]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(300)
  ROOT r = pred[] compare(i, n), direction=LT }
b { s = (s32[], f32[1]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[1] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  half = f32[1] constant({0.5})
  h = f32[1] multiply(x, half)
  y = f32[1] all-reduce(h), replica_groups={{0,1},{2,3}}, to_apply=add
  ROOT t = (s32[], f32[1]) tuple(j, y) }
yes { p = f32[1] parameter(0)
  ROOT r = f32[1] all-reduce(p), replica_groups={{0,1},{2,3}}, to_apply=add }
no { ROOT p = f32[1] parameter(0) }
"""


@pytest.mark.parametrize("header", ["", ", is_scheduled=true"])
def test_loops_and_branches(header: str):
    """A reduction of a loop's state in each iteration, and a branch that only one group takes."""
    body = """  p = f32[1] parameter(0)
  i = s32[] constant(0)
  t = (s32[], f32[1]) tuple(i, p)
  w = (s32[], f32[1]) while(t), condition=c, body=b
  x = f32[1] get-tuple-element(w), index=1
  d = u32[] replica-id()
  two = u32[] constant(2)
  low = pred[] compare(d, two), direction=LT
  ROOT r = f32[1] conditional(low, x, x), true_computation=yes, false_computation=no"""
    agree(module_of(body, LOOP, header), [[np.float32([d])] for d in (1, 2, 3, 4)], replicas=4, forms=ALL_FORMS)


def test_devices_may_start_in_another_order_than_they_wait():
    groups = "replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add"
    left = f"x = f32[1] all-reduce-start(p), channel_id=1, {groups}"
    right = f"y = f32[1] all-reduce-start(n), channel_id=2, {groups}"
    computations = "".join(
        f"""{name} {{ p = f32[1] parameter(0)
  n = f32[1] negate(p)
  {first}
  {second}
  b = f32[1] all-reduce-done(y)
  a = f32[1] all-reduce-done(x)
  ROOT r = f32[2] concatenate(a, b), dimensions={{0}} }}
"""
        for name, first, second in (("ahead", left, right), ("behind", right, left))
    )
    body = """  p = f32[1] parameter(0)
  i = u32[] replica-id()
  s = s32[] convert(i)
  ROOT r = f32[2] conditional(s, p, p), branch_computations={ahead, behind}"""
    results = agree(module_of(body, computations), [[np.float32([1])], [np.float32([2])]], replicas=2)
    assert [r[0].tolist() for r in results] == [[3, -3], [3, -3]]


RAGGED = """  p = {t}[6{row}] parameter(0)
  o = {t}[9{row}] parameter(1)
  i = s32[{n}] parameter(2)
  s = s32[{n}] parameter(3)
  t = s32[{n}] parameter(4)
  r = s32[{n}] parameter(5)
  ROOT x = {t}[9{row}] ragged-all-to-all(p, o, i, s, t, r), replica_groups={groups}"""


@pytest.mark.parametrize(
    "row, each, groups, replicas",
    [("", 1, "{{0,1}}", 2), (",3", 2, "{{1,0}}", 2), (",2,2", 1, "{{0,2},{3,1}}", 4), (",2", 1, "{{0},{1}}", 2)],
)
def test_ragged_rows_go_where_their_senders_say(row: str, each: int, groups: str, replicas: int):
    size = groups.split("}")[0].count(",") + 1
    rng, inputs, dims = np.random.default_rng(each), [], tuple(map(int, row.split(",")[1:]))
    for _ in range(replicas):
        counts = rng.integers(0, 4, size * each).astype(np.int32)
        starts, targets = (np.array([rng.integers(0, n - k + 1) for k in counts], np.int32) for n in (6, 9))
        rows = [rng.standard_normal((n, *dims)).astype(np.float32) for n in (6, 9)]
        inputs.append([*rows, starts, counts, targets, counts])
    module = module_of(RAGGED.format(t="f32", row=row, n=size * each, groups=groups))
    results = agree(module, inputs, replicas=replicas)
    assert any((r[0] != own[1]).any() for r, own in zip(results, inputs, strict=True))


SLICE = """  p = f32[4,3] parameter(0)
  o = f32[4,3] parameter(1)
  k = s32[] parameter(2)
  n = s32[] constant(1)
  f = (s32[], s32[]) tuple(k, n)
  t = (s32[], s32[]) tuple(n, k)
  ROOT r = f32[4,3] collective-permute(p, o, f, t), source_target_pairs={{0,1},{1,2}}, slice_sizes={{2,2}}"""

SLICES = """  p = f32[4] parameter(0)
  o = f32[4] parameter(1)
  k = s32[] parameter(2)
  i = (f32[4]) tuple(p)
  j = (f32[4]) tuple(o)
  zero = s32[] constant(0)
  t0 = (s32[]) tuple(zero)
  tk = (s32[]) tuple(k)
  from = ((s32[]), (s32[])) tuple(t0, tk)
  f = (((s32[]), (s32[]))) tuple(from)
  to = ((s32[]), (s32[])) tuple(tk, t0)
  t = (((s32[]), (s32[]))) tuple(to)
  ROOT r = (f32[4]) collective-permute(i, j, f, t), source_target_pairs={{0,1},{1,0}}, slice_sizes={{1},{2}}"""


STARTED = (
    SLICE.replace(
        "ROOT r = f32[4,3] collective-permute(", "s = (f32[4,3], f32[4,3], u32[], u32[]) collective-permute-start("
    )
    + "\n  ROOT r = f32[4,3] collective-permute-done(s)"
)


@pytest.mark.parametrize("text, dims", [(SLICE, (4, 3)), (STARTED, (4, 3)), (SLICES, (4,))])
def test_slices_are_permuted_into_the_outputs(text: str, dims: tuple[int, ...]):
    drawn = [np.random.default_rng(d).standard_normal((2, *dims)).astype(np.float32) for d in range(3)]
    for k in (0, 2, 9):  # a start beyond the array is clamped
        results = agree(module_of(text), [[*x, np.int32(k)] for x in drawn], replicas=3)
        assert any((r[0] != x[1]).any() for r, x in zip(results, drawn, strict=True))
