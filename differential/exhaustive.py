"""Every input of an op: all pairs of 8-bit numbers, all 16-bit numbers, all f32 in parts, on the stacks and the oracle.

A row is an op on a type (with its attributes or its result's type); a part is what runs at once. Results are compared
within the bounds of the row, as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from pebble import ProcessExpired, ProcessPool

from ..codegen.options import Target, assume_host
from ..formats.text.parser import parse_module
from ..hlo.dtypes import DType
from ..hlo.opcodes import Op
from ..hlo.opset import BINARY, OPSET, UNARY
from .outcome import STACKS, OutcomeKind, outcome
from .setting import Setting

D = DType
EIGHT = (D.S8, D.U8, D.F8E5M2, D.F8E4M3FN, D.F8E4M3, D.F8E4M3B11FNUZ, D.F8E5M2FNUZ, D.F8E4M3FNUZ, D.F8E3M4)
SIXTEEN = (D.F16, D.BF16, D.S16, D.U16)
TYPES = (*SIXTEEN, *EIGHT, D.F32)
TARGETS = (
    *(D.PRED, D.S2, D.S4, D.S8, D.S16, D.S32, D.S64, D.U2, D.U4, D.U8, D.U16, D.U32, D.U64),
    *(D.F16, D.BF16, D.F32, D.F64, D.F4E2M1FN, *EIGHT[2:]),
)
"""Types that the rows of convert make."""

PART_BITS = 24
"""A part of the f32 has 2**24 numbers."""

LIMIT = 600.0
"""Seconds for one part."""


@dataclass(frozen=True)
class Row:
    """An op on a type. to: the type of its result, if that is not the op's own; attributes: text after operands."""

    op: Op
    dtype: DType
    to: DType | None = None
    attributes: str = ""

    @property
    def name(self) -> str:
        target = f" to {self.to.value}" if self.to else ""
        return f"{self.op.value} {self.dtype.value}{target}{self.attributes}"

    @property
    def arity(self) -> int:
        return OPSET[self.op].low

    @property
    def parts(self) -> int:
        return 1 << max(0, self.arity * self.dtype.bits - PART_BITS)

    def text(self, count: int) -> str:
        """The module over vectors of `count` elements."""
        names = ", ".join(f"p{n}" for n in range(self.arity))
        lines = [f"  p{n} = {self.dtype.value}[{count}] parameter({n})" for n in range(self.arity)]
        kind = f"{self.to.value}[{count}] " if self.to else ""
        lines.append(f"  ROOT r = {kind}{self.op.value}({names}){self.attributes}")
        return "\n".join(["HloModule row", "ENTRY main {", *lines, "}", ""])

    def inputs(self, part: int) -> list[np.ndarray]:
        """All bits of the type, or of pairs; of f32, those of one part."""
        bits = self.dtype.bits
        kind = np.dtype(f"u{self.dtype.bytes}")
        if self.arity == 2:
            first, second = np.divmod(np.arange(1 << 2 * bits), 1 << bits)
            return [x.astype(kind).view(self.dtype.numpy) for x in (first, second)]
        count = 1 << min(bits, PART_BITS)
        numbers = np.arange(count, dtype=np.uint64) + np.uint64(part * count)
        return [numbers.astype(kind).view(self.dtype.numpy)]


@dataclass(frozen=True)
class Result:
    """A part of a row that ran. status: agree, differ, refused or crash. worst: stack → largest distance from the
    oracle in representable values. inputs: of the first element that differs.
    """

    row: str
    part: int
    status: str
    cases: int = 0
    worst: dict[str, float] = field(default_factory=dict)
    failures: int = 0
    inputs: tuple[str, ...] = ()
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def rows(dtypes: Sequence[DType], ops: frozenset[Op] | None = None) -> Iterator[Row]:
    """The rows of some types: unary ops and conversions of all, binary ops of those of 8 bits."""
    for op in OPSET:
        if ops is not None and op not in ops:
            continue
        for dtype in dtypes:
            if dtype in OPSET[op].dtypes:
                yield from _rows(op, dtype)


DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


