"""XLA's kernels beside ours: for requests that are not sealed, as their shadows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property

from ..codegen.options import EmitOptions, EmittedModule
from ..hlo.errors import UnsupportedError
from ..hlo.fingerprint import instruction_key
from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from ..hlo.records import dataclass, replace
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
        return self.xla.emit([made for made in map(self._sealed, requests) if isinstance(made, KernelRequest)], options)

    def unsupported(self, requests: Sequence[KernelRequest]) -> list[UnsupportedError]:
        """One error for each request that no kernel of XLA's computes, or that has none with code."""
        errors = []
        for request in requests:
            made = self._sealed(request)
            if isinstance(made, KernelRequest):
                errors += self.xla.unsupported([made])
            else:
                i, remedy = request.instruction, "it runs on one stack"
                what = f"{i.name}: {made}" if made else i.name
                errors.append(UnsupportedError("xla_kernels", what, remedy=remedy, location=i.location))
        return errors

    def _sealed(self, request: KernelRequest) -> KernelRequest | str:
        """The request to XLA's kernel of the instruction; why XLA's kernel cannot take its place, or '' if there is
        none.
        """
        i = request.instruction
        match = self._by_name.get(i.name)
        if match is None:
            return ""
        if _key(match.instruction) != _key(i):
            return "a pass has changed it here"
        results = dict(zip(request.results, (index for index, _ in i.shape.leaves()), strict=True))
        shared = {(n, results[argument]) for n, argument in enumerate(request.operands) if argument in results}
        if not shared <= set(match.overwritten):
            return "its result lies on an operand here, which XLA's code does not overwrite"
        return replace(request, instruction=sealed(i, i.operands, match))

    @cached_property
    def _by_name(self) -> dict[str, Match]:
        return {i.name: match for i, match in self.matches.found.items()}


def _key(i: Instruction) -> Hashable:
    """Equal for an instruction of our plan and XLA's of the same name if they compute the same. The passes that prepare
    a scheduled module keep its fusions and simplify their bodies: a fusion is known by the shapes at its border.
    """
    operands = tuple(o.shape for o in i.operands)
    return (i.opcode, i.shape, operands) if i.opcode is Op.FUSION else instruction_key(i, operands)
