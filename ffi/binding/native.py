"""Handlers whose body is a kernel: called here like any other, and written as C for programs without Python."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...codegen.options import EmitOptions, Target
from ...codegen.whole import whole_object
from ...hlo.errors import InputError
from ..abi import Stage
from .c_source import handler_source, prelude
from .declare import Declaration
from .handler import Handler
from .kernels import Kernel, check_kernel, check_specs, llvm_arguments, python_function, refuse_foreign
from .numba_kernels import numba_kernel


class KernelHandler(Handler):
    """A handler of the stage execute that calls a kernel."""

    def __init__(self, kernel: Kernel, binding: Declaration):
        if binding.stage != Stage.EXECUTE:
            raise InputError(f"a kernel runs in the stage execute, not {binding.stage.name.lower()}")
        check_specs(binding.specs)
        check_kernel(kernel, binding.specs)
        self.kernel = kernel
        super().__init__(python_function(kernel, binding.specs), binding)


def kernel_handler(kernel: Kernel | Callable[..., Any], binding: Declaration) -> KernelHandler:
    """A handler of a kernel, or of a Python function that numba compiles. Raises InputError."""
    if isinstance(kernel, Kernel):
        return KernelHandler(kernel, binding)
    check_specs(binding.specs)
    return KernelHandler(numba_kernel(kernel, binding.specs), binding)


_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)


def built(name: str, handlers: dict[str, KernelHandler], target: Target | None = None) -> dict[str, bytes]:
    """The files of a library of handlers: NAME.c, an object for each kernel, and a Makefile. Raises InputError.

    handlers: by the name of their C function.
    """
    for one in (name, *handlers):
        if not _NAME.fullmatch(one):
            raise InputError(f"{one!r} is no name of a C function", remedy="use letters, digits and _")
    emit = EmitOptions(target or Target.machine())
    files: dict[str, bytes] = {}
    sources = [f"/* Handlers of XLA's FFI, made by `testbed ffi build`: {', '.join(handlers)}. */\n{prelude()}"]
    for function, handler in handlers.items():
        public = f"{function}_kernel"
        entry = _entry(public, handler)
        data = whole_object([handler.kernel.llvm_ir], entry, public, emit, "pic")
        refuse_foreign(function, data)
        files[f"{public}.o"] = data
        sources.append(handler_source(function, handler.kernel, public, handler.binding.specs))
    objects = " ".join(files)
    files[f"{name}.c"] = "\n".join(sources).encode()
    files["Makefile"] = _makefile(name, objects).encode()
    return files


def _entry(public: str, handler: KernelHandler) -> str:
    """A module with the one visible function, so that kernels of a library may have helpers of the same name."""
    types = llvm_arguments(handler.binding.specs)
    given = ", ".join(f"{t} %a{n}" for n, t in enumerate(types))
    name = handler.kernel.entry
    return (
        f'declare i32 @"{name}"({", ".join(types)})\n\n'
        f'define i32 @{public}({given}) {{\n  %r = call i32 @"{name}"({given})\n  ret i32 %r\n}}\n'
    )


def _makefile(name: str, objects: str) -> str:
    return (
        f"# Builds lib{name}.so from the handlers in C and their kernels.\nCFLAGS ?= -O2 -Wall\n\n"
        f"lib{name}.so: {name}.c {objects}\n"
        f"\t$(CC) $(CFLAGS) -std=c11 -fPIC -shared -o $@ {name}.c {objects} -lm\n\n"
        f"clean:\n\trm -f lib{name}.so\n\n.PHONY: clean\n"
    )


def link(folder: Path, name: str) -> Path | None:
    """Build the shared object in a folder that holds the files; None without a C compiler. Raises InputError."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    objects = sorted(str(path) for path in folder.glob("*_kernel.o"))
    target = folder / f"lib{name}.so"
    flags = ["-O2", "-std=c11", "-fPIC", "-shared", "-o", str(target)]
    done = subprocess.run(
        [compiler, *flags, str(folder / f"{name}.c"), *objects, "-lm"], capture_output=True, text=True
    )
    if done.returncode:
        raise InputError(f"{compiler} cannot build the library: {done.stderr.strip().splitlines()[-1]}")
    return target
