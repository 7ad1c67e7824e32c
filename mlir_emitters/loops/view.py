"""A kernel as forms see it: values and nodes, facts of the target, and how it may be split. No IR is needed to look."""

from __future__ import annotations

from ...codegen.options import GroupShape
from ...hlo.records import dataclass, field
from ...planning.partition import Partition
from ...planning.scratch import ON_STACK
from ..core.access import AccessMap
from ..core.facts import Facts
from ..core.graph import Buffer, KernelGraph, Node
from .row_graph import RowGraph


@dataclass(frozen=True, slots=True)
class View:
    """in_place: arguments of which an operand is a part; scratch: bytes of scratch memory; partition: the steps that
    the loops shall run over; None: they run over all; group: of a device's items that shall compute a step together.
    """

    facts: Facts
    results: tuple[Buffer, ...]
    in_place: frozenset[int]
    scratch: int
    partition: Partition | None = None
    group: GroupShape | None = None

    @staticmethod
    def of(
        graph: KernelGraph, facts: Facts, partition: Partition | None = None, group: GroupShape | None = None
    ) -> View:
        scratch = graph.arguments[graph.scratch].size if graph.scratch >= 0 else ON_STACK
        in_place = frozenset(x.argument for x in graph.operands)
        return View(facts, tuple(graph.results), in_place, scratch, partition, group)

    @property
    def numbered(self) -> tuple[int, ...]:
        """The dimensions of results whose positions the steps number, the slowest first."""
        return () if self.partition is None else self.partition.dimensions


@dataclass(frozen=True, slots=True)
class Subject:
    """Results that are emitted together. root: the node that has loops of its own for them, and sources, its outputs
    that they are; products: the dot, the convolution or the reductions of their shape on which they depend through
    elementwise ops only; rows: of a whole kernel, or why it has none; reads: what results without a root read.
    """

    results: tuple[Buffer, ...]
    root: Node | None = None
    sources: tuple[Buffer, ...] = ()
    products: tuple[Node, ...] = ()
    rows: RowGraph | str = field(default="", repr=False)
    reads: AccessMap = field(default=AccessMap((), (), ()), repr=False)

    @property
    def first(self) -> Buffer:
        return self.results[0]

    @property
    def is_nest(self) -> bool:
        """Whether neither a root nor a product has loops of its own."""
        return self.root is None and not self.products

    @property
    def outputs(self) -> list[Buffer]:
        """The results in the order of the root's outputs, of which each is one."""
        found = self.by_number
        assert found is not None
        return found

    @property
    def node(self) -> Node:
        """The root, or the first product."""
        return self.products[0] if self.root is None else self.root

    @property
    def product_result(self) -> Buffer:
        """Where a product's sums go: to what it writes, if something follows, or to the only result."""
        return self.node.output if self.products else self.first

    @property
    def by_number(self) -> list[Buffer] | None:
        """The results in the order of the root's outputs; None unless each output is one of them, once."""
        found = {source.number: result for source, result in zip(self.sources, self.results, strict=True)}
        if not len(found) == len(self.results) == len(self.node.outputs):
            return None
        return [found[k] for k in range(len(found))]
