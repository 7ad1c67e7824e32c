"""Shape inference for control flow, tuples, calls and random numbers."""

from __future__ import annotations

from collections.abc import Callable

from ..dtypes import DType
from ..ir import Instruction
from ..opcodes import Op
from ..shapes import TOKEN, Shape, tuple_shape
from .rules import arrays, broken, called, check_parameters, make, same

PRED_SCALAR, U32_SCALAR = Shape(DType.PRED), Shape(DType.U32)


def declared(i: Instruction) -> Shape:
    """Any shape is valid: the instruction states it."""
    return i.shape


def operand(i: Instruction) -> Shape:
    return i.operands[0].shape


def parameter(i: Instruction) -> Shape:
    """PARAM1: parameter_replication has one flag per leaf."""
    flags = i.attributes.get("parameter_replication")
    leaves = sum(1 for _ in i.shape.leaves())
    if isinstance(flags, tuple) and len(flags) != leaves:
        broken(i, "PARAM1", f"parameter_replication has {len(flags)} flags for {leaves} leaves")
    return i.shape


def constant(i: Instruction) -> Shape:
    """A constant has the shape of its literal."""
    return i.literal.shape


def tuple_(i: Instruction) -> Shape:
    """A tuple of the operands' shapes."""
    return tuple_shape(*(o.shape for o in i.operands))


def get_tuple_element(i: Instruction) -> Shape:
    """GTE1: the operand is a tuple. GTE2: the index is in range."""
    shape, index = i.operands[0].shape, i.attributes["index"]
    if not shape.is_tuple:
        broken(i, "GTE1", f"the operand has shape {shape}, not a tuple's")
    if not 0 <= index < len(shape.elements):
        broken(i, "GTE2", f"index {index} is outside the tuple's {len(shape.elements)} elements")
    return shape.elements[index]


def add_dependency(i: Instruction) -> Shape:
    """ADDDEP1: the second operand is a token."""
    if i.operands[1].shape.dtype is not DType.TOKEN:
        broken(i, "ADDDEP1", f"the second operand has shape {i.operands[1].shape}, not token[]")
    return i.operands[0].shape


def after_all(i: Instruction) -> Shape:
    """AFTERALL1: the operands are tokens."""
    for o in i.operands:
        if o.shape.dtype is not DType.TOKEN:
            broken(i, "AFTERALL1", f"operand '{o.name}' has shape {o.shape}, not token[]")
    return TOKEN


def call(i: Instruction) -> Shape:
    """CALL1: the operands have the shapes of the computation's parameters."""
    target = called(i, "to_apply", "CALL1")
    check_parameters(i, "CALL1", target, [o.shape for o in i.operands])
    return target.root.shape


def fusion(i: Instruction) -> Shape:
    """FUSION1: the operands have the shapes of the fused computation's parameters, apart from float precision."""
    body = called(i, "calls", "FUSION1")
    check_parameters(i, "FUSION1", body, [o.shape for o in i.operands], loose=True)
    return body.root.shape


def while_(i: Instruction) -> Shape:
    """WHILE1: the condition takes the state and returns pred[]. WHILE2: the body takes the state and returns it."""
    state = i.operands[0].shape
    condition, body = called(i, "condition", "WHILE1"), called(i, "body", "WHILE2")
    check_parameters(i, "WHILE1", condition, (state,))
    if not same(condition.root.shape, PRED_SCALAR):
        broken(i, "WHILE1", f"'{condition.name}' returns {condition.root.shape}, not pred[]")
    check_parameters(i, "WHILE2", body, (state,))
    if not same(body.root.shape, state):
        broken(i, "WHILE2", f"'{body.name}' returns {body.root.shape}, but the state has shape {state}")
    return state


_FORMS = (("branch_computations",), ("true_computation", "false_computation"))
"""The attributes that name the branches: for an s32 selector, and for a pred."""


def conditional(i: Instruction) -> Shape:
    """COND1: the selector is a scalar pred or s32. COND2: a pred has true_computation and false_computation, an s32 has
    branch_computations. COND3: there is one operand per branch. COND4: each branch takes its operand. COND5: all
    branches return the same shape.
    """
    selector, *operands = i.operands
    if selector.shape.rank or selector.shape.dtype not in (DType.PRED, DType.S32):
        broken(i, "COND1", f"the first operand has shape {selector.shape}, not pred[] or s32[]")
    by_truth = selector.shape.dtype is DType.PRED
    wanted, others = _FORMS[by_truth], _FORMS[not by_truth]
    if any(key not in i.attributes for key in wanted) or any(key in i.attributes for key in others):
        broken(i, "COND2", f"of a {selector.shape.dtype.value} needs {' and '.join(wanted)}, not {' or '.join(others)}")
    targets = [i.attributes[key] for key in wanted] if by_truth else list(i.attributes["branch_computations"])
    if not targets:
        broken(i, "COND2", "has no branches")
    if len(operands) != len(targets):
        broken(i, "COND3", f"{len(operands)} operands for {len(targets)} branches")
    for target, o in zip(targets, operands, strict=True):
        check_parameters(i, "COND4", target, (o.shape,))
        if not same(target.root.shape, targets[0].root.shape):
            broken(
                i,
                "COND5",
                f"'{target.name}' returns {target.root.shape}, but '{targets[0].name}' {targets[0].root.shape}",
            )
    return targets[0].root.shape


