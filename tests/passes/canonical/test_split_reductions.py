"""Large reductions to few numbers become partial reductions and one of these; results do not change."""

from dataclasses import replace

import numpy as np
import pytest

from ....backends.base import CompileOptions
from ....codegen.options import EmitOptions
from ....codegen.threads import on_threads
from ....evaluator.evaluator import evaluate
from ....formats.text.parser import parse_module
from ....hlo.dtypes import DType
from ....hlo.opcodes import Op
from ....migration import Flags, compile_module
from ....passes.canonical import places as places_of_extrema
from ....passes.canonical import split_reductions
from ....passes.pipeline import run_pipeline, select
from ...support.passes import fill, run, same

PASSES = ("flatten", "split-reductions", "dce")


def text(x: str, result: str, dims: str, op: str = "add", start: str = "0") -> str:
    t = x[: x.index("[")]
    return f"""HloModule m
region {{ a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT s = {t}[] {op}(a, b) }}
ENTRY e {{ x = {x} parameter(0)
  z = {t}[] constant({start})
  ROOT r = {result} reduce(x, z), dimensions={{{dims}}}, to_apply=region }}
"""


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(split_reductions, "LARGE", 512)
    monkeypatch.setattr(split_reductions, "LEAST_PLACED", 512)
    monkeypatch.setattr(split_reductions, "LEAST_IN_PART", 4)


def reductions(module) -> list:
    return [i for i in module.entry.instructions if i.opcode is Op.REDUCE]


@pytest.mark.parametrize(
    "case, partial",
    [
        (text("s32[1024]", "s32[]", "0", start="5"), (128,)),
        (text("s32[3,5,7,11]", "s32[]", "0,1,2,3"), (105,)),
        (text("s32[2,512]", "s32[2]", "1", "maximum", "-7"), (2, 128)),
        (text("s32[8192,3]", "s32[3]", "0", "multiply", "2"), (128, 24)),  # 8 rows are a line
        (text("s32[2,8000,6]", "s32[2,6]", "1"), (2, 125, 48)),  # 64 rows of a part: lines of 8
        (text("s32[2,8000,8]", "s32[2,8]", "1"), (2, 125, 8)),
        (text("s32[4096,17]", "s32[17]", "0"), (128, 17)),
        (text("s32[2432,5]", "s32[5]", "0"), (128, 5)),  # 19 rows of a part make no equal lines
        (text("s32[2,700,20]", "s32[20]", "0,1"), (140, 20)),
        (text("s32[4,2,192]", "s32[2]", "0,2", "minimum", "9"), (2, 96)),
        (text("s32[192,2,4]", "s32[2]", "0,2", "xor", "9"), (96, 2)),
        (text("f32[1024]", "f32[]", "0", start="5"), (128,)),
        (text("f32[1024]", "f32[]", "0", "maximum", "-inf"), (128,)),
        (text("pred[1024]", "pred[]", "0", "or", "false"), (128,)),
        (text("bf16[1024]", "bf16[]", "0", "minimum", "inf"), (128,)),
    ],
)
def test_is_divided_and_keeps_the_results(case: str, partial: tuple[int, ...]):
    changed = same(case, fill(parse_module(case), 1, high=5), *PASSES, exact="f32" not in case)
    assert [i.shape.dims for i in reductions(changed)] == [partial, changed.entry.root.shape.dims]


@pytest.mark.parametrize(
    "case, partial",
    [
        (text("s32[1021]", "s32[]", "0", start="5"), (128,)),
        (text("s32[2,1021]", "s32[2]", "1", "maximum", "-7"), (2, 128)),
        (text("s32[1021,3]", "s32[3]", "0", "multiply", "2"), (128, 3)),
        (text("f32[1021]", "f32[]", "0", "minimum", "inf"), (128,)),
    ],
)
def test_a_length_without_even_parts_is_cut(case: str, partial: tuple[int, ...]):
    changed = same(case, fill(parse_module(case), 1, high=5), *PASSES, exact=True)
    result = changed.entry.root.shape.dims
    assert sorted(i.shape.dims for i in reductions(changed)) == sorted([partial, result, result, result])


