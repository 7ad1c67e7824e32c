"""PASSES: the passes on LHLO in their order, and how to run some of them on a module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mlir import ir
from mlir.passmanager import PassManager

from ...hlo.errors import InputError, TestbedError
from ..module import LhloModule
from ..verifier import verify
from .buffers import check_buffers, forward_copies, remove_dead_steps
from .canonicalize import canonicalize
from .insert_profile import insert_profile


@dataclass(frozen=True, slots=True)
class LhloPass:
    """A pass changes an MLIR module in place, or raises a VerificationError. by_name: it runs only if it is named."""

    name: str
    help: str
    run: Callable[[ir.Operation], None]
    by_name: bool = False


PASSES: dict[str, LhloPass] = {
    p.name: p
    for p in (
        LhloPass("check-buffers", "refuse a step that reads bytes which nothing has written", check_buffers),
        LhloPass("forward-copies", "read the source of a copy instead of its target", forward_copies),
        LhloPass("remove-dead-steps", "erase kernels and copies whose results nobody reads", remove_dead_steps),
        LhloPass("canonicalize", "views directly on their memory, equal ones once, unused ones gone", canonicalize),
        LhloPass("insert-profile", "take a profiler, and mark each step's begin and end", insert_profile, True),
    )
}


def run_passes(lhlo: LhloModule, names: Sequence[str] | None = None, file: str = "<lhlo>") -> LhloModule:
    """A copy of a module after passes, in the given order; None runs all but those that run by name only. Every pass is
    followed by the verifier.

    Raises InputError for an unknown name, VerificationError if a pass refuses the module or breaks it.
    """
    chosen = [p.name for p in PASSES.values() if not p.by_name] if names is None else list(names)
    for name in chosen:
        if name not in PASSES:
            raise InputError(f"no LHLO pass '{name}'", remedy=f"choose from {', '.join(PASSES)}")
    errors: list[TestbedError] = []
    with lhlo.context, ir.Location.unknown():
        made = LhloModule(ir.Module.parse(lhlo.module.operation.get_asm(enable_debug_info=True)))  # with locations
        manager = PassManager("builtin.module")
        for name in chosen:
            manager.add(_guarded(PASSES[name], made, errors, file), name=name)
        try:
            manager.run(made.module.operation)
        except ir.MLIRError:
            if not errors:
                raise
    if errors:
        raise errors[0]
    return made


def _guarded(
    step: LhloPass, lhlo: LhloModule, errors: list[TestbedError], file: str
) -> Callable[[ir.Operation, Any], None]:
    """The pass as MLIR calls it: an exception must not cross into MLIR."""

    def run(op: ir.Operation, external: Any) -> None:
        try:
            step.run(op)
            verify(lhlo, file)
        except TestbedError as error:
            errors.append(error)
            external.signal_pass_failure()

    return run
