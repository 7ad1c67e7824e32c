"""Builds the example of a program that was compiled ahead of time, and runs it on arrays."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...backends.host.ahead import AheadOptions, compile_ahead
from ...codegen.options import EmitOptions, Target
from ...codegen.targets import target_of
from ...formats.whole_files import write_folder
from ...hlo.ir import Module
from ...migration.choose import emit_for
from ...migration.flags import Flags
from ...planning.planner import plan

COMPILERS = {
    "aarch64": ("aarch64-linux-gnu-gcc", "qemu-aarch64"),
    "riscv64": ("riscv64-linux-gnu-gcc", "qemu-riscv64"),
}
"""Architecture → its C compiler and its emulator on another machine, as Debian calls them."""


def tools_for(target: Target) -> tuple[str, ...]:
    """The C compiler for a target, and the emulator that its programs need here, if any."""
    if target.architecture == Target.machine().architecture:
        return ("cc",)
    return COMPILERS.get(target.architecture, ("no-c-compiler",))


def lacking(architecture: str | None) -> str:
    """What is not installed to build and run programs for an architecture (None: this machine's); '' if nothing is."""
    target = target_of(architecture or Target.machine().architecture)
    return ", ".join(tool for tool in (*tools_for(target), "make") if not shutil.which(tool))


def compile_there(
    module: Module, target: Target, folder: Path, stack: str = "legacy", relocation: str = "pic", name: str = "run_it"
) -> Path:
    options = AheadOptions(EmitOptions(target), name, relocation)
    files = compile_ahead(plan(module), emit_for(Flags.parse(stack)), options)
    write_folder(folder, lambda work: [(work / n).write_bytes(data) for n, data in files.items()])
    return folder


def run_there(
    folder: Path, target: Target, inputs: Sequence[np.ndarray], results: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Build the example and run it. results: arrays of the types and shapes that come back."""
    compiler, *emulator = tools_for(target)
    static = ["LDFLAGS=-static"] if emulator else []
    command = ["make", "-s", "-C", folder, f"CC={compiler}", "CFLAGS=-O1 -Wall -Wextra -Werror", *static]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    paths = [folder / f"{n}.bin" for n in range(len(inputs) + len(results))]
    for path, value in zip(paths, inputs):
        path.write_bytes(np.ascontiguousarray(value).tobytes())
    done = subprocess.run([*emulator, folder / "example", *paths], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    read = zip(paths[len(inputs) :], results)
    return [np.frombuffer(path.read_bytes(), r.dtype).reshape(r.shape) for path, r in read]