@pytest.mark.parametrize("producer, columns", [("multiply(x, x)", 40), ("add(x, c)", 5)])
def test_rows_are_one_line_where_all_is_read_in_order(producer: str, columns: int):
    case = f"""HloModule m
region {{ a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b) }}
ENTRY e {{ x = s32[8192,5] parameter(0)
  y = s32[5] parameter(1)
  c = s32[8192,5] broadcast(y), dimensions={{1}}
  p = s32[8192,5] {producer}
  z = s32[] constant(0)
  ROOT r = s32[5] reduce(p, z), dimensions={{0}}, to_apply=region }}
"""
    changed = same(case, fill(parse_module(case), 1, high=5), *PASSES, exact=True)
    assert [i.shape.dims for i in reductions(changed)] == [(128, columns), (5,)]


@pytest.mark.parametrize("op, start", [("add", "3"), ("multiply", "1")])
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_narrow_sums_are_wide_inside(dtype: str, op: str, start: str):
    case = text(f"{dtype}[8,2048]", f"{dtype}[8]", "1", op, start)
    changed = same(case, fill(parse_module(case), 1, high=2), *PASSES)
    partial, whole = reductions(changed)
    assert partial.shape.dtype is whole.shape.dtype is DType.F32 and partial.shape.dims == (8, 128)


ARG = """HloModule m
region {{ a = {t}[] parameter(0)
  m = s32[] parameter(1)
  b = {t}[] parameter(2)
  n = s32[] parameter(3)
  c = pred[] compare(a, b), direction={order}
  w = pred[] compare(a, a), direction=NE
  o = pred[] {join}
  v = {t}[] select(o, a, b)
  e = pred[] compare({equal}), direction=EQ
  l = pred[] compare(m, n), direction=LT
  t = pred[] and(l, e)
  q = pred[] or(t, o)
  k = s32[] select(q, m, n)
  ROOT r = ({t}[], s32[]) tuple(v, k) }}
ENTRY e {{ x = {t}[2,1024] parameter(0)
  i = s32[2,1024] iota(), iota_dimension=1
  z = {t}[] constant({start})
  o = s32[] constant({number})
  ROOT r = ({t}[2], s32[2]) reduce(x, i, z, o), dimensions={{1}}, to_apply=region }}
"""


def arg(t="f32", order="GT", join="or(w, c)", equal="a, b", start="-inf", number=0):
    return ARG.format(t=t, order=order, join=join, equal=equal, start=start, number=number)


PLACES = [[], [0], [1023], [7, 8], [3, 500, 900]]
"""Where special values stand in a row."""


@pytest.mark.parametrize("number", [0, 100])
@pytest.mark.parametrize("order, start", [("GT", "-inf"), ("LT", "inf"), ("GT", "5"), ("GT", "nan")])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, -0.0, 5.0])
@pytest.mark.parametrize("rows, partial", [(2, (2, 128)), (17, (17, 32))], ids=["parts", "lanes"])
@pytest.mark.parametrize("by_value", [False, True])
def test_the_place_of_an_extremum_stays(
    rows: int,
    partial: tuple[int, ...],
    order: str,
    start: str,
    special: float,
    number: int,
    by_value: bool,
    monkeypatch,
):
    monkeypatch.setattr(places_of_extrema, "SHORTEST", 8 if by_value else 2000)
    case = arg(order=order, start=start, number=number).replace("[2", f"[{rows}")
    for places in PLACES:
        x = np.random.default_rng(len(places)).integers(-4, 5, (rows, 1024)).astype(np.float32)
        x[:, places] = special
        changed = same(case, [x], *PASSES, exact=True)
        found = [i.shape.elements[0].dims if i.shape.is_tuple else i.shape.dims for i in reductions(changed)]
        if by_value and start != "nan":
            assert found == ([partial, partial, (rows,)] if rows == 2 else [(rows,), (rows,)])
        else:
            assert found == [partial, (rows,)]


