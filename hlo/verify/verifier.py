"""Checks that a module is well formed: its structure (references, names, order), then each instruction's shape rule."""

from __future__ import annotations

from math import prod

from ..errors import VerificationError
from ..ir import Computation, Instruction, Module
from ..opcodes import Op
from ..opset import OPSET
from ..shapes import Shape
from .infer import INFER
from .rules import broken, same, same_dtype, same_up_to_precision


def verify(module: Module) -> None:
    """Raises VerificationError for the first broken constraint; it names the instruction and its location."""
    check_structure(module)
    for computation in module.computations:
        for instruction in computation.instructions:
            verify_instruction(instruction)
    check_header(module)


def check_form(i: Instruction) -> None:
    """ARITY1: the number of operands is one that the opcode allows. ATTR1: required attributes are present."""
    row = OPSET[i.opcode]
    if not row.low <= len(i.operands) <= row.high:
        broken(i, "ARITY1", f"has {len(i.operands)} operands, but takes {row.arity}")
    for key in row.required + NEEDED.get(i.opcode, ()):
        if key not in i.attributes:
            broken(i, "ATTR1", f"needs the attribute '{key}'", f"add {key}=…")


def verify_instruction(i: Instruction) -> None:
    """Checks its form. SIZE1: an array has at most the dimensions and bytes that NumPy can name, also if it is
    empty. LAYOUT1: a layout is a permutation of the dimensions. SHAPE1: the shape is the one that the opcode's rule
    infers.
    """
    check_form(i)
    for _, leaf in i.shape.leaves():
        if leaf.rank > MOST_DIMENSIONS:
            broken(i, "SIZE1", f"has {leaf.rank} dimensions, {MOST_DIMENSIONS} at most are possible", "reshape it")
        if leaf.is_array and prod(d for d in leaf.dims if d > 0) * leaf.dtype.bytes > MOST_BYTES:
            broken(i, "SIZE1", f"{leaf.without_layout()} is too large to be addressed", "use smaller dimensions")
        if leaf.layout is not None and leaf.is_array and sorted(leaf.layout.minor_to_major) != list(range(leaf.rank)):
            broken(i, "LAYOUT1", f"layout of {leaf} does not order its {leaf.rank} dimensions")
    expected = INFER[i.opcode](i)
    if not _acceptable(i, expected):
        broken(i, "SHAPE1", f"has shape {i.shape.without_layout()}, but its operands give {expected.without_layout()}")


MOST_DIMENSIONS, MOST_BYTES = 64, (1 << 63) - 1

NEEDED = {Op.PARAMETER: ("parameter_number",), Op.CONSTANT: ("literal",), Op.BROADCAST: ("dimensions",)}
"""Required attributes that are not in the opset's rows: they have no name in text, or text may omit them."""

WIDENING = frozenset({Op.DOT, Op.CONVOLUTION, Op.RAGGED_DOT, Op.SCALED_DOT})
"""Opcodes whose result may have another element type than their operands (preferred_element_type)."""


def _acceptable(i: Instruction, expected: Shape) -> bool:
    if same(i.shape, expected):
        return True
    if i.opcode in WIDENING:
        widened = i.shape.dtype.is_array and (
            same_dtype(i.shape.dtype, expected.dtype) or i.shape.dtype.bits >= expected.dtype.bits
        )
        return widened and same_up_to_precision(
            Shape(expected.dtype, i.shape.dims), Shape(expected.dtype, expected.dims)
        )
    return same_up_to_precision(i.shape, expected)


# -- structure ---------------------------------------------------------------------------------------------------------
def check_structure(module: Module) -> None:
    """MODULE1: the entry is among the computations. MODULE2: names are unique. MODULE3: callees come before their
    callers.
    """
    if module.entry not in module.computations:
        raise VerificationError(f"the entry computation '{module.entry.name}' is not in the module [MODULE1]")
    done: set[Computation] = set()
    names: set[str] = set()
    for computation in module.computations:
        if computation.name in names:
            raise VerificationError(f"two computations are named '{computation.name}' [MODULE2]", remedy="rename one")
        names.add(computation.name)
        check_computation(computation, done)
        done.add(computation)


def check_computation(computation: Computation, done: set[Computation]) -> None:
    """COMP1: the root is in the computation. COMP2: operands come before their users, in the same computation. COMP3:
    instruction names are unique. COMP4: parameters are numbered from 0. COMP5: control predecessors come before.
    """
    seen: set[Instruction] = set()
    names: set[str] = set()
    where = f"computation '{computation.name}'"
    for i in computation.instructions:
        for operand in i.operands:
            if operand not in seen:
                broken(i, "COMP2", f"operand '{operand.name}' does not come before it in {where}")
        if i.name in names:
            broken(i, "COMP3", f"a second instruction of this name in {where}", "rename one")
        for name in i.attributes.get("control-predecessors", ()):
            if name not in names:
                broken(i, "COMP5", f"control predecessor '{name}' does not come before it in {where}")
        for target in i.called():
            if target not in done:
                broken(i, "MODULE3", f"calls '{target.name}', which does not come before {where}")
        seen.add(i)
        names.add(i.name)
    if computation.root not in seen:
        raise VerificationError(f"the root of {where} is not in it [COMP1]")
    numbers = [p.parameter_number for p in computation.parameters]
    if numbers != list(range(len(numbers))):
        raise VerificationError(
            f"the parameters of {where} are numbered {numbers} [COMP4]",
            location=computation.parameters[0].location,
            remedy="number them from 0",
        )


def check_header(module: Module) -> None:
    """ENTRY1: entry_computation_layout has the entry's shapes. ALIAS1: aliased outputs and parameters exist and have
    the same shape. DONOR1: donated parameters exist.
    """
    layout, entry = module.attributes.get("entry_computation_layout"), module.entry
    if layout is not None:
        pairs = list(zip(layout.parameters, module.parameter_shapes, strict=False))
        if (
            len(layout.parameters) != len(module.parameter_shapes)
            or not all(same(a, b) for a, b in pairs)
            or not same(layout.result, module.result_shape)
        ):
            raise VerificationError(
                f"entry_computation_layout does not fit the entry computation '{entry.name}' [ENTRY1]",
                location=entry.root.location,
                remedy="leave it out to use the entry's own shapes",
            )
    for alias in module.attributes.get("input_output_alias", ()):
        out = _at(module, "ALIAS1", module.result_shape, alias.output, "output")
        if not same(out, _parameter_at(module, "ALIAS1", alias.parameter, alias.parameter_index)):
            raise VerificationError(
                f"input_output_alias: output {alias.output} and parameter {alias.parameter} "
                f"{alias.parameter_index} differ in shape [ALIAS1]",
                location=entry.root.location,
            )
    for donor in module.attributes.get("buffer_donor", ()):
        _parameter_at(module, "DONOR1", donor.parameter, donor.index)


def _parameter_at(module: Module, label: str, number: int, index: tuple[int, ...]) -> Shape:
    shapes = module.parameter_shapes
    if not 0 <= number < len(shapes):
        raise VerificationError(
            f"the header names parameter {number}, but the entry has {len(shapes)} [{label}]",
            location=module.entry.root.location,
        )
    return _at(module, label, shapes[number], index, f"parameter {number}")


def _at(module: Module, label: str, shape: Shape, index: tuple[int, ...], what: str) -> Shape:
    try:
        return shape.at(index)
    except IndexError:
        raise VerificationError(
            f"the header names {what} {index}, which {shape} does not have [{label}]",
            location=module.entry.root.location,
        ) from None
