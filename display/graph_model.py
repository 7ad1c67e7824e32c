"""A module as a picture's nodes, edges and groups, folded where it is large. Nothing here knows how it is drawn.

Scalar constants stand in the boxes of their users. A fusion is a group with its body in place of the instruction; the
bodies of loops, calls and branches, and reducers of more than one op, are groups beside it. What is beyond the depth or
the number of boxes that a picture may have is folded: one box that counts what is in it.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..formats.text.print_literals import literal_to_text
from ..formats.text.printer import print_instruction
from ..hlo.analysis.cost_analysis import Cost, analyse
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.metadata import Sources, metadata_of
from ..hlo.opcodes import Op
from ..hlo.shapes import shape_to_text
from .graph_theme import DEPTH, LIMIT

KINDS = {
    **dict.fromkeys((Op.PARAMETER, Op.CONSTANT, Op.IOTA), "input"),
    **dict.fromkeys((Op.DOT, Op.CONVOLUTION, Op.FFT, Op.CHOLESKY, Op.TRIANGULAR_SOLVE), "product"),
    **dict.fromkeys((Op.REDUCE, Op.REDUCE_WINDOW, Op.SORT, Op.SCATTER, Op.SELECT_AND_SCATTER, Op.SCAN), "fold"),
    **dict.fromkeys((Op.WHILE, Op.CONDITIONAL, Op.CALL, Op.FUSION, Op.CUSTOM_CALL), "call"),
}
"""Opcode → kind of box, which selects its colour; all others are plain."""

WIDEST, MOST_OPCODES, LARGE, FEWEST = 36, 4, 12, 12
"""Characters in a line of a box, opcodes that a folded box names, elements of a constant that are shown, and the least
number of boxes that is left for a large computation, which is then drawn as runs of instructions."""


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


def build_graph(module: Module, *, depth: int = DEPTH, limit: int = LIMIT, nested: bool = True) -> Graph:
    """The graph of a module.

    depth: how deep computations are drawn; 0: the entry only. limit: number of boxes, beyond which computations are
    folded, those that are called from deepest first, and then runs of instructions. nested: put computations where they
    are called; if not, every computation is a group by itself, without edges between groups.
    """
    return _Builder(module, depth, max(limit, 2), nested).build()


class _Builder:
    def __init__(self, module: Module, depth: int, limit: int, nested: bool):
        self.module, self.depth, self.nested, self.left = module, depth, nested, limit
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
        label = _cut(f"{role} {computation.name}".strip(), 2 * WIDEST)
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
        boxes = [i for i in computation.instructions if not _is_inlined(i, computation)]
        if len(boxes) > self.left and len(boxes) > 2:
            self._fill_folded(computation, boxes, group)
            return []
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
        body = i.called()[0] if i.opcode is Op.FUSION and i.called() else None
        if body is not None and self.nested and level < self.depth and len(body.instructions) <= self.left:
            self._fusion(i, body, i is computation.root, group, nodes, calls, level + 1)
            return
        callees = _callees(i)
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
        words = f"{_clean(i.name)} {kind}" if kind else _clean(i.name)
        lines = [_cut(f"fusion {words}", 2 * WIDEST), cost_text(self.costs.of(i))]
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
            if not _is_inlined(b, body):
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
        title = f"{i.opcode.value} {_reducer_word(i)}".strip()
        if i.opcode is Op.CONSTANT:
            title = f"constant {_value(i)}"
        shape = shape_to_text(i.shape, layouts=False)
        fits = len(i.name) + len(shape) < WIDEST
        lines = [_cut(text, WIDEST) for text in (title, *([f"{i.name} {shape}"] if fits else [i.name, shape]))]
        for c in named:
            size = f"{len(c.instructions)} folded: " if self.nested else ""
            lines.append(_cut(f"→ {size}{c.name}", WIDEST))
        scalars = [(n, o) for n, o in enumerate(i.operands) if o.opcode is Op.CONSTANT and _is_inlined(o, computation)]
        if scalars:
            lines.append(_cut(", ".join(f"operand {n} = {_value(o)}" for n, o in scalars), WIDEST))
        cost = self.costs.of(i)
        if text := cost_text(cost.times(1, 0) if i in self.inside else cost):
            lines.append(text)
        return tuple(lines)

    def _tip(self, i: Instruction) -> str:
        cost = cost_text(self.costs.of(i))
        return "\n".join(filter(None, (tip_of(i), self._source(i), cost)))

    def _source(self, i: Instruction) -> str:
        """The line of source that the metadata names, with its op_name: '' if there is none."""
        return _cut(" ".join(filter(None, (self.sources.place_of(i), metadata_of(i).get("op_name", "")))), 200)

    def _edges(self, i: Instruction, node: Node, nodes: dict[Instruction, Node]) -> None:
        for o in dict.fromkeys(i.operands):
            if o in nodes:
                self._edge(nodes[o], node, f"{_clean(o.name)} {shape_to_text(o.shape, layouts=False)}")

    def _edge(self, source: Node, target: Node, tip: str) -> None:
        if source is not target and (source, target) not in self.seen:
            self.seen.add((source, target))
            self.graph.edges.append(Edge(source, target, tip))

    # -- folded computations -----------------------------------------------------------------------------------------
    def _fill_folded(self, computation: Computation, boxes: Sequence[Instruction], group: Group) -> None:
        """Draw runs of instructions as one box each. Parameters and constants belong to the run of their first user."""
        pieces = max(2, min(self.left, LIMIT) // 6)
        self.left -= pieces
        self.graph.folded += len(boxes)
        working = [i for i in boxes if i.operands] or list(boxes)
        size = -(-len(working) // pieces)
        run_of = {i: n // size for n, i in enumerate(working)}
        for i in reversed(boxes):
            if i not in run_of:
                run_of[i] = min((run_of[u] for u in computation.users[i] if u in run_of), default=0)
        runs: dict[int, list[Instruction]] = {}
        for i in boxes:
            runs.setdefault(run_of[i], []).append(i)
        nodes = {n: self._folded(runs[n], computation) for n in sorted(runs)}
        group.nodes += nodes.values()
        carried: dict[tuple[int, int], list[Instruction]] = {}
        for i in boxes:
            for o in dict.fromkeys(i.operands):
                if o in run_of and run_of[o] != run_of[i]:
                    carried.setdefault((run_of[o], run_of[i]), []).append(o)
        for (a, b), values in carried.items():
            shown = [f"{_clean(v.name)} {shape_to_text(v.shape, layouts=False)}" for v in dict.fromkeys(values)]
            self._edge(nodes[a], nodes[b], "\n".join(_shortened(shown)))

    def _folded(self, run: Sequence[Instruction], computation: Computation) -> Node:
        counts = Counter(i.opcode.value for i in run)
        top = [f"{op} {n}" for op, n in counts.most_common(MOST_OPCODES)]
        more = len(counts) - MOST_OPCODES
        cost = sum((self.costs.of(i) for i in run), Cost())
        lines = [f"{len(run)} instructions folded"]
        if scope := _scope(run):
            lines.append(_cut(scope, WIDEST))
        lines += [", ".join(top[:2]), ", ".join(top[2:]) + (f", {more} more" if more > 0 else "")]
        lines.append(cost_text(cost))
        tip = "\n".join(_shortened([_cut(tip_of(i), 120) for i in run]))
        return Node(self._id("n"), tuple(filter(None, lines)), tip, "folded", computation.root in run)


# -- what stands in a box ---------------------------------------------------------------------------------------------
def _is_inlined(i: Instruction, computation: Computation) -> bool:
    """Whether a constant is shown in the boxes of its users."""
    return (
        i.opcode is Op.CONSTANT
        and i.shape.is_array
        and i.shape.size == 1
        and i is not computation.root
        and bool(computation.users[i])
        and all(u.opcode not in (Op.FUSION, Op.TUPLE, Op.CALL, Op.WHILE) for u in computation.users[i])
    )


def _callees(i: Instruction) -> list[tuple[str, Computation]]:
    """Computations that get a group of their own, each with its role: not those that are one op on their parameters."""
    roles = {c: key for key, c in i.attributes.items() if isinstance(c, Computation)}
    words = {"to_apply": "", "calls": "", "condition": "condition", "body": "body"}
    return [
        (words.get(roles.get(c, ""), roles.get(c, "")), c) for c in dict.fromkeys(i.called()) if _simple_op(c) is None
    ]


def _simple_op(computation: Computation) -> Op | None:
    """The op of a computation that is one op of its two parameters, such as a sum's."""
    root = computation.root
    if len(computation.instructions) == 3 and len(root.operands) == 2:
        return root.opcode if all(o.opcode is Op.PARAMETER for o in root.operands) else None
    return None


