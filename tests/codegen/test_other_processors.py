"""Kernels of both stacks for AArch64 compute what the evaluator does: linked by a cross compiler, run by QEMU."""

import shutil
import subprocess

import numpy as np
import pytest

from ... import legacy, mlir_emitters
from ...codegen.optimize import compile_object
from ...codegen.options import EmitOptions, Target
from ...differential.bounds import bounds_of
from ...differential.fake_inputs import fake_inputs
from ...differential.verdict import judge
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...planning.plan import CopyStep, KernelStep
from ...planning.planner import plan
from ..support.plan_interpreter import Machine, loaded_results

AARCH64 = Target("aarch64-unknown-linux-gnu", "cortex-a72", "+neon", 128)
CROSS, QEMU = "aarch64-linux-gnu-gcc", "qemu-aarch64"

pytestmark = pytest.mark.skipif(
    not (shutil.which(CROSS) and shutil.which(QEMU)),
    reason=f"needs {CROSS} and {QEMU} (Debian: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user)",
)

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"

PROGRAMS = {
    "functions": "ENTRY e { x = f32[37] parameter(0)\n t = f32[37] tanh(x)\n e = f32[37] exponential(x)\n"
    " ROOT r = f32[37] multiply(t, e) }",
    "functions f64": "ENTRY e { x = f64[19] parameter(0)\n s = f64[19] sine(x)\n ROOT r = f64[19] log-plus-one(s) }",
    "half": "ENTRY e { x = f16[40] parameter(0)\n y = f16[40] logistic(x)\n ROOT z = f16[40] add(y, x) }",
    "brain": "ENTRY e { x = bf16[33] parameter(0)\n y = bf16[33] multiply(x, x)\n ROOT z = f32[33] convert(y) }",
    "rows": ADD + "ENTRY e { x = f32[7,50] parameter(0)\n z = f32[] constant(0)\n"
    " s = f32[7] reduce(x, z), dimensions={1}, to_apply=add\n b = f32[7,50] broadcast(s), dimensions={0}\n"
    " ROOT d = f32[7,50] divide(x, b) }",
    "columns": ADD + "ENTRY e { x = f32[50,7] parameter(0)\n z = f32[] constant(0)\n"
    " ROOT s = f32[7] reduce(x, z), dimensions={0}, to_apply=add }",
    "product": "ENTRY e { x = f32[17,33] parameter(0)\n y = f32[33,29] parameter(1)\n"
    " ROOT d = f32[17,29] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    "integer product": "ENTRY e { x = s8[9,40] parameter(0)\n y = s8[40,11] parameter(1)\n"
    " ROOT d = s32[9,11] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    "window": "ENTRY e { x = f32[1,9,9,3] parameter(0)\n k = f32[3,3,3,8] parameter(1)\n"
    " ROOT c = f32[1,9,9,8] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f }",
    "sort": "less { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT c = pred[] compare(a, b), direction=LT }\n"
    "ENTRY e { x = s32[61] parameter(0)\n ROOT s = s32[61] sort(x), dimensions={0}, to_apply=less }",
    "integers": "ENTRY e { x = u64[21] parameter(0)\n y = u64[21] parameter(1)\n d = u64[21] divide(x, y)\n"
    " ROOT r = u64[21] shift-right-logical(d, y) }",
    "complex": "ENTRY e { x = c64[15] parameter(0)\n y = c64[15] exponential(x)\n ROOT m = c64[15] multiply(x, y) }",
}

MAIN = """
#include <stdio.h>
#include <string.h>
DECLARATIONS
static _Alignas(64) char memory[SIZE];
int main(void) {
  if (fread(memory, 1, SIZE, stdin) != SIZE) return 1;
STEPS
  return fwrite(memory, 1, SIZE, stdout) != SIZE;
}
"""


def run_there(module, machine, program, folder):
    """Run the program's kernels for AArch64 on the machine's memory, which is then as they leave it."""
    files = [folder / "main.c"]
    for number, text in enumerate((module.llvm_ir, *module.helpers)):
        files.append(folder / f"kernels{number}.o")
        files[-1].write_bytes(compile_object(text, EmitOptions(AARCH64), cache=None))
    starts, size = [], 0
    for block in machine.memory:
        starts.append(size)
        size += -(-max(block.nbytes, 1) // 64) * 64
    steps, names = [], {}
    for step in program.walk():
        if isinstance(step, KernelStep):
            places = [f"memory + {starts[s.allocation] + s.offset}" for s in step.arguments]
            names[step.kernel.name] = ", ".join(["void *"] * len(places))
            steps.append(f"  {step.kernel.name}({', '.join(places)});")
        else:
            assert isinstance(step, CopyStep), "programs here have no control flow"
            to, source = (starts[s.allocation] + s.offset for s in (step.destination, step.source))
            steps.append(f"  memcpy(memory + {to}, memory + {source}, {step.source.size});")
    declarations = "\n".join(f"void {name}({types});" for name, types in names.items())
    main = MAIN.replace("DECLARATIONS", declarations).replace("STEPS", "\n".join(steps)).replace("SIZE", str(size))
    (folder / "main.c").write_text(main)
    subprocess.run([CROSS, "-static", "-o", folder / "program", *files, "-lm"], check=True, capture_output=True)
    image = bytearray(size)
    for start, block in zip(starts, machine.memory):
        image[start : start + block.nbytes] = block.tobytes()
    done = subprocess.run([QEMU, folder / "program"], input=bytes(image), capture_output=True, timeout=120, check=True)
    after = np.frombuffer(done.stdout, np.uint8)
    machine.memory[:] = [after[start : start + block.nbytes] for start, block in zip(starts, machine.memory)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_stacks_agree_with_the_evaluator(name, tmp_path):
    module = parse_module("HloModule m\n" + PROGRAMS[name])
    program, inputs = plan(module), fake_inputs(module, 3)
    results = {"evaluator": evaluate(module, inputs)}
    for stack, emit in (("legacy", legacy.emit), ("mlir", mlir_emitters.emit)):
        machine = Machine(program, inputs, 0)
        (tmp_path / stack).mkdir()
        run_there(emit(program.kernels, EmitOptions(AARCH64)), machine, program, tmp_path / stack)
        results[stack] = loaded_results(machine)
    assert judge(results, bounds_of(module)).agrees
