"""LLVM IR text → optimised LLVM IR, assembly or an object, with the same settings for both stacks."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from ..hlo.records import dataclass, replace
from .cache import DEFAULT_CACHE, ObjectCache, cache_key
from .contract import decided, fused
from .glue import function_starts
from .masked_stores import has_masked_stores, with_plain_stores
from .open_module import OpenModule, amount, open_module, versions
from .options import SETTINGS, EmitOptions, Target
from .sign_masks import has_mask_registers, with_tested_bits


@dataclass(frozen=True, slots=True)
class CompiledObject:
    """One object file and the seconds that it took. cached: it was read from the cache. llvm_ir: its optimised LLVM IR,
    if that was asked for and not cached.
    """

    data: bytes
    optimize_seconds: float
    codegen_seconds: float
    cached: bool
    llvm_ir: str | None = None


def optimize(llvm_ir: str, options: EmitOptions) -> str:
    """The LLVM IR after all passes for the target; none where the options say so."""
    with optimized(llvm_ir, options) as module:
        return module.text()


def assembly(llvm_ir: str, options: EmitOptions) -> str:
    """The assembly that `compile_object` would encode."""
    with optimized(llvm_ir, options) as module:
        return module.assembly()


def compile_object(llvm_ir: str, options: EmitOptions, cache: ObjectCache | None = DEFAULT_CACHE) -> bytes:
    """Optimise IR text and emit one object file. cache: None disables the cache. Raises CodegenError."""
    return build_object(llvm_ir, options, cache).data


def build_object(
    llvm_ir: str, options: EmitOptions, cache: ObjectCache | None = DEFAULT_CACHE, keeps_ir: bool = False
) -> CompiledObject:
    """As `compile_object`, with timings, and the optimised IR on request. Threads may call it in parallel."""
    key = object_key(llvm_ir, options) if cache is not None else ""
    if cache is not None:
        found = cache.read(key)
        if found is not None:
            return CompiledObject(found, 0.0, 0.0, cached=True)
    start = time.perf_counter()
    with optimized(llvm_ir, options) as module:
        text = module.text() if keeps_ir else None
        middle = time.perf_counter()
        data = module.object()
    result = CompiledObject(data, middle - start, time.perf_counter() - middle, cached=False, llvm_ir=text)
    if cache is not None:
        cache.write(key, data)
    return result


def object_key(llvm_ir: str, options: EmitOptions) -> str:
    """The name of the object in the cache."""
    return cache_key(llvm_ir, repr(replace(options, keep_stages=False)), versions(), SETTINGS)


def prepare(llvm_ir: str, options: EmitOptions) -> str:
    """The IR text that LLVM gets: every function requests the target's full vector width.

    Unless options.strict, floating adds and multiplies may contract into fused ones and subnormals count as zero, as in
    XLA:CPU. `llvm.arithmetic.fence` keeps two ops apart.
    """
    text = _with_function_attributes(llvm_ir, options)
    return text if options.strict else contractible(text)


def contractible(text: str) -> str:
    """The module with the flag that lets floating adds and multiplies contract."""
    return _CONTRACTIBLE.sub(r"\1contract ", text)


_CONTRACTIBLE = re.compile(r"(= (?:fadd|fsub|fmul|fneg) )")
_DEFINE = re.compile(r'define\b[^@\n]*@(?:"[^"\n]*"|[-\w.$]+)\(')
_AFTER_PARAMETERS = re.compile(r"(?:\s*(?:local_)?unnamed_addr)?(?:\s*addrspace\(\d+\))?")


def _with_function_attributes(llvm_ir: str, options: EmitOptions) -> str:
    attributes = f' "prefer-vector-width"="{options.target.vector_bits}"'
    if not options.strict:
        attributes += ' "denormal-fp-math"="preserve-sign,preserve-sign"'
    pieces, position = [], 0
    for found in _definitions(llvm_ir):
        after = _AFTER_PARAMETERS.match(llvm_ir, _closing_parenthesis(llvm_ir, found.end()) + 1)
        assert after is not None
        pieces += [llvm_ir[position : after.end()], attributes]
        position = after.end()
    return "".join([*pieces, llvm_ir[position:]])


def _definitions(text: str) -> Iterator[re.Match[str]]:
    """The heads of all functions."""
    matches = (_DEFINE.match(text, start) for start in function_starts(text))
    return (found for found in matches if found is not None)


def _closing_parenthesis(text: str, position: int) -> int:
    """Index of the parenthesis that closes the one just before `position`; len(text) if there is none."""
    depth = 1
    for found in _PARENTHESIS.finditer(text, position):
        depth += {"(": 1, ")": -1}.get(found.group(), 0)
        if depth == 0:
            return found.start()
    return len(text)


_PARENTHESIS = re.compile(r'[()]|"[^"\n]*"')


@contextmanager
def optimized(llvm_ir: str, options: EmitOptions) -> Iterator[OpenModule]:
    """The module after all passes for the target. Raises CodegenError."""
    with ExitStack() as stack:
        passes = amount(options)

        def opened(text: str) -> OpenModule:
            return stack.enter_context(open_module(text, options.target, passes))

        module, text = opened(prepare(llvm_ir, options)), None
        module.optimize()
        if options.optimized or _O0_MAY_NEED.search(llvm_ir):
            module, text = _mended(module, options.target, opened)
        found = None
        if not options.strict and "fmul" in llvm_ir:
            if passes == "glue":  # at level 0 LLVM joins none
                found = fused(module.text() if text is None else text) if options.target.has_fma else None
            else:  # the text is parsed again only where a kernel is small and has products and sums
                found = decided(module, options.target, text)
        yield module if found is None else opened(found)


_O0_MAY_NEED = re.compile(r"llvm\.masked\.store| icmp slt <| trunc [a-z ]*<")
"""What `_mended` is for. O0 makes none where there is none."""


def _mended(module: OpenModule, target: Target, opened: Callable[[str], OpenModule]) -> tuple[OpenModule, str | None]:
    """An optimised module as LLVM makes the right code of it, and its text if that was needed: printing takes long."""
    masks = has_mask_registers(target)
    if not masks and not has_masked_stores(module):
        return module, None
    text = module.text()
    mended = with_plain_stores(text)
    if masks:
        mended = with_tested_bits(mended)
    return (module if mended == text else opened(mended)), mended
