"""Structural checks of LHLO ops: regions, operands regions, destinations, unique writers, signatures of bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from mlir import ir

from ..hlo.errors import TestbedError, VerificationError
from ..hlo.opcodes import Op
from ..hlo.shapes import Shape
from .attributes import check_attributes
from .literals import literal_type
from .memrefs import memref, shape_from_text, shape_of_memref
from .read import bodies, exact_of, is_mixed, location_of, operands, output_count
from .table import OPCODE

BODY_OUTPUTS: dict[Op, Callable[[int], int]] = {
    Op.SORT: lambda _: 1,
    Op.SELECT_AND_SCATTER: lambda _: 1,
}
"""Op → number of result leaves of its body, given the op's number of outputs. For ops not listed the two are equal."""


def broken(op: ir.Operation, label: str, message: str, remedy: str | None = None) -> NoReturn:
    """Raise the VerificationError of rule `label` for an op."""
    name = op.attributes.get("name")
    which = f"{op.name} '{name.value}'" if isinstance(name, ir.StringAttr) and _is_unicode(name) else op.name
    raise VerificationError(f"{which}: {message} [{label}]", location=location_of(op), remedy=remedy)


def check_memref(op: ir.Operation, type_: ir.Type, label: str) -> Shape:
    """The HLO shape of a memref type. Raises VerificationError [label] if no HLO array has that type."""
    try:
        return shape_of_memref(str(type_))
    except VerificationError as error:
        broken(op, label, error.message, error.remedy)


def sole_block(op: ir.Operation, region: int, label: str) -> ir.Block:
    """The only block of a region. Raises VerificationError [label] if there are more or none."""
    blocks = op.regions[region].blocks
    if len(blocks) != 1:
        broken(op, label, f"region {region} has {len(blocks)} blocks, needs one")
    return blocks[0]


def check_block_end(op: ir.Operation, block: ir.Block, label: str) -> None:
    """Check that a region ends in a `vector.yield` without operands and holds no other yield."""
    ops = [o.operation for o in block.operations]
    last = ops[-1] if ops else None
    if (
        last is None
        or last.name != "vector.yield"
        or len(last.operands)
        or any(o.name == "vector.yield" for o in ops[:-1])
    ):
        broken(op, label, "a region of ops ends in one vector.yield without operands")


def check_op(op: ir.Operation, step: bool = False) -> None:
    """Check an LHLO op and its bodies. step: the op is in a function, where it may compute in place.

    REGION1: each region has one block. REGION2: the last region of a mixed op holds one vector.yield.
    OUT1: `outputs` is a number of the op's memrefs. TYPE1: operands are memrefs of HLO arrays.
    DEST1: no memref is written twice. DEST2: in a body, an op reads none of the memrefs that it writes.
    EXACT1: `shape` and the shapes in `exact` are those of the memrefs, apart from what memref types cannot express.
    ATTR2: HLO's attributes can be read.
    CONST1: a constant's value has the shape and type of its memref (if complex: of its components).
    """
    check_hlo_attributes(op)
    if is_mixed(op):
        for region in range(len(op.regions)):
            sole_block(op, region, "REGION1")
        last = op.regions[len(op.regions) - 1].blocks[0]
        if len(last.arguments) or len(last.operations) != 1 or last.operations[0].operation.name != "vector.yield":
            broken(op, "REGION2", "the last region lists the operands: one vector.yield, no arguments")
    values, count = operands(op), output_count(op)
    if not 0 <= count <= len(values):
        broken(op, "OUT1", f"{count} outputs, but only {len(values)} memrefs")
    for value in values:
        check_memref(op, value.type, "TYPE1")
    if op.name == "lhlo.constant":
        wanted = literal_type(shape_of_memref(str(values[0].type)))
        if str(op.attributes["value"].type) != wanted:
            broken(op, "CONST1", f"its value has type {op.attributes['value'].type}", f"it must be {wanted}")
    sources, targets = values[: len(values) - count], values[len(values) - count :]
    check_exact(op, sources, targets)
    if len(set(targets)) != len(targets):
        broken(op, "DEST1", "one memref is written twice")
    if not step and set(targets) & set(sources):
        broken(op, "DEST2", "reads and writes one memref", "give the result a memref.alloca of its own")
    for block in bodies(op):
        check_body(op, block, BODY_OUTPUTS.get(OPCODE[op.name], int)(count))


def check_exact(op: ir.Operation, sources: Sequence[ir.Value], targets: Sequence[ir.Value]) -> None:
    if "shape" in op.attributes:
        _check_leaves(op, "shape", op.attributes["shape"].value, targets)
    exact, blocks = exact_of(op), bodies(op)
    results = BODY_OUTPUTS.get(OPCODE[op.name], int)(len(targets))
    for number, source in enumerate(sources):
        if (text := exact.get(f"operand{number}")) is not None:
            _check_leaves(op, f"operand {number}", text, [source])
    for b, block in enumerate(blocks):
        rest, number = list(block.arguments)[: len(block.arguments) - results], 0
        while rest:
            text = exact.get(f"body{b}_parameter{number}")
            count = 1 if text is None else sum(1 for _ in shape_from_text(text).leaves())
            if text is not None:
                _check_leaves(op, f"parameter {number} of body {b}", text, rest[:count])
            if not count:
                broken(op, "EXACT1", f"parameter {number} of body {b} is an empty tuple, which has no memref")
            rest, number = rest[count:], number + 1
        places = exact.get(f"body{b}_places")
        if places is not None and len(places) != number:
            broken(op, "EXACT1", f"exact gives places to {len(places)} parameters of body {b}, which has {number}")


