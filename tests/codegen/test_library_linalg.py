"""Cholesky, triangular-solve and jaxlib's LAPACK targets as library kernels, against the evaluator and, here, XLA."""

import itertools

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...codegen import library
from ...codegen.options import EmitOptions
from ...evaluator.evaluator import evaluate
from ...ffi.calls import CallError
from ...formats.text.parser import parse_module
from ...hlo.errors import TestbedError, UnsupportedError
from ...hlo.library.calls import lapack_call, work_bytes
from ...hlo.library.lapack import COMPLEX, LETTERS, REAL
from ...hlo.opcodes import Op
from ...lhlo import from_kernels, parse_text, to_kernels
from ...migration import Flags, compile_module
from ...passes.cleanup.cse import share_equal
from ...planning.planner import plan
from ..support.check import check, run_stack

DTYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}
PREFIX = dict(zip(DTYPES, "sdcz"))
REAL_PART = {"f32": "f32", "f64": "f64", "c64": "f32", "c128": "f64"}
COMPLEX_OF = {"f32": "c64", "f64": "c128", "c64": "c64", "c128": "c128"}
LAYOUTS = ("{2,1,0}", "{1,2,0}", "{0,2,1}")


def matrices(dtype: str, *dims: int, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    a = draw.normal(size=dims) + (1j * draw.normal(size=dims) if dtype[0] == "c" else 0)
    return a.astype(DTYPES[dtype])


def positive(dtype: str, *dims: int, seed: int = 0) -> np.ndarray:
    """A random Hermitian, positive definite matrix."""
    a = matrices(dtype, *dims, seed=seed)
    return (a @ np.conj(a.swapaxes(-1, -2)) + dims[-1] * np.eye(dims[-1])).astype(a.dtype)


def entry(*lines: str) -> str:
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}\n"


def both(text: str, inputs, dtype: str = "f32") -> list[np.ndarray]:
    """Check that evaluator and kernel agree. One stack is enough, because the kernel is the same on both."""
    return check(text, inputs, stacks=("evaluator", "legacy"))


# --- HLO's own ops ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", ["true", "false"])
def test_cholesky_in_every_layout(dtype, lower):
    a = positive(dtype, 3, 5, 5)
    a[1, 2, 2] = -4  # NaN all over in the second matrix, and there only
    a[2, 4, 0] = a[2, 0, 4] = np.nan
    for source, result in itertools.product(LAYOUTS, LAYOUTS):
        text = entry(
            f"a = {dtype}[3,5,5]{source} parameter(0)", f"ROOT r = {dtype}[3,5,5]{result} cholesky(a), lower={lower}"
        )
        (value,) = both(text, [a], dtype)
        assert np.isnan(value[1:]).all() and not np.isnan(value[0]).any()


@pytest.mark.parametrize("dtype", ["f32", "c128"])
@pytest.mark.parametrize("left", ["true", "false"])
@pytest.mark.parametrize("lower", ["true", "false"])
@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
def test_triangular_solve_in_every_layout(dtype, left, lower, transpose):
    dims = "3,4,2" if left == "true" else "3,2,4"
    right = matrices(dtype, *map(int, dims.split(",")), seed=1)
    unit = "true" if (left, lower) == ("true", "false") else "false"
    for first, second in ((LAYOUTS[0],) * 2, (LAYOUTS[1],) * 2, LAYOUTS[:2], LAYOUTS[1::-1], LAYOUTS[1:]):
        text = entry(
            f"a = {dtype}[3,4,4]{first} parameter(0)", f"b = {dtype}[{dims}]{second} parameter(1)",
            f"ROOT r = {dtype}[{dims}]{second} triangular-solve(a, b), left_side={left}, lower={lower}, "
            f"unit_diagonal={unit}, transpose_a={transpose}",
        )  # fmt: skip
        both(text, [positive(dtype, 3, 4, 4), right], dtype)


def test_a_singular_triangle_gives_nan_in_its_element_of_the_batch_only():
    text = entry(
        "a = f32[2,3,3] parameter(0)", "b = f32[2,3,2] parameter(1)",
        "ROOT r = f32[2,3,2] triangular-solve(a, b), left_side=true, lower=true, unit_diagonal=false, "
        "transpose_a=NO_TRANSPOSE",
    )  # fmt: skip
    a = positive("f32", 2, 3, 3)
    a[1, 1, 1] = 0
    (value,) = both(text, [a, matrices("f32", 2, 3, 2)])
    assert np.isnan(value[1]).all() and not np.isnan(value[0]).any()


