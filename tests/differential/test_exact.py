"""Kernels over a finite field: corpora are equal, and faults show, each with who has it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ...differential.exact.check import NO_ORDER, Row, Status, check_kernel, check_module, compared, kernels_of
from ...differential.exact.corpus import check_files, check_programs, modules_in
from ...differential.exact.declared import DECLARED, EACH, Reason
from ...differential.exact.draw import draws, draws_of, float_types, format_of
from ...differential.exact.integers import Integers
from ...differential.exact.passes import _reason, rule_of
from ...differential.exact.program import check_program
from ...differential.planted.fault import planted
from ...differential.planted.table import FAULTS
from ...evaluator.evaluator import evaluate
from ...evaluator.field import field_rules
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...hlo.errors import UnsupportedError
from ..support.corpus import sample
from ..support.loops import LOOP

CORPUS = Path(__file__).parents[1] / "corpus"


def rows_of(text: str) -> list[Row]:
    return list(check_module(parse_module(text)))


def module(body: str, regions: str = "") -> str:
    return f"HloModule m\n\n{regions}ENTRY e {{\n{body}\n}}\n"


ADD = "add {{ a = {0}[] parameter(0)\n b = {0}[] parameter(1)\n ROOT r = {0}[] add(a, b) }}\n"
TEXTS = {
    "a long sum": module(
        "p = f32[3,1000] parameter(0)\n z = f32[] parameter(1)\n"
        "ROOT r = f32[3] reduce(p, z), dimensions={1}, to_apply=add",
        ADD.format("f32"),
    ),
    "a product of bf16": module(
        "p = bf16[17,33] parameter(0)\n q = bf16[33,9] parameter(1)\n"
        "ROOT r = f32[17,9] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    ),
    "a product of f16 and bf16": module(
        "p = f16[5,7] parameter(0)\n q = bf16[5,7] parameter(1)\n a = f32[5,7] convert(p)\n b = f32[5,7] convert(q)\n"
        "c = f32[5,7] multiply(a, b)\n ROOT r = bf16[5,7] convert(c)"
    ),
    "f8": module(
        "p = f8e4m3fn[40] parameter(0)\n q = f8e4m3fn[40] parameter(1)\n ROOT r = f8e4m3fn[40] multiply(p, q)"
    ),
    "a convolution": module(
        "p = f32[1,9,9,3] parameter(0)\n k = f32[3,3,3,5] parameter(1)\n"
        "ROOT r = f32[1,5,5,5] convolution(p, k), window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
    ),
    "functions": module(
        "p = f32[33] parameter(0)\n a = f32[33] exponential(p)\n b = f32[33] logistic(a)\n c = f32[33] tanh(b)\n"
        "d = s32[33] convert(c)\n ROOT r = f32[33] convert(d)"
    ),
    "complex": module(
        "p = c64[12] parameter(0)\n q = c64[12] parameter(1)\n a = c64[12] multiply(p, q)\n b = c64[12] divide(a, p)\n"
        "c = f32[12] abs(b)\n d = c64[12] log(b)\n e = f32[12] real(d)\n ROOT r = f32[12] add(c, e)"
    ),
    "constants of a table": module(
        "p = f32[4] parameter(0)\n c = f32[4] constant({0.1, -2, 3e10, inf})\n a = f32[4] multiply(p, c)\n"
        "ROOT r = f32[4] add(a, c)"
    ),
    "nothing but constants": module(
        "i = f32[7] iota(), iota_dimension=0\n c = f32[] constant(0.14)\n b = f32[7] broadcast(c), dimensions={}\n"
        "a = f32[7] multiply(i, b)\n d = f32[1] constant({5})\n ROOT r = f32[8] concatenate(a, d), dimensions={0}"
    ),
    "one argument twice": module("p = f32[5] parameter(0)\n ROOT r = f32[5] multiply(p, p)"),
    "an integer quotient": module(
        "p = s32[40] parameter(0)\n q = s32[40] parameter(1)\n a = s32[40] divide(p, q)\n b = s32[40] remainder(p, q)\n"
        "ROOT r = s32[40] add(a, b)"
    ),
    "a number of an iota": module(
        "i = f64[3,2] iota(), iota_dimension=1\n ROOT r = f64[1,1] slice(i), slice={[0:1], [1:2]}"
    ),
    "bits that are no elements": module(
        "i = u16[65536] iota(), iota_dimension=0\n b = bf16[65536] bitcast-convert(i)\nROOT r = s16[65536] convert(b)"
    ),
    "scatter": module(
        "p = f32[6] parameter(0)\n i = s32[4,1] parameter(1)\n u = f32[4] parameter(2)\n"
        "ROOT r = f32[6] scatter(p, i, u), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
        ADD.format("f32"),
    ),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_kernels_are_equal(text: str) -> None:
    rows = rows_of(text)
    assert rows and all(r.status is Status.EQUAL and r.draws >= 3 for r in rows), rows


@pytest.mark.parametrize("part", range(4))
def test_the_corpus_has_no_false_alarm(part: int) -> None:
    found = list(check_files(modules_in(CORPUS)[part::12], CORPUS))
    assert [f for f in found if f.row.status is Status.DIFFER] == []
    assert [f for f in found if f.row.status is Status.NOT_RUN and f.row.kernel] == []


@pytest.mark.parametrize(
    "name",
    ["legacy-subtract-swapped", "mlir-reverse-off-by-one", "mlir-reduce-swaps-accumulator", "mlir-f16-not-rounded"],
)
def test_a_planted_fault_is_blamed(name: str) -> None:
    fault = FAULTS[name]
    assert all(r.status is Status.EQUAL for r in rows_of(fault.text))
    with planted(fault):
        wrong = [r for r in rows_of(fault.text) if r.status is Status.DIFFER]
    assert wrong and all(r.blamed == fault.blamed for r in wrong)
    assert "at [" in wrong[0].reason


ROWS_OF_PADDING = module(
    "p = f32[10,10] parameter(0)\n c = f32[] constant(0)\n"
    "ROOT r = f32[12,10] reduce-window(p, c), window={size=1x10 pad=1_1x9_0}, to_apply=add",
    ADD.format("f32"),
)


def test_an_idea_that_both_stacks_share_is_seen() -> None:
    """A row of a pool that consists of padding: both stacks once copied what was in its place before."""
    (row,) = rows_of(ROWS_OF_PADDING)
    assert row.status is Status.EQUAL
    with planted(FAULTS["legacy-pool-row-of-padding"]), planted(FAULTS["mlir-pool-row-of-padding"]):
        (row,) = rows_of(ROWS_OF_PADDING)
    assert row.status is Status.DIFFER and "hlo" in row.blamed


UNWRITTEN = FAULTS["legacy-last-column-unwritten"]


def test_a_program_runs_its_loops_in_its_buffers() -> None:
    row = check_program(parse_module(LOOP.replace("{trips}", "40")))
    assert row.status is Status.EQUAL and row.draws == 3 and not row.reason
    row = check_program(parse_module(LOOP.replace("{trips}", "4000")))
    assert row.status is Status.NOT_RUN and "more than 300 trips" in row.reason


def test_a_fault_of_the_plan_is_seen_in_a_program() -> None:
    fault = FAULTS["plan-alias-of-a-transpose"]
    assert check_program(parse_module(fault.text)).status is Status.EQUAL
    with planted(fault):
        row = check_program(parse_module(fault.text))
    assert row.status is Status.DIFFER


def test_a_pass_that_changes_a_program_is_named() -> None:
    fault = FAULTS["pass-algebra-forgets-a-square"]
    with planted(fault):
        row = check_program(parse_module(fault.text))
    assert row.status is Status.DIFFER and row.blamed == ("passes",)
    assert row.reason.startswith("algebra changes it with its change 1: - q = f32[6] multiply(s, s); + q = "), (
        row.reason
    )


OF_INTEGERS = {
    "pass-algebra-quotient-of-negated": "p = s32[64] parameter(0)\n q = s32[64] parameter(1)\n a = s32[64] negate(p)\n"
    "b = s32[64] negate(q)\n ROOT r = s32[64] divide(a, b)",
    "pass-algebra-remainder-by-mask": "p = s32[64] parameter(0)\n c = s32[] constant(8)\n"
    "b = s32[64] broadcast(c), dimensions={}\n ROOT r = s32[64] remainder(p, b)",
}


@pytest.mark.parametrize(("name", "body"), OF_INTEGERS.items(), ids=OF_INTEGERS)
def test_a_pass_that_is_wrong_for_some_integers_is_seen(name: str, body: str) -> None:
    """The quotient of both negated numbers is another one for the smallest integer only."""
    assert check_program(parse_module(module(body))).status is Status.EQUAL
    with planted(FAULTS[name]):
        row = check_program(parse_module(module(body)))
    assert row.status is Status.DIFFER and row.blamed == ("passes",) and row.reason.startswith("algebra ("), row


def test_a_declared_rewrite_is_a_fault_if_it_is_wrong_on_floats() -> None:
    fault = FAULTS["pass-algebra-forgets-a-square"]
    with planted(fault), pytest.MonkeyPatch.context() as patch:
        patch.setitem(DECLARED, ("algebra", EACH), Reason.ROUNDED)
        row = check_program(parse_module(fault.text))
    assert row.status is Status.DIFFER
    assert (
        "algebra is declared (a folded constant is rounded), but wrong on ordinary floats, too: result 0" in row.reason
    )


def test_a_pass_that_is_not_declared_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    from ...differential.exact import passes

    text = parse_module(
        module(
            "p = f32[4] parameter(0)\n c = f32[] constant(2)\n b = f32[4] broadcast(c), dimensions={}"
            "\nROOT r = f32[4] power(p, b)"
        )
    )
    row = check_program(text)
    assert row.status is Status.EQUAL and row.reason.startswith("algebra (power_small) changes it as declared"), row
    monkeypatch.setattr(passes, "DECLARED", {})
    row = check_program(text)
    assert row.status is Status.DIFFER and row.blamed == ("passes",)
    assert row.reason.startswith("algebra (power_small) changes it with its change 1: - "), row.reason


def test_a_comparison_of_counts_keeps_its_order() -> None:
    """As floats they are compared in their order on draws with a small twist, where the pass has no excuse."""
    text = parse_module(
        module(
            "i = s32[9] iota(), iota_dimension=0\n c = s32[] constant(4)\n b = s32[9] broadcast(c), dimensions={}\n"
            "q = pred[9] compare(i, b), direction=LT\n p = f32[9] parameter(0)\n z = f32[9] negate(p)\n"
            "ROOT r = f32[9] select(q, p, z)"
        )
    )
    row = check_program(text)
    assert row.status is Status.EQUAL
    assert row.reason == "counted-compares changes it as declared: the order of integers as floats"
    orders = {d.keeps_order for d in draws_of(frozenset({DType.F32}))}
    assert orders == {True, False}


def test_rules_of_algebra_are_named_by_the_number_of_their_rewrite() -> None:
    text = parse_module(
        module(
            "p = f32[4] parameter(0)\n c = f32[] constant(2)\n b = f32[4] broadcast(c), dimensions={}\n"
            "a = f32[4] power(p, b)\n n = f32[4] negate(a)\n ROOT r = f32[4] negate(n)"
        )
    )
    assert [rule_of(text, n) for n in (1, 2)] == ["power_small", "twice"]


def test_a_fact_of_real_numbers_is_declared() -> None:
    row = check_program(
        parse_module(module("p = f32[32] parameter(0)\n m = f32[32] multiply(p, p)\n ROOT a = f32[32] abs(m)"))
    )
    assert row.status is Status.EQUAL
    assert row.reason == "algebra (abs_of_what_is_not_negative) changes it as declared: a square is not negative"


IDENTITIES = {
    "rounded_twice": "p = f32[9] parameter(0)\n a = f32[9] floor(p)\n ROOT r = f32[9] ceil(a)",
    "power_half": "p = f32[] parameter(0)\n c = f32[] constant(0.5)\n ROOT r = f32[] power(p, c)",
}


@pytest.mark.parametrize(("rule", "body"), IDENTITIES.items(), ids=IDENTITIES)
def test_identities_of_functions_are_declared(rule: str, body: str) -> None:
    row = check_program(parse_module(module(body)))
    assert row.status is Status.EQUAL and row.reason.startswith(f"algebra ({rule}) changes it as declared"), row


def test_an_identity_of_complex_numbers_excuses_no_real_ones() -> None:
    draw = next(iter(draws_of(frozenset({DType.F32}))))
    reasons = [
        _reason("algebra", "abs_of_negated", draw, (f"- r = {t}[9] abs(a)",)) for t in ("f32", "c64", "c128", "bf16")
    ]
    assert [r is Reason.COMPLEX for r in reasons] == [False, True, True, False]


def test_a_module_of_large_arrays_is_not_evaluated() -> None:
    text = module(
        "c = f32[] constant(1)\n b = f32[320,999,400] broadcast(c), dimensions={}\n z = f32[] constant(0)\n"
        "ROOT r = f32[] reduce(b, z), dimensions={0,1,2}, to_apply=add",
        ADD.format("f32"),
    )
    row = check_program(parse_module(text))
    assert row.status is Status.EQUAL and "an array of 127872000 elements" in row.reason, row


def test_unwritten_memory_is_no_result() -> None:
    with planted(UNWRITTEN):
        assert any(r.status is Status.DIFFER and "legacy" in r.blamed for r in rows_of(UNWRITTEN.text))


def test_a_split_kernel_runs_range_by_range(monkeypatch: pytest.MonkeyPatch) -> None:
    from ...differential.exact import run

    text = module(
        "p = f32[1000,1000] parameter(0)\n q = f32[1000,1000] parameter(1)\n ROOT r = f32[1000,1000] multiply(p, q)"
    )
    (request,) = kernels_of(parse_module(text))
    assert request.partition is not None and len(run._ranges(request)) == 2
    assert check_kernel(request).status is Status.EQUAL
    ranges = run._ranges
    monkeypatch.setattr(run, "_ranges", lambda r: ranges(r)[1:])
    assert check_kernel(request).status is Status.DIFFER


NEAR = """less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  one = f32[] constant(1)
  c = f32[] add(a, one)
  ROOT r = pred[] compare(c, b), direction=LT
}
"""
ORDER = NEAR.replace("compare(c, b)", "compare(a, b)")


@pytest.mark.parametrize(("comparator", "draws"), [(NEAR, 1), (ORDER, 3)])
def test_a_comparator_that_is_no_order_is_no_alarm(comparator: str, draws: int) -> None:
    text = module("p = f32[10] parameter(0)\n ROOT r = f32[10] sort(p), dimensions={0}, to_apply=less", comparator)
    (row,) = rows_of(text)
    assert row.status is Status.EQUAL and row.draws == draws and (row.reason == NO_ORDER) == (draws < 3), row
    row = check_program(parse_module(text))
    assert row.status is Status.EQUAL and row.draws == draws, row


def test_a_sort_keeps_its_elements_by_any_comparator() -> None:
    fault = FAULTS["legacy-sort-last-run-unwritten"]
    assert not any(r.status is Status.DIFFER for r in rows_of(fault.text))
    with planted(fault):
        (row,) = rows_of(fault.text)
    assert row.status is Status.DIFFER and "legacy" in row.blamed


def test_a_wrong_sort_by_an_order_is_an_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    from ...differential.exact import check

    right = check.run_kernel
    monkeypatch.setattr(check, "run_kernel", lambda kernel, inputs: [x[::-1] for x in right(kernel, inputs)])
    text = module("p = f32[10] parameter(0)\n ROOT r = f32[10] sort(p), dimensions={0}, to_apply=less", ORDER)
    (row,) = rows_of(text)
    assert row.status is Status.DIFFER


FFT = "c64[8] fft({}), fft_type=FFT, fft_length={{8}}"
SOLVED = "lower=true, left_side=true, transpose_a=NO_TRANSPOSE"
LIBRARY = {
    "fft": f"p = c64[8] parameter(0)\n ROOT r = {FFT.format('p')}",
    "cholesky": "p = f32[3,5,5] parameter(0)\n ROOT r = f32[3,5,5] cholesky(p), lower=true",
    "triangular-solve": "p = f64[5,5] parameter(0)\n q = f64[5,2] parameter(1)\n"
    f"ROOT r = f64[5,2] triangular-solve(p, q), {SOLVED}",
    "a factorisation": "p = f32[5,4] parameter(0)\n ROOT r = (f32[5,4], s32[4], s32[]) custom-call(p), "
    'custom_call_target="lapack_sgetrf_ffi", api_version=API_VERSION_TYPED_FFI',
    "between kernels": "p = c64[8] parameter(0)\n q = c64[8] parameter(1)\n a = c64[8] multiply(p, q)\n"
    f"b = {FFT.format('a')}\n ROOT r = c64[8] add(b, q)",
}


@pytest.mark.parametrize("body", LIBRARY.values(), ids=LIBRARY)
def test_a_library_call_is_one_function(body: str) -> None:
    rows = rows_of(module(body))
    assert all(r.status is Status.EQUAL and r.draws == 3 for r in rows), rows
    assert any(r.is_library for r in rows)
    row = check_program(parse_module(module(body)))
    assert row.status is Status.EQUAL and row.draws == 3 and not row.reason, row


def test_a_library_call_depends_on_each_element_and_on_its_name() -> None:
    def results(body: str, x: np.ndarray) -> np.ndarray:
        text = parse_module(module(body))
        with np.errstate(all="ignore"):
            return evaluate(text, [x], flush_subnormals=False, rules=field_rules(elements))[0]

    elements = next(iter(draws_of(frozenset({DType.F32})))).elements
    x = elements.write(np.arange(8, dtype=np.uint64), np.dtype(np.float32)).astype(np.complex64)
    first = results(LIBRARY["fft"], x)
    y = x.copy()
    y[7] = x[6]
    swapped = x[[1, 0, *range(2, 8)]]
    others = [results(LIBRARY["fft"], z) for z in (y, swapped)]
    others.append(results(LIBRARY["fft"].replace("=FFT", "=IFFT"), x))
    assert len(np.unique(first)) == 8
    assert all((first != other).all() for other in others)
    assert np.array_equal(first, results(LIBRARY["fft"], x))


def test_a_fault_before_a_library_call_is_seen_in_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    from ...differential.exact import library

    text = parse_module(module(LIBRARY["between kernels"]))
    right = library.logical
    monkeypatch.setattr(library, "logical", lambda memory, shape: right(memory, shape)[::-1])
    row = check_program(text)
    assert row.status is Status.DIFFER and row.blamed == ("hlo",)


@pytest.mark.parametrize(
    ("types", "prime"),
    [
        ([], 4261412863),
        ([DType.F64, DType.F32], 4261412863),
        ([DType.BF16, DType.F32], 65011),
        ([DType.F16], 61441),
        ([DType.F16, DType.BF16], 7681),
        ([DType.F8E4M3FN, DType.F32], 223),
    ],
)
def test_the_field_fits_the_narrowest_type(types: list[DType], prime: int) -> None:
    lowest, mantissa, found = format_of(types)
    assert found == prime
    above, fraction = divmod((found - 1) // 2 - 1, 1 << mantissa)
    largest = np.ldexp(1 + fraction / (1 << mantissa), lowest + above)
    for dtype in types:
        assert float(np.float64(largest).astype(dtype.numpy)) == largest


def test_draws_are_generic_crowded_and_more_for_narrow_types() -> None:
    text = "p = {0}[9] parameter(0)\n ROOT r = {0}[9] negate(p)"
    kernels = [kernels_of(parse_module(module(text.format(t))))[0] for t in ("f32", "bf16", "f8e5m2")]
    wide, narrow, byte = (list(draws(k.instruction)) for k in kernels)
    assert len(wide) == 3 and len(narrow) == 4 and len(byte) == 8
    assert len({d.field for d in byte}) == 2 and len({d.seed for d in byte}) == 8
    assert [d.crowded for d in wide] == [False, False, True]
    assert {d.integers for d in wide} == set(Integers)
    small, middle = wide[0].field.twist, wide[1].field.twist
    assert small << 20 < wide[0].field.half < middle << 3
    inputs = wide[2].inputs(parse_module(module("p = f32[500] parameter(0)\n ROOT r = f32[500] negate(p)")))
    assert len(np.unique(inputs[0])) <= 5


def test_float_types_are_found_within_regions() -> None:
    (request,) = kernels_of(parse_module(TEXTS["a product of f16 and bf16"]))
    assert float_types(request.instruction) == {DType.F16, DType.BF16, DType.F32}


def test_the_sentence_names_who_differs() -> None:
    elements = next(iter(draws(kernels_of(parse_module(TEXTS["functions"]))[0].instruction))).elements
    a, b, c = (np.array([1, n, 3], np.int32) for n in range(3))
    assert compared({"legacy": [a], "mlir": [a], "hlo": [a]}, elements) is None
    for wrong, results in (("legacy", (b, a, a)), ("mlir", (a, b, a)), ("hlo", (a, a, b))):
        found = compared(dict(zip(("legacy", "mlir", "hlo"), ([r] for r in results), strict=True)), elements)
        assert found is not None and found[0] == (wrong,) and "1 of 3 elements; result 0 at [1]" in found[1]
    found = compared({"legacy": [a], "mlir": [b], "hlo": [c]}, elements)
    assert found is not None and len(found[0]) == 3 and "all three differ" in found[1]
    found = compared({"legacy": [a], "mlir": [a[:2]], "hlo": [a]}, elements)
    assert found is not None and "result 0 has different shapes: [3] of legacy, [2] of mlir" in found[1]
    found = compared({"legacy": [a], "mlir": [a, a], "hlo": [a]}, elements)
    assert found is not None and "the numbers of results differ: 1 of legacy, 2 of mlir" in found[1]


@pytest.mark.parametrize("file", sample("op_cases/*.hlo", 12), ids=lambda f: f.stem)
def test_a_sample_of_the_shared_corpus(file: Path) -> None:
    assert [f for f in check_files([file], file) if f.row.status is Status.DIFFER] == []


@pytest.mark.parametrize("file", sample("jax_programs/*/module.hlo", 2), ids=lambda f: f.parent.name)
def test_whole_programs_of_the_shared_corpus(file: Path) -> None:
    (found,) = check_programs([file], file)
    assert found.row.status is Status.EQUAL, found.row


ENDLESS = """HloModule m

