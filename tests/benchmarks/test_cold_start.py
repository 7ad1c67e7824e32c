"""What a process loads for its first small program is bounded, and the benchmark of it measures such processes."""

import json
import subprocess
import sys

import pytest

from ...benchmarks import cold_start
from ...migration.flags import STACK_NAMES

LOADED = """
print(program(numpy.ones(4, numpy.float32)).tolist())
import os, sys
print(*sys.modules)
print(*{os.path.realpath(line.split()[-1]) for line in open("/proc/self/maps") if ".so" in line})
made = [name for m in list(sys.modules.values()) if m and m.__name__.startswith("testbed.")
        for name, c in vars(m).items() if isinstance(c, type) and "__dataclass_params__" in vars(c)]
print(*made)
before = program._contexts.native
program(numpy.ones(4, numpy.float32))
print(before, program._contexts.native is not None)
"""

NOT_NEEDED = (
    *("llvmlite.binding", "testbed.evaluator", "testbed.xla_kernels", "testbed.profiling.report", "testbed.ffi"),
    *("testbed.formats.proto", "testbed.formats.stablehlo.stablehlo", "testbed.thunks.host_build"),
    *("testbed.backends.host.entry", "testbed.codegen.inline", "testbed.codegen.c_compiler", "testbed.benchmarks"),
    *("concurrent", "difflib", "importlib.metadata", "importlib.resources", "jax", "scipy"),
)
OF_THE_OTHER = {
    "legacy": ("mlir", "testbed.mlir_emitters", "testbed.lhlo", "logging", "subprocess"),  # MLIR imports these
    "mlir": ("llvmlite.ir", "testbed.legacy"),
}


@pytest.mark.parametrize("stack", STACK_NAMES)
def test_the_first_program_loads_one_llvm_and_what_its_stack_needs(stack):
    program = cold_start.OURS.format(cold_start.MODULE, stack, "cache=None") + LOADED
    ran = subprocess.run([sys.executable, "-P", "-c", program], check=True, capture_output=True, text=True)
    result, modules, libraries, records, entries = ran.stdout.splitlines()
    assert result == "[2.0, 2.0, 2.0, 2.0]"
    unwanted = (*NOT_NEEDED, *OF_THE_OTHER[stack])
    assert [m for m in modules.split() if any(m == u or m.startswith(f"{u}.") for u in unwanted)] == []
    assert "libllvmlite" not in libraries and ("libMLIRPythonCAPI" in libraries) == (stack == "mlir")
    assert len([file for file in libraries.split() if "libLLVM" in file]) <= (2 if stack == "mlir" else 1)
    assert len(records.split()) <= 12, "classes compiled by the standard library: use hlo/records.py"
    assert entries == "None True"  # native calls are prepared by the second run


def test_each_contestant_runs_and_is_in_the_table(capsys, tmp_path):
    assert cold_start.main(["--rounds", "1", "--json", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    lines = capsys.readouterr().out.splitlines()
    assert list(found) == list(cold_start.contestants()) and len(lines) == 1 + len(found)
    for line, (name, rounds) in zip(lines[1:], found.items(), strict=True):
        ((inside, whole, memory),) = rounds
        assert line.startswith(name) and 0 < inside < whole and memory > 10


def test_a_process_that_fails_ends_it():
    with pytest.raises(subprocess.CalledProcessError):
        cold_start.measure({"exit": "import sys; sys.exit(3)"}, 1)