def _rows(op: Op, dtype: DType) -> Iterator[Row]:
    if op is Op.CONVERT:
        yield from (Row(op, dtype, to) for to in TARGETS if to is not dtype)
    elif op is Op.IS_FINITE or op in UNARY:
        yield Row(op, dtype)
    elif op is Op.COMPARE and dtype.bits == 8:
        yield from (Row(op, dtype, attributes=f", direction={d}") for d in DIRECTIONS)
    elif op in BINARY and dtype.bits == 8:
        yield Row(op, dtype)


def run_part(row: Row, part: int, stacks: Sequence[str] = STACKS) -> Result:
    """Run a part of a row in this process."""
    inputs = row.inputs(part)
    module = parse_module(row.text(inputs[0].size))
    with np.errstate(all="ignore"):
        found = outcome(module, inputs, stacks, Setting(cache=False))
    if found.verdict is None:
        refused = found.kind is OutcomeKind.ALL_REFUSE
        return Result(row.name, part, "refused" if refused else "crash", reason=found.sentence)
    near = [c for c in found.verdict.comparisons if c.left == stacks[0]]
    bad = next((c.difference for c in near if not c.difference.agrees), None)
    at = bad.first_bad_index if bad is not None else None
    return Result(
        row.name,
        part,
        "agree" if found.verdict.agrees else "differ",
        inputs[0].size,
        {c.right: float(c.difference.max_ulp) for c in near},
        max((c.difference.failures for c in near), default=0),
        tuple(str(x[at]) for x in inputs) if at is not None else (),
        "" if found.verdict.agrees else found.sentence,
    )


Part = tuple[Row, int]


def parts_of(chosen: Sequence[Row], done: frozenset[tuple[str, int]] = frozenset()) -> list[Part]:
    """The parts of rows that are not done yet: one of each row first, so that all are seen early."""
    every = [(row, part) for row in chosen for part in range(row.parts) if (row.name, part) not in done]
    return sorted(every, key=lambda item: item[1])


def run_parts(
    parts: Sequence[Part],
    jobs: int,
    stacks: Sequence[str],
    on_result: Callable[[Result], None],
    stop: Callable[[], bool] = lambda: False,
    target: Target | None = None,
) -> None:
    """Run parts in processes; a crash or a hang is one result. stop: asked before each part is begun."""
    from multiprocessing import get_context
    from os import getpid

    from .conformance import begin_worker, inherited_signals_blocked

    left = iter(parts)
    with ProcessPool(jobs, context=get_context("spawn"), initializer=begin_worker, initargs=(getpid(), 0)) as pool:
        running: dict[Future[Result], Part] = {}

        def begin() -> None:
            part = None if stop() else next(left, None)
            if part is not None:
                with inherited_signals_blocked():
                    running[pool.schedule(_run, (*part, tuple(stacks), target), timeout=LIMIT)] = part

        try:
            for _ in range(2 * jobs):
                begin()
            while running:
                future = next(as_completed(running))
                on_result(_result(future, *running.pop(future)))
                begin()
        except BaseException:
            pool.stop()
            raise


def _run(row: Row, part: int, stacks: Sequence[str], target: Target | None) -> Result:
    assume_host(target)
    return run_part(row, part, stacks)


def _result(future: Future[Result], row: Row, part: int) -> Result:
    try:
        return future.result()
    except TimeoutError:
        return Result(row.name, part, "crash", reason=f"no answer within {LIMIT:g} s")
    except ProcessExpired as died:
        return Result(row.name, part, "crash", reason=f"its process ended with status {died.exitcode}")


def complete(results: Iterable[Result]) -> dict[tuple[Op, DType], bool]:
    """Pairs of opcode and type of which every input ran, and those that are wrong anyway; whether all agreed."""
    status = {(r.row, r.part): r.status for r in results}
    found = {}
    for op in OPSET:
        for dtype in TYPES:
            parts = [(row.name, part) for row in rows([dtype], frozenset({op})) for part in range(row.parts)]
            seen = {status.get(part) for part in parts}
            if seen & {"differ", "crash"}:
                found[op, dtype] = False
            elif seen == {"agree"}:
                found[op, dtype] = True
    return found
