"""Tries a program on a stack in a child process first, so that one that takes too long, or dies, ends no benchmark."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from pebble import ProcessExpired, ProcessPool

from ..codegen.options import Target, assume_host
from ..formats.program import Program, load_io, parameter_leaves, save_io
from ..migration.programs import load_program


def why_too_slow(
    stack: str, spec: str, program: Program, inputs: Sequence[np.ndarray], limit: float, target: Target
) -> str | None:
    """None if a stack compiles a program and runs it once within `limit` seconds; otherwise what happened, in words.

    spec: the MODULE, which the child process reads again. An error of the program itself is not reported here.
    """
    context = multiprocessing.get_context("spawn")  # fork would copy LLVM's and MLIR's state
    with TemporaryDirectory() as folder:
        file = Path(folder) / "io.npz"
        save_io(file, inputs, ())
        with ProcessPool(1, context=context) as pool:
            try:
                pool.schedule(_start, timeout=None).result()  # the time of imports is not the program's
                pool.schedule(_run_once, (stack, spec, str(file), target), timeout=limit).result()
            except TimeoutError:
                return f"no result within {limit:g} s"
            except ProcessExpired as died:
                code = died.exitcode or 0
                return f"killed by signal {-code}" if code < 0 else f"exited with status {code}"
            except BaseException:
                pool.stop()  # else the pool's end waits for what is scheduled
                raise
    return None


def _start() -> None:
    import llvmlite.binding  # noqa: F401


def _run_once(stack: str, spec: str, file: str, target: Target) -> None:
    from ..migration.stacks import prepare

    assume_host(target)
    program = load_program(spec)
    inputs, _ = load_io(Path(file), parameter_leaves(program.module), None)
    prepare(stack, program).run(inputs)