@pytest.mark.parametrize("dims", ["0,0", "0,3,3", "2,0,0"])
def test_empty_matrices(dims):
    shape = tuple(map(int, dims.split(",")))
    text = entry(f"a = f32[{dims}] parameter(0)", f"ROOT r = f32[{dims}] cholesky(a), lower=true")
    assert both(text, [np.zeros(shape, np.float32)])[0].shape == shape


# --- jaxlib's targets ------------------------------------------------------------------------------------------------


def call(name: str, dtype: str, operands, results, config: str = "", bare: bool = False) -> str:
    """A custom call as JAX writes it, with column-major matrices. Shapes: (type, dims). bare: one result, no tuple."""
    sources = [shape(*o) for o in operands]
    lines = [f"p{n} = {shape(t, d, plain=True)} parameter({n})" for n, (t, d) in enumerate(operands)]
    names, leaves = ", ".join(f"p{n}" for n in range(len(lines))), ", ".join(shape(*r) for r in results)
    lines.append(
        f"ROOT r = {leaves if bare else f'({leaves})'} custom-call({names}), "
        f'custom_call_target="lapack_{PREFIX[dtype]}{name}_ffi", api_version=API_VERSION_TYPED_FFI, '
        f"operand_layout_constraints={{{', '.join(sources)}}}, backend_config={{{config}}}"
    )
    return entry(*lines)


def shape(dtype: str, dims, plain: bool = False) -> str:
    """The layout of three dimensions whose last two are column-major."""
    layout = {0: "", 1: "{0}", 2: "{1,0}", 3: "{2,1,0}" if plain else "{1,2,0}"}[len(dims)]
    return f"{dtype}[{','.join(map(str, dims))}]{layout}"


def char(key: str, value: str) -> str:
    return f"{key} = {ord(value)} : ui8"


def eigen(dtype: str, name: str, n: int, *shapes):
    """(operands, results): the matrix, the other results, info."""
    return [(dtype, (2, n, n))], [(dtype, (2, n, n)), *shapes, ("s32", (2,))]


CALLS = {
    "potrf": lambda t, n: (*eigen(t, "potrf", n), char("uplo", "L")),
    "getrf": lambda t, n: ([(t, (2, n, n + 1))], [(t, (2, n, n + 1)), ("s32", (2, n)), ("s32", (2,))], ""),
    "geqrf": lambda t, n: ([(t, (2, n + 2, n))], [(t, (2, n + 2, n)), (t, (2, n))], ""),
    "geqp3": lambda t, n: (
        [(t, (2, n, n)), ("s32", (2, n))], [(t, (2, n, n)), ("s32", (2, n)), (t, (2, n))], ""
    ),
    "gehrd": lambda t, n: (*eigen(t, "gehrd", n, (t, (2, n - 1))), f"high = {n} : i32, low = 1 : i32"),
    "gtsv": lambda t, n: (
        [(t, (2, n))] * 3 + [(t, (2, n, 3))], [(t, (2, n))] * 3 + [(t, (2, n, 3)), ("s32", (2,))], ""
    ),
    "evd": lambda t, n: (*eigen(t, "evd", n, (REAL_PART[t], (2, n))), f"{char('mode', 'V')}, {char('uplo', 'U')}"),
    "trd": lambda t, n: (
        *eigen(t, "trd", n, (REAL_PART[t], (2, n)), (REAL_PART[t], (2, n - 1)), (t, (2, n - 1))), char("uplo", "L")
    ),
    "gesdd": lambda t, n: (
        [(t, (2, n, n + 2))],
        [(t, (2, n, n + 2)), (REAL_PART[t], (2, n)), (t, (2, n, n)), (t, (2, n, n + 2)), ("s32", (2,))],
        char("mode", "S"),
    ),
    "gesvd": lambda t, n: (
        [(t, (2, n + 2, n))],
        [(t, (2, n + 2, n)), (REAL_PART[t], (2, n)), (t, (2, n + 2, n + 2)), (t, (2, n, n)), ("s32", (2,))],
        char("mode", "A"),
    ),
    "geev": lambda t, n: (
        [(t, (2, n, n))],
        [(t, (2, n))] * (1 if t[0] == "c" else 2) + [(COMPLEX_OF[t], (2, n, n))] * 2 + [("s32", (2,))],
        f"{char('compute_left', 'V')}, {char('compute_right', 'V')}",
    ),
    "gees": lambda t, n: (
        [(t, (2, n, n))],
        [(t, (2, n, n))] * 2 + [(t, (2, n))] * (1 if t[0] == "c" else 2) + [("s32", (2,))] * 2,
        f"{char('mode', 'V')}, {char('sort', 'N')}",
    ),
}  # fmt: skip
"""LAPACK's name → operands, results and options of a call on matrices of about n × n."""