def custom_call(i: Instruction) -> Shape:
    """CUSTOM1: there is one layout constraint per operand, of a compatible shape. CUSTOM2: aliased outputs and operands
    exist and have the same shape. CUSTOM3: the schedule is one that XLA knows.
    """
    constraints = i.attributes.get("operand_layout_constraints")
    if constraints is not None:
        if len(constraints) != len(i.operands):
            broken(i, "CUSTOM1", f"{len(constraints)} layout constraints for {len(i.operands)} operands")
        for o, wanted in zip(i.operands, constraints, strict=True):
            if not same(o.shape, wanted):
                broken(i, "CUSTOM1", f"layout constraint {wanted} does not suit operand {o.shape}")
    output_aliases(i, "CUSTOM2")
    schedule = i.attributes.get("schedule", SCHEDULES[0])
    if schedule not in SCHEDULES:
        broken(i, "CUSTOM3", f"unknown schedule {schedule}; one of {', '.join(SCHEDULES)}")
    return i.shape


SCHEDULES = ("SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST")
"""When a custom call should run: CustomCallSchedule of XLA."""


def output_aliases(i: Instruction, label: str) -> None:
    """Checks that `output_to_operand_aliasing` pairs outputs and operands that exist and have the same shape."""
    for alias in i.attributes.get("output_to_operand_aliasing", ()):
        try:
            if alias.operand < 0:
                raise IndexError
            out, source = i.shape.at(alias.output), i.operands[alias.operand].shape.at(alias.operand_index)
        except IndexError:
            broken(
                i,
                label,
                f"output_to_operand_aliasing names output {alias.output} and operand {alias.operand} "
                f"{alias.operand_index}, which do not exist",
            )
        if not same(out, source):
            broken(i, label, f"aliased output {out} and operand {source} differ")


def rng(i: Instruction) -> Shape:
    """RNG1: the operands are two scalars. RNG2: they have the result's element type."""
    shapes = arrays(i, "RNG1")
    if len(shapes) != 2 or any(s.rank for s in shapes):
        broken(i, "RNG1", "takes two scalars: the bounds, or mean and deviation")
    if any(s.dtype is not i.shape.dtype for s in shapes):
        broken(i, "RNG2", f"operands must have the type {i.shape.dtype.value} of the result")
    return i.shape


def rng_bit_generator(i: Instruction) -> Shape:
    """RNGBITS1: the state is an array of unsigned integers. RNGBITS2: the result is the bits, or (state, bits).
    RNGBITS3: the state has 16 bytes, or 24 of other algorithms than three_fry.
    """
    (state,) = arrays(i, "RNGBITS1")
    if not state.dtype.is_unsigned:
        broken(i, "RNGBITS1", f"the state has shape {state}, not that of unsigned integers")
    shape = i.shape
    if shape.is_tuple and (len(shape.elements) != 2 or not same(shape.elements[0], state)):
        broken(i, "RNGBITS2", f"the result {shape} must be ({state}, bits)")
    if state.bytes != 16 and (state.bytes != 24 or i.attributes["algorithm"] == "rng_three_fry"):
        broken(i, "RNGBITS3", f"the state {state} has {state.bytes} bytes, not those of {i.attributes['algorithm']}")
    return shape


def rng_state(i: Instruction) -> Shape:
    """RNGSTATE1: the result is u64[2]."""
    if not same(i.shape, make(DType.U64, (2,))):
        broken(i, "RNGSTATE1", f"the result {i.shape} must be u64[2]")
    return i.shape


INFER: dict[Op, Callable[[Instruction], Shape]] = {
    Op.PARAMETER: parameter,
    Op.CONSTANT: constant,
    Op.TUPLE: tuple_,
    Op.GET_TUPLE_ELEMENT: get_tuple_element,
    Op.ADD_DEPENDENCY: add_dependency,
    Op.AFTER_ALL: after_all,
    Op.CALL: call,
    Op.FUSION: fusion,
    Op.WHILE: while_,
    Op.CONDITIONAL: conditional,
    Op.CUSTOM_CALL: custom_call,
    Op.DOMAIN: operand,
    Op.OPT_BARRIER: operand,
    Op.RNG: rng,
    Op.RNG_BIT_GENERATOR: rng_bit_generator,
    Op.RNG_GET_AND_UPDATE_STATE: rng_state,
}
