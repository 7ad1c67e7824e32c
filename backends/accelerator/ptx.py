"""What LLVM's code generator for PTX does not keep of LLVM IR, and what PTX leaves to its assembler."""

from __future__ import annotations

import re

_SHIFT = re.compile(r"^(\s*%[^\n=]+ = (?:shl|lshr)(?: nuw| nsw| exact)* i64 [^,\n]+, )(%[^\s,]+)", re.MULTILINE)
_ROUNDED = re.compile(r"\b(add|sub|mul)\.(f32|f64|f16x2|f16|bf16x2|bf16)\b")


def with_short_shifts(text: str) -> str:
    """LLVM IR in which 64-bit shifts by variables take six bits of them.

    LLVM 22 makes one instruction of `amount < 64 ? x << amount : 0`, since PTX shifts everything out by 64 and more.
    But it gives the instruction the low 32 bits of the amount: x << 2³² is x. With another amount than the one that
    is compared, it sees no such pattern.
    """
    numbers = iter(range(text.count("\n") + 1))

    def short(found: re.Match[str]) -> str:
        name = f"%short.amount.{next(numbers)}"
        return f"  {name} = and i64 {found.group(2)}, 63\n{found.group(1)}{name}"

    return _SHIFT.sub(short, text)


def rounded(ptx: str) -> str:
    """PTX whose sums and products are rounded each. Without `.rn`, its assembler may fuse them, as its version likes;
    LLVM has fused what the stacks allow.
    """
    return _ROUNDED.sub(r"\1.rn.\2", ptx)
