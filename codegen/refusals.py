"""What LLVM may not be given, and its complaints about the rest in one line."""

from __future__ import annotations

import re

from .errors import CodegenError

INLINE_ASM = re.compile(r'\basm (?:sideeffect |alignstack |inteldialect |unwind )*"')


def refuse_assembly(llvm_ir: str) -> None:
    """Raises CodegenError for IR with inline assembly: what is wrong in it ends the process."""
    found = INLINE_ASM.search(llvm_ir) if "asm " in llvm_ir else None  # the pattern takes a hundred times as long
    if found:
        line = llvm_ir.count("\n", 0, found.start()) + 1
        raise CodegenError(
            f"LLVM IR line {line} has inline assembly, which is not supported", remedy="use an LLVM intrinsic"
        )


def wrong_ir(said: str) -> CodegenError:
    """The error for IR that LLVM refuses with these words."""
    remedy = "the emitter made invalid LLVM IR; `testbed stages` writes it to a file"
    return CodegenError(_first_complaint(said), remedy=remedy)


MOST_COMPLAINTS = 2
"""Lines of LLVM's message that an error repeats: for a module of another version there may be hundreds."""


def _first_complaint(text: str) -> str:
    """LLVM's error message on one line, without llvmlite's preamble."""
    lines = [line.strip() for line in text.replace("LLVM IR parsing error", "").splitlines()]
    said = list(dict.fromkeys(line for line in lines if line and line != "^"))
    more = len(said) - MOST_COMPLAINTS
    return "LLVM refuses the IR: " + " | ".join(said[:MOST_COMPLAINTS]) + (f" | and {more} more" if more > 0 else "")
