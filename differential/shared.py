"""What the runs of one case on several stacks share: its plan, and the code that several of them have.

A mixture of stacks consists of kernels that the stacks by themselves have, too. All runs put kernels that the same
stacks emit into the same modules, so each module is emitted and compiled once, and a mixture links objects of others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial

from ..backends.base import CompileOptions, EmitFor, Emitter
from ..backends.host.compiler import batches_of
from ..codegen.cache import MemoryCache
from ..codegen.options import EmitOptions, EmittedModule
from ..hlo.ir import Module
from ..migration.flags import FlagError, Flags
from ..planning.plan import KernelRequest, Plan
from .setting import Setting, emitters_of, is_compiled, plan_of_setting


class Shared:
    """Of a verified module and a setting. stacks: flags of the runs. It must not outlive a change of an emitter.

    plan: of the module by the setting, made when it is first asked for; no stack may change it. forms: (stack, form) of
    all kernels that were emitted so far; forms_of: (stack, kernel) → its forms.
    """

    def __init__(self, module: Module, setting: Setting, stacks: Sequence[str] = ()) -> None:
        self.module, self.setting, self.stacks = module, setting, tuple(stacks)
        self.forms: set[tuple[str, str]] = set()
        self.forms_of: dict[tuple[str, str], tuple[str, ...]] = {}
        self._objects = MemoryCache()
        self._emitting: dict[Emitter, Emitter] = {}

    @cached_property
    def plan(self) -> Plan:
        return plan_of_setting(self.module, self.setting)

    def with_other_emitters(self) -> Shared:
        """The same plan, and nothing emitted: for runs after a change of an emitter."""
        shared = Shared(self.module, self.setting, self.stacks)
        if "plan" in vars(self):
            vars(shared)["plan"] = self.plan
        return shared

    def options(self) -> CompileOptions:
        """Of the setting; objects are kept in memory where it has no cache."""
        options = self.setting.options()
        return replace(options, cache=options.cache or self._objects, batches=self._batches)

    def emitters(self, flags: Flags) -> EmitFor:
        """The emitter of each kernel by a run's flags."""
        chosen = emitters_of(self.plan, flags, self.setting)
        return cache(lambda request: self._emitting_once(chosen(request)))

    def _emitting_once(self, emitter: Emitter) -> Emitter:
        if emitter not in self._emitting:
            self._emitting[emitter] = replace(emitter, emit=_once(partial(self._noted, emitter)))
        return self._emitting[emitter]

    def _noted(self, emitter: Emitter, requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
        made = emitter.emit(requests, options)
        self.forms.update((emitter.name, name) for chosen in made.forms.values() for name in chosen.names)
        self.forms_of.update({(emitter.name, kernel): chosen.names for kernel, chosen in made.forms.items()})
        return made

    def _batches(self, requests: Sequence[KernelRequest]) -> list[Sequence[KernelRequest]]:
        """Batches of kernels that the same stacks emit in all runs."""
        alike: dict[tuple[str, ...], list[KernelRequest]] = {}
        for request in requests:
            key = tuple(emit_for(request).name for emit_for in self._all_emitters)
            alike.setdefault(key, []).append(request)
        return [batch for group in alike.values() for batch in batches_of(group)]

    @cached_property
    def _all_emitters(self) -> list[EmitFor]:
        return [self.emitters(flags) for stack in self.stacks if (flags := _ours(stack)) is not None]


def _ours(stack: str) -> Flags | None:
    """The flags of a stack that runs our plan; None for others. What is wrong with a name, its own run says."""
    try:
        flags = Flags.parse(stack) if is_compiled(stack) else None
    except FlagError:
        return None
    return None if flags is None or flags.xla else flags


def _once(
    emit: Callable[[Sequence[KernelRequest], EmitOptions], EmittedModule],
) -> Callable[[Sequence[KernelRequest], EmitOptions], EmittedModule]:
    known = cache(emit)
    return lambda requests, options: known(tuple(requests), options)
