"""fft as a library kernel: every kind, rank and layout against the evaluator, and errors with an unexpected numpy."""

import numpy as np
import pytest

from ...codegen.errors import CodegenError
from ...codegen.library import pocketfft
from ...formats.text.parser import parse_module
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
