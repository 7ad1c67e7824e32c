"""What the ledger may say of a kernel: exact, exhaustive, proved or sampled."""

from __future__ import annotations

import pytest

from ...differential.exact.check import Status, kernels_of
from ...differential.exact.every import every_input, is_by_element
from ...differential.exact.evidence import Evidence, Method, evidence_of
from ...differential.kernel_module import kernel_module
from ...differential.planted.fault import planted
from ...differential.planted.table import FAULTS
from ...formats.text.parser import parse_module


def evidence(body: str) -> Evidence:
    (request,) = kernels_of(parse_module(f"HloModule m\n\nENTRY e {{\n{body}\n}}\n"))
    return evidence_of(request)


AND_S8 = "p = s8[300] parameter(0)\n q = s8[300] parameter(1)\n ROOT r = s8[300] and(p, q)"
KINDS = {
    "a product of floats": ("p = f32[9] parameter(0)\n ROOT r = f32[9] multiply(p, p)", Method.EXACT),
    "a sum of integers": (
        "p = s32[9] parameter(0)\n q = s32[9] parameter(1)\n ROOT r = s32[9] add(p, q)",
        Method.EXACT,
    ),
    "a slice of integers": ("p = s8[9] parameter(0)\n ROOT r = s8[3] slice(p), slice={[1:7:2]}", Method.EXACT),
    "pairs of bytes": (AND_S8, Method.EXHAUSTIVE),
    "numbers of 16 bits": ("p = u16[40] parameter(0)\n ROOT r = u16[40] popcnt(p)", Method.EXHAUSTIVE),
    "a few preds": ("p = pred[3,2] parameter(0)\n ROOT r = pred[3,1] slice(p), slice={[0:3], [1:2]}", Method.EXACT),
    "bits that meet others": (
        "p = pred[5] parameter(0)\n a = pred[5] reverse(p), dimensions={0}\n ROOT r = pred[5] xor(p, a)",
        Method.EXHAUSTIVE,
    ),
    "a sort of words": (
        "p = s32[9] parameter(0)\n q = s32[9] reverse(p), dimensions={0}\n ROOT r = s32[9] maximum(p, q)",
        Method.SAMPLED,
    ),
    "a library's": ("p = c64[8] parameter(0)\n ROOT r = c64[8] fft(p), fft_type=FFT, fft_length={8}", Method.SAMPLED),
}


@pytest.mark.parametrize(("body", "method"), KINDS.values(), ids=KINDS)
def test_the_strongest_method_is_named(body: str, method: Method) -> None:
    found = evidence(body)
    assert found.method is method and found.row.status is Status.EQUAL, found
    assert found.cases >= 3


def test_every_input_of_a_pair_of_bytes_runs() -> None:
    (request,) = kernels_of(parse_module(f"HloModule m\n\nENTRY e {{\n{AND_S8}\n}}\n"))
    module = kernel_module(request.instruction)
    assert is_by_element(module)
    every = every_input(module)
    assert every is not None
    pairs = {(int(a), int(b)) for x, y in every for a, b in zip(x, y, strict=True)}
    assert len(pairs) == 1 << 16 and min(pairs) == (-128, -128) and max(pairs) == (127, 127)


def test_a_fault_of_one_stack_is_blamed_by_evidence() -> None:
    fault = FAULTS["legacy-subtract-swapped"]
    with planted(fault):
        found = [evidence_of(request) for request in kernels_of(parse_module(fault.text))]
    assert {e.row.blamed for e in found if e.row.status is Status.DIFFER} == {("legacy",)}
