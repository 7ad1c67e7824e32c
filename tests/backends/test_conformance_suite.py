"""The conformance suite of back ends: on those of this repository, and on some with faults, which it must notice."""

import shutil

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...backends.conformance import BackendConformance
from ...backends.device import Capability, KernelSpec
from ...backends.interpreter.device import InterpreterStreamExecutor
from ...backends.interpreter.executable import InterpreterExecutable
from ...backends.interpreter.platform import InterpreterCompiler, InterpreterPlatform, InterpreterTransferManager
from ...hlo.errors import TestbedError
from ...migration.api import compile as compile_
from ...migration.choose import emit_for
from ...migration.flags import Flags

NEGATED = """HloModule negated
ENTRY main {
  x = f32[8] parameter(0)
  ROOT y = f32[8] negate(x)
}
"""


class TestInterpreter(BackendConformance):
    platform = "interpreter"
    kernel = KernelSpec("negated", NEGATED.encode(), 2)


def _object() -> KernelSpec:
    executable = compile_(NEGATED, "legacy", CompileOptions(cache=None))
    return KernelSpec(executable.kernels[0][0], executable.code.objects[0], 2)


class TestHost(BackendConformance):
    platform = "host"
    emit_for = staticmethod(emit_for(Flags.parse("ledger")))
    kernel = property(lambda self: _object())


class Faulty(InterpreterPlatform):
    """An interpreter with one fault."""

    name = "faulty"

    def __init__(self, **roles):
        self._roles = roles
        self.capabilities = roles.get("capabilities", InterpreterPlatform.capabilities)
        self._device = roles.get("executor", InterpreterStreamExecutor)(self, 0)

    def executor(self, ordinal=0):
        self.check_ordinal(ordinal)
        return super().executor(ordinal) if ordinal else self._device

    def compiler(self):
        return self._roles.get("compiler", InterpreterCompiler)()

    def transfer_manager(self):
        return self._roles.get("transfers", InterpreterTransferManager)(self.name)


class Forgetful(InterpreterStreamExecutor):
    def deallocate(self, memory):
        if self.content(memory) is None:
            raise AssertionError


class Unchecked(InterpreterStreamExecutor):
    def synchronous_memcpy(self, destination, source, size):
        size = min(size, destination.size, source.size)
        self.content(destination)[:size] = self.content(source)[:size]


class Straight(InterpreterTransferManager):
    """Arrays in row-major order, whatever their layout says."""

    def device_shape(self, shape):
        return shape.without_layout()


class Rounding(InterpreterCompiler):
    def compile(self, program, emit_for, options):
        class Rounded(InterpreterExecutable):
            def _run(self, inputs, device):
                return [np.round(r) if r.dtype == np.float32 else r for r in super()._run(inputs, device)]

        return Rounded(program, options.devices)


class Overwriting(InterpreterCompiler):
    def compile(self, program, emit_for, options):
        class Overwrites(InterpreterExecutable):
            def execute(self, inputs, outputs=None, *, donated=()):
                results = super().execute(inputs, outputs, donated=donated)
                for x in inputs:
                    x[...] = np.zeros_like(x)
                return results

        return Overwrites(program, options.devices)


FAULTS = {
    "test_a_block_is_given_back_once": {"executor": Forgetful},
    "test_statistics_count_blocks": {"executor": Forgetful},
    "test_wrong_sizes_are_refused": {"executor": Unchecked},
    "test_layouts": {"transfers": Straight},
    "test_programs_have_the_evaluators_results": {"compiler": Overwriting},
    "test_feeds": {"capabilities": InterpreterPlatform.capabilities - {Capability.FEEDS}},
    "test_events_order_streams": {"capabilities": InterpreterPlatform.capabilities - {Capability.EVENTS}},
    "test_a_program_is_compiled_ahead_of_time": {"capabilities": frozenset(Capability)},
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_noticed(name):
    class Suite(BackendConformance):
        platform = Faulty(**FAULTS[name])

    with pytest.raises((AssertionError, TestbedError)):
        getattr(Suite(), name)()


def test_a_wrong_number_is_noticed():
    class Suite(BackendConformance):
        platform = Faulty(compiler=Rounding)
        programs = frozenset({"exponential"})

    with pytest.raises(AssertionError):
        Suite().test_programs_have_the_evaluators_results()


def test_programs_that_are_run_must_not_be_left_out():
    class Suite(BackendConformance):
        platform = "interpreter"
        programs = frozenset({"negate"})

    Suite().test_programs_have_the_evaluators_results()
    with pytest.raises(AssertionError, match="nothing was refused"):
        Suite().test_other_programs_are_refused_in_one_line()


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
class TestC(BackendConformance):
    platform = "c"
    kernel = property(lambda self: _object())
