"""No stack leaves a kernel of the suite to one thread that the plan says threads may share."""

import pytest

from ...backends.base import CompileOptions
from ...backends.host.compiler import HostCompiler
from ...benchmarks.suite.child import load
from ...benchmarks.suite.workloads import REGISTERS
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...hlo.library.calls import LIBRARY
from ...migration.choose import emit_for
from ...migration.flags import Flags

GROUPS = ("norms", "reductions", "transposes", "dots", "convolutions", "pooling", "attention", "models")

CPUS = ("x86-64-v3", "x86-64-v4")

WHOLE = {
    ("dot_f32_12x10007x32", "legacy"): CPUS[1:],  # the columns are one panel
}
"""(workload, stack) → the processors for which a kernel of it is not shared."""

WORKLOADS = [w for register in REGISTERS if register.group in GROUPS for w in register.workloads]


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_both_stacks_share_what_threads_may_share(workload, cpu):
    if workload.needs_jax:
        pytest.importorskip("jax", reason="needs ./testbed setup --xla")
    _, text, _ = load(workload.name)
    options = EmitOptions(Target.level(cpu), ranges=True)
    plan = HostCompiler().run_hlo_passes(parse_module(text), CompileOptions(emit=options))
    for kernel in plan.kernels:
        if kernel.partition is None or kernel.instruction.opcode in LIBRARY:
            continue
        for stack in ("legacy", "mlir"):
            shared = kernel.name in emit_for(Flags.parse(stack))(kernel).emit([kernel], options).ranged
            assert shared == (cpu not in WHOLE.get((workload.name, stack), ())), (
                f"{stack}: {kernel.name}, {kernel.partition}"
            )
