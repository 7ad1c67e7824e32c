"""A module as a picture's nodes, edges and groups, folded where it is large. Nothing here knows how it is drawn.

Scalar constants stand in the boxes of their users. A fusion is a group with its body in place of the instruction; the
bodies of loops, calls and branches, and reducers of more than one op, are groups beside it. What is beyond the depth or
the number of boxes that a picture may have is folded: one box that counts what is in it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..hlo.analysis.cost_analysis import Cost, analyse
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.metadata import Sources, metadata_of
from ..hlo.opcodes import Op
from ..hlo.shapes import shape_to_text
from .graph_folds import OPEN, by_scope, run_numbers
from .graph_text import (
    WIDEST,
    callees_of,
    clean,
    common_scope,
    cost_text,
    cut,
    is_inlined,
    reducer_word,
    shortened,
    tail,
    tip_of,
    value_text,
)
from .graph_theme import DEPTH, LIMIT

KINDS = {
    **dict.fromkeys((Op.PARAMETER, Op.CONSTANT, Op.IOTA), "input"),
    **dict.fromkeys((Op.DOT, Op.CONVOLUTION, Op.FFT, Op.CHOLESKY, Op.TRIANGULAR_SOLVE), "product"),
    **dict.fromkeys((Op.REDUCE, Op.REDUCE_WINDOW, Op.SORT, Op.SCATTER, Op.SELECT_AND_SCATTER, Op.SCAN), "fold"),
    **dict.fromkeys((Op.WHILE, Op.CONDITIONAL, Op.CALL, Op.FUSION, Op.CUSTOM_CALL), "call"),
}
"""Opcode → kind of box, which selects its colour; all others are plain."""

MOST_OPCODES, FEWEST = 4, 12
"""Opcodes that a folded box names, and the least number of boxes that is left for a large computation, which is then
drawn as scopes or runs of instructions."""


@dataclass(eq=False)
class Node:
    """A box. lines: the first is its title. kind: of KINDS, plain, or folded."""

    id: str
    lines: tuple[str, ...]
    tip: str
    kind: str
    is_root: bool = False


@dataclass(eq=False)
class Group:
    """A frame around boxes and other frames. kind: computation or fusion."""

    id: str
    label: str
    tip: str
    kind: str
    nodes: list[Node] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)

    def all_nodes(self) -> Iterable[Node]:
        yield from self.nodes
        for group in self.groups:
            yield from group.all_nodes()


@dataclass(frozen=True)
class Edge:
    """From a value to its user. is_call: from an instruction to a computation that it calls."""

    source: Node
    target: Node
    tip: str
    is_call: bool = False


@dataclass
class Graph:
    """A picture's content. folded: instructions that have no box of their own."""

    name: str
    groups: list[Group]
    edges: list[Edge]
    folded: int = 0

    def nodes(self) -> list[Node]:
        return [node for group in self.groups for node in group.all_nodes()]


def build_graph(
    module: Module,
    *,
    depth: int = DEPTH,
    limit: int = LIMIT,
    nested: bool = True,
    fold: str = "auto",
    level: int | None = None,
) -> Graph:
    """The graph of a module.

    depth: how deep computations are drawn; 0: the entry only. limit: number of boxes, beyond which computations are
    folded, those that are called from deepest first, and then runs of instructions. nested: put computations where they
    are called; if not, every computation is a group by itself, without edges between groups. fold: of FOLDS; `scopes`
    folds small modules, too, and `kernels` draws a fusion as one box. level: how many scopes of an op_name count.
    """
    return _Builder(module, depth, max(limit, 2), nested, fold, level).build()


