"""LHLO kernels as a small graph of buffers and the nodes that write them.

Fusions are dissolved: memrefs of their region become the buffers outside; tuples and forwarded memrefs become copies. A
kernel then consists of its output buffers, each written by one node, and of its input buffers, which are arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from mlir import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Literal
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, field, replace
from ...hlo.shapes import Shape
from ...lhlo import read
from ...lhlo.module import LhloModule
from .elements import NARROW

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Buffer:
    """One array value: an argument (≥ 0) with an alignment in bytes, the `number`-th output of `writer`, or both."""

    shape: Shape
    argument: int = -1
    alignment: int = 1
    writer: Node | None = None
    number: int = 0
    strides: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.strides = self.shape.strides

    @property
    def dtype(self) -> DType:
        return self.shape.dtype

    @property
    def dims(self) -> tuple[int, ...]:
        return self.shape.dims

    @property
    def order(self) -> list[int]:
        """The dimensions of several places (or of none), the slowest in memory first."""
        return [d for d in reversed(self.shape.minor_to_major) if self.shape.dims[d] != 1]

    @property
    def fastest(self) -> int | None:
        """The dimension whose places are neighbours in memory; None if all have one place."""
        return self.order[-1] if self.order else None


@dataclass(eq=False, slots=True)
class Node:
    """One LHLO op. attributes: HLO's names and values; bodies: of reduce, map, …; literal: of a constant.

    name: of the HLO instruction.
    """

    opcode: Op
    inputs: Sequence[Buffer]
    outputs: Sequence[Buffer]
    attributes: Mapping[str, Any]
    bodies: Sequence[Body] = ()
    literal: Literal | None = None
    name: str = ""

    @property
    def output(self) -> Buffer:
        return self.outputs[0]


@dataclass(eq=False, slots=True)
class Body:
    """A computation on scalars (or arrays): its parameters, and its outputs with their writers."""

    parameters: Sequence[Buffer]
    outputs: Sequence[Buffer]


@dataclass(eq=False, slots=True)
class Argument:
    """One pointer of the kernel's signature."""

    alignment: int
    size: int
    written: bool


@dataclass(eq=False, slots=True)
class KernelGraph:
    """A kernel. opcode: of its only op, possibly fusion. results: the output buffers, which are in arguments.

    scratch: the number of the argument that is scratch memory, or -1.
    """

    name: str
    opcode: Op | None
    arguments: Sequence[Argument]
    operands: Sequence[Buffer]
    results: Sequence[Buffer]
    scratch: int = -1


def graphs(lhlo: LhloModule) -> Iterator[KernelGraph]:
    """The kernels of a module, in order."""
    for kernel in read.kernels(lhlo):
        arguments = [
            _argument(value, attributes)
            for value, attributes in zip(kernel.arguments, kernel.argument_attributes, strict=True)
        ]
        operands, results = (
            [Buffer(read.shape_of(v), n, arguments[n].alignment) for v in values for n in [kernel.argument_of(v)]]
            for values in (read.inputs(kernel.op), read.outputs(kernel.op))
        )
        _read_op(kernel.op, operands, results)
        scratch = next((n for n, given in enumerate(kernel.argument_attributes) if "lhlo.scratch" in given), -1)
        yield KernelGraph(kernel.name, read.opcode(kernel.op), arguments, operands, results, scratch)


def _argument(value: ir.Value, attributes: Mapping[str, ir.Attribute]) -> Argument:
    alignment = int(attributes["lhlo.alignment"].value) if "lhlo.alignment" in attributes else 1
    size = int(attributes["lhlo.slice"][2]) if "lhlo.slice" in attributes else read.shape_of(value).bytes
    return Argument(alignment, size, "lhlo.written" in attributes)


