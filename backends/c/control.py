"""The steps of a program as C: calls of kernels, copies, loops and branches over slices of its allocations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ...hlo.errors import UnsupportedError
from ...planning.plan import BufferSlice, ConditionalStep, CopyStep, KernelStep, Step, WhileStep

Bases = Mapping[int, str]
"""Allocation → the C expression of its address."""


def steps_text(steps: Sequence[Step], bases: Bases) -> Iterator[str]:
    """The lines that run some steps."""
    for step in steps:
        if isinstance(step, KernelStep):
            places = ", ".join(_place(s, bases) for s in step.arguments)
            yield f"{step.kernel.name}({places});"
        elif isinstance(step, CopyStep):
            if step.source.size:
                destination, source = _place(step.destination, bases), _place(step.source, bases)
                yield f"memcpy({destination}, {source}, {step.source.size});"
        elif isinstance(step, WhileStep):
            yield "for (;;) {"
            yield from _indented(steps_text(step.condition, bases))
            yield f"  if (!*(const uint8_t *){_place(step.predicate, bases)}) break;"
            yield from _indented(steps_text(step.body, bases))
            yield "}"
        elif isinstance(step, ConditionalStep):
            yield from _conditional(step, bases)
        else:
            raise UnsupportedError("c", "profile steps", remedy="compile it without a profile")


def _conditional(step: ConditionalStep, bases: Bases) -> Iterator[str]:
    """A pred of true takes branch 0; a number out of range takes the last one."""
    place = _place(step.selector, bases)
    chosen = f"*(const uint8_t *){place} ? 0 : 1" if step.selector_is_pred else f"*(const int32_t *){place}"
    yield f"switch ({chosen}) {{"
    for number, branch in enumerate(step.branches):
        yield "  default:" if number == len(step.branches) - 1 else f"  case {number}:"
        yield from _indented(steps_text(branch, bases), "    ")
        yield "    break;"
    yield "}"


def _indented(lines: Iterator[str], by: str = "  ") -> Iterator[str]:
    return (by + line for line in lines)


def _place(slice_: BufferSlice, bases: Bases) -> str:
    base = bases[slice_.allocation]
    return f"(void *)({base} + {slice_.offset})" if slice_.offset else f"(void *)({base})"


def constant_text(name: str, data: bytes) -> str:
    """The bytes of a constant, aligned for any type."""
    words = np.frombuffer(data + bytes(-len(data) % 8), np.uint64).tolist() or [0]
    return f"static const uint64_t {name}[] = {{{', '.join(f'UINT64_C({w})' for w in words)}}};\n"
