"""The text form of thunks: one line per thunk, blocks in braces. A slice is written allocation[begin:end]."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..planning.plan import BufferSlice
from .kinds import ConditionalThunk, CopyThunk, KernelThunk, ProfileThunk, SequentialThunk, Thunk, WhileThunk


def to_text(thunk: Thunk) -> str:
    return "\n".join(_lines(thunk)) + "\n"


def _lines(thunk: Thunk) -> Iterator[str]:
    return _WRITE[type(thunk)](thunk)


def _kernel(thunk: KernelThunk) -> Iterator[str]:
    uses = ", ".join(f"{u.access.value} {_slice(u.slice)}" for u in thunk.arguments)
    yield f"kernel {thunk.name} @{thunk.symbol}({uses})"


def _copy(thunk: CopyThunk) -> Iterator[str]:
    yield f"copy {thunk.name} {_slice(thunk.source)} -> {_slice(thunk.destination)}"


def _profile(thunk: ProfileThunk) -> Iterator[str]:
    yield f"profile {'begin' if thunk.begin else 'end'} {thunk.id} {thunk.name}"


def _sequential(thunk: SequentialThunk) -> Iterator[str]:
    yield f"{thunk.name} {{"
    for inner in thunk.thunks:
        yield from _indented(inner)
    yield "}"


def _while(thunk: WhileThunk) -> Iterator[str]:
    trips = "" if thunk.trip_count is None else f" trip_count {thunk.trip_count}"
    yield f"while {thunk.name} predicate {_slice(thunk.predicate)}{trips} {{"
    yield from _indented(thunk.condition)
    yield from _indented(thunk.body)
    yield "}"


def _conditional(thunk: ConditionalThunk) -> Iterator[str]:
    kind = "pred" if thunk.selector_is_pred else "s32"
    yield f"conditional {thunk.name} {kind} {_slice(thunk.selector)} {{"
    for branch in thunk.branches:
        yield from _indented(branch)
    yield "}"


def _indented(thunk: Thunk) -> Iterator[str]:
    return ("  " + line for line in _lines(thunk))


def _slice(slice: BufferSlice) -> str:
    return f"{slice.allocation}[{slice.offset}:{slice.offset + slice.size}]"


_WRITE: dict[type, Callable[..., Iterator[str]]] = {
    KernelThunk: _kernel,
    CopyThunk: _copy,
    ProfileThunk: _profile,
    SequentialThunk: _sequential,
    WhileThunk: _while,
    ConditionalThunk: _conditional,
}
