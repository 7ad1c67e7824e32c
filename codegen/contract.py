"""Which products and sums of a small kernel become one FMA is decided in its optimised IR, once for all uses of it.

LLVM decides while it selects instructions, from all that it sees in a block. A kernel that is inlined (inline.py) would
so get other bits than by itself. Here `contract` pairs of a kernel of one block become calls of `llvm.fma`, by the rule
that LLVM has: a product with one use joins the sum that uses it, the left one of two. No `contract` is left in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

from .open_module import OpenModule
from .options import Target

ARCHITECTURES = frozenset({"x86_64"})
"""Where kernels are inlined. Elsewhere instruction selection may see through memory and share products."""

MOST_LINES = 64
"""Instructions of a kernel that may be inlined."""

DEFINE = re.compile(r'^define\b[^@\n]*@(?:"([^"]*)"|([-\w.$]+))\(')
LABEL = re.compile(r'^(?:[-\w.$]+|"[^"]*"):')
_TYPE = r"(?:<\d+ x (?:float|double)>|float|double)"
_NAME = r'%(?:"[^"]*"|[-\w.$]+)'
_VALUE = rf"(?:{_NAME}|splat \([^()]*\)|<[^<>]*>|zeroinitializer|[-\w.+]+)"
_OP = re.compile(rf"^  ({_NAME}) = (fmul|fadd|fsub) ((?:[a-z]+ )*?)({_TYPE}) ({_VALUE}), ({_VALUE})((?:, !.*)?)$")
_ANY_OP = re.compile(r"^  \S+ = (?:fmul|fadd|fsub|fneg) ")
_SUM = re.compile(r" = f(?:add|sub) ")
_USE = re.compile(_NAME)
_FLAG = re.compile(r"(?<= )contract ")


def decided(module: OpenModule, target: Target, text: str | None = None) -> str | None:
    """The optimised module's text with all decided; None if nothing is to be. text: the module's, if it is known."""
    if target.architecture not in ARCHITECTURES or all(blocks != 1 for _, blocks in module.functions()):
        return None
    fuses = target.has_fma
    kinds = set[str]()
    text = module.text() if text is None else text

    def decide(body: Sequence[str]) -> list[str] | None:
        return list(_decided_body(body, fuses, kinds)) if _is_undecided(body) else None

    lines, changed = _with_bodies(text, decide)
    return "\n".join([*lines, *_declarations(kinds, text)]) + "\n" if changed else None


def fused(text: str) -> str:
    """A module in which products and sums of each block are FMAs by this rule, whatever the function's size.

    For code whose next reader knows no `contract`, such as SPIR-V.
    """
    kinds = set[str]()
    lines, _ = _with_bodies(text, lambda body: list(_decided_body(body, True, kinds)))
    return "\n".join([*lines, *_declarations(kinds, text)]) + "\n"


def _with_bodies(text: str, decide: Callable[[Sequence[str]], list[str] | None]) -> tuple[list[str], bool]:
    """The lines of a module with other bodies of its functions, and whether any is. decide: None leaves one alone."""
    lines, body, changed, inside = list[str](), list[str](), False, False
    for line in text.splitlines():
        if inside and line == "}":
            decided = decide(body)
            changed = changed or decided is not None
            lines += body if decided is None else decided
            body, inside = [], False
        elif inside:
            body.append(line)
            continue
        inside = inside or DEFINE.match(line) is not None
        lines.append(line)
    return lines, changed


def _declarations(kinds: Collection[str], text: str) -> Iterator[str]:
    """Of the functions for these types that a module does not declare yet."""
    for kind in sorted(kinds):
        if f"@{_fma(kind)}(" not in text:
            yield f"declare {kind} @{_fma(kind)}({kind}, {kind}, {kind})"


def _is_undecided(body: Sequence[str]) -> bool:
    """Whether it is short, of one block, and has products and sums of floats that only this file knows."""
    if len(body) > MOST_LINES + 2 or sum(LABEL.match(line) is not None for line in body) > 1:
        return False
    products, sums = any(" = fmul " in line for line in body), any(_SUM.search(line) for line in body)
    plain = all(_OP.match(line) or " = fneg " in line for line in body if _ANY_OP.match(line))
    return products and sums and plain and any(" contract " in line for line in body)


def _decided_body(body: Sequence[str], fuses: bool, kinds: set[str]) -> Iterator[str]:
    """kinds: types of the calls that are made; those of this function are added."""
    uses = Counter(name for line in body for name in _USE.findall(line.partition(" = ")[2] or line))
    products: dict[str, tuple[str, str]] = {}
    joined: dict[str, list[str]] = {}
    gone: set[str] = set()
    for line in body if fuses else ():
        if LABEL.match(line):
            products.clear()  # of other blocks
        found = _OP.match(line)
        if found is None or "contract " not in found[3]:
            continue
        name, op, _, kind, left, right, _ = found.groups()
        if op == "fmul":
            products[name] = left, right
            continue
        product = next((side for side in (left, right) if side in products and uses[side] == 1), None)
        if product is not None:
            gone.add(product)
            kinds.add(kind)
            joined[name] = list(_joined(name, op, kind, products.pop(product), (left, right), product == left))
    for line in body:
        name = line.partition(" = ")[0].strip()
        if name not in gone:
            yield from joined.get(name, [_FLAG.sub("", line)])


def _joined(
    name: str, op: str, kind: str, factors: tuple[str, str], sides: tuple[str, str], is_left: bool
) -> Iterator[str]:
    """The lines of an FMA. A difference negates the other side, or a factor: both are exact."""
    first, second = factors
    other = sides[1] if is_left else sides[0]
    if op == "fsub":
        negated = f'%"{name[1:].strip(chr(34))}.negated"'
        yield f"  {negated} = fneg {kind} {other if is_left else first}"
        first, other = (first, negated) if is_left else (negated, other)
    yield f"  {name} = call {kind} @{_fma(kind)}({kind} {first}, {kind} {second}, {kind} {other})"


def _fma(kind: str) -> str:
    bits = "f64" if "double" in kind else "f32"
    return f"llvm.fma.v{kind[1:].split()[0]}{bits}" if kind.startswith("<") else f"llvm.fma.{bits}"
