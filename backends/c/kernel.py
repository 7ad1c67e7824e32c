"""One kernel request → one C function."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ...hlo.errors import UnsupportedError
from ...hlo.ir import Computation, Instruction
from ...hlo.layouts import changes_elements
from ...hlo.opcodes import Op
from ...planning.plan import KernelRequest
from ...planning.scratch import ON_STACK
from .code import Code
from .elemental import SCALAR_OPS, At, Elemental, ElementRule, Memory, Value
from .folds import FOLDS
from .graph import Graph, Leaf, argument, graph_of, is_whole, result_leaves
from .movement import MOVEMENT
from .roots import REFUSED, WHOLE, emit_update, nest
from .scalars import SCALARS

RULES: dict[Op, ElementRule] = {**MOVEMENT, **FOLDS, **REFUSED}
"""Opcodes whose element is not a C expression of its operands' elements at the same position."""

ABREAST = 4
"""Neighbours in memory along a concatenation that are written together: what its operands share is computed once."""

FRAMES = 16
"""Python frames for each instruction of a chain."""


def emit_kernel(request: KernelRequest, strict: bool) -> str:
    graph = graph_of(request)
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 1000 + FRAMES * sum(1 for _ in graph.instructions())))
    code = Code()
    e = Elemental(code, dict(graph.leaves), RULES, SCALARS, strict)
    leaves = result_leaves(request, graph)
    groups = _groups(leaves)
    order = _ordered(groups, graph)
    saved = [] if order is not None else _saved(e, request, leaves)
    for group in groups if order is None else order:
        _emit_group(e, request, group)
    for name in saved:
        code.line(f"free({name});")
    names = ", ".join(f"void *restrict arg{n}" for n in range(len(request.arguments))) or "void"
    body = "\n".join(["  " + line for line in (*e.arrays.values(), *code.root.lines)])
    return f"void {request.name}({names}) {{\n{body}\n}}\n"


def _groups(leaves: Sequence[Leaf]) -> list[list[Leaf]]:
    """Leaves that are written together: in one nest of loops, or by one op."""
    groups: list[list[Leaf]] = []
    for leaf in leaves:
        same = next((g for g in groups if _together(g[0], leaf)), None)
        if same is None:
            groups.append([leaf])
        else:
            same.append(leaf)
    return groups


def _together(a: Leaf, b: Leaf) -> bool:
    if is_whole(a.instruction) or is_whole(b.instruction):
        return a.instruction is b.instruction
    if Op.DYNAMIC_UPDATE_SLICE in (a.instruction.opcode, b.instruction.opcode):
        return False
    return a.shape.dims == b.shape.dims and a.shape.strides == b.shape.strides


def _ordered(groups: list[list[Leaf]], graph: Graph) -> list[list[Leaf]] | None:
    """The groups in an order in which what is overwritten is not read any more; None if there is none."""
    rest = [(group, _read(group, graph), {leaf.memory for leaf in group}) for group in groups]
    found: list[list[Leaf]] = []
    while rest:
        ready = next(
            (row for row in rest if all(other is row or not row[2] & other[1] for other in rest)),
            None,
        )
        if ready is None:
            return None
        rest.remove(ready)
        found.append(ready[0])
    return found


def _read(group: list[Leaf], graph: Graph) -> set[Memory]:
    found, seen = set[Memory](), set[Instruction]()
    stack = [leaf.instruction for leaf in group]
    while stack:
        i = stack.pop()
        if i in seen:
            continue
        seen.add(i)
        if i in graph.leaves:
            found.add(graph.leaves[i])
        else:
            stack.extend(i.operands)
    return found


def _saved(e: Elemental, request: KernelRequest, leaves: Sequence[Leaf]) -> list[str]:
    """Copies of the arguments that are overwritten, from which the kernel reads instead. Returns their names."""
    overwritten = {leaf.memory for leaf in leaves if leaf.in_place}
    names = []
    for memory in sorted(overwritten, key=lambda m: m.pointer):
        size = next(a.slice.size for n, a in enumerate(request.arguments) if argument(n) == memory)
        name = e.code.variable("void *", f"malloc({max(size, 1)})")
        e.code.line(f"if ({name} == NULL) abort();")
        e.code.line(f"memcpy({name}, {memory.pointer}, {size});")
        e.leaves = {i: Memory(name) if m == memory else m for i, m in e.leaves.items()}
        names.append(name)
    return names


