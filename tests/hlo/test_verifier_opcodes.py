"""The verifier takes the module of every opcode, and no other shape of it: the shape rule infers what the text says."""

from dataclasses import replace

import pytest

from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...hlo.errors import VerificationError
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from ...hlo.verify.infer import INFER, NEEDS_SHAPE
from ...hlo.verify.verifier import verify, verify_instruction
from ..cases.opcode_case import ADD, GE
from ..cases.opcode_cases_arrays import ELEMENTWISE_CASES, LINALG, MOVEMENT, REGIONS
from ..cases.opcode_cases_world import CONTROL, ONE_DEVICE, RANDOM

CASES = ELEMENTWISE_CASES | MOVEMENT | REGIONS | LINALG | CONTROL | RANDOM | ONE_DEVICE


def instructions(opcode: Op) -> list[Instruction]:
    case = CASES[opcode]
    computations = "" if case.computations == ADD else case.computations
    module = parse_module(f"HloModule m\n{ADD}{GE}{computations}\nENTRY e {{\n{case.body}\n}}\n")
    verify(module)
    return [i for i in module.instructions() if i.opcode is opcode]


@pytest.mark.parametrize("opcode", CASES, ids=lambda o: o.value)
def test_the_shape_rule_gives_the_shape_of_the_text(opcode: Op):
    for i in instructions(opcode):
        assert INFER[opcode](i).without_layout() == i.shape.without_layout()


def first_leaf_with(shape: Shape, **changes) -> Shape:
    if not shape.is_tuple:
        return replace(shape, layout=None, **changes)
    return replace(shape, elements=(first_leaf_with(shape.elements[0], **changes), *shape.elements[1:]))


INFERRED = [op for op in CASES if op not in NEEDS_SHAPE | {Op.BROADCAST}]


@pytest.mark.parametrize("opcode", INFERRED, ids=lambda o: o.value)
def test_another_shape_is_refused(opcode: Op):
    for i in instructions(opcode):
        leaf = next(iter(s for _, s in i.shape.leaves()))
        if leaf.is_array:
            wrong = first_leaf_with(i.shape, dims=(*leaf.dims, 2), dynamic=())
            with pytest.raises(VerificationError, match="SHAPE1"):
                verify_instruction(i.replace(shape=wrong))
            other = DType.S16 if leaf.dtype is not DType.S16 else DType.S32
            with pytest.raises(VerificationError, match="SHAPE1"):
                verify_instruction(i.replace(shape=first_leaf_with(i.shape, dtype=other)))
