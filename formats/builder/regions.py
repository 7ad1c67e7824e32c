"""Ops of XlaBuilder that apply a computation: reduce, reduce_window, map, sort, while_, conditional, call, …

A computation is a built module or a Python function of XlaOps, which is called once to build it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...hlo.attributes import Window
from ...hlo.ir import Computation, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from .builder import XlaBuilder
from .movement import scalars_computation
from .values import ComputationLike, Value, XlaOp
from .windows import Padding, window_of


def _listed(value: XlaOp | Value | Sequence[Any]) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _with_inits(
    operands: XlaOp | Sequence[XlaOp], init_values: Value | Sequence[Value]
) -> tuple[list[XlaOp], list[XlaOp]]:
    xs, inits = _listed(operands), _listed(init_values)
    if not xs or len(xs) != len(inits):
        (xs or [None])[0].builder.fail(f"{len(inits)} init values for {len(xs)} operands")
    return xs, [x.builder.value(init, x) for x, init in zip(xs, inits)]


def reduce(
    operands: XlaOp | Sequence[XlaOp],
    init_values: Value | Sequence[Value],
    computation: ComputationLike,
    dimensions_to_reduce: Sequence[int],
) -> XlaOp:
    """Elements combined along dimensions (Reduce). computation(accumulator…, element…) takes and returns scalars; with
    several operands the result is a tuple.
    """
    xs, inits = _with_inits(operands, init_values)
    region = scalars_computation(xs[0], computation, [*inits, *xs], "reducer")
    return xs[0].builder.add(Op.REDUCE, [*xs, *inits], dimensions=tuple(dimensions_to_reduce), to_apply=region)


def reduce_all(operand: XlaOp, init_value: Value, computation: ComputationLike) -> XlaOp:
    """All elements combined into one (ReduceAll)."""
    return reduce(operand, init_value, computation, range(operand.rank))


def reduce_window(
    operands: XlaOp | Sequence[XlaOp],
    init_values: Value | Sequence[Value],
    computation: ComputationLike,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    base_dilations: Sequence[int] | None = None,
    window_dilations: Sequence[int] | None = None,
) -> XlaOp:
    """The elements in each position of a window combined (ReduceWindow, ReduceWindowWithGeneralPadding). padding:
    'SAME', 'VALID', or (low, high) of each dimension.
    """
    xs, inits = _with_inits(operands, init_values)
    b = xs[0].builder
    window = window_of(b, xs[0].dims, window_dimensions, window_strides, padding, base_dilations, window_dilations)
    region = scalars_computation(xs[0], computation, [*inits, *xs], "reducer")
    return b.add(Op.REDUCE_WINDOW, [*xs, *inits], window=window, to_apply=region)


def select_and_scatter(
    operand: XlaOp,
    select: ComputationLike,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: Padding,
    source: XlaOp,
    init_value: Value,
    scatter: ComputationLike,
) -> XlaOp:
    """Each source element combined into the element of its window that `select` chooses (SelectAndScatter,
    SelectAndScatterWithGeneralPadding). select(a, b) says whether a is kept; scatter(old, source) combines.
    """
    b = operand.builder
    window: Window = window_of(b, operand.dims, window_dimensions, window_strides, padding)
    chosen = scalars_computation(operand, select, [operand, operand], "select")
    combined = scalars_computation(operand, scatter, [source, source], "scatter")
    operands = [operand, source, b.value(init_value, source)]
    return b.add(Op.SELECT_AND_SCATTER, operands, window=window, select=chosen, scatter=combined)


def map(
    builder: XlaBuilder,
    operands: Sequence[XlaOp],
    computation: ComputationLike,
    dimensions: Sequence[int] | None = None,
) -> XlaOp:
    """A computation of scalars applied to each element (Map)."""
    region = scalars_computation(operands[0], computation, operands, "map")
    dims = range(operands[0].rank) if dimensions is None else dimensions
    return builder.add(Op.MAP, operands, dimensions=tuple(dims), to_apply=region)


def sort(
    operands: XlaOp | Sequence[XlaOp],
    comparator: ComputationLike | None = None,
    dimension: int = -1,
    is_stable: bool = False,
) -> XlaOp:
    """The operands sorted together along a dimension (Sort). comparator(a0, b0, a1, b1, …) says whether the element
    of the a comes first; without it, the first operand is sorted ascending. Several operands give a tuple.
    """
    xs: list[XlaOp] = _listed(operands)
    region = scalars_computation(xs[0], comparator or _ascending, [x for x in xs for _ in range(2)], "comparator")
    d = dimension + xs[0].rank if dimension < 0 else dimension
    return xs[0].builder.add(Op.SORT, xs, dimensions=(d,), is_stable=is_stable or None, to_apply=region)


def _ascending(a: XlaOp, b: XlaOp, *_: XlaOp) -> XlaOp:
    if a.dtype.is_float:
        return a.builder.add(Op.COMPARE, [a, b], direction="LT", type="TOTALORDER")
    return a < b


def top_k(operand: XlaOp, k: int, largest: bool = True) -> XlaOp:
    """(values, s32 indices) of the k largest elements of the last dimension (TopK)."""
    return operand.builder.add(Op.TOPK, [operand], k=k, largest=largest)


# -- control flow -----------------------------------------------------------------------------------------------------
def while_(condition: ComputationLike, body: ComputationLike, init: XlaOp | Sequence[Value]) -> XlaOp:
    """The body applied to the state while the condition holds (While). Both are functions of the state; that of a tuple
    is one XlaOp, whose elements are state[0], state[1], …. A list or tuple as init becomes a tuple.
    """
    state = _as_op(init)
    b = state.builder
    test = b.computation(condition, [state.shape], "condition")
    step = b.computation(body, [state.shape], "body")
    return b.add(Op.WHILE, [state], condition=test, body=step)


def _as_op(value: XlaOp | Sequence[Value]) -> XlaOp:
    if isinstance(value, XlaOp):
        return value
    first = next((v for v in value if isinstance(v, XlaOp)), None)
    if first is None:
        raise TypeError("none of the values is an XlaOp: make one with ops.constant")
    return first.builder.add(Op.TUPLE, value)


def conditional(
    selector: XlaOp,
    branch_computations: Sequence[ComputationLike],
    branch_operands: Sequence[XlaOp | Sequence[Value]],
) -> XlaOp:
    """One branch applied to its operand (Conditional). selector: s32, the number of the branch (out of range: the
    last one), or pred: then the first branch is that of true, the second that of false.
    """
    b = selector.builder
    operands = [_as_op(operand) for operand in branch_operands]
    if len(operands) != len(branch_computations):
        b.fail(f"{len(operands)} operands for {len(branch_computations)} branches", "give one for each")
    made = [
        b.computation(branch, [operand.shape], f"branch_{n}")
        for n, (branch, operand) in enumerate(zip(branch_computations, operands))
    ]
    if selector.dtype.value != "pred":
        return b.add(Op.CONDITIONAL, [selector, *operands], branch_computations=made)
    if len(made) != 2:
        b.fail(f"{len(made)} branches for a pred", "give the branch of true, then that of false")
    return b.add(Op.CONDITIONAL, [selector, *operands], true_computation=made[0], false_computation=made[1])


def call(builder: XlaBuilder, computation: ComputationLike, operands: Sequence[XlaOp]) -> XlaOp:
    """A computation applied to operands (Call)."""
    target = builder.computation(computation, [o.shape for o in operands], "callee")
    return builder.add(Op.CALL, operands, to_apply=target)


def composite_call(
    builder: XlaBuilder,
    computation: ComputationLike,
    operands: Sequence[XlaOp],
    name: str,
    attributes: str = "{}",
    version: int = 0,
) -> XlaOp:
    """A call that stands for an op of this name (CompositeCall). attributes: text of an MLIR dictionary."""
    target = builder.computation(computation, [o.shape for o in operands], "composite")
    with builder.frontend_attributes(
        **{"composite.name": name, "composite.attributes": attributes, "composite.version": str(version)}
    ):
        return builder.add(Op.CALL, operands, to_apply=target, is_composite=True)


def scan(
    inputs: Sequence[XlaOp],
    inits: Sequence[XlaOp],
    computation: ComputationLike,
    scan_dimension: int,
    is_reverse: bool = False,
    is_associative: bool | None = None,
) -> XlaOp:
    """The computation applied to slices along a dimension, one after the other, with carries (Scan).
    computation(slice…, carry…) returns (output…, carry…); the result is (outputs…, last carries…).
    """
    first = (*inputs, *inits)[0]
    shapes = [_sliced(x.shape, scan_dimension) for x in inputs] + [i.shape for i in inits]
    region = first.builder.computation(computation, shapes, "scan")
    return first.builder.add(
        Op.SCAN,
        [*inputs, *inits],
        dimensions=(scan_dimension,),
        is_reverse=is_reverse or None,
        is_associative=None if is_associative is None else str(is_associative).lower(),
        num_carries=len(inits),
        to_apply=region,
    )


def _sliced(shape: Shape, d: int) -> Shape:
    return Shape(shape.dtype, (*shape.dims[:d], *shape.dims[d + 1 :]))


def fusion(builder: XlaBuilder, operands: Sequence[XlaOp], computation: ComputationLike, kind: str = "kLoop") -> XlaOp:
    """Ops that are compiled as one kernel (Fusion). kind: kLoop, kInput, kOutput or kCustom."""
    body = builder.computation(computation, [o.shape for o in operands], "fused_computation")
    return builder.add(Op.FUSION, operands, body.root.shape, kind=kind, calls=body)


def result_shape(computation: Module | Computation) -> Shape:
    """The shape that a computation returns (GetProgramShape().result())."""
    return computation.result_shape if isinstance(computation, Module) else computation.root.shape


def program_shape(computation: Module | Computation) -> tuple[tuple[Shape, ...], Shape]:
    """The shapes of the parameters and of the result (GetProgramShape)."""
    entry = computation.entry if isinstance(computation, Module) else computation
    return tuple(p.shape for p in entry.parameters), entry.root.shape


__all__ = [
    "call",
    "composite_call",
    "conditional",
    "fusion",
    "map",
    "program_shape",
    "reduce",
    "reduce_all",
    "reduce_window",
    "result_shape",
    "scan",
    "select_and_scatter",
    "sort",
    "top_k",
    "while_",
]
