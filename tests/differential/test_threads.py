"""Results do not depend on the number of threads: split kernels give the same bits on one thread and on several.

A chunk has work for tens of microseconds; here it may have one step, so that small arrays are split too.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...backends.host.executable import HostExecutable
from ...codegen.options import EmitOptions
from ...codegen.threads import set_threads, threads
from ...differential.bounds import bounds_of
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.ir import Module
from ...migration import Flags, compile_module
from ...planning import partition
from ...thunks import KernelThunk
from ..support.check import disagreements
from ..support.corpus import sample
from ..support.inputs import make_inputs

STACKS = ("legacy", "mlir")


@pytest.fixture(autouse=True)
def number_of_threads():
    before = threads()
    yield
    set_threads(before)


def compiled(module: Module, stack: str) -> HostExecutable:
    return compile_module(module, Flags.parse(stack), CompileOptions(emit=replace(EmitOptions.host(), ranges=True)))


def split_kernels(executable: HostExecutable) -> list[str]:
    return [t.symbol for t in executable.thunks.walk() if isinstance(t, KernelThunk) and t.split is not None]


def check_threads(module: Module, stack: str, counts: tuple[int, ...] = (2, 3)) -> HostExecutable:
    """Run a module on one thread and on several; compare with the evaluator too."""
    executable, inputs = compiled(module, stack), make_inputs(module)
    set_threads(1)
    alone = executable.execute(inputs)
    for count in counts:
        set_threads(count)
        together = executable.execute(inputs)
        assert [x.tobytes() for x in alone] == [x.tobytes() for x in together]
    expected = evaluate(module, inputs)
    wrong = disagreements({"evaluator": expected, stack: alone}, "evaluator", stack, bounds_of(module))
    assert not wrong
    return executable


FILES = [*sample("xla_modules/*.hlo", 0), *sample("jax_programs/*/*.hlo", 0), *sample("op_cases/*.hlo", 0)]


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_one_thread_and_several_give_the_same_bits(path: Path, stack: str, monkeypatch):
    monkeypatch.setattr(partition, "CHUNK", 1)
    check_threads(parse_module(path.read_text(), str(path)), stack)


REGIONS = """add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = pred[] compare(a, b), direction=LT }
"""


def one(shape: str, line: str, *more: str) -> str:
    lines = "\n  ".join([f"x = {shape} parameter(0)", "z = f32[] constant(0)", *more, f"ROOT r = {line}"])
    return f"HloModule m\n{REGIONS}ENTRY e {{\n  {lines}\n}}\n"


SOFTMAX = one(
    "f32[40,33]",
    "f32[40,33] divide(e, c)",
    "e = f32[40,33] exponential(x)",
    "s = f32[40] reduce(e, z), dimensions={1}, to_apply=add",
    "c = f32[40,33] broadcast(s), dimensions={0}",
)

FAMILIES: dict[str, tuple[str, str]] = {
    "flat": (one("f32[1000]", "f32[1000] tanh(x)"), "legacy mlir"),
    "nest": (one("f32[40,33]", "f32[33,40,5] broadcast(x), dimensions={1,0}"), "legacy mlir"),
    "transpose": (one("f32[129,80]", "f32[80,129] transpose(x), dimensions={1,0}"), "legacy mlir"),
    "batched transpose": (one("f32[4,64,72]", "f32[4,72,64] transpose(x), dimensions={0,2,1}"), "legacy mlir"),
    "rows": (SOFTMAX, "legacy mlir"),
    "row reduction": (one("f32[40,300]", "f32[40] reduce(x, z), dimensions={1}, to_apply=add"), "legacy mlir"),
    "column reduction": (one("f32[70,300]", "f32[300] reduce(x, z), dimensions={0}, to_apply=add"), "legacy mlir"),
    "middle reduction": (one("f32[9,70,64]", "f32[9,64] reduce(x, z), dimensions={1}, to_apply=add"), "legacy mlir"),
    "gather": (one(
        "f32[50,24]",
        "f32[30,24] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
        "index_vector_dim=1, slice_sizes={1,24}",
        "i = s32[30] iota(), iota_dimension=0",
    ), "legacy mlir"),
}  # fmt: skip
"""Family of loops → (program, the stacks whose loops take ranges)."""


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("stack", STACKS)
def test_which_loops_take_ranges(family: str, stack: str, monkeypatch):
    monkeypatch.setattr(partition, "CHUNK", 1)
    text, stacks = FAMILIES[family]
    executable = check_threads(parse_module(text), stack, (2, 5))
    assert bool(split_kernels(executable)) == (stack in stacks.split())


@pytest.mark.parametrize("stack", STACKS)
def test_kernels_too_small_and_programs_for_one_thread_have_constant_bounds(stack: str):
    large = parse_module(one("f32[1000000]", "f32[1000000] negate(x)"))
    assert split_kernels(compiled(large, stack))
    set_threads(1)
    assert not split_kernels(compile_module(large, Flags.parse(stack)))
    set_threads(2)
    assert split_kernels(compile_module(large, Flags.parse(stack)))
    assert not split_kernels(compiled(parse_module(one("f32[1000]", "f32[1000] negate(x)")), stack))


@pytest.mark.parametrize("stack", STACKS)
def test_subnormals_flush_on_every_thread(stack: str):
    module = parse_module(one("f32[4000000]", "f32[4000000] multiply(x, x)"))
    set_threads(3)
    (result,) = compiled(module, stack).execute([np.full(4_000_000, 1e-20, np.float32)])
    assert not result.any()
