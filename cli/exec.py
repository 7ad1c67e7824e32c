"""`testbed exec PROG.tbx`: runs a compiled program, without compiling anything. Heavy modules stay out of its way."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .devices import feed_options, read_feeds, run_executable, values_for
from .inputs import Inputs, input_options
from .json_output import json_option, print_document
from .keys import read_key
from .output import milliseconds, say
from .params import FILE

if TYPE_CHECKING:
    import numpy as np

    from ..hlo.ir import Module


@dataclass(frozen=True)
class LoadedProgram:
    """What the input options need of a program: no inputs came with it."""

    name: str
    module: Module
    inputs: tuple[np.ndarray, ...] | None = None
    expected: tuple[np.ndarray, ...] | None = None


@click.command()
@click.argument("program", metavar="PROG.TBX", type=FILE)
@input_options()
@feed_options
@click.option("-o", "--output", type=FILE, metavar="OUT.NPZ", help="Save inputs and results in the form of io.npz.")
@click.option("--verify", type=FILE, metavar="KEY", help="Refuse a program that is not signed with this key.")
@json_option("results and times")
def command(
    program: str,
    inputs: Inputs,
    infeed: str | None,
    wait_limit: float | None,
    output: str | None,
    verify: str | None,
    as_json: bool,
) -> int:
    """Run a program that `testbed compile` wrote and print a line for each result leaf, as `testbed run` does."""
    key = read_key(verify)
    start = time.perf_counter()
    from ..backends.host.loader import load_executable

    executable = load_executable(program, key, native_calls=False)
    loaded = time.perf_counter()
    devices = executable.image.devices
    if output is not None and devices.count > 1:
        raise click.UsageError("--output takes a program of one device")
    forms = [] if executable.outside is None else list(executable.outside.forms.values())
    feeds = read_feeds(infeed, forms, devices)
    stub = LoadedProgram(Path(program).stem, executable.program)
    values, origin = values_for(stub, inputs, devices, 0)
    ready = time.perf_counter()
    done = run_executable(executable, [v.inputs for v in values], feeds, wait_limit)
    seconds = time.perf_counter() - ready
    if output is not None:
        from ..formats.arrays import save_io

        save_io(Path(output), values[0].inputs, done.results[0])
    if as_json:
        shapes = [str(s.without_layout()) for _, s in executable.program.result_shape.leaves() if s.is_array]
        body: dict[str, Any] = {"program": program, "name": executable.program.name, "inputs": origin}
        body |= {"load_seconds": loaded - start, "run_seconds": seconds}
        replicas = done.body(shapes)
        body |= {"results": replicas[0]["results"], "replicas": replicas}
        return print_document("exec", 0, body)
    done.print(devices)
    say(f"load {loaded - start:.3f} s, first run {milliseconds(seconds)} ms", err=True)
    return 0