def _emit_group(e: Elemental, request: KernelRequest, group: list[Leaf]) -> None:
    first = group[0]
    if first.shape.size == 0:
        return
    i = first.instruction
    if i not in e.leaves and is_whole(i):
        WHOLE[i.opcode](e, i, _all_leaves(group), _scratch(e, request, i))
    elif i not in e.leaves and i.opcode is Op.DYNAMIC_UPDATE_SLICE and len(group) == 1:
        emit_update(e, first)
    elif i not in e.leaves and _is_abreast(i):
        (d,) = i.dimensions

        def write(at: At) -> None:
            for k in range(i.shape.dims[d]):
                _write(e, group, (*at[:d], k, *at[d + 1 :]))

        nest(e, first.shape, write, skip=(d,))
    else:
        nest(e, first.shape, lambda at: _write(e, group, at))


def _is_abreast(i: Instruction) -> bool:
    if i.opcode is not Op.CONCATENATE:
        return False
    (d,) = i.dimensions
    return i.shape.minor_to_major[0] == d and i.shape.dims[d] <= ABREAST


def _all_leaves(group: list[Leaf]) -> list[Leaf]:
    """The leaves of one instruction in order, each once."""
    i, leaves = group[0].instruction, {leaf.path: leaf for leaf in group}
    wanted = [path for path, _ in i.shape.leaves()]
    if len(group) != len(wanted) or set(leaves) != set(wanted):
        raise UnsupportedError(
            "c",
            f"{i.opcode.value} inside a fusion",
            location=i.location,
            remedy=f"let the results of the {i.opcode.value} be the fusion's results, each once",
        )
    return [leaves[path] for path in wanted]


def _scratch(e: Elemental, request: KernelRequest, i: Instruction) -> str:
    """The name of scratch memory, for a sort."""
    if i.opcode is not Op.SORT:
        return ""
    if request.scratch >= 0:
        return f"arg{request.scratch}"
    name = e.code.name("scratch")
    e.code.line(f"uint64_t {name}[{ON_STACK // 8}];")
    return name


def _write(e: Elemental, group: list[Leaf], at: At) -> None:
    """Compute all, then store all, because a store may overwrite what another element reads."""
    values = [_at_path(e.value(leaf.instruction, at), leaf) for leaf in group]
    for leaf, value in zip(group, values, strict=True):
        e.store(leaf.memory, leaf.shape, at, value)


def _at_path(value: Value, leaf: Leaf):
    if not leaf.path:
        return value
    assert isinstance(value, tuple) and len(leaf.path) == 1
    return value[leaf.path[0]]


def missing(requests: Sequence[KernelRequest]) -> list[UnsupportedError]:
    """One error for each opcode and type that no row of the tables has."""
    found: dict[str, UnsupportedError] = {}
    for request in requests:
        for i in graph_of(request).instructions():
            for one, scalar in [(i, False), *((inner, True) for region in i.called() for inner in _region(region))]:
                if not _is_supported(one, scalar):
                    dtype = (one.operands[0] if one.operands else one).shape.dtype
                    what = f"{one.opcode.value}({dtype.value})"
                    remedy = f"add {one.opcode!r} to SCALARS in backends/c/scalars.py, or to RULES in kernel.py"
                    found.setdefault(what, UnsupportedError("c", what, location=one.location, remedy=remedy))
    return list(found.values())


def _region(region: Computation):
    for i in region.instructions:
        yield i
        for inner in i.called():
            yield from _region(inner)


def _is_supported(i: Instruction, scalar: bool) -> bool:
    if i.opcode is Op.BITCAST and changes_elements(i):
        return False
    if i.shape.is_dynamic or any(not s.is_array for _, s in i.shape.leaves()):
        return False
    if i.opcode in SCALARS:
        return True
    return i.opcode in SCALAR_OPS if scalar else i.opcode in RULES or i.opcode is Op.TUPLE
