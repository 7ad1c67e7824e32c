"""Kernels of XLA's measured beside ours: times, distances, the report."""

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...benchmarks.kernel_loop import kernel_loop
from ...benchmarks.xla_kernels import ProgramRow, distance, ir_facts, measure_kernel
from ...benchmarks.xla_report import report
from ...migration.compile import compile_program
from ...migration.flags import Flags
from ...migration.programs import load_program
from ...migration.xla_programs import read_program
from ...xla_kernels.folder import one_module
from ..support.xla_dump import write_dump


@pytest.fixture
def dump(tmp_path):
    return write_dump(tmp_path / "dump")


@pytest.mark.parametrize("flags", ["xla-new", "xla-new-ir", "legacy", "mlir"])
def test_a_loop_runs_all_kernels_and_leaves_the_inputs(dump, flags):
    executable = compile_program(load_program(str(dump)), Flags.parse(flags), CompileOptions())
    inputs = [np.arange(4, dtype=np.float32), np.ones(1, np.float32)]
    repeat = kernel_loop(executable, inputs)
    assert repeat is not None
    repeat(3)
    np.testing.assert_array_equal(inputs[0], np.arange(4))


DISTANCES = [
    (np.float32([1, np.nan, -0.0]), np.float32([1, np.nan, 0.0]), 0),
    (np.float32([1]), np.nextafter(np.float32([1]), np.float32(2)), 1),
    (np.float32([np.inf]), np.float32([1]), np.inf),
    (np.int32([3, 5]), np.int32([3, 9]), 4),
    (np.complex64([1 + 2j]), np.complex64([1 + 2j]), 0),
    (np.float32([]), np.float32([]), 0),
]


@pytest.mark.parametrize(("actual", "expected", "far"), DISTANCES)
def test_distances(actual, expected, far):
    assert distance(actual, expected) == far


def test_a_kernel_is_measured_on_all_stacks_and_reported(dump):
    xla = read_program(one_module(dump))
    rows = [
        measure_kernel(xla, i, "tiny", ("xla-new", "xla-new-ir", "legacy", "mlir"), 3, 1e-5, 0)
        for i in xla.matches.found
    ]
    assert [set(row.seconds) for row in rows] == [{"xla-new", "xla-new-ir", "legacy", "mlir"}] * 2
    assert all(not any(row.ulps.values()) and not row.refused for row in rows)
    lines, metadata = ir_facts(xla.kernels.kernels["add_fusion"])
    assert (lines, metadata["invariant loads"], metadata["loop hints"]) == (21, 4, 0)
    program = ProgramRow("tiny", {"jaxlib-new": 1e-6, "jaxlib-old": 2e-6, "xla-new": 1e-6}, {"old": 1.0, "new": 2.0})
    program.kernels = {"old": (0, 0), "new": (2, 2)}
    text = report(rows, [program], "all")
    assert "| new loop_fusion | 2 | 2 | 0 | 0 | 0 | 0 | 0 |" in text
    assert "| tiny | 1.0 | 2.00 | – | 1.00 | – | – | 2.00 |" in text
