"""fft as a library kernel: every kind, rank and layout against the evaluator, and errors with an unexpected numpy."""

import ctypes

import numpy as np
import pytest

from ...codegen.errors import CodegenError
from ...codegen.helpers import build_helper
from ...codegen.library import emit, pocketfft
from ...codegen.library.fft_tables import order, root
from ...codegen.load import load
from ...codegen.optimize import build_object
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...hlo.library import transforms
from ...hlo.library.transforms import block_bytes, blocks_together, radices_of
from ...planning.planner import plan
from ..support.check import check, run_stack

COMPLEX = {"f32": "c64", "f64": "c128"}


def transform(kind: str, real: str, batch, lengths, source: str = "", result: str = "") -> str:
    """An fft; layouts are row-major by default."""
    dims, half = [*batch, *lengths], [*batch, *lengths[:-1], lengths[-1] // 2 + 1]
    x = f"{real}[{text(dims)}]" if kind == "RFFT" else f"{COMPLEX[real]}[{text(half if kind == 'IRFFT' else dims)}]"
    y = f"{real}[{text(dims)}]" if kind == "IRFFT" else f"{COMPLEX[real]}[{text(half if kind == 'RFFT' else dims)}]"
    return (
        f"HloModule m\nENTRY e {{\n  x = {x}{source} parameter(0)\n"
        f"  ROOT y = {y}{result} fft(x), fft_type={kind}, fft_length={{{text(lengths)}}}\n}}\n"
    )


def text(dims) -> str:
    return ",".join(map(str, dims))


def agree(hlo: str, seed: int = 0) -> None:
    (parameter,) = parse_module(hlo).entry.parameters
    draw, shape = np.random.default_rng(seed), parameter.shape
    x = draw.normal(size=shape.dims) + (1j * draw.normal(size=shape.dims) if shape.dtype.is_complex else 0)
    check(hlo, [x.astype(shape.dtype.numpy)])


@pytest.mark.parametrize("real", COMPLEX)
@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
@pytest.mark.parametrize("lengths", [(1,), (2,), (37,), (128,), (360,), (1031,), (4, 5), (6, 10), (3, 4, 6), (2, 1, 5)])
def test_every_kind_and_length(kind, lengths, real):
    agree(transform(kind, real, (2,), lengths))


@pytest.mark.parametrize("real", COMPLEX)
@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
@pytest.mark.parametrize("length", [4, 5, 6, 8, 10, 16, 22, 30, 45, 60, 128, 250, 1000, 2048, 3750, 4096])
def test_blocks_of_rows_and_the_others(length, kind, real):
    agree(transform(kind, real, (11 if length > 128 else 19,), (length,)))


@pytest.mark.parametrize("real", COMPLEX)
@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
@pytest.mark.parametrize("batch, lengths", [((2,), (16, 20)), ((), (12, 30)), ((3, 2), (9, 10)), ((2,), (4, 20, 8))])
def test_blocks_of_columns(batch, lengths, kind, real):
    agree(transform(kind, real, batch, lengths))


@pytest.mark.parametrize("real", COMPLEX)
@pytest.mark.parametrize("source, result", [("{0,1,2}", "{0,1,2}"), ("{2,0,1}", ""), ("", "{2,0,1}"), ("{1,2,0}", "")])
def test_blocks_in_every_layout(source, result, real):
    for kind in ("FFT", "IFFT", "RFFT", "IRFFT"):
        agree(transform(kind, real, (9, 10), (20,), source, result))


def library_module(hlo: str, **options):
    requests = [step.kernel for step in plan(parse_module(hlo)).steps]
    return requests, emit(requests, EmitOptions(Target.host(), ranges=True, **options))


@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
def test_whole_blocks_call_no_library_and_are_split(kind):
    (request,), made = library_module(transform(kind, "f32", (64,), (1000,)))
    assert "numpy_pocketfft" not in made.llvm_ir and made.ranged == {request.name}
    assert request.partition.least % 8 == 0
    called = {text.partition(" @")[2].partition("(")[0] for text in made.llvm_ir.splitlines() if "call void" in text}
    assert all(any(f"@{name}(" in text or f'@"{name}"(' in text for text in made.helpers) for name in called)


def test_lengths_with_other_factors_and_few_rows_call_numpy():
    for rows, length in ((64, 1022), (7, 1000), (64, 3), (64, 8192)):
        made = library_module(transform("FFT", "f32", (rows,), (length,)))[1]
        assert "numpy_pocketfft_fft_f" in made.llvm_ir and not made.helpers


def test_strict_blocks_contract_nothing():
    loose, strict = (library_module(transform("FFT", "f32", (64,), (60,)), strict=s)[1].helpers for s in (False, True))
    assert any(" contract " in text for text in loose)
    assert not any(" contract " in text for text in strict)


SEVERAL = [((256, 320), ""), ((64, 8, 64), ""), ((3, 256, 192), ""), ((256, 4, 16), "{2,1,0}"), ((2048, 128), "")]


@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
@pytest.mark.parametrize("dims, layout", SEVERAL, ids=lambda x: "x".join(map(str, x)) if isinstance(x, tuple) else x)
def test_several_blocks_of_columns_have_the_bits_of_one(monkeypatch, dims, layout, kind):
    """Columns whose points are a power of two apart, and long."""
    hlo = transform(kind, "f32", dims[:-2], dims[-2:], layout, layout)
    (parameter,) = parse_module(hlo).entry.parameters
    draw, shape = np.random.default_rng(5), parameter.shape
    x = draw.normal(size=shape.dims) + (1j * draw.normal(size=shape.dims) if shape.dtype.is_complex else 0)
    x, results = x.astype(shape.dtype.numpy), []
    for together in ((), transforms.TOGETHER):
        monkeypatch.setattr(transforms, "TOGETHER", together)
        results.append(run_stack(hlo, "legacy", [x])[0])
    assert np.array_equal(*results)
    agree(hlo)


def test_only_far_columns_in_few_sets_are_read_together():
    far = (blocks_together(512, 4096), blocks_together(2048, 16384), blocks_together(4096, 32768))
    assert far == (8, 8, 4)
    assert blocks_together(512, 4032) == blocks_together(32, 4096) == 1
    assert block_bytes(parse_module(transform("FFT", "f32", (), (512, 512))).entry.root) == 8 * 513 * 64
    assert block_bytes(parse_module(transform("FFT", "f32", (512,), (512,))).entry.root) == 513 * 64


@pytest.mark.parametrize("rows, length", [(512, 128), (301, 240), (64, 4099)])
def test_chunks_of_rows_have_the_bits_of_all_rows(rows, length):
    """A chunk consists of the same blocks, wherever the ranges end."""
    hlo = transform("FFT", "f32", (rows,), (length,))
    (request,), made = library_module(hlo)
    assert made.ranged
    draw = np.random.default_rng(3)
    x = (draw.normal(size=(rows, length)) + 1j * draw.normal(size=(rows, length))).astype(np.complex64)
    objects = [build_object(made.llvm_ir, EmitOptions.host(), None).data]
    objects += [build_helper(text, EmitOptions.host(), None).data for text in made.helpers]
    code = load(objects)
    results = []
    for chunks in (100, 2, 1):
        y, step = np.zeros_like(x), chunks * request.partition.least
        for begin in range(0, rows, step):
            run(code.address(request.name), request, x, y, begin, min(begin + step, rows))
        results.append(y)
    assert all(np.array_equal(y, results[0]) for y in results)
    np.testing.assert_allclose(results[0], np.fft.fft(x), rtol=1e-4, atol=1e-3)


def run(address: int, request, x: np.ndarray, y: np.ndarray, begin: int, end: int) -> None:
    space = np.zeros(request.scratch_bytes + 64, np.uint8)
    places = {request.scratch: -(-space.ctypes.data // 64) * 64}
    places |= {request.operands[0]: x.ctypes.data, request.results[0]: y.ctypes.data}
    pointers = [ctypes.c_void_p(places[n]) for n in range(len(request.arguments))]
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers), ctypes.c_int64, ctypes.c_int64)(address)(
        *pointers, begin, end
    )


def test_rows_do_not_see_one_another():
    """A lane with NaN or infinity leaves the others as they are."""
    x = np.ones((16, 60), np.complex64)
    clean = run_stack(transform("FFT", "f32", (16,), (60,)), "legacy", [x])[0]
    x[3, 5], x[9, 0] = np.nan, np.inf
    broken = run_stack(transform("FFT", "f32", (16,), (60,)), "legacy", [x])[0]
    others = [row for row in range(16) if row not in (3, 9)]
    assert np.array_equal(clean[others], broken[others]) and not np.isfinite(broken[[3, 9]]).any()


@pytest.mark.parametrize("points", [4, 60, 2048, 3750])
def test_roots_and_order_are_those_of_the_definition(points):
    angles = 2 * np.pi * np.arange(points) / points
    exact = np.array([root(k, points) for k in range(points)])
    assert np.abs(exact - np.stack([np.cos(angles), -np.sin(angles)], 1)).max() < 1e-14
    assert root(points // 2, points) == (-1, 0) if points % 2 == 0 else True
    assert sorted(order(points, radices_of(points))) == list(range(points))


@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
@pytest.mark.parametrize("source, result", [("{0,1,2,3}", ""), ("", "{1,3,0,2}"), ("{3,0,2,1}", "{3,0,2,1}")])
def test_every_layout(kind, source, result):
    agree(transform(kind, "f32", (3, 2), (4, 6), source, result))


@pytest.mark.parametrize("length, layouts", [(1, ("", "{0,1}")), (1, ("{0,1}", "")), (4, ("", ""))])
def test_rows_of_one_point_work_in_place_in_another_layout(length, layouts):
    """The memory of the two layouts is the same, so the result takes the operand's."""
    source, result = layouts
    hlo = (
        f"HloModule m\nENTRY e {{\n  x = s32[4,{length}]{source} parameter(0)\n"
        f"  i = c64[4,{length}]{source} convert(x)\n"
        f"  ROOT r = c64[4,{length}]{result} fft(i), fft_type=FFT, fft_length={{{length}}}\n}}\n"
    )
    check(hlo, [np.arange(4 * length, dtype=np.int32).reshape(4, length)])


def test_no_rows():
    assert run_stack(transform("FFT", "f32", (0,), (4,)), "legacy", [np.zeros((0, 4), np.complex64)])[0].shape == (0, 4)


def test_a_chain_works_in_place():
    hlo = (
        "HloModule m\nENTRY e {\n  x = c64[8,32] parameter(0)\n  a = c64[8,32] add(x, x)\n"
        "  b = c64[8,32] fft(a), fft_type=FFT, fft_length={32}\n"
        "  c = c64[8,32] fft(b), fft_type=IFFT, fft_length={8,32}\n  ROOT r = c64[8,32] multiply(c, c)\n}\n"
    )
    agree(hlo)
    steps = [s for s in plan(parse_module(hlo)).steps if s.instruction.name in ("b", "c")]
    assert [len(s.arguments) for s in steps] == [1, 1]


def test_another_numpy_is_noticed_before_it_is_called(monkeypatch):
    monkeypatch.setattr(pocketfft, "LOOPS", ("fft", "gone"))
    pocketfft.addresses.cache_clear()
    with pytest.raises(CodegenError, match=r"cannot be called by address.*gone") as error:
        pocketfft.addresses()
    assert "requirements.txt" in str(error.value.remedy)
    pocketfft.addresses.cache_clear()


def test_a_wrong_result_is_noticed(monkeypatch):
    monkeypatch.setattr(pocketfft, "_definition", lambda loop, x, points: np.float32(7))
    pocketfft.addresses.cache_clear()
    with pytest.raises(CodegenError, match="wrong result"):
        pocketfft.addresses()
    pocketfft.addresses.cache_clear()