def _check_leaves(op: ir.Operation, what: str, text: str, values: Sequence[ir.Value]) -> None:
    shape = shape_from_text(text)
    leaves = [leaf for _, leaf in shape.leaves()]
    types = [memref(leaf) if leaf.is_array else str(leaf.dtype) for leaf in leaves]
    if [shape_of_memref(t) if t.startswith("memref") else None for t in types] != [
        shape_of_memref(str(v.type)) for v in values
    ]:
        found = ", ".join(str(v.type) for v in values)
        broken(op, "EXACT1", f"{what} is {text}, but its memrefs are {found}", "write the memrefs' shape, or none")


KINDS: dict[str, type] = {
    "name": ir.StringAttr,
    "shape": ir.StringAttr,
    "outputs": ir.IntegerAttr,
    "computations": ir.ArrayAttr,
    "parameters": ir.ArrayAttr,
    "exact": ir.DictAttr,
    "first": ir.IntegerAttr,
    "kernel": ir.StringAttr,
    "forward": ir.UnitAttr,
}


SYMBOLS = ("name", "kernel")
"""Attributes that become names of functions and symbols."""


def check_own_attributes(op: ir.Operation) -> None:
    """ATTR1: LHLO's own attributes have their kinds; those that begin with lhlo. stand at functions only."""
    for name, attribute in op.attributes.items():
        if name.startswith("lhlo."):
            broken(op, "ATTR1", f"{name} is an attribute of functions and of their arguments")
        kind = KINDS.get(name)
        if kind is not None and not isinstance(attribute, kind):
            broken(op, "ATTR1", f"{name} = {attribute} is no {kind.__name__.removesuffix('Attr').lower()}")
        if kind is ir.StringAttr and not _is_unicode(attribute):
            broken(op, "ATTR1", f"{name} is not valid Unicode")
        if name in SYMBOLS and not attribute.value.isprintable():
            broken(op, "ATTR1", f"{name} = {attribute.value!r} has characters that no symbol has")
    for name, fits in (("computations", _is_string), ("parameters", _strings)):
        if name in op.attributes and not all(map(fits, op.attributes[name])):
            broken(op, "ATTR1", f"{name} = {op.attributes[name]} is no list of strings")


def check_hlo_attributes(op: ir.Operation) -> None:
    try:
        check_attributes(op)
        if "shape" in op.attributes:
            shape_from_text(op.attributes["shape"].value)
        for name, value in exact_of(op).items():
            if name.endswith("places"):
                _check_places(op, name, value)
            elif isinstance(value, str):
                shape_from_text(value)
            else:
                broken(op, "ATTR1", f"{name} in exact = {value} is no shape")
    except (TestbedError, TypeError) as error:
        if isinstance(error, VerificationError) and error.location is not None:
            raise
        broken(op, "ATTR2", str(error))


def _check_places(op: ir.Operation, name: str, value: object) -> None:
    """The positions of a body's parameters among its instructions: distinct integers >= 0."""
    if not isinstance(value, tuple) or any(type(n) is not int or n < 0 for n in value) or len(set(value)) != len(value):
        broken(op, "ATTR1", f"{name} in exact = {value} is no list of positions")


def _is_unicode(attribute: ir.StringAttr) -> bool:
    try:
        attribute.value_bytes.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_string(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.StringAttr)


def _strings(attribute: ir.Attribute) -> bool:
    return _is_string(attribute) or (isinstance(attribute, ir.ArrayAttr) and all(map(_is_string, attribute)))


def check_body(op: ir.Operation, block: ir.Block, results: int) -> None:
    """BODY1: the block ends in vector.yield. BODY2: the last arguments, one per result leaf, are the outputs, and no
    other argument is written. BODY3: it holds only LHLO ops and allocas. BODY4: it reads only memrefs of its own block
    that were written before. BODY5: each memref has one writer. BODY6: every output and every temporary has a writer.
    """
    check_block_end(op, block, "BODY1")
    arguments = list(block.arguments)
    if len(arguments) < results:
        broken(op, "BODY2", f"its body takes {len(arguments)} memrefs, but must write {results}")
    for argument in arguments:
        check_memref(op, argument.type, "TYPE1")
    outputs = arguments[len(arguments) - results :]
    known, open_ = set(arguments[: len(arguments) - results]), set(outputs)
    for view in block.operations:
        inner = view.operation
        if inner.name == "memref.alloca":
            if len(inner.operands):
                broken(inner, "BODY3", "a temporary has a static size")
            check_memref(inner, inner.results[0].type, "TYPE1")
            open_.add(inner.results[0])
        elif inner.name in OPCODE:
            check_own_attributes(inner)
            check_op(inner)
            _check_flow(inner, known, open_)
        elif inner.name != "vector.yield":
            broken(inner, "BODY3", f"{inner.name} cannot stand in a body")
    if open_:
        what = "an output" if open_ & set(outputs) else "a temporary"
        broken(op, "BODY6", f"{what} of its body is never written")


def _check_flow(op: ir.Operation, known: set[ir.Value], open_: set[ir.Value]) -> None:
    """Check one op of a body. known: memrefs that have a value; open_: memrefs that still need a writer."""
    values, count = operands(op), output_count(op)
    for value in values[: len(values) - count]:
        if value in open_:
            broken(op, "BODY4", "reads a memref before it is written")
        if value not in known:
            broken(op, "BODY4", "reads a memref from outside its body", "pass it in as an operand")
    for value in values[len(values) - count :]:
        if value in known:
            broken(op, "BODY5", "writes a memref that already has a value: a parameter or another op's result")
        if value not in open_:
            broken(op, "BODY4", "writes a memref from outside its body")
        open_.remove(value)
        known.add(value)
