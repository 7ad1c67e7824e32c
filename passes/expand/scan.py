"""Expand scan into a loop over one dimension; an associative scan into log₂ n steps on whole arrays.

The loop reads a slice of each input per iteration. A scan that is marked associative, and whose outputs are one
commutative op (sum, product, …) of input and carry, combines each element with the one 1, 2, 4, … positions before it
(Hillis and Steele, 1986).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from ..building import COMMUTATIVE, Builder, apply_pointwise, is_pointwise
from ..expansion import expand_ops


def expand_scan(module: Module) -> Module:
    """Replace every scan outside kernels by a loop, including scans within the region of another."""
    while Op.SCAN in module.opcodes:
        after = expand_ops(module, {Op.SCAN: scan_loop})
        if after is module:
            break
        module = after
    return module


def scan_loop(i: Instruction, b: Builder) -> Instruction:
    """Expand one scan. The result holds the outputs, then the last carries."""
    carried = i.attributes.get("num_carries", len(i.operands) // 2)
    inputs = [b.plain(x) for x in i.operands[: len(i.operands) - carried]]
    carries = [b.plain(x) for x in i.operands[len(i.operands) - carried :]]
    shapes = i.shape.elements if i.shape.is_tuple else (i.shape,)
    outputs = shapes[: len(shapes) - carried]
    if not inputs[0].shape.dims[i.dimensions[0]]:
        results = [*(_zeros(b, s) for s in outputs), *carries]
    elif i.attributes.get("is_associative") == "true" and _doubles(i.attributes["to_apply"], inputs, carries):
        results = _doubled(i, b, inputs, carries)
    else:
        results = _in_order(i, b, inputs, carries, outputs)
    return b.tuple(results) if i.shape.is_tuple else results[0]


def _zeros(b: Builder, shape: Shape) -> Instruction:
    return b.constant(0, shape.dtype, shape.dims)


def _in_order(
    i: Instruction,
    b: Builder,
    inputs: Sequence[Instruction],
    carries: Sequence[Instruction],
    outputs: Sequence[Shape],
) -> list[Instruction]:
    dim, region, reverse = i.dimensions[0], i.attributes["to_apply"], i.attributes.get("is_reverse") is True
    length = inputs[0].shape.dims[dim]
    many, carried = len(inputs), len(carries)

    def step(b: Builder, k: Instruction, values: list[Instruction]) -> list[Instruction]:
        at = b.binary(Op.SUBTRACT, b.constant(length - 1, DType.S32), k) if reverse else k
        inputs, carries, outputs = values[:many], values[many : many + carried], values[many + carried :]
        root = b.inline(region, [*(_take(b, x, dim, at) for x in inputs), *carries])
        leaves = list(map(b.plain, root.operands if root.opcode is Op.TUPLE else _leaves(b, root)))
        cut = len(leaves) - carried
        return [*inputs, *leaves[cut:], *(_put(b, y, v, dim, at) for y, v in zip(outputs, leaves[:cut], strict=True))]

    init = [*inputs, *carries, *(_zeros(b, s) for s in outputs)]
    done = b.counted(length, init, step)
    return [*done[many + carried :], *done[many : many + carried]]


def _leaves(b: Builder, root: Instruction) -> list[Instruction]:
    return b.elements(root) if root.shape.is_tuple else [root]


def _starts(b: Builder, rank: int, dim: int, at: Instruction) -> list[Instruction]:
    zero = b.constant(0, at.shape.dtype)
    return [at if d == dim else zero for d in range(rank)]


def _take(b: Builder, x: Instruction, dim: int, at: Instruction) -> Instruction:
    dims = x.shape.dims
    sizes = [1 if d == dim else n for d, n in enumerate(dims)]
    slice_ = b.dynamic_slice(x, _starts(b, len(dims), dim, at), sizes)
    return b.reshape(slice_, [n for d, n in enumerate(dims) if d != dim])


def _put(b: Builder, whole: Instruction, part: Instruction, dim: int, at: Instruction) -> Instruction:
    dims = whole.shape.dims
    update = b.reshape(part, [1 if d == dim else n for d, n in enumerate(dims)])
    return b.dynamic_update_slice(whole, update, _starts(b, len(dims), dim, at))


# --- all places at once ----------------------------------------------------------------------------------------------


def _doubles(region: Computation, inputs: Sequence[Instruction], carries: Sequence[Instruction]) -> bool:
    """Whether each carry is one associative op of its input and itself, and is also an output.

    The attribute is_associative alone is not enough: XLA's own tests set it for regions such as x + |c|.
    """
    leaves = region.root.operands if region.root.opcode is Op.TUPLE else ()
    many, parameters = len(carries), region.parameters
    return (
        is_pointwise(region)
        and len(inputs) == many
        and len(leaves) == 2 * many
        and leaves[:many] == leaves[many:]
        and all(
            v.opcode in COMMUTATIVE and set(v.operands) == pair
            for v, pair in zip(leaves, ({parameters[k], parameters[many + k]} for k in range(many)), strict=False)
        )
        and all(x.shape.rank == 1 for x in inputs)
    )


def _doubled(
    i: Instruction, b: Builder, inputs: Sequence[Instruction], carries: Sequence[Instruction]
) -> list[Instruction]:
    region, many = i.attributes["to_apply"], len(carries)
    reverse = i.attributes.get("is_reverse") is True
    length = inputs[0].shape.dims[0]

    def met(x: Instruction, shift: int, later: bool) -> Instruction:
        """The elements that have another `shift` positions before them (later), or those other elements."""
        low, high = (shift, length) if later is not reverse else (0, length - shift)
        return b.slice_in(x, 0, low, high)

    def kept(x: Instruction, shift: int) -> Instruction:
        return b.slice_in(x, 0, length - shift, length) if reverse else b.slice_in(x, 0, 0, shift)

    values, shift = list(inputs), 1
    while shift < length:
        arguments = [met(x, shift, True) for x in values] + [met(x, shift, False) for x in values]
        new = apply_pointwise(b, region, arguments)[:many]
        pieces = [(n, kept(x, shift)) if reverse else (kept(x, shift), n) for n, x in zip(new, values, strict=True)]
        values = [b.concatenate(p, 0) for p in pieces]
        shift *= 2
    first = [b.broadcast(c, (length,)) for c in carries]
    outputs = apply_pointwise(b, region, [*values, *first])[:many]
    last = 0 if reverse else length - 1
    return [*outputs, *(b.reshape(b.slice_in(y, 0, last, last + 1), ()) for y in outputs)]