class _Builder:
    def __init__(self, module: Module, depth: int, limit: int, nested: bool, fold: str, level: int | None):
        self.module, self.depth, self.nested, self.left = module, depth, nested, limit
        self.fold, self.level = fold, level
        self.costs, self.sources = analyse(module), Sources(module.attributes)
        self.graph = Graph(module.name, [], [])
        self.count = 0
        self.seen: set[tuple[Node, Node]] = set()
        self.drawn: dict[Computation, Group] = {}
        self.inside: set[Instruction] = set()
        """Instructions of fusions, which read and write no memory of their own."""

    def build(self) -> Graph:
        """Computations in the order of their depth, so that the deepest find no room first."""
        entry = self.module.entry
        waiting: deque[tuple[Computation, Group | None, Node | None, int, str]] = deque([(entry, None, None, 0, "")])
        while waiting:
            computation, parent, caller, level, how = waiting.popleft()
            if computation in self.drawn:
                if caller is not None:
                    self._connect_call(caller, self.drawn[computation], how)
                continue
            group = self._frame(computation, parent, how)
            self.drawn[computation] = group
            for called, within, node, word in self._fill(computation, group, level):
                waiting.append((called, within, node, level + 1, word))
            if caller is not None:
                self._connect_call(caller, group, how)
        return self.graph

    def _frame(self, computation: Computation, parent: Group | None, how: str) -> Group:
        cost = cost_text(self.costs.of_computation(computation))
        role = "ENTRY" if computation is self.module.entry else how if self.nested else ""
        label = cut(f"{role} {computation.name}".strip(), 2 * WIDEST)
        tip = f"{label}: {len(computation.instructions)} instructions, {cost or 'no cost'}"
        group = Group(self._id("g"), label, tip, "computation")
        (self.graph.groups if parent is None or not self.nested else parent.groups).append(group)
        return group

    def _id(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def _connect_call(self, caller: Node, group: Group, how: str) -> None:
        target = next(iter(group.all_nodes()), None)
        if self.nested and target is not None:
            self.graph.edges.append(Edge(caller, target, f"calls {group.label}", is_call=True))

    # -- one computation ---------------------------------------------------------------------------------------------
    def _fill(self, computation: Computation, group: Group, level: int) -> list[tuple[Computation, Group, Node, str]]:
        """Draw a computation's instructions; returns the computations to be drawn beside them."""
        boxes = [i for i in computation.instructions if not is_inlined(i, computation)]
        if len(boxes) > 2 and (len(boxes) > self.left or self.fold == "scopes"):
            return self._fill_folded(computation, boxes, group, level)
        self.left -= len(boxes)
        nodes: dict[Instruction, Node] = {}
        calls: list[tuple[Computation, Group, Node, str]] = []
        for i in boxes:
            self._draw(i, computation, group, nodes, calls, level)
        return calls

    def _draw(
        self,
        i: Instruction,
        computation: Computation,
        group: Group,
        nodes: dict[Instruction, Node],
        calls: list[tuple[Computation, Group, Node, str]],
        level: int,
    ) -> None:
        body = i.called()[0] if i.opcode is Op.FUSION and i.called() and self.fold != "kernels" else None
        if body is not None and self.nested and level < self.depth and len(body.instructions) <= self.left:
            self._fusion(i, body, i is computation.root, group, nodes, calls, level + 1)
            return
        callees = callees_of(i) if self.fold != "kernels" or i.opcode in OPEN else []
        shown = [(c, word) for word, c in callees if c in self.drawn or (level < self.depth and self._fits(c))]
        folded = [c for _, c in callees if c not in dict(shown)]
        self.graph.folded += sum(len(c.instructions) for c in folded)
        nodes[i] = node = self._node(i, computation, folded if self.nested else [c for _, c in callees])
        group.nodes.append(node)
        self._edges(i, node, nodes)
        calls += [(c, group, node, word) for c, word in shown]

    def _fits(self, computation: Computation) -> bool:
        """Whether there is room for a computation, or for runs of its instructions."""
        return self.left >= min(len(computation.instructions), FEWEST)

    def _fusion(
        self,
        i: Instruction,
        body: Computation,
        is_root: bool,
        parent: Group,
        nodes: dict[Instruction, Node],
        calls: list[tuple[Computation, Group, Node, str]],
        level: int,
    ) -> None:
        """Draw a fusion as its body; what reads the fusion is connected to the body's root."""
        kind = i.attributes.get("kind")
        words = f"{clean(i.name)} {kind}" if kind else clean(i.name)
        lines = [cut(f"fusion {words}", 2 * WIDEST), cost_text(self.costs.of(i))]
        group = Group(self._id("g"), "\n".join(filter(None, lines)), self._tip(i), "fusion")
        self.inside.update(body.instructions)
        parent.groups.append(group)
        inner: dict[Instruction, Node] = {}
        for parameter in body.parameters:
            operand = i.operands[parameter.parameter_number]
            if operand in nodes:
                inner[parameter] = nodes[operand]
        self.left -= sum(1 for b in body.instructions if b.opcode is not Op.PARAMETER)
        for b in body.instructions:
            if b.opcode is Op.PARAMETER and b in inner:
                continue
            if not is_inlined(b, body):
                self._draw(b, body, group, inner, calls, level)
        nodes[i] = root = inner[body.root]
        if body.root.opcode is Op.PARAMETER:  # the body is an identity: its box would be empty
            parent.groups.remove(group)
        else:
            root.is_root = root.is_root or is_root

    def _node(self, i: Instruction, computation: Computation, named: Sequence[Computation]) -> Node:
        """The box of an instruction. named: computations that it calls and that stand in the box by their names."""
        lines = self._lines(i, computation, named)
        return Node(self._id("n"), lines, self._tip(i), KINDS.get(i.opcode, "plain"), i is computation.root)

    def _lines(self, i: Instruction, computation: Computation, named: Sequence[Computation]) -> tuple[str, ...]:
        title = f"{i.opcode.value} {reducer_word(i)}".strip()
        if i.opcode is Op.CONSTANT:
            title = f"constant {value_text(i)}"
        shape = shape_to_text(i.shape, layouts=False)
        fits = len(i.name) + len(shape) < WIDEST
        lines = [cut(text, WIDEST) for text in (title, *([f"{i.name} {shape}"] if fits else [i.name, shape]))]
        for c in named:
            size = f"{len(c.instructions)} folded: " if self.nested else ""
            lines.append(cut(f"→ {size}{c.name}", WIDEST))
        scalars = [(n, o) for n, o in enumerate(i.operands) if o.opcode is Op.CONSTANT and is_inlined(o, computation)]
        if scalars:
            lines.append(cut(", ".join(f"operand {n} = {value_text(o)}" for n, o in scalars), WIDEST))
        cost = self.costs.of(i)
        if text := cost_text(cost.times(1, 0) if i in self.inside else cost):
            lines.append(text)
        return tuple(lines)

    def _tip(self, i: Instruction) -> str:
        cost = cost_text(self.costs.of(i))
        return "\n".join(filter(None, (tip_of(i), self._source(i), cost)))

    def _source(self, i: Instruction) -> str:
        """The line of source that the metadata names, with its op_name: '' if there is none."""
        return cut(" ".join(filter(None, (self.sources.place_of(i), metadata_of(i).get("op_name", "")))), 200)

    def _edges(self, i: Instruction, node: Node, nodes: dict[Instruction, Node]) -> None:
        for o in dict.fromkeys(i.operands):
            if o in nodes:
                self._edge(nodes[o], node, f"{clean(o.name)} {shape_to_text(o.shape, layouts=False)}")

    def _edge(self, source: Node, target: Node, tip: str) -> None:
        if source is not target and (source, target) not in self.seen:
            self.seen.add((source, target))
            self.graph.edges.append(Edge(source, target, tip))

    # -- folded computations -----------------------------------------------------------------------------------------
    def _fill_folded(
        self, computation: Computation, boxes: Sequence[Instruction], group: Group, level: int
    ) -> list[tuple[Computation, Group, Node, str]]:
        """Draw scopes, or runs of instructions, as one box each; returns the computations to be drawn beside them."""
        pieces = max(2, min(self.left, LIMIT) // 6)
        piece_of: Mapping[Instruction, Hashable] | None = None
        if self.fold in ("auto", "scopes"):
            piece_of = by_scope(boxes, computation, 2 * pieces, self.level)
        is_scope = piece_of is not None
        if piece_of is None:
            piece_of = run_numbers(boxes, computation, pieces)
        pieces_of: dict[Hashable, list[Instruction]] = {}
        calls: list[tuple[Computation, Group, Node, str]] = []
        alone: dict[Instruction, Node] = {}
        self.left -= len(set(piece_of.values()))
        for i in boxes:
            if is_scope and i.opcode in OPEN and self.left > FEWEST:
                self.left -= 1
                self._draw(i, computation, group, alone, calls, level)
            else:
                pieces_of.setdefault(piece_of[i], []).append(i)
        order = list(pieces_of) if is_scope else sorted(pieces_of, key=hash)  # the hash of a number is the number
        folded = {p: self._folded(pieces_of[p], computation, p if is_scope else None) for p in order}
        self.graph.folded += sum(map(len, pieces_of.values()))
        group.nodes += folded.values()
        self._edges_between({i: alone.get(i) or folded[piece_of[i]] for i in boxes})
        return calls

    def _edges_between(self, node_of: Mapping[Instruction, Node]) -> None:
        carried: dict[tuple[Node, Node], list[Instruction]] = {}
        for i, node in node_of.items():
            for o in dict.fromkeys(i.operands):
                if o in node_of and node_of[o] is not node:
                    carried.setdefault((node_of[o], node), []).append(o)
        for (a, b), values in carried.items():
            shown = [f"{clean(v.name)} {shape_to_text(v.shape, layouts=False)}" for v in dict.fromkeys(values)]
            self._edge(a, b, "\n".join(shortened(shown)))

    def _folded(self, run: Sequence[Instruction], computation: Computation, scope: Any = None) -> Node:
        """The box of instructions. scope: the names of the one that they belong to, if it is not a run."""
        counts = Counter(i.opcode.value for i in run)
        top = [f"{op} {n}" for op, n in counts.most_common(MOST_OPCODES)]
        more = len(counts) - MOST_OPCODES
        cost = sum((self.costs.of(i) for i in run), Cost())
        lines = [f"{len(run)} instructions folded"]
        if scope is not None:
            lines.insert(0, tail("/".join(scope)))
        elif place := common_scope(run):
            lines.append(cut(place, WIDEST))
        lines += [", ".join(top[:2]), ", ".join(top[2:]) + (f", {more} more" if more > 0 else "")]
        lines.append(cost_text(cost))
        tip = "\n".join(shortened([*(["/".join(scope)] if scope else []), *(cut(tip_of(i), 120) for i in run)]))
        return Node(self._id("n"), tuple(filter(None, lines)), tip, "folded", computation.root in run)
