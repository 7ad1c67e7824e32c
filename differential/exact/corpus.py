"""The distinct kernels of the modules in a folder, over fields."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...hlo.errors import TestbedError
from ...hlo.fingerprint import instruction_key
from ...migration.programs import load_program
from ...planning.plan import KernelRequest
from .check import Row, Status, check_kernel, kernels_of
from .program import check_program


@dataclass(frozen=True)
class Checked:
    """A kernel, or a module that cannot be read or planned (kernel ''). seconds: for all of its draws."""

    module: str
    row: Row
    seconds: float


def key_of(request: KernelRequest) -> Hashable:
    """Equal keys are equal kernels, but for their names."""
    i = request.instruction
    given = tuple((o.shape, n) for o, n in zip(i.operands, request.operands, strict=True))
    arguments = tuple((a.slice.size, a.alignment, a.written) for a in request.arguments)
    return instruction_key(i, given), request.results, request.scratch, arguments, request.partition


def check_files(files: Sequence[Path], root: Path, seed: int = 0, names: Sequence[str] = ()) -> Iterator[Checked]:
    """Each distinct kernel of the files once, in the first module that has it. root: what names are relative to."""
    seen: set[Hashable] = set()
    for file in files:
        name = _name(file, root)
        try:
            requests = kernels_of(load_program(str(file)).module)
        except _refusals(file, root) as error:
            yield Checked(name, Row("", "", Status.NOT_RUN, _reason(error)), 0.0)
            continue
        for request in requests:
            key = key_of(request)
            if key in seen or (names and request.name not in names):
                continue
            seen.add(key)
            start = time.perf_counter()
            row = check_kernel(request, seed)
            yield Checked(name, row, time.perf_counter() - start)


def check_programs(files: Sequence[Path], root: Path, seed: int = 0) -> Iterator[Checked]:
    """Each file's program as a whole."""
    for file in files:
        start = time.perf_counter()
        try:
            row = check_program(load_program(str(file)).module, seed)
        except _refusals(file, root) as error:
            row = Row("", "", Status.NOT_RUN, _reason(error))
        yield Checked(_name(file, root), row, time.perf_counter() - start)


def _refusals(file: Path, root: Path) -> tuple[type[Exception], ...]:
    """Errors of a file that are a row of a folder; of a file by itself there are none."""
    return () if file == root else (TestbedError, RecursionError, MemoryError)


def _reason(error: BaseException) -> str:
    return error.message if isinstance(error, TestbedError) else type(error).__name__


def _name(file: Path, root: Path) -> str:
    return str(file.relative_to(root)) if file != root else file.name


def modules_in(folder: Path) -> list[Path]:
    """The files of HLO text in a folder, also below it."""
    return sorted(folder.rglob("*.hlo"))
