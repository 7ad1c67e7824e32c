"""Masked stores of one lane as plain stores: LLVM 22.1 writes too many bytes for some (docs/findings.md).

With AVX-512, a truncation and a masked store of integers become one store that truncates; where its mask is constant
and has one lane, the lane is written untruncated, over the memory behind it. The loop vectorizer makes such stores of
the rest of a loop.
"""

from __future__ import annotations

import math
import re

from .open_module import OpenModule

_STORE = re.compile(
    r"^(?P<space> *)(?:tail |notail )?call void @llvm\.masked\.store\.v\d+i\d+\.p0\("
    r"(?P<vector><\d+ x i(?P<bits>\d+)>) (?P<value>%[-\w.$]+), ptr (?P<attributes>[^%@,]*)(?P<place>[%@][-\w.$]+), "
    r"<\d+ x i1> <(?P<mask>i1 [a-z0-9, ]+)>\).*$",
    re.MULTILINE,
)
_ALIGN = re.compile(r"\balign (\d+)")


def has_masked_stores(module: OpenModule) -> bool:
    """Whether a module declares a masked store of integers."""
    return any(re.match(r"llvm\.masked\.store\.v\d+i\d", name) for name, _ in module.functions())


def with_plain_stores(text: str) -> str:
    """LLVM IR text in which each masked store of integers whose constant mask has one lane is a store of that lane."""
    if "@llvm.masked.store." not in text:
        return text
    count = 0

    def plain(found: re.Match[str]) -> str:
        nonlocal count
        lanes = [n for n, bit in enumerate(found["mask"].split(", ")) if bit == "i1 true"]
        if len(lanes) != 1:
            return found[0]
        (lane,), kind, count = lanes, f"i{found['bits']}", count + 1
        given = _ALIGN.search(found["attributes"])
        align = math.gcd(int(given[1]), lane * int(found["bits"]) // 8) if given else 1
        indent, value, place = found["space"], f"%only.lane.{count}", f"%only.place.{count}"
        lines = (
            f"{value} = extractelement {found['vector']} {found['value']}, i64 {lane}",
            f"{place} = getelementptr inbounds {kind}, ptr {found['place']}, i64 {lane}",
            f"store {kind} {value}, ptr {place}, align {align}",
        )
        return "\n".join(indent + line for line in lines)

    return _STORE.sub(plain, text)
