"""Tests of signs whose bits are read as integers, with AVX-512: LLVM 22.1 loses some of them (docs/findings.md).

The signs of a vector become a mask register (vpmovb2m), which a move copies to an integer register. Both become one
vpmovmskb, although an instruction that reads the mask register and writes it, too, follows: it reads what was there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .options import Target

_FUNCTION = re.compile(r"^define\b.*?^}", re.MULTILINE | re.DOTALL)
_TEST = re.compile(
    r"^ +(?P<name>%[-\w.$]+) = (?:icmp slt (?P<tested><\d+ x i(?P<bits>\d+)>) (?P<value>%[-\w.$]+), zeroinitializer"
    r"|trunc (?:nuw |nsw )*(?P<whole><\d+ x i\d+>) (?P<odd>%[-\w.$]+) to <\d+ x i1>).*$",
    re.MULTILINE,
)
_TO_INTEGERS = (
    r" = (?:extractelement|bitcast|freeze) <\d+ x i1> {0}(?![-\w.$])"
    r"|@llvm\.vector\.reduce\.\w+\.v\d+i1\(<\d+ x i1> {0}\)"
)


def has_mask_registers(target: Target) -> bool:
    """Whether comparisons of vectors give mask registers on the target."""
    return "+avx512f" in target.features.split(",")


def with_tested_bits(text: str) -> str:
    """LLVM IR text in which tests of signs, and of lowest bits, that are read as integers and in another way compare
    that bit with 0 instead, which is another instruction.
    """
    if " x i1>" not in text or not _TEST.search(text):  # the reader names this type
        return text
    return _FUNCTION.sub(lambda found: _of_function(found[0]), text)


def _of_function(body: str) -> str:
    endangered = {test["name"]: test for test in _TEST.finditer(body) if _is_endangered(body, test["name"])}
    if not endangered:
        return body
    return _TEST.sub(lambda test: "\n".join(_compared(test)) if test["name"] in endangered else test[0], body)


def _is_endangered(body: str, name: str) -> bool:
    """Whether a mask has several uses, of which one may copy the register to an integer's."""
    escaped = re.escape(name)
    uses = len(re.findall(rf"{escaped}(?![-\w.$])", body)) - 1
    return uses > 1 and re.search(_TO_INTEGERS.format(escaped), body) is not None


def _compared(test: re.Match[str]) -> Iterator[str]:
    name, kind, value = test["name"], test["tested"] or test["whole"], test["value"] or test["odd"]
    bit = -(1 << int(test["bits"]) - 1) if test["tested"] else 1
    tested = f"%tested.{name[1:]}"
    yield f"  {tested} = and {kind} {value}, splat (i{kind.split('i')[1].rstrip('>')} {bit})"
    yield f"  {name} = icmp ne {kind} {tested}, zeroinitializer"
