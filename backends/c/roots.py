"""Opcodes that write all their results with loops of their own, at the root of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from ...hlo.analysis.windows import running
from ...hlo.errors import UnsupportedError
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from .code import Place, Var
from .elemental import At, Elemental, Memory
from .folds import Fold
from .graph import Leaf
from .movement import index_vector, starts_of
from .types import c_type


def nest(e: Elemental, shape: Shape, inside: Callable[[At], None], skip: Sequence[int] = ()) -> None:
    """Loops over the positions of a shape, in the order of memory; at 0 along the dimensions of `skip`."""
    places: list[Place] = [0] * shape.rank
    with ExitStack() as loops:
        for d in shape.minor_to_major[::-1]:
            if d not in skip:
                places[d] = loops.enter_context(e.code.span(shape.dims[d]))
        inside(tuple(places))


def copied(e: Elemental, operand: Instruction, shape: Shape, memory: Memory) -> None:
    """Write all elements of an operand to memory, unless it is there already."""
    held = e.leaves.get(operand)
    if held is None or held.pointer != memory.pointer:
        nest(e, shape, lambda at: e.store(memory, shape, at, e.single(operand, at)))


def emit_update(e: Elemental, leaf: Leaf) -> None:
    i, code = leaf.instruction, e.code
    operand, update, *starts = i.operands
    copied(e, operand, leaf.shape, leaf.memory)
    if update.shape.size == 0:
        return
    limits = [n - m for n, m in zip(operand.shape.dims, update.shape.dims, strict=True)]
    begins = starts_of(e, starts, limits)

    def write(at: At) -> None:
        value = e.single(update, at)
        e.store(leaf.memory, leaf.shape, tuple(code.add(b, p) for b, p in zip(begins, at, strict=True)), value)

    nest(e, Shape(update.shape.dtype, update.shape.dims, leaf.shape.layout), write)


def emit_scatter(e: Elemental, i: Instruction, leaves: Sequence[Leaf], scratch: str) -> None:
    code, a, many = e.code, i.attributes, len(leaves)
    arrays, indices, updates = i.operands[:many], i.operands[many], i.operands[many + 1 :]
    for operand, leaf in zip(arrays, leaves, strict=True):
        copied(e, operand, leaf.shape, leaf.memory)
    source = updates[0].shape
    if not source.size:
        return
    dims, vector = leaves[0].shape.dims, a["index_vector_dim"]
    pairs = zip(a.get("input_batching_dims", ()), a.get("scatter_indices_batching_dims", ()), strict=True)
    batching = {d: b - (b > vector) for d, b in pairs}
    gone = {*a["inserted_window_dims"], *batching}
    kept = [d for d in range(len(dims)) if d not in gone]
    window_dims = a["update_window_dims"]
    window = dict(zip(kept, window_dims, strict=True))  # dimension of the operand → of the updates
    batch_dims = [d for d in range(source.rank) if d not in window_dims]
    with ExitStack() as loops:
        at: list[Place] = [0] * source.rank
        for d in batch_dims:
            at[d] = loops.enter_context(code.span(source.dims[d]))
        batch = [at[d] for d in batch_dims]
        starts: dict[int, Place] = {d: batch[b] for d, b in batching.items()}
        found = index_vector(e, indices, vector, batch, a["scatter_dims_to_operand_dims"])
        limits = {d: dims[d] - (source.dims[window[d]] if d in window else 1) for d in found}
        inside = [f"{p} >= 0 && {p} <= {limits[d]}" for d, p in found.items()]
        starts |= found
        if inside:
            loops.enter_context(code.block(f"if ({' && '.join(inside)})", barrier=True))
        for d in leaves[0].shape.minor_to_major[::-1]:
            if d in window:
                at[window[d]] = loops.enter_context(code.span(source.dims[window[d]]))
        target = tuple(code.add(starts.get(d, 0), at[window[d]] if d in window else 0) for d in range(len(dims)))
        new = [e.single(u, tuple(at)) for u in updates]
        old = [e.load(leaf.memory, leaf.shape, target) for leaf in leaves]
        value = e.apply(i.called()[0], [*old, *new])
        for leaf, v in zip(leaves, value if isinstance(value, tuple) else (value,), strict=True):
            e.store(leaf.memory, leaf.shape, target, v)


def emit_running(e: Elemental, i: Instruction, leaves: Sequence[Leaf], scratch: str) -> None:
    """A cumulative reduce-window: each row has one running combination."""
    run, code, many = running(i), e.code, len(leaves)
    assert run is not None
    size, count = i.operands[0].shape.dims[run.dimension], leaves[0].shape.dims[run.dimension]
    skipped = size - count if run.backward else 0

    def row(at: At) -> None:
        places = list(at)
        fold = Fold(e, i, [e.scalar(o) for o in i.operands[many:]], size)
        with code.loop(0, count + skipped) as turn:
            places[run.dimension] = code.subtract(size - 1, turn) if run.backward else turn
            fold.add([e.single(o, tuple(places)) for o in i.operands[:many]])
            values = fold.values()
            with code.block(f"if ({turn} >= {skipped})" if skipped else "", barrier=True):
                for leaf, value in zip(leaves, values, strict=True):
                    e.store(leaf.memory, leaf.shape, tuple(places), value)

    nest(e, leaves[0].shape, row, (run.dimension,))


@dataclass(frozen=True, slots=True)
class Row:
    """A row of one operand: a pointer to its first element, and the distance of elements. Both are C names."""

    pointer: str
    stride: str


def emit_sort(e: Elemental, i: Instruction, leaves: Sequence[Leaf], scratch: str) -> None:
    """Merges from runs of one element on; stable. The rows go to and fro between scratch memory and the result."""
    code, d, shape = e.code, i.dimensions[0], i.operands[0].shape
    n, types = shape.dims[d], [c_type(o.shape.dtype) for o in i.operands]
    cut = any(leaf.shape.dims[d] != n for leaf in leaves)
    rows, total = [], 0
    for operand, leaf in zip(i.operands, leaves, strict=True):
        step = -(-max(n, leaf.shape.dims[d]) * operand.shape.dtype.bytes // 64) * 64
        rows.append([total, total + step] if cut else [total])
        total += len(rows[-1]) * step

    def row(at: At) -> None:
        from_, to = [], []
        for k, (leaf, type_) in enumerate(zip(leaves, types, strict=True)):
            first = f"({type_} *)((char *){scratch} + {rows[k][0]})"
            from_.append(Row(code.variable(f"{type_} *", first), code.variable("int64_t", "1")))
            if cut:
                second, stride = f"({type_} *)((char *){scratch} + {rows[k][1]})", 1
            else:
                second = f"({type_} *){leaf.memory.pointer} + {e.offset(leaf.shape, at)}"
                stride = leaf.shape.strides[d]
            to.append(Row(code.variable(f"{type_} *", second), code.variable("int64_t", str(stride))))
        with code.span(n) as j:
            places = (*at[:d], j, *at[d + 1 :])
            for target, operand in zip(from_, i.operands, strict=True):
                code.line(f"{target.pointer}[{j}] = {e.single(operand, places)};")
        turned = code.variable("int", "0")
        width = code.variable("int64_t")
        with code.block(f"for ({width} = 1; {width} < {n}; {width} *= 2)", barrier=True):
            _merge(e, i, n, width, from_, to)
            for a, b, type_ in zip(from_, to, types, strict=True):
                code.line(f"{{ {type_} *p = {a.pointer}; {a.pointer} = {b.pointer}; {b.pointer} = p; }}")
                code.line(f"{{ int64_t s = {a.stride}; {a.stride} = {b.stride}; {b.stride} = s; }}")
            code.line(f"{turned} = !{turned};")
        for leaf, source in zip(leaves, from_, strict=True):
            with code.block("" if cut else f"if (!{turned})", barrier=True), code.span(leaf.shape.dims[d]) as j:
                places = (*at[:d], j, *at[d + 1 :])
                value = f"{source.pointer}[{code.add(j, leaf.start)} * {source.stride}]"
                e.store(leaf.memory, leaf.shape, places, code.local(value))

    nest(e, leaves[0].shape, row, (d,))


def _merge(e: Elemental, i: Instruction, n: int, width: str, from_: Sequence[Row], to: Sequence[Row]) -> None:
    """Merge neighbouring runs of `width` elements."""
    code = e.code
    low = code.name("i")
    with code.block(f"for (int64_t {low} = 0; {low} < {n}; {low} += 2 * {width})", barrier=True):
        middle = code.variable("const int64_t", f"{low} + {width} < {n} ? {low} + {width} : {n}")
        high = code.variable("const int64_t", f"{low} + 2 * {width} < {n} ? {low} + 2 * {width} : {n}")
        left, right = code.variable("int64_t", low), code.variable("int64_t", middle)
        place = code.name("i")
        with code.block(f"for (int64_t {place} = {low}; {place} < {high}; {place}++)", barrier=True):
            taken = code.variable("int64_t", left)
            with code.block(f"if ({left} >= {middle})", barrier=True):
                code.line(f"{taken} = {right};")
            with code.block(f"else if ({right} < {high})", barrier=True):
                arguments: list[Var] = []
                for r, operand in zip(from_, i.operands, strict=True):
                    for at in (right, left):
                        type_ = f"const {c_type(operand.shape.dtype)}"
                        arguments.append(code.local(code.variable(type_, f"{r.pointer}[{at} * {r.stride}]")))
                code.line(f"if ({e.apply(i.called()[0], arguments)}) {taken} = {right};")
            code.line(f"if ({taken} == {left} && {left} < {middle}) {left}++; else {right}++;")
            for a, b in zip(from_, to, strict=True):
                code.line(f"{b.pointer}[{place} * {b.stride}] = {a.pointer}[{taken} * {a.stride}];")


WHOLE = {Op.SCATTER: emit_scatter, Op.SORT: emit_sort, Op.REDUCE_WINDOW: emit_running}
"""Opcode → (elemental, instruction, a leaf for each result, scratch memory)."""


def refused(name: str) -> Callable[..., Var]:
    """The rule of an opcode that stands at the root of a kernel only."""

    def refuse(e: Elemental, i: Instruction, at: At) -> Var:
        what = f"{name} inside a fusion"
        remedy = f"let the results of the {name} be the fusion's results, each once"
        raise UnsupportedError("c", what, location=i.location, remedy=remedy)

    return refuse


REFUSED = {op: partial(refused(op.value)) for op in (Op.SCATTER, Op.SORT)}