def test_numbers_that_do_not_count_have_no_lanes():
    """The first of several NaNs need not have the least number."""
    case = (
        arg().replace("[2", "[17").replace("i = s32[17,1024] iota(), iota_dimension=1", "i = s32[17,1024] parameter(1)")
    )
    assert len(reductions(run(case, *PASSES))) == 1


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_both_stacks_find_the_first_nan_among_lanes(stack: str):
    x = np.random.default_rng(0).normal(size=(17, 1024)).astype(np.float32)
    first = np.arange(17) * 50 + 100
    for row, place in enumerate(first):
        x[row, place], x[row, place + 3 :: 5] = np.nan, np.nan
    executable = compile_module(parse_module(arg().replace("[2", "[17")), Flags.parse(stack))
    assert np.array_equal(executable.execute([x])[1], first)


@pytest.mark.parametrize("by_value", [False, True])
@pytest.mark.parametrize("stack", ["evaluator", "legacy", "mlir"])
def test_places_in_rows_of_a_prime_length(stack: str, by_value: bool, monkeypatch):
    monkeypatch.setattr(places_of_extrema, "SHORTEST", 8 if by_value else 2000)
    case = arg().replace("1024", "1021")
    x = np.random.default_rng(0).normal(size=(2, 1021)).astype(np.float32)
    many = np.float32([[1, 1, 0], [2, 3, 3]])
    ends = np.stack([np.r_[np.zeros(1018), row] for row in many]).astype(np.float32)
    late, both = x.copy(), x.copy()
    late[0, 1020], both[:, [3, 900, 1019]] = np.nan, np.nan
    found = len(reductions(run(case, *PASSES)))
    assert found == 2 if by_value else found > 2
    for values in (x, ends, late, both, np.full_like(x, -np.inf)):
        module = parse_module(case)
        if stack == "evaluator":
            found = evaluate(run_pipeline(module, select(PASSES)), [values])
        else:
            found = compile_module(module, Flags.parse(stack)).execute([values])
        wanted = evaluate(module, [values])
        assert all(np.array_equal(w, f, equal_nan=True) for w, f in zip(wanted, found, strict=True))


def test_a_row_alone_goes_by_value_and_what_does_not_count_does_not(monkeypatch):
    """The numbers of one row are a reshape of numbers that count: 4 ns an element for each of a vocabulary."""
    monkeypatch.setattr(places_of_extrema, "SHORTEST", 8)
    alone = arg().replace("[2,1024]", "[1,1024]").replace("[2]", "[1]")
    x = np.float32([[*np.arange(1000), np.nan, *np.arange(20), np.nan, 1, 2]])
    cases = (("1024", 0, 3), ("1,1024", 1, 3), ("1024,1", 0, 3), ("1,1024", 0, 2), ("2,512", 1, 2))
    for dims, along, count in cases:
        numbers = f"j = s32[{dims}] iota(), iota_dimension={along}\n  i = s32[1,1024] reshape(j)"
        case = alone.replace("i = s32[1,1024] iota(), iota_dimension=1", numbers)
        for values in (x, np.nan_to_num(x)):
            assert len(reductions(same(case, [values], *PASSES, exact=True))) == count


def test_integers_need_no_test_for_nan():
    case = arg("s32", join="and(c, c)", start="-9").replace("o = pred[] and(c, c)", "o = pred[] or(c, c)")
    assert len(reductions(run(case, *PASSES))) == 1
    case = arg("s32", start="-9")
    assert len(reductions(same(case, fill(parse_module(case), 1, high=5), *PASSES))) == 2
    case = case.replace("select(o, a, b)", "maximum(a, b)").replace("or(t, o)", "or(t, c)")  # as `algebra` leaves it
    assert len(reductions(same(case, fill(parse_module(case), 1, high=5), *PASSES))) == 2


@pytest.mark.parametrize("case", [arg(join="or(c, c)"), arg(join="and(w, c)"), arg(equal="a, a"), arg(order="GE"),
                                  arg().replace("tuple(v, k)", "tuple(v, m)")])  # fmt: skip
def test_other_regions_of_two_values_stay(case: str):
    assert len(reductions(run(case, *PASSES))) == 1


