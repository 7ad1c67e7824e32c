"""The roles of the dimensions of a dot."""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.ir import Instruction
from ...hlo.records import dataclass
from ..core.builder import IndexValue


@dataclass(frozen=True, slots=True)
class DotDims:
    """Dimensions of both operands by role, in the order of the result's dimensions."""

    lhs_rank: int
    rhs_rank: int
    lhs_batch: tuple[int, ...]
    rhs_batch: tuple[int, ...]
    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]
    lhs_free: tuple[int, ...]
    rhs_free: tuple[int, ...]

    @staticmethod
    def of(instruction: Instruction) -> DotDims:
        lhs, rhs = (o.shape for o in instruction.operands[:2])
        names = ("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims")
        lb, rb, lc, rc = (tuple(instruction.attributes.get(name, ())) for name in names)
        return DotDims(
            lhs.rank,
            rhs.rank,
            lb,
            rb,
            lc,
            rc,
            tuple(d for d in range(lhs.rank) if d not in lb + lc),
            tuple(d for d in range(rhs.rank) if d not in rb + rc),
        )

    def operand_positions(
        self, result: Sequence[IndexValue], inner: Sequence[IndexValue]
    ) -> tuple[list[IndexValue], list[IndexValue]]:
        """The positions in both operands, given those in the result and along the contracting dimensions."""
        batches, lefts = len(self.lhs_batch), len(self.lhs_free)
        batch, left, right = result[:batches], result[batches : batches + lefts], result[batches + lefts :]
        return (
            _place(self.lhs_rank, (self.lhs_batch, batch), (self.lhs_free, left), (self.lhs_contracting, inner)),
            _place(self.rhs_rank, (self.rhs_batch, batch), (self.rhs_free, right), (self.rhs_contracting, inner)),
        )

    def batch_dimension(self, of_rhs: bool, dimension: int) -> int | None:
        """The dimension of the result that a batch dimension of an operand becomes; None if it is none."""
        batch = self.rhs_batch if of_rhs else self.lhs_batch
        return batch.index(dimension) if dimension in batch else None

    def result_dimension(self, of_rhs: bool, dimension: int) -> int | None:
        """The dimension of the result that a free dimension of an operand becomes; None if it is not free."""
        free = self.rhs_free if of_rhs else self.lhs_free
        if dimension not in free:
            return None
        return len(self.lhs_batch) + (len(self.lhs_free) if of_rhs else 0) + free.index(dimension)


def _place(rank: int, *groups: tuple[Sequence[int], Sequence[IndexValue]]) -> list[IndexValue]:
    positions: list[IndexValue] = [0] * rank
    for dimensions, values in groups:
        for d, value in zip(dimensions, values, strict=True):
            positions[d] = value
    return positions