def full_name(name: str, dtype: str) -> str:
    if name in ("evd", "trd"):
        return ("he" if dtype[0] == "c" else "sy") + name
    return name


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_a_target_agrees_with_the_evaluator(name, dtype):
    operands, results, config = CALLS[name](dtype, 6)
    inputs = [matrices(t, *d, seed=n) if t != "s32" else np.zeros(d, np.int32) for n, (t, d) in enumerate(operands)]
    if name in ("potrf", "evd", "trd"):
        inputs = [positive(dtype, 2, 6, 6)]
    text = call(full_name(name, dtype), dtype, operands, results, config)
    if name in ("gesdd", "gesvd"):  # the first leaf holds what LAPACK left there
        text = text.replace("ROOT r", "r").replace("\n}\n", "\n" + kept(results) + "\n}\n")
    both(text, inputs, dtype)


def kept(results) -> str:
    """A root with all leaves of r except the first."""
    rest = list(enumerate(results))[1:]
    lines = [f"g{n} = {shape(*s)} get-tuple-element(r), index={n}" for n, s in rest]
    leaves, names = ", ".join(shape(*s) for _, s in rest), ", ".join(f"g{n}" for n, _ in rest)
    return "\n".join([*lines, f"ROOT t = ({leaves}) tuple({names})"])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("first", [(0, 0, 1, 0, 1, 0), (1, 1, 1, 1, 1, 1), (0, 0, 0, 0, 0, 1)])
def test_columns_that_must_come_first(dtype, first):
    operands, results, _ = CALLS["geqp3"](dtype, 6)
    pivots = np.array([first, first[::-1]], np.int32)
    _, order, _ = both(call("geqp3", dtype, operands, results), [matrices(dtype, 2, 6, 6), pivots], dtype)
    assert set(order[0][: sum(first)] - 1) == set(np.flatnonzero(first))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", ["true", "false"])
@pytest.mark.parametrize("transpose", ["true", "false"])
def test_reflectors_times_a_matrix(dtype, left, transpose):
    c, square, tau = (2, 5, 3) if left == "true" else (2, 3, 5), (dtype, (2, 5, 5)), (dtype, (2, 5))
    reduce = call("geqrf", dtype, [square], [square, tau])
    factors, scales = run_stack(reduce, "evaluator", [matrices(dtype, 2, 5, 5)])
    name, config = "unmqr" if dtype[0] == "c" else "ormqr", f"left = {left}, transpose = {transpose}"
    text = call(name, dtype, [square, tau, (dtype, c)], [(dtype, c)], config, bare=True)
    both(text, [factors, scales, matrices(dtype, *c, seed=4)], dtype)


def test_large_matrices_go_through_work_space_of_the_plan():
    operands, results, config = CALLS["evd"]("f64", 60)
    text = call("syevd", "f64", operands, results, config)
    both(text, [positive("f64", 2, 60, 60)], "f64")
    (request,) = plan(parse_module(text)).kernels
    assert request.arguments[request.scratch].slice.size >= work_bytes(request.instruction) > 8 * 60 * 60


@pytest.mark.parametrize("name", CALLS)
def test_the_same_code_comes_from_lhlo(name):
    operands, results, config = CALLS[name]("f32", 40)
    (request,) = plan(parse_module(call(full_name(name, "f32"), "f32", operands, results, config))).kernels
    (read_back,) = to_kernels(parse_text(from_kernels([request]).to_text()))
    options = EmitOptions.host()
    assert library.emit([read_back], options).llvm_ir == library.emit([request], options).llvm_ir