@pytest.mark.parametrize(
    "case",
    [
        text("s32[256]", "s32[]", "0"),  # small
        text("s32[32,64]", "s32[32]", "1"),  # many results
        text("s32[60,32]", "s32[32]", "0"),  # few elements of each
        text("s32[64,1024]", "s32[1024]", "0"),  # many columns
        text("s32[1021,2]", "s32[]", "0,1"),  # a prime
        text("f32[1021]", "f32[]", "0"),  # a prime, and parts round otherwise
        text("f8e5m2[1024]", "f8e5m2[]", "0"),  # would be rounded twice
        text("s32[1024]", "s32[]", "0", "subtract"),
        text("f32[32,32]{0,1}", "f32[]", "0,1"),
    ],
)
def test_stays(case: str):
    assert len(reductions(run(case, *PASSES))) == 1


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_a_strict_sum_stays_one_chain(stack: str):
    module = parse_module(text("f32[524288]", "f32[]", "0"))
    for strict, count in ((False, 2), (True, 1)):
        options = CompileOptions(emit=replace(EmitOptions.host(), strict=strict))
        assert len(compile_module(module, Flags.parse(stack), options).kernels) == count


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_threads_share_the_parts_and_change_no_bit(stack: str):
    count = 1 << 19
    x = np.random.default_rng(0).normal(size=count).astype(np.float32)
    place = arg().replace("[2,1024]", f"[{count}]").replace("iota_dimension=1", "iota_dimension=0")
    place = place.replace("(f32[2], s32[2]) reduce", "(f32[], s32[]) reduce").replace("{1}", "{0}")
    narrow = x.astype(DType.BF16.numpy)
    missing = np.where(np.arange(count) > 400_000, np.float32(np.nan), x)
    cases = (
        (place, x, np.argmax(x)),
        (place, missing, 400_001),
        (text(f"bf16[{count}]", "bf16[]", "0"), narrow, None),
    )
    for module, value, wanted in cases:
        executable = compile_module(parse_module(module), Flags.parse(stack))
        assert [kernel.split is not None for kernel in executable.image.kernels] == [True, False]
        results = []
        for count_of_threads in (1, 2, 3):
            with on_threads(count_of_threads):
                results.append(executable.execute([value]))
        assert len({tuple(x.tobytes() for x in result) for result in results}) == 1
        if wanted is not None:
            assert results[0][1] == wanted
        else:
            exact = narrow.astype(np.float64).sum()
            assert abs(float(results[0][0]) - exact) <= abs(exact) * 2.0**-8 + 0.01  # one rounding to bf16


MASKED = """HloModule m
region {{ a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b) }}
ENTRY e {{ x = s32[{dims}] parameter(0)
  i = s32[{dims}] iota(), iota_dimension=0
  j = s32[{dims}] iota(), iota_dimension=1
  p = pred[{dims}] compare(i, j), direction=EQ
  z = s32[] constant(0)
  zero = s32[{dims}] broadcast(z), dimensions={{}}
  y = s32[{dims}] select(p, x, zero)
  ROOT r = s32[{result}] reduce(y, z), dimensions={{{reduced}}}, to_apply=region }}
"""


@pytest.mark.parametrize(
    "dims, result, reduced, rank",
    [
        ("96,40", "", "0,1", 3),  # a trace: each element depends on its row and its column
        ("3,64,40", "3", "1,2", 4),
        ("128,8,5", "5", "0,1", 3),  # rows too short for a loop of their own
        ("64,40,20", "20", "0,1", 4),
        ("3,64,40", "", "0,1,2", 4),
        ("960,4", "", "0,1", 2),
    ],
)
def test_rows_and_columns_stay_apart_where_elements_depend_on_both(dims, result, reduced, rank):
    """Merged, each element found its place by a division: jnp.trace took 5 times XLA's time."""
    given = MASKED.format(dims=dims, result=result, reduced=reduced)
    after = same(given, fill(parse_module(given), 0), *PASSES, exact=True)
    assert len(reductions(after)) == 2 and reductions(after)[0].operands[0].shape.rank == rank
