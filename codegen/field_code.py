"""A stack's module over a field as code in memory: no pass of LLVM has seen it."""

from __future__ import annotations

import functools

import llvmlite.binding as llvm

from .field.element import Field
from .field.rewrite import rewritten
from .field.runtime import EXPORTED, runtime
from .llvm import make_machine, parse
from .load import LoadedCode, load
from .options import EmittedModule, Target
from .unlocked import emit_object

LEVEL = 0
"""LLVM's level of code generation: the code runs a few times only."""


def build(emitted: EmittedModule, field: Field, target: Target, junk: int | None = None) -> LoadedCode:
    """The kernels of a module, and what they call, over a field. junk: the byte of which memory on the stack consists
    before it is written. Raises CodegenError.
    """
    objects = [_object(rewritten(text, field, junk), target) for text in (emitted.llvm_ir, *emitted.helpers)]
    return load([*objects, *emitted.objects], _runtime(field, target).addresses)


@functools.lru_cache(64)
def _runtime(field: Field, target: Target) -> LoadedCode:
    code = load([_object(runtime(field), target)])
    return LoadedCode({name: code.address(name) for name in EXPORTED}, parts=(code,))


@functools.cache
def _machine(target: Target) -> llvm.TargetMachine:
    return make_machine(target, level=LEVEL)


@functools.lru_cache(64)
def _object(llvm_ir: str, target: Target) -> bytes:
    """Of a kernel without constants the text is the same for all twists."""
    return emit_object(_machine(target), parse(llvm_ir))
