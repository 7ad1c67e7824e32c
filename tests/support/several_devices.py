"""Runs a module on simulated devices: the evaluator, both stacks, in every form of a compiled program."""

from collections.abc import Sequence

import numpy as np

from ...backends.base import CompileOptions
from ...backends.host.executable import HostExecutable
from ...backends.host.loader import deserialize_and_load
from ...evaluator.evaluator import evaluate_replicated
from ...formats.text.parser import parse_module
from ...hlo.dtypes import FROM_NUMPY
from ...hlo.ir import Module
from ...migration import Flags, compile_module
from ...thunks import from_text, to_text

FORMS = (("legacy", "interpreted"), ("mlir", "compiled"))
"""Both stacks and both host programs: which kernels a host program calls makes no difference to it."""

ALL_FORMS = (*FORMS, ("legacy", "compiled"), ("mlir", "interpreted"))

REDUCERS = """add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y) }
"""


def module_of(body: str, computations: str = "", header: str = "") -> Module:
    """The entry computation and what it calls, as a module. `add` adds f32. header: its attributes."""
    return parse_module(f"HloModule m{header}\n{REDUCERS}{computations}\nENTRY e {{\n{body}\n}}\n")


def compiled(module: Module, replicas: int = 1, partitions: int = 1, stack: str = "legacy", form: str = "auto"):
    options = CompileOptions(host_program=form, replicas=replicas, partitions=partitions)
    return compile_module(module, Flags.parse(stack), options)


def agree(
    module: Module,
    inputs: Sequence[Sequence[np.ndarray]],
    replicas: int = 1,
    partitions: int = 1,
    forms: Sequence[tuple[str, str]] = FORMS,
) -> list[list[np.ndarray]]:
    """The evaluator's results, after every form has given their bits; each program's text and file, too."""
    expected = evaluate_replicated(module, inputs, replicas=replicas, partitions=partitions)
    for stack, form in forms:
        executable = compiled(module, replicas, partitions, stack, form)
        assert from_text(to_text(executable.thunks)) == executable.thunks
        for program in (executable, _again(executable)):
            check_bits(expected, program.execute_replicated(inputs), f"{stack}, {form}")
    return expected


def _again(executable: HostExecutable) -> HostExecutable:
    return deserialize_and_load(executable.serialize())


def check_bits(expected: list[list[np.ndarray]], given: list[list[np.ndarray]], where: str) -> None:
    assert len(given) == len(expected)
    for device, (theirs, ours) in enumerate(zip(expected, given, strict=True)):
        for number, (a, b) in enumerate(zip(theirs, ours, strict=True)):
            assert a.dtype == b.dtype and a.shape == b.shape, (where, device, number)
            assert _bits(a) == _bits(b), (where, device, number, a, b)


def _bits(x: np.ndarray) -> bytes:
    """Its bytes. What stands beside the bits of a narrow element in its byte means nothing."""
    dtype = FROM_NUMPY[x.dtype]
    return (x.astype(np.int8) if dtype.is_integer and dtype.bits < 8 else x).tobytes()