def test_a_dying_operand_is_overwritten():
    text = entry(
        "x = f32[6,6]{0,1} parameter(0)", "a = f32[6,6]{0,1} add(x, x)",
        'f = (f32[6,6]{0,1}, s32[6]{0}, s32[]) custom-call(a), custom_call_target="lapack_sgetrf_ffi", '
        "operand_layout_constraints={f32[6,6]{0,1}}, output_to_operand_aliasing={{0}: (0, {})}",
        "l = f32[6,6]{0,1} get-tuple-element(f), index=0", "p = s32[6]{0} get-tuple-element(f), index=1",
        "n = f32[6,6]{0,1} negate(l)", "ROOT r = (f32[6,6]{0,1}, s32[6]{0}) tuple(n, p)",
    )  # fmt: skip
    both(text, [matrices("f32", 6, 6)])
    (step,) = [s for s in plan(parse_module(text)).steps if s.instruction.name == "f"]
    assert step.kernel.operands[0] == step.kernel.results[0]


@pytest.mark.parametrize("dtype", ["f32", "c64"])
def test_what_only_a_routine_reads_is_made_where_it_works(dtype):
    operands, results, config = CALLS["evd"](dtype, 6)
    square = f"{dtype}[2,6,6]{{2,1,0}}"
    before = f"t = {square} transpose(p0), dimensions={{0,2,1}}\ns = {square} add(p0, t)\nh = {square} add(s, s)\n"
    text = call(full_name("evd", dtype), dtype, operands, results, config)
    text = text.replace("custom-call(p0)", "custom-call(h)").replace("ROOT r", before + "ROOT r")
    steps = plan(parse_module(text)).steps
    assert [s.instruction.opcode for s in steps] == [Op.FUSION, Op.CUSTOM_CALL]
    assert steps[1].kernel.operands[0] == steps[1].kernel.results[0]
    check(text, [positive(dtype, 2, 6, 6)])


def test_a_row_fusion_keeps_its_layout():
    text = entry(
        "p = f32[6,6]{1,0} parameter(0)", "z = f32[] constant(0)",
        "s = f32[6]{0} reduce(p, z), dimensions={1}, to_apply=add_", "b = f32[6,6]{1,0} broadcast(s), dimensions={0}",
        "d = f32[6,6]{1,0} divide(p, b)",
        'r = (f32[6,6]{0,1}, f32[6]{0}) custom-call(d), custom_call_target="lapack_sgeqrf_ffi"',
        "ROOT q = f32[6,6]{0,1} get-tuple-element(r), index=0",
    )  # fmt: skip
    adding = "add_ {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\n"
    text = text.replace("ENTRY", adding + "ENTRY")
    check(text, [np.abs(matrices("f32", 6, 6)) + np.eye(6, dtype=np.float32)])
    producer = next(s for s in plan(parse_module(text)).steps if s.instruction.opcode is Op.FUSION)
    assert producer.instruction.shape.is_row_major


def test_what_routines_only_read_is_not_turned():
    """A factorisation is column-major, and so is what solves with it: the select between them was row-major."""
    named = "operand_layout_constraints={f32[40,40]{0,1}, f32[40,3]{0,1}}"
    config = "{{diag = 85 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = {} : ui8}}"
    text = entry(
        "a = f32[40,40]{0,1} parameter(0)", "b = f32[40,3]{0,1} parameter(1)", "p = pred[] parameter(2)",
        "c = pred[40,40]{1,0} broadcast(p), dimensions={}", "k = f32[] constant(nan)",
        "n = f32[40,40]{1,0} broadcast(k), dimensions={}", "m = f32[40,40]{1,0} select(c, a, n)",
        *(
            f'{name} = f32[40,3]{{0,1}} custom-call(m, {right}), custom_call_target="lapack_strsm_ffi", {named}, '
            f"output_to_operand_aliasing={{{{}}: (1, {{}})}}, backend_config={config.format(uplo)}"
            for name, right, uplo in (("x", "b", 76), ("ROOT r", "x", 85))
        ),
    )  # fmt: skip
    step = next(s for s in plan(parse_module(text)).steps if s.instruction.opcode is Op.FUSION)
    assert step.instruction.shape.minor_to_major == (0, 1)
    both(text, [positive("f32", 40, 40), matrices("f32", 40, 3), np.array(True)])


