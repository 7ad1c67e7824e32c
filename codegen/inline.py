"""Small kernels become part of the function that calls them, with the bits that they have by themselves.

A kernel qualifies if its optimised code is one block without calls. A value that it stores passes
`llvm.arithmetic.fence`: a later kernel may take the value from a register, but sees it as it was stored, so that no
product of one kernel and sum of the next contract into one rounding. Behind the inliner no pass runs that rewrites
arithmetic: what is kept in variables on the stack becomes registers, and no more. LLVM turns the promise that a
kernel's arguments do not overlap (noalias) into metadata of that call only.

What contracts in a kernel is decided before (contract.py). Kernels where that was not possible stay calls.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import llvmlite.binding as llvm

from ..hlo.records import dataclass
from .contract import DEFINE, LABEL, MOST_LINES
from .llvm import parse
from .metadata import without_promises
from .open_module import OpenModule, open_module
from .optimize import CompiledObject, optimize
from .options import EmitOptions

SETTINGS = f"inline {MOST_LINES}, what contracts is decided; variables are registers"
"""The settings in words, a part of the key of what is cached. Change them together with the code of this file."""


@dataclass(frozen=True, slots=True)
class Inlinable:
    """Kernels of one LLVM module, optimised. small: the names of those that are inlined where they are called."""

    text: str
    small: frozenset[str]


def inlinable(kernels: Iterable[str], options: EmitOptions) -> list[Inlinable]:
    """The kernels of LLVM modules, prepared for `build_with_kernels`."""
    return prepared(optimize(text, options) for text in kernels)


def prepared(kernels: Iterable[str]) -> list[Inlinable]:
    """As `inlinable`, of optimised modules."""
    return [Inlinable(*_fenced(text)) for text in kernels]


def build_with_kernels(host_ir: str, kernels: Sequence[Inlinable], options: EmitOptions) -> CompiledObject:
    """The object of `host_ir` with small kernels inlined; others are external symbols. Variables on the stack that only
    they and the host program touch become registers.
    """
    start = time.perf_counter()
    with _inlined(host_ir, kernels, options) as module:
        optimized = time.perf_counter()
        data = module.object()
    return CompiledObject(data, optimized - start, time.perf_counter() - optimized, cached=False)


def with_kernels(host_ir: str, kernels: Sequence[Inlinable], options: EmitOptions) -> str:
    """The LLVM IR that `build_with_kernels` makes code of."""
    with _inlined(host_ir, kernels, options) as module:
        return module.text()


@contextmanager
def _inlined(host_ir: str, kernels: Sequence[Inlinable], options: EmitOptions) -> Iterator[OpenModule]:
    with open_module(str(_linked(host_ir, kernels, options)), options.target, "inline") as module:
        module.optimize()
        yield module


def _linked(host_ir: str, kernels: Sequence[Inlinable], options: EmitOptions) -> llvm.ModuleRef:
    # Modules of two contexts cannot be linked: all go into the context of a new text.
    context = llvm.create_context()
    module = parse(optimize(host_ir, options), context)
    for prepared in kernels:
        other = parse(prepared.text, context)
        names = [function.name for function in other.functions if not function.is_declaration]
        module.link_in(other)
        for name in names:
            function = module.get_function(name)
            function.linkage = "internal" if name in prepared.small else "available_externally"
            if name in prepared.small:
                function.add_function_attribute("alwaysinline")
    return module


_STORE = re.compile(r"^  store ((?:<\d+ x )?(float|double)>?) (%[^,]+), ")
_OTHER_STORE = re.compile(r"^  store (?:volatile|atomic|(?:<\d+ x )?(?:half|bfloat|fp128|x86_fp80|\[|\{))")
_OPEN = re.compile(r" = fmul (?:[a-z]+ )*contract ")
_SUM = re.compile(r"\bf(?:add|sub)\b")
_CALL = re.compile(r"\bcall\b[^@]*@([-\w.$]+)")
_PURE = re.compile(
    r"llvm\.(?:fma|fmuladd|fabs|sqrt|maximum|minimum|maxnum|minnum|copysign|floor|ceil|trunc|rint|nearbyint|roundeven"
    r"|arithmetic\.fence|smax|smin|umax|umin|abs|ctpop|ctlz|cttz|bswap|fshl|fshr|fptosi\.sat|fptoui\.sat|vector\.reduce"
    r"|lifetime|experimental\.noalias\.scope\.decl)\b"
)


def _fenced(text: str) -> tuple[str, frozenset[str]]:
    """An optimised module whose small kernels have fences in front of their stores; and the names of these."""
    lines: list[str] = []
    body: list[str] | None = None
    name, small, kinds = "", set[str](), dict[str, str]()
    for line in text.splitlines():
        found = DEFINE.match(line)
        if found:
            name, body = found[1] or found[2], []
        elif line == "}" and body is not None:
            if _is_small(body):
                small.add(name)
                body = list(_with_fences(body, kinds))
            lines += [*body, line]
            body = None
            continue
        (lines if body is None or found else body).append(line)
    declared = [
        f"declare {kind} @llvm.arithmetic.fence.{suffix}({kind})"
        for suffix, kind in kinds.items()
        if f"@llvm.arithmetic.fence.{suffix}(" not in text
    ]
    return "\n".join([*lines, *declared]) + "\n", frozenset(small)


def _is_small(body: Sequence[str]) -> bool:
    """Whether a function is one block, short, without calls that could matter, has nothing to contract, and stores what
    can be fenced.
    """
    code = [line for line in body if line.strip() and not line.lstrip().startswith(";")]
    labels = sum(bool(LABEL.match(line)) for line in code)
    calls = [found[1] for line in code if (found := _CALL.search(line))]
    plain = all(_PURE.match(name) for name in calls) and len(calls) == sum(" call " in line for line in code)
    contracts = any(_OPEN.search(line) for line in code) and any(_SUM.search(line) for line in code)
    fits = labels <= 1 and len(code) <= MOST_LINES and not any(_OTHER_STORE.match(line) for line in code)
    return fits and plain and not contracts


def _with_fences(body: Sequence[str], kinds: dict[str, str]) -> Iterator[str]:
    """kinds: suffix of a fence's name → type; types that are met are added."""
    for number, line in enumerate(body):
        found = _STORE.match(line)
        if found is None:
            yield without_promises(line)
            continue
        kind, element, value = found.groups()
        bits = {"float": "f32", "double": "f64"}[element]
        suffix = f"v{kind[1:].split()[0]}{bits}" if kind.startswith("<") else bits
        kinds[suffix] = kind
        yield f"  %stored.{number} = call {kind} @llvm.arithmetic.fence.{suffix}({kind} {value})"
        yield without_promises(line).replace(f"store {kind} {value},", f"store {kind} %stored.{number},", 1)
