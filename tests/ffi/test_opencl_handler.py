"""The example of a handler on OpenCL: built with the C++ compiler, its kernel in the queue of the run."""

import gc
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from ...backends.opencl.library import devices
from ...backends.registry import platform
from ...examples import opencl_handler
from ...ffi.calls import CallError
from ...ffi.registry import unregister
from ...ffi.static_library import register_symbols
from ...hlo.errors import UnsupportedError
from ..support.cpp import need_cpp
from ..support.device_programs import compiled

pytestmark = pytest.mark.skipif(not devices()[0], reason=f"platform opencl: {devices()[1]}")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    need_cpp()
    return opencl_handler.built(tmp_path_factory.mktemp("handler"))


@pytest.fixture
def added(library):
    register_symbols(library, {"guide.add": "custom_call"}, platform="opencl")
    yield
    unregister("guide.add", "opencl")


def wanted(b, c):
    return -(np.tile(b, 16) + 2 * c)


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_the_kernel_runs_between_those_of_the_program(stack, added):
    b, c = np.arange(128, dtype=np.float32), np.arange(2048, dtype=np.float32)
    executable = compiled(platform("opencl"), opencl_handler.MODULE, stack)
    np.testing.assert_array_equal(executable.execute([b, c])[0], wanted(b, c))


def test_what_it_reports_names_the_call(added):
    few = compiled(platform("opencl"), opencl_handler.MODULE.replace("f32[128]", "f32[64]"))
    with pytest.raises(CallError, match=r"a: custom-call\(guide.add\): INVALID_ARGUMENT: the first operand needs 128"):
        few.execute([np.zeros(64, np.float32), np.zeros(2048, np.float32)])


def test_a_target_without_a_handler_is_refused_by_name():
    with pytest.raises(UnsupportedError, match=r"custom-call\(guide.add\) of a on OpenCL.*platform='OpenCL'"):
        compiled(platform("opencl"), opencl_handler.MODULE)


def test_eight_threads_call_it_and_nothing_grows(added):
    executor, wrong = platform("opencl").executor(0), []
    executable, c = compiled(platform("opencl"), opencl_handler.MODULE), np.arange(2048, dtype=np.float32)
    executable.execute([np.zeros(128, np.float32), c])
    gc.collect()
    one = executor.statistics().bytes_in_use

    def work(number):
        b = np.full(128, number, np.float32)
        for _ in range(25):
            if not (executable.execute([b, c])[0] == wanted(b, c)).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    executable._idle[1:], idle = [], executable._idle[1:]
    for context in idle:
        context.free()
    gc.collect()
    assert not wrong and executor.statistics().bytes_in_use == one


def test_the_example_runs(library):
    script = Path(opencl_handler.__file__)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["legacy", "mlir"]