@pytest.mark.parametrize("dims", [(16, 16), (17, 50), (33, 16), (3, 40), (40, 1), (2, 35, 19)])
@pytest.mark.parametrize("dtype", ["f32", "c128"])
def test_a_matrix_is_turned_in_squares(dims, dtype):
    """Whole squares and remainders, along either dimension."""
    order = ",".join(map(str, reversed(range(len(dims)))))
    size, depth = ",".join(map(str, dims)), ",".join(map(str, (*dims[:-2], min(dims[-2:]))))
    turned = ",".join(map(str, (len(dims) - 2, len(dims) - 1, *reversed(range(len(dims) - 2)))))
    text = entry(
        f"a = {dtype}[{size}]{{{order}}} parameter(0)",
        f"q = ({dtype}[{size}]{{{turned}}}, {dtype}[{depth}]) custom-call(a), "
        f'custom_call_target="lapack_{PREFIX[dtype]}geqrf_ffi", '
        f"operand_layout_constraints={{{dtype}[{size}]{{{turned}}}}}",
        f"ROOT r = {dtype}[{size}]{{{turned}}} get-tuple-element(q), index=0",
    )
    both(text, [matrices(dtype, *dims)], dtype)


def test_equal_calls_become_one():
    lines = ["a = f32[4,4]{1,0} parameter(0)", "b = f32[4,4]{1,0} parameter(1)"]
    lines += [
        f"{name} = f32[4,4]{{0,1}} custom-call(a, b), "
        f'custom_call_target="{target}", backend_config={{{config}}}{effect}'
        for name, target, effect in (
            ("x", "lapack_strsm_ffi", ""),
            ("y", "lapack_strsm_ffi", ""),
            ("u", "lapack_strsm_ffi", ", custom_call_has_side_effect=true"),
            ("v", "unknown", ""),
            ("w", "unknown", ""),
        )
        for config in [", ".join(map(char, ("uplo", "side", "trans_x", "diag"), "LLNN"))]
    ]
    root = "ROOT r = (f32[4,4], f32[4,4], f32[4,4], f32[4,4], f32[4,4]) tuple(x, y, u, v, w)"
    after = share_equal(parse_module(entry(*lines, root)))
    assert sum(i.opcode is Op.CUSTOM_CALL for i in after.instructions()) == 4


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_written_out_of_bounds(name):
    for n in (5, 40):  # work space on the stack, and the plan's
        operands, results, config = CALLS[name]("c64", n)
        text = call(full_name(name, "c64"), "c64", operands, results, config)
        inputs = [matrices(t, *d, seed=n) if t != "s32" else np.zeros(d, np.int32) for t, d in operands]
        guarded = compile_module(parse_module(text), options=CompileOptions(red_zones=True)).execute(inputs)
        plain = compile_module(parse_module(text)).execute(inputs)
        for found, wanted in zip(guarded, plain, strict=True):
            np.testing.assert_array_equal(found, wanted)


# --- failures --------------------------------------------------------------------------------------------------------


def test_what_fails_says_so_in_info():
    operands, results, config = CALLS["potrf"]("f32", 4)
    a = positive("f32", 2, 4, 4)
    a[1, 2, 2] = -1
    _, info = both(call("potrf", "f32", operands, results, config), [a])
    assert info.tolist() == [0, 3]
    operands, results, config = CALLS["getrf"]("f32", 3)
    singular = np.zeros((2, 3, 4), np.float32)
    *_, info = both(call("getrf", "f32", operands, results, config), [singular])
    assert info.tolist() == [1, 1]


@pytest.mark.parametrize("dtype", ["f32", "c64"])
def test_eigenvalues_of_what_is_not_finite(dtype):
    operands, results, config = CALLS["geev"](dtype, 3)
    a = matrices(dtype, 2, 3, 3)
    a[0, 1, 2] = np.inf
    *_, info = both(call("geev", dtype, operands, results, config), [a], dtype)
    assert info.tolist() == [-4, 0]


def test_no_rows():
    operands, results, config = CALLS["potrf"]("f32", 0)
    _, info = run_stack(call("potrf", "f32", operands, results, config), "legacy", [np.zeros((2, 0, 0), np.float32)])
    assert info.tolist() == [0, 0]


