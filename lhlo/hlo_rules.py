"""Applies HLO's rules to what an LHLO op computes: required attributes, dtypes, dimensions. The rules live in hlo/."""

from __future__ import annotations

from ..hlo.errors import TestbedError, VerificationError
from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from ..hlo.verify.precision import mixed_precision
from ..hlo.verify.verifier import verify_instruction

DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")
"""The directions of a comparison; HLO's parser takes no other."""


def check_instruction(instruction: Instruction) -> None:
    """Check an instruction that was read back from LHLO; the bodies that it calls are checked first.

    VALUE1: the values of its attributes have the kinds that HLO's rules expect. PRECISION1: the floats that an op reads
    and writes have one element type.
    """
    for body in instruction.called():
        for inner in body.instructions:
            check_instruction(inner)
    op = instruction.opcode
    if op is Op.PARAMETER:
        return
    if op is Op.COMPARE and instruction.attributes.get("direction") not in DIRECTIONS:
        _broken(instruction, "VALUE1", f"its direction is none of {', '.join(DIRECTIONS)}")
    if (types := mixed_precision(instruction)) is not None:
        _broken(instruction, "PRECISION1", f"its operands and its result have the types {types}")
    try:
        verify_instruction(instruction)
    except TestbedError:
        raise
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        # The attribute has a kind that HLO text cannot express, so the rules do not guard against it.
        _broken(instruction, "VALUE1", f"its attributes do not fit: {error}")


def _broken(instruction: Instruction, label: str, message: str) -> None:
    raise VerificationError(
        f"lhlo.{instruction.opcode.value} '{instruction.name}': {message} [{label}]", location=instruction.location
    ) from None