body {
  s = (f32[2]) parameter(0)
  x = f32[2] get-tuple-element(s), index=0
  y = f32[2] add(x, x)
  ROOT r = (f32[2]) tuple(y)
}
condition {
  s = (f32[2]) parameter(0)
  ROOT r = pred[] constant(true)
}
ENTRY e {
  p = f32[2] parameter(0)
  t = (f32[2]) tuple(p)
  ROOT w = (f32[2]) while(t), condition=condition, body=body
}
"""


def test_constants_keep_the_signs_of_zeros_and_nan() -> None:
    """A constant of the plan, not of a kernel: sorts by the total order tell them apart."""
    order = "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
    order += " ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER }\n"
    text = module(
        "p = f32[2] parameter(0)\n c = f32[6] constant({nan, -nan, 0, -0, -nan, inf})\n"
        "v = f32[8] concatenate(p, c), dimensions={0}\n"
        "ROOT s = f32[8] sort(v), dimensions={0}, is_stable=true, to_apply=less",
        order,
    )
    row = check_program(parse_module(text))
    assert row.status is Status.EQUAL and row.draws == 3, row


def test_a_sum_of_nothing_is_its_start() -> None:
    text = module(
        "p = f32[3,0,5] parameter(0)\n z = f32[] parameter(1)\n"
        " r = f32[3,0] reduce(p, z), dimensions={2}, to_apply=add\n"
        "s = f32[3,5] reduce(p, z), dimensions={1}, to_apply=add\n ROOT t = (f32[3,0], f32[3,5]) tuple(r, s)",
        ADD.format("f32"),
    )
    row = check_program(parse_module(text))
    assert row.status is Status.EQUAL and row.draws == 3, row


def test_a_program_of_dynamic_size() -> None:
    text = module(
        "p = f32[6] parameter(0)\n n = s32[] parameter(1)\n d = f32[<=6] set-dimension-size(p, n), dimensions={0}\n"
        "ROOT r = f32[<=6] multiply(d, d)"
    )
    row = check_program(parse_module(text))
    assert row.status is Status.EQUAL and row.draws == 3, row


def test_a_loop_without_end_ends_as_not_run() -> None:
    """On floats it ends where they no longer change, which no element does."""
    row = check_program(parse_module(ENDLESS))
    assert row.status is Status.NOT_RUN and "trips" in row.reason, row
    with pytest.raises(UnsupportedError, match="a loop of more than 1000 trips"):
        elements = next(iter(draws_of(frozenset({DType.F32})))).elements
        evaluate(parse_module(ENDLESS), [np.ones(2, np.float32)], flush_subnormals=False, rules=field_rules(elements))