def _reducer_word(i: Instruction) -> str:
    """The op of a reduction, or the direction of a comparison: what tells two boxes of one opcode apart."""
    for c in i.called():
        if (op := _simple_op(c)) is not None:
            direction = c.root.attributes.get("direction")
            return f"({op.value}{f' {direction}' if direction else ''})"
    if i.opcode is Op.COMPARE:
        return str(i.attributes.get("direction", ""))
    if i.opcode is Op.GET_TUPLE_ELEMENT:
        return str(i.attributes.get("index", ""))
    if i.opcode is Op.PARAMETER:
        return str(i.parameter_number)
    if i.opcode is Op.CUSTOM_CALL:
        return _clean(str(i.attributes.get("custom_call_target", "")))
    return ""


def _value(i: Instruction) -> str:
    """A constant's value: the whole of a small one, the first elements of a large one."""
    literal = i.literal
    if literal.is_elided or not i.shape.is_array:
        return "{...}"
    if i.shape.size <= LARGE:
        return re.sub(r"\s+", " ", literal_to_text(literal)) if i.shape.rank else literal_to_text(literal)
    first = ", ".join(str(v) for v in literal.array.reshape(-1)[:3])
    return f"{{{first}, …}}"


def cost_text(cost: Cost) -> str:
    """FLOPs, transcendentals and bytes that are not zero, as text."""
    pairs = ((cost.flops, "FLOP"), (cost.transcendentals, " transc."), (cost.bytes, "B"))
    return ", ".join(f"{_short(number)}{unit}".replace("  ", " ") for number, unit in pairs if number)