def _read_op(op: ir.Operation, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Create the node (or, for a fusion, the nodes) that write `outputs`."""
    opcode = read.opcode(op)
    if opcode is Op.FUSION:
        _read_block(read.bodies(op)[0], [*inputs, *outputs])
        return
    if opcode in FORWARDS or opcode is None:
        first = int(op.attributes["first"].value) if opcode is Op.GET_TUPLE_ELEMENT else 0
        for source, target in zip(inputs[first:], outputs, strict=False):
            target.writer = Node(Op.COPY, (source,), (target,), {})
        return
    literal = read.literal(op) if opcode is Op.CONSTANT else None
    count = 1 if opcode is Op.SORT else len(outputs)
    bodies = tuple(_read_body(block, count) for block in read.bodies(op))
    attributes = read.attributes(op)
    if opcode is Op.REDUCE and is_rounded_once(inputs[0], attributes["dimensions"]):
        _widen(bodies[0])
    name = op.attributes["name"].value if "name" in op.attributes else ""
    node = Node(opcode, tuple(inputs), tuple(outputs), attributes, bodies, literal, name)
    for number, buffer in enumerate(outputs):
        buffer.writer, buffer.number = node, number


def is_rounded_once(operand: Buffer, dimensions: Sequence[int]) -> bool:
    """Whether a reduction has narrow accumulators and many steps. Others round where their computation says so."""
    return operand.dtype in WIDENED and math.prod(operand.dims[d] for d in dimensions) > STEPWISE


def _widen(body: Body) -> None:
    """Let the computation of a long reduction of narrow floats work on f32: it is rounded once, at the end."""
    buffers = list(body.parameters)
    for node in reachable(body.outputs):
        buffers += [*node.inputs, *node.outputs]
    for buffer in buffers:
        if buffer.dtype in WIDENED:
            buffer.shape = replace(buffer.shape, dtype=DType.F32)


WIDENED = frozenset({DType.F16, DType.BF16, *NARROW})

STEPWISE = 32
"""A reduction of at most STEPWISE narrow floats is rounded at each step, as in XLA:CPU. Of 64 steps in f16, the error
would be up to twice XLA's.
"""

FORWARDS = frozenset({Op.TUPLE, Op.GET_TUPLE_ELEMENT})


def _read_body(block: ir.Block, outputs: int) -> Body:
    buffers = [Buffer(read.shape_of(v)) for v in block.arguments]
    _read_block(block, buffers)
    return Body(buffers[: len(buffers) - outputs], buffers[len(buffers) - outputs :])


def _read_block(block: ir.Block, arguments: Sequence[Buffer]) -> None:
    """Read the ops of a region. arguments: the buffers of its block arguments."""
    buffers: dict[ir.Value, Buffer] = dict(zip(block.arguments, arguments, strict=True))
    for view in block.operations:
        op = view.operation
        if op.name == "memref.alloca":
            buffers[op.result] = Buffer(read.shape_of(op.result))
        elif op.name != "vector.yield":
            _read_op(op, [buffers[v] for v in read.inputs(op)], [buffers[v] for v in read.outputs(op)])


def visited(start: Iterable[T], following: Callable[[T], Iterable[T]]) -> Iterator[T]:
    """All that is reached from the start, each once, what follows last first."""
    seen: set[T] = set()
    stack = list(start)
    while stack:
        item = stack.pop()
        if item not in seen:
            seen.add(item)
            yield item
            stack.extend(following(item))


def reachable(results: Iterable[Buffer]) -> Iterator[Node]:
    """Every node that the results depend on, each once, without nodes in bodies."""
    return visited(writers(results), lambda node: writers(node.inputs))


def writers(buffers: Iterable[Buffer]) -> Iterator[Node]:
    """The nodes that write those that are not in memory."""
    return (x.writer for x in buffers if x.writer is not None)


def with_bodies(results: Iterable[Buffer]) -> Iterator[Node]:
    """Every node that the results depend on, including nodes in bodies."""
    for node in reachable(results):
        yield node
        for body in node.bodies:
            yield from with_bodies(body.outputs)


def origin(buffer: Buffer) -> Buffer:
    """The buffer that a result is a copy of; the buffer itself if it is no copy."""
    while buffer.writer is not None and buffer.writer.opcode is Op.COPY:
        source = buffer.writer.inputs[0]
        if (
            source.writer is None
            or source.dims != buffer.dims
            or source.strides != buffer.strides
            or source.dtype is not buffer.dtype
        ):
            break
        buffer = source
    return buffer