@pytest.mark.parametrize(
    "name, old, new, reason",
    [
        ("gees", f"{ord('N')}", f"{ord('S')}", "sort must be 78 : ui8 (N); backend_config is {mode = "),
        (
            "potrf",
            "uplo",
            "uppla",
            "uplo must be one of 76 : ui8 (L), 85 : ui8 (U); backend_config is {uppla = 76 : ui8}",
        ),
        (
            "evd",
            "{mode = 86 : ui8, uplo = 85 : ui8}",
            "{}",
            "(N), 86 : ui8 (V); uplo must be one of 76 : ui8 (L), 85 : ui8 (U)",
        ),
        (
            "evd",
            "uplo = 85 : ui8",
            "uplo 85",
            "cannot be read at character 19, 'uplo 85}'; write {mode = 78 : ui8, uplo = 76 : ui8}, found {mode = 86",
        ),
        (
            "evd",
            "{mode = 86 : ui8, uplo = 85 : ui8}",
            '"{mode = 86 : ui8"',
            "cannot be read at character 16, the end; write",
        ),
        ("gehrd", "low = 1 : i32", "low = 1.5 : f32", "low must be an i32; backend_config is"),
        ("gehrd", "low = 1 : i32", 'low = "a, b = 1 : i32"', "low must be an i32; backend_config is"),
        ("potrf", "lapack_s", "lapack_d", "A must be f64[2,4,4], is f32[2,4,4]"),
        ("getrf", "s32[2,4]", "s32[2,3]", "pivots must be s32[2,4], is s32[2,3]"),
        ("evd", "f32[2,4]{1,0}", "f32[3,4]{1,0}", "w must be f32[2,4], is f32[3,4]"),
        ("gehrd", "high = 4", "high = 5", "low and high must be 1 ≤ low ≤ high ≤ 4"),
        ("gesvd", "f32[2,6,6]", "f32[2,6,5]", "U must be f32[2,6,6], is f32[2,6,5]"),
        ("gtsv", ", s32[2]{0}) ", ") ", "gtsv takes 4 operands and gives 5 results"),
        ("geqrf", "f32[2,4]{1,0}", "f32[4]{0}", "batch dimensions"),
    ],
)
def test_a_call_that_would_leave_its_arrays_is_refused(name, old, new, reason):
    operands, results, config = CALLS[name]("f32", 4)
    text = call(full_name(name, "f32"), "f32", operands, results, config)
    assert old in text
    module = parse_module(text.replace(old, new))
    inputs = [np.zeros(p.shape.dims, p.shape.dtype.numpy) for p in module.entry.parameters]
    executable = compile_module(module)  # as XLA, which looks at a call when it runs
    for run in (executable.execute, lambda given: evaluate(module, given)):
        with pytest.raises(TestbedError) as error:
            run(inputs)
        assert reason in str(error.value)


def test_a_call_that_is_not_reached_refuses_nothing():
    text = """HloModule m
never { p = f32[] parameter(0)
  s = () custom-call(), custom_call_target="lapack_sgetrf_ffi", custom_call_has_side_effect=true
  ROOT n = f32[] negate(p) }
always { ROOT p = f32[] parameter(0) }
ENTRY e { c = pred[] parameter(0)
  x = f32[] parameter(1)
  ROOT r = f32[] conditional(c, x, x), true_computation=never, false_computation=always }
"""
    module = parse_module(text)
    for flags in ("legacy", "mlir"):
        executable = compile_module(module, Flags.parse(flags))
        assert executable.execute([np.bool_(False), np.float32(3)])[0] == 3
        with pytest.raises(CallError, match="INVALID_ARGUMENT: getrf takes 1 operands and gives 3 results"):
            executable.execute([np.bool_(True), np.float32(3)])
        assert executable.execute([np.bool_(False), np.float32(4)])[0] == 4


@pytest.mark.parametrize("target", ["lapack_sfoo_ffi", "lapack_hpotrf_ffi", "xla_ffi_python_cpu_callback"])
def test_a_target_without_a_routine_is_named(target):
    operands, results, _ = CALLS["gees"]("f32", 3)
    text = call("gees", "f32", operands, results, f"{char('mode', 'V')}, {char('sort', 'S')}")
    with pytest.raises(UnsupportedError) as error:
        compile_module(parse_module(text.replace("lapack_sgees_ffi", target)))
    assert target in str(error.value)


def test_every_target_of_jaxlib_has_a_routine():
    lapack = pytest.importorskip("jaxlib.cpu._lapack")
    letters = {letter: REAL if not dtype.is_complex else COMPLEX for dtype, letter in LETTERS.items()}
    targets = [n[len("lapack_") : -len("_ffi")] for n in lapack.registrations() if n.startswith("lapack_")]
    assert sorted(targets) == sorted(letter + name for letter, routines in letters.items() for name in routines)


def test_a_row_major_matrix_needs_no_work_space():
    text = entry("a = f32[8,8] parameter(0)", "ROOT r = f32[8,8] cholesky(a), lower=true")
    call_ = lapack_call(parse_module(text).entry.root)
    assert call_ is not None and call_.options["uplo"] == "U" and call_.arrays["A"].scratch is None
