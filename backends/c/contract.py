"""Which products and sums of a kernel are one FMA is decided in its text, by LLVM's rule: a product that is used once,
in a block, joins the sum that uses it, the left one of two.

C compilers have rules of their own: gcc also joins a product to several sums. Where an iteration magnifies the last
bit, a program would differ from the other stacks. A processor without FMA has both operations (tb_mad_f32).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

MULTIPLY_ADD = """
static inline float tb_mad_f32(float a, float b, float c) {
#ifdef FP_FAST_FMAF
  return fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

static inline double tb_mad_f64(double a, double b, double c) {
#ifdef FP_FAST_FMA
  return fma(a, b, c);
#else
  return a * b + c;
#endif
}
"""
"""The functions that sums call."""

_VALUE = r"\(?-?[\w.+-]+\)?"
_PRODUCT = re.compile(rf"^\s*const (?:float|double) (\w+) = ({_VALUE}) \* ({_VALUE});$")
_SUM = re.compile(rf"^(\s*const (float|double) \w+ = )({_VALUE}) ([+-]) ({_VALUE});$")
_DECLARED = re.compile(r"^\s*const [\w *]+? \w+ = (.*)$")
_NAME = re.compile(r"\b[a-z]+\d+\b")
_TYPES = {"float": "f32", "double": "f64"}


def fused(function: str) -> str:
    """The text of a C function in which products and sums are calls of `tb_mad_f32` and `tb_mad_f64`."""
    return "".join(f"{line}\n" for line in _fused(function.splitlines()))


def _fused(lines: Sequence[str]) -> Iterator[str]:
    uses = Counter(name for line in lines for name in _NAME.findall(_read(line)))
    products: dict[str, tuple[int, str, str]] = {}
    gone, joined = set[int](), dict[int, str]()
    for number, line in enumerate(lines):
        if _DECLARED.match(line) is None:
            products.clear()  # of another block, or of a variable that changes
        elif found := _PRODUCT.match(line):
            products[found[1]] = number, found[2], found[3]
        elif found := _SUM.match(line):
            head, kind, left, sign, right = found.groups()
            product = next((side for side in (left, right) if side in products and uses[side] == 1), None)
            if product is not None:
                place, first, second = products.pop(product)
                minus = "-" if sign == "-" else ""
                terms = (first, second, minus + right) if product == left else (minus + first, second, left)
                gone.add(place)
                joined[number] = f"{head}tb_mad_{_TYPES[kind]}({', '.join(terms)});"
    yield from (joined.get(n, line) for n, line in enumerate(lines) if n not in gone)


def _read(line: str) -> str:
    """What a line reads, without the name that it declares."""
    found = _DECLARED.match(line)
    return line if found is None else found[1]
