"""Products with few results and a long depth become products of parts and their sum; results do not change."""

import numpy as np
import pytest

from ....codegen.threads import on_threads
from ....formats.text.parser import parse_module
from ....hlo.dtypes import DType
from ....hlo.opcodes import Op
from ....migration import Flags, compile_module
from ....passes.canonical import split_dots
from ...support.passes import fill, run, same

PASSES = ("flatten", "split-reductions", "dce")


def text(left: str, right: str, result: str, numbers: str) -> str:
    return f"""HloModule m
ENTRY e {{ x = {left} parameter(0)
  y = {right} parameter(1)
  ROOT r = {result} dot(x, y), {numbers} }}
"""


def numbers(left: int, right: int, batch: int | None = None) -> str:
    batches = "" if batch is None else f", lhs_batch_dims={{{batch}}}, rhs_batch_dims={{{batch}}}"
    return f"lhs_contracting_dims={{{left}}}, rhs_contracting_dims={{{right}}}{batches}"


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(split_dots, "LARGE", 512)
    monkeypatch.setattr(split_dots, "LEAST_DEPTH", 16)
    monkeypatch.setattr(split_dots, "SHARE", 1)


def dots(module) -> list:
    return [i for i in module.entry.instructions if i.opcode is Op.DOT]


@pytest.mark.parametrize(
    "case, operands",
    [
        (text("s32[3,1024]", "s32[1024,5]", "s32[3,5]", numbers(1, 0)), [(3, 64, 16), (64, 16, 5)]),
        (text("s32[3,1024]", "s32[5,1024]", "s32[3,5]", numbers(1, 1)), [(3, 64, 16), (5, 64, 16)]),
        (text("s32[1024,3]", "s32[1024,5]", "s32[3,5]", numbers(0, 0)), [(64, 16, 3), (64, 16, 5)]),
        (text("s32[1024,3]", "s32[5,1024]", "s32[3,5]", numbers(0, 1)), [(64, 16, 3), (5, 64, 16)]),
        (text("s32[2,3,1024]", "s32[2,1024,5]", "s32[2,3,5]", numbers(2, 1, 0)), [(2, 3, 64, 16), (2, 64, 16, 5)]),
        (text("s32[3,1024,2]", "s32[1024,5,2]", "s32[2,3,5]", numbers(1, 0, 2)), [(3, 64, 16, 2), (64, 16, 5, 2)]),
        (text("s32[4,1024]", "s32[1024]", "s32[4]", numbers(1, 0)), [(4, 64, 16), (64, 16)]),
        (text("s32[1024]", "s32[1024]", "s32[]", numbers(0, 0)), [(64, 16), (64, 16)]),
        (text("f32[3,999]", "f32[999,5]", "f32[3,5]", numbers(1, 0)), [(3, 37, 27), (37, 27, 5)]),
        (text("s8[3,1024]", "s8[1024,5]", "s32[3,5]", numbers(1, 0)), [(3, 64, 16), (64, 16, 5)]),
        (text("c64[3,1024]", "c64[1024,5]", "c64[3,5]", numbers(1, 0)), [(3, 64, 16), (64, 16, 5)]),
    ],
)
def test_is_divided_and_keeps_the_results(small, case: str, operands: list[tuple[int, ...]]):
    inputs = fill(parse_module(case), 1, high=5)
    changed = same(case, inputs, *PASSES, exact=case.count("s32") > 0)
    assert [o.shape.dims for dot in dots(changed) for o in dot.operands] == operands


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_narrow_sums_are_wide_inside(small, dtype: str):
    case = text(f"{dtype}[3,1024]", f"{dtype}[1024,5]", f"{dtype}[3,5]", numbers(1, 0))
    changed = same(case, fill(parse_module(case), 1, high=2), *PASSES)
    assert [dot.shape.dtype for dot in dots(changed)] == [DType.F32] and changed.entry.root.opcode is Op.CONVERT


@pytest.mark.parametrize(
    "case",
    [
        text("s32[3,64]", "s32[64,5]", "s32[3,5]", numbers(1, 0)),  # small
        text("s32[3,1024]", "s32[1024,17]", "s32[3,17]", numbers(1, 0)),  # not deep beside its columns
        text("s32[3,1021]", "s32[1021,5]", "s32[3,5]", numbers(1, 0)),  # a prime
        text("f8e5m2[3,1024]", "f8e5m2[1024,5]", "f8e5m2[3,5]", numbers(1, 0)),  # would be rounded twice
        text("f32[3,1024]{0,1}", "f32[1024,5]", "f32[3,5]", numbers(1, 0)),
    ],
)
def test_stays(small, case: str):
    assert [dot.shape.dims for dot in dots(run(case, *PASSES))] == [parse_module(case).entry.root.shape.dims]


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("right, contracted", [((65536, 8), 0), ((8, 65536), 1)])
def test_threads_share_the_parts_and_change_no_bit(stack: str, right: tuple[int, int], contracted: int):
    case = text("f32[8,65536]", f"f32[{right[0]},{right[1]}]", "f32[8,8]", numbers(1, contracted))
    executable = compile_module(parse_module(case), Flags.parse(stack))
    assert executable.image.kernels[0].split is not None
    random = np.random.default_rng(0)
    x, y = (random.uniform(size=shape).astype(np.float32) for shape in ((8, 65536), right))
    results = []
    for count in (1, 2, 3):
        with on_threads(count):
            results.append(executable.execute([x, y])[0])
    assert len({result.tobytes() for result in results}) == 1
    exact = x.astype(np.float64) @ (y.T if contracted else y)
    assert np.abs(results[0] / exact - 1).max() < 2e-7
