"""Kernels of a program over fields, on both stacks and by the HLO; which of the three differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from ...backends.base import CompileOptions
from ...backends.host.compiler import HostCompiler
from ...codegen.errors import CodegenError
from ...codegen.field.element import Field
from ...codegen.options import EmitOptions, Target
from ...evaluator.elements import Elements
from ...evaluator.evaluator import evaluate
from ...evaluator.field import field_rules
from ...evaluator.field_orders import NoOrderError, with_orders
from ...hlo.errors import UnsupportedError
from ...hlo.ir import Module
from ...hlo.library.calls import LIBRARY
from ...hlo.opcodes import Op
from ...hlo.verify.verifier import verify
from ...migration.choose import emit_for
from ...migration.flags import Flags
from ...planning.plan import KernelRequest
from ..kernel_module import kernel_module
from .draw import Draw, draws
from .library import run_library
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
    compared. forms: (stack, form) of its code.
    """

    kernel: str
    opcode: str
    status: Status
    reason: str = ""
    draws: int = 0
    prime: int = 0
    blamed: tuple[str, ...] = ()
    forms: tuple[tuple[str, str], ...] = ()

    @property
    def is_equal(self) -> bool:
        return self.status is Status.EQUAL

    @property
    def is_library(self) -> bool:
        """Whether a library computes it: its operands and results are compared, not its code."""
        return self.reason == OF_LIBRARY


OF_LIBRARY = "a library's call is one function of its operands, known by its name"


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
    kernel = Kernel(request, target or Target.host())
    return kernel.compared((draw, draw.inputs(kernel.module)) for draw in draws(request.instruction, seed))


class Kernel:
    """A kernel on both stacks, as code, and its HLO. Raises UnsupportedError or CodegenError where one has no code."""

    def __init__(self, request: KernelRequest, target: Target) -> None:
        self.request, self.target = request, target
        self.module = kernel_module(request.instruction)
        self._built: dict[tuple[str, Field], Built] = {}

    def compared(self, cases: Iterable[tuple[Draw, Sequence[np.ndarray]]]) -> Row:
        """The row of cases: each a draw, and an array for each parameter of the module."""
        row = self._compared(cases)
        found = {(stack, form) for (stack, _), built in self._built.items() for form in built.forms}
        return replace(row, forms=tuple(sorted(found)))

    def _compared(self, cases: Iterable[tuple[Draw, Sequence[np.ndarray]]]) -> Row:
        name, opcode = self.request.name, self.request.instruction.opcode
        count, prime, why = 0, 0, OF_LIBRARY if self.request.instruction.opcode in LIBRARY else ""
        for draw, inputs in cases:
            prime = draw.field.prime
            try:
                results = self._results(draw, inputs)
            except (UnsupportedError, CodegenError) as error:
                return Row(name, opcode.value, Status.NOT_RUN, error.message, count, prime)
            found = compared(results, draw.elements)
            if found is None:
                count += 1
            elif self._loses(results, draw) or sorts_by_orders(self.module, self._parameters(inputs), draw.elements):
                return Row(name, opcode.value, Status.DIFFER, found[1], count, prime, found[0])
            else:
                why = NO_ORDER
        return Row(name, opcode.value, Status.EQUAL if count else Status.NOT_RUN, why, count, prime)

    def _loses(self, results: dict[str, list[np.ndarray]], draw: Draw) -> bool:
        """Whether a sort gives other elements than those of its operands: no comparator permits that."""
        i = self.request.instruction
        if i.opcode is not Op.SORT:
            return False
        axis = i.dimensions[0]
        for leaf in zip(*results.values(), strict=True):
            first, *others = (np.sort(residues(x, draw.elements), axis) for x in leaf)
            if not all(np.array_equal(first, other) for other in others):
                return True
        return False

    def _parameters(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        return _parameters(self.request, self.module, _operands(self.request, self.module, inputs))

    def _results(self, draw: Draw, inputs: Sequence[np.ndarray]) -> dict[str, list[np.ndarray]]:
        operands = _operands(self.request, self.module, inputs)
        results = {stack: self._on(stack, draw, operands) for stack in STACKS}
        parameters = _parameters(self.request, self.module, operands)
        results[HLO] = evaluated(self.module, parameters, draw.elements)
        return results

    def _on(self, stack: str, draw: Draw, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        if self.request.instruction.opcode in LIBRARY:
            return run_library(self.request, draw.elements, operands, JUNK[stack])
        kernel = self._built.get((stack, draw.field))
        if kernel is None:
            options = EmitOptions(self.target, ranges=True, exact=draw.field)
            emit = emit_for(Flags.parse(stack))(self.request).emit
            kernel = self._built[stack, draw.field] = Built.of(self.request, emit, options, JUNK[stack])
        return run_kernel(kernel, operands)


NO_ORDER = "a sort's comparator is no order of these elements"


MAXIMUM_ELEMENTS = 1 << 26
"""Elements of an array: the evaluator would take minutes, and gigabytes, for more."""


def evaluated(module: Module, inputs: Sequence[np.ndarray], elements: Elements) -> list[np.ndarray]:
    """The results of a module over a field. Raises UnsupportedError."""
    largest = max((s.size for i in module.instructions() for _, s in i.shape.leaves() if s.is_array), default=0)
    if largest > MAXIMUM_ELEMENTS:
        raise UnsupportedError("evaluator", f"an array of {largest} elements over a field")
    with np.errstate(all="ignore"):
        return evaluate(module, inputs, flush_subnormals=False, rules=field_rules(elements))


def sorts_by_orders(module: Module, inputs: Sequence[np.ndarray], elements: Elements) -> bool:
    """Whether each sort of a module compares by a strict weak order of its elements; if not, any result is right."""
    if not any(i.opcode is Op.SORT for i in module.instructions()):
        return True
    try:
        with np.errstate(all="ignore"):
            evaluate(module, inputs, flush_subnormals=False, rules=with_orders(field_rules(elements)))
    except NoOrderError:
        return False
    return True


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
    if len({len(arrays) for arrays in results.values()}) > 1:
        counts = ", ".join(f"{len(arrays)} of {name}" for name, arrays in results.items())
        return tuple(names), f"the numbers of results differ: {counts}"
    for leaf, arrays in enumerate(zip(*results.values(), strict=True)):
        words = [residues(x, elements) for x in arrays]
        if len({w.shape for w in words}) > 1:
            shapes = ", ".join(f"{list(x.shape)} of {name}" for name, x in zip(names, arrays, strict=True))
            return tuple(names), f"result {leaf} has different shapes: {shapes}"
        for a in range(len(names)):
            for b in range(a + 1, len(names)):
                if (words[a] != words[b]).any():
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
