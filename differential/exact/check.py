"""Kernels of a program over fields, on both stacks and by the HLO; which of the three differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ...backends.base import CompileOptions
from ...backends.host.compiler import HostCompiler
from ...codegen.errors import CodegenError
from ...codegen.field.element import Field
from ...codegen.options import EmitOptions, Target
from ...evaluator.evaluator import evaluate
from ...evaluator.field import Elements, field_rules
from ...hlo.errors import UnsupportedError
from ...hlo.ir import Module
from ...hlo.library.calls import LIBRARY
from ...hlo.verify.verifier import verify
from ...migration.choose import emit_for
from ...migration.flags import Flags
from ...planning.plan import KernelRequest
from ..kernel_module import kernel_module
from .draw import Draw, draws
from .run import JUNK, Built, logical, physical, run_kernel

STACKS = ("legacy", "mlir")
HLO = "hlo"


class Status(Enum):
    EQUAL = "equal"
    DIFFER = "differ"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Row:
    """A kernel. reason: which of the three differs, with the first element, or why it did not run. draws: how many were
    compared.
    """

    kernel: str
    opcode: str
    status: Status
    reason: str = ""
    draws: int = 0
    prime: int = 0
    blamed: tuple[str, ...] = ()

    @property
    def is_library(self) -> bool:
        return self.reason == OF_LIBRARY


OF_LIBRARY = "it is the same library code on both stacks"


def kernels_of(module: Module) -> list[KernelRequest]:
    """The kernels that stacks emit, as in a program of the host."""
    verify(module)
    return list(HostCompiler().run_hlo_passes(module, CompileOptions()).emitted)


def check_module(module: Module, names: Sequence[str] = (), seed: int = 0) -> Iterator[Row]:
    """A row for each kernel of a program, or for those named."""
    for request in kernels_of(module):
        if not names or request.name in names:
            yield check_kernel(request, seed)


def check_kernel(request: KernelRequest, seed: int = 0, target: Target | None = None) -> Row:
    """Compare a kernel on all draws, up to the first on which the three are not equal."""
    i = request.instruction
    if i.opcode in LIBRARY:
        return Row(request.name, i.opcode.value, Status.NOT_RUN, OF_LIBRARY)
    target, count, prime = target or Target.host(), 0, 0
    module = kernel_module(i)
    built: dict[tuple[str, Field], Built] = {}
    for draw in draws(i, seed):
        prime = draw.field.prime
        try:
            results = _results(request, module, draw, target, built)
        except (UnsupportedError, CodegenError) as error:
            return Row(request.name, i.opcode.value, Status.NOT_RUN, error.message, count, prime)
        found = compared(results, draw.elements)
        if found is not None:
            blamed, reason = found
            return Row(request.name, i.opcode.value, Status.DIFFER, reason, count, prime, blamed)
        count += 1
    return Row(request.name, i.opcode.value, Status.EQUAL, "", count, prime)


def _results(
    request: KernelRequest,
    module: Module,
    draw: Draw,
    target: Target,
    built: dict[tuple[str, Field], Built],
) -> dict[str, list[np.ndarray]]:
    operands = _operands(request, module, draw.inputs(module))
    options = EmitOptions(target, ranges=True, exact=draw.field)
    results = {}
    for stack in STACKS:
        kernel = built.get((stack, draw.field))
        if kernel is None:
            emit = emit_for(Flags.parse(stack))(request).emit
            kernel = built[stack, draw.field] = Built.of(request, emit, options, JUNK[stack])
        results[stack] = run_kernel(kernel, operands)
    with np.errstate(all="ignore"):
        results[HLO] = evaluate(
            module, _parameters(request, module, operands), flush_subnormals=False, rules=field_rules(draw.elements)
        )
    return results


def _operands(request: KernelRequest, module: Module, drawn: Sequence[np.ndarray]) -> list[np.ndarray]:
    """An array for each operand of a kernel. Operands that share an argument are the same bytes."""
    i = request.instruction
    different = i.operands if len(drawn) == len(i.operands) else tuple(dict.fromkeys(i.operands))
    of = dict(zip(different, drawn, strict=True))
    held: dict[int, np.ndarray] = {}
    for number, o in zip(request.operands, i.operands, strict=True):
        held.setdefault(number, physical(of[o], o.shape))
    return [logical(held[number], o.shape) for number, o in zip(request.operands, i.operands, strict=True)]


def _parameters(request: KernelRequest, module: Module, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The operands as arguments of the kernel's module, in which an unnested op has one parameter for equal ones."""
    if len(module.entry.parameters) == len(operands):
        return list(operands)
    return list(dict(zip(request.instruction.operands, operands, strict=True)).values())


def compared(results: dict[str, list[np.ndarray]], elements: Elements) -> tuple[tuple[str, ...], str] | None:
    """(Who differs, a sentence); None if all are equal. NaN is equal to NaN, and -0 to 0."""
    names = list(results)
    for leaf, arrays in enumerate(zip(*results.values(), strict=True)):
        words = [residues(x, elements) for x in arrays]
        for a in range(len(names)):
            for b in range(a + 1, len(names)):
                if words[a].shape != words[b].shape or (words[a] != words[b]).any():
                    return _sentence(names, words, leaf)
    return None


def _sentence(names: Sequence[str], words: Sequence[np.ndarray], leaf: int) -> tuple[tuple[str, ...], str]:
    equal = [(a, b) for a in range(3) for b in range(a + 1, 3) if np.array_equal(words[a], words[b])]
    left = [n for n in range(3) if not equal or n not in equal[0]]
    blamed = tuple(names[n] for n in left)
    one, other = (left[0], equal[0][0]) if equal else (0, 1)
    wrong = np.atleast_1d(words[one] != words[other])
    if not wrong.any():
        one, other = 1, 2
        wrong = np.atleast_1d(words[one] != words[other])
    at = np.unravel_index(int(np.flatnonzero(wrong.reshape(-1))[0]), wrong.shape)
    place = f"result {leaf} at {[int(n) for n in at]}"
    values = ", ".join(f"{name} {np.atleast_1d(w)[at]}" for name, w in zip(names, words, strict=True))
    who = (
        "all three differ"
        if not equal
        else "both stacks differ from the HLO"
        if blamed == (HLO,)
        else f"{blamed[0]} differs"
    )
    return blamed, f"{who} in {int(wrong.sum())} of {wrong.size} elements; {place}: {values}"


def residues(x: np.ndarray, elements: Elements) -> np.ndarray:
    """Integers that are equal where elements are."""
    if x.dtype.kind == "c":
        return np.stack([residues(x.real, elements), residues(x.imag, elements)], -1)
    if x.dtype.kind in "iub" or "int" in x.dtype.name:
        return x.astype(np.int64) if x.dtype.kind in "biu" else x.astype(np.int8).astype(np.int64)
    with np.errstate(all="ignore"):  # of junk
        wide = x.astype(np.float64)
    v = elements.read(np.where(np.isfinite(wide), x, 0).astype(x.dtype)).astype(np.int64)
    return np.where(np.isnan(wide), -1, np.where(np.isinf(wide), np.where(wide > 0, -2, -3), v))
