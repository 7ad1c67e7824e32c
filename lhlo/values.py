"""HLO's rules for what an LHLO op computes: required attributes, dtypes, dimensions. The rules are hlo's own."""

from __future__ import annotations

from ..hlo.errors import TestbedError, VerificationError
from ..hlo.grammar import GRAMMAR
from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from ..hlo.verifier import verify_instruction


def check_instruction(instruction: Instruction) -> None:
    """An instruction read back from LHLO, and the bodies that it calls, innermost first.

    VALUE1: it has the attributes that HLO's text must have. VALUE2: their values fit the opcode.
    """
    for body in instruction.called():
        for inner in body.instructions:
            check_instruction(inner)
    op = instruction.opcode
    if op is Op.PARAMETER:
        return
    for key in GRAMMAR[op].required:
        if key not in instruction.attributes:
            _broken(instruction, "VALUE1", f"needs the attribute {key}")
    try:
        verify_instruction(instruction)
    except TestbedError:
        raise
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        # A rule met an attribute of another kind than HLO's text can give it.
        _broken(instruction, "VALUE2", f"its attributes do not fit: {error}")


def _broken(instruction: Instruction, label: str, message: str) -> None:
    raise VerificationError(f"lhlo.{instruction.opcode.value} '{instruction.name}': {message} [{label}]",
                            location=instruction.location) from None
