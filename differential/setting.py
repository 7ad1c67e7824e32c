"""How a case is run on a stack: everything beside the stack itself that may decide whether it goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..backends.base import CompileOptions, HostProgramKind
from ..codegen.cache import DEFAULT_CACHE
from ..codegen.options import EmitOptions
from ..codegen.threads import set_threads, threads
from ..hlo.ir import Module
from ..migration.compile import compile_module
from ..migration.flags import Flags

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Setting:
    """cache: use the cache of objects on disk. red_zones: run kernels between guard bytes. host_program: how kernels
    are called. threads: that may work at a kernel.
    """

    cache: bool = True
    red_zones: bool = False
    host_program: HostProgramKind | str = HostProgramKind.AUTO
    threads: int = 1

    def options(self) -> CompileOptions:
        """For a compilation in a process with this number of threads."""
        return CompileOptions(
            EmitOptions.host(),
            cache=DEFAULT_CACHE if self.cache else None,
            red_zones=self.red_zones,
            host_program=self.host_program,
        )


USUAL = Setting()


def execute(module: Module, inputs: Sequence[np.ndarray], stack: str, setting: Setting) -> list[np.ndarray]:
    """The results of a verified module on a stack. Raises whatever the stack does; FlagError for an unknown one."""
    from ..formats.program import Program
    from ..migration.stacks import STACKS, prepare

    if stack in STACKS and stack not in ("legacy", "mlir"):
        text = "" if stack != "xla" else _text(module)
        return prepare(stack, Program(module.name, text, module)).run(inputs)
    with _on_threads(setting.threads):
        return compile_module(module, Flags.parse(stack), setting.options()).execute(inputs)


def _text(module: Module) -> str:
    from ..formats.text.printer import print_module

    return print_module(module)


@contextmanager
def _on_threads(count: int) -> Iterator[None]:
    before = threads()
    set_threads(count)
    try:
        yield
    finally:
        set_threads(before)
