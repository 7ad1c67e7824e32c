"""XLA's kernels beside ours: for requests that are not sealed, as their shadows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..codegen.options import EmitOptions, EmittedModule
from ..hlo.errors import UnsupportedError
from ..hlo.fingerprint import instruction_key
from ..hlo.ir import Instruction
from ..planning.plan import KernelRequest
from .emission import XlaEmitter
from .match import Match, Matches
from .seal import sealed


@dataclass(frozen=True, eq=False)
class Beside:
    """What `XlaEmitter` emits for the sealed form of a request of ours, with the same arguments."""

    xla: XlaEmitter
    matches: Matches

    def emit(self, requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
        """Adaptors to XLA's kernels. Raises UnsupportedError, InputError."""
        for error in self.unsupported(requests):
            raise error
        return self.xla.emit([made for made in map(self._sealed, requests) if made is not None], options)

    def unsupported(self, requests: Sequence[KernelRequest]) -> list[UnsupportedError]:
        """One error for each request that no kernel of XLA's computes, or that has none with code."""
        errors = []
        for request in requests:
            made = self._sealed(request)
            if made is not None:
                errors += self.xla.unsupported([made])
            else:
                i, remedy = request.instruction, "it runs on one stack"
                errors.append(UnsupportedError("xla_kernels", i.name, remedy=remedy, location=i.location))
        return errors

    def _sealed(self, request: KernelRequest) -> KernelRequest | None:
        """The request to XLA's kernel of the instruction. None if a pass of ours rewrote it, or if it lets a result lie
        on an operand that XLA's code does not overwrite.
        """
        i = request.instruction
        match = self._by_name.get(i.name)
        if match is None or _key(match.instruction) != _key(i):
            return None
        results = dict(zip(request.results, (index for index, _ in i.shape.leaves()), strict=True))
        shared = {(n, results[argument]) for n, argument in enumerate(request.operands) if argument in results}
        if not shared <= set(match.overwritten):
            return None
        return replace(request, instruction=sealed(i, i.operands, match))

    @cached_property
    def _by_name(self) -> dict[str, Match]:
        return {i.name: match for i, match in self.matches.found.items()}


def _key(i: Instruction) -> Hashable:
    return instruction_key(i, tuple(o.shape for o in i.operands))