def _short(number: float) -> str:
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= scale:
            return f"{number / scale:.3g} {prefix}"
    return f"{number:g} "


def tip_of(i: Instruction) -> str:
    """The instruction as text, without the elements of a large constant."""
    is_large = i.opcode is Op.CONSTANT and i.shape.size > 20
    return _cut(f"{i.name} = {i.shape} constant({{...}})" if is_large else print_instruction(i), 600)


def _scope(run: Sequence[Instruction]) -> str:
    """Where a run is in its source: the common beginning of the op_names, and the first and last word behind it."""
    names = [name.split("/")[:-1] for i in run if (name := metadata_of(i).get("op_name"))]
    common: list[str] = []
    for parts in zip(*names):
        if len(set(parts)) > 1:
            first, last = parts[0], parts[-1]
            return "/".join([*common[-1:], first if first == last else f"{first} … {last}"])
        common.append(parts[0])
    return "/".join(common)


MOST_IN_TIP = 12


def _shortened(lines: Sequence[str]) -> list[str]:
    more = len(lines) - MOST_IN_TIP
    return [*lines[:MOST_IN_TIP], *([f"… {more} more"] if more > 0 else [])]


def _clean(text: str) -> str:
    """The text without unprintable characters, which XML forbids."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _cut(text: str, most: int) -> str:
    clean = _clean(text)
    return clean if len(clean) <= most else clean[: most - 1] + "…"
