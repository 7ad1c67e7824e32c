"""Kernels of both stacks for AArch64 and RISC-V compute what the evaluator does, run by QEMU."""

import shutil
import subprocess
from dataclasses import dataclass

import numpy as np
import pytest

from ... import legacy, mlir_emitters
from ...codegen.optimize import compile_object
from ...codegen.options import EmitOptions, Target
from ...codegen.targets import target_of
from ...differential.bounds import bounds_of
from ...differential.fake_inputs import fake_inputs
from ...differential.verdict import judge
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...planning.plan import CopyStep, KernelStep
from ...planning.planner import plan
from ..support.plan_interpreter import Machine, loaded_results


@dataclass(frozen=True)
class Elsewhere:
    """A processor. compiler: of C programs for it; emulator: what runs them here; package: Debian's libc for them."""

    target: Target
    compiler: str
    emulator: tuple[str, ...]
    package: str

    @property
    def lacking(self) -> str:
        """Why nothing runs; empty if all is there."""
        missing = [tool for tool in (self.compiler, self.emulator[0]) if not shutil.which(tool)]
        return f"needs {', '.join(missing)} (Debian: {self.compiler}, {self.package}, qemu-user)" if missing else ""


PROCESSORS = {
    "aarch64": Elsewhere(
        Target("aarch64-unknown-linux-gnu", "cortex-a72", "+neon", 128),
        *("aarch64-linux-gnu-gcc", ("qemu-aarch64",), "libc6-dev-arm64-cross"),
    ),
    "riscv64": Elsewhere(
        target_of("riscv64", features="+v"),
        *("riscv64-linux-gnu-gcc", ("qemu-riscv64", "-cpu", "rv64,v=true,vlen=128"), "libc6-dev-riscv64-cross"),
    ),
}

HALF = "of f16"
"""In names of programs: for RISC-V, GCC has no conversions of f16 before version 13."""

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"

PROGRAMS = {
    "functions": "ENTRY e { x = f32[37] parameter(0)\n t = f32[37] tanh(x)\n e = f32[37] exponential(x)\n"
    " ROOT r = f32[37] multiply(t, e) }",
    "functions f64": "ENTRY e { x = f64[19] parameter(0)\n s = f64[19] sine(x)\n ROOT r = f64[19] log-plus-one(s) }",
    "functions of f16": "ENTRY e { x = f16[40] parameter(0)\n y = f16[40] logistic(x)\n ROOT z = f16[40] add(y, x) }",
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
    "product in panels": "ENTRY e { x = f32[40,300] parameter(0)\n y = f32[300,70] parameter(1)\n"
    " ROOT d = f32[40,70] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    "product of few rows": "ENTRY e { x = f64[15,40] parameter(0)\n y = f64[40,48] parameter(1)\n"
    " ROOT d = f64[15,48] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    "product of few columns": "ENTRY e { x = f32[64,90] parameter(0)\n y = f32[90,8] parameter(1)\n"
    " ROOT d = f32[64,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    "product of bf16": "ENTRY e { x = bf16[30,64] parameter(0)\n y = bf16[64,33] parameter(1)\n"
    " ROOT d = f32[30,33] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    "product of s64": "ENTRY e { x = s64[17,40] parameter(0)\n y = s64[40,19] parameter(1)\n"
    " ROOT d = s64[17,19] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    "product of c64": "ENTRY e { x = c64[18,33] parameter(0)\n y = c64[33,20] parameter(1)\n"
    " ROOT d = c64[18,20] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    "sums of c64": "add { a = c64[] parameter(0)\n b = c64[] parameter(1)\n ROOT c = c64[] add(a, b) }\n"
    "ENTRY e { x = c64[6,70] parameter(0)\n z = c64[] constant((0, 0))\n"
    " ROOT s = c64[6] reduce(x, z), dimensions={1}, to_apply=add }",
    "long sum": ADD + "ENTRY e { x = f32[3,4099] parameter(0)\n z = f32[] constant(0)\n"
    " ROOT s = f32[3] reduce(x, z), dimensions={1}, to_apply=add }",
    "few columns": ADD + "ENTRY e { x = f32[9,70,5] parameter(0)\n z = f32[] constant(0)\n"
    " ROOT s = f32[9,5] reduce(x, z), dimensions={1}, to_apply=add }",
    "maximum of s16": "max { a = s16[] parameter(0)\n b = s16[] parameter(1)\n ROOT c = s16[] maximum(a, b) }\n"
    "ENTRY e { x = s16[30,14] parameter(0)\n z = s16[] constant(-32768)\n"
    " ROOT s = s16[30] reduce(x, z), dimensions={1}, to_apply=max }",
    "depthwise window": "ENTRY e { x = f32[1,9,9,32] parameter(0)\n k = f32[3,3,1,32] parameter(1)\n"
    " ROOT c = f32[1,9,9,32] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f,"
    " feature_group_count=32 }",
    "window over features": "ENTRY e { x = bf16[2,9,9,21] parameter(0)\n k = bf16[5,3,3,21] parameter(1)\n"
    " ROOT c = f32[2,9,9,5] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f }",
    "wide window": "ENTRY e { x = f32[1,12,12,16] parameter(0)\n k = f32[3,3,16,70] parameter(1)\n"
    " ROOT c = f32[1,12,12,70] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f }",
    "pool": ADD + "ENTRY e { x = f32[4,33,31] parameter(0)\n z = f32[] constant(0)\n"
    " ROOT p = f32[4,16,15] reduce-window(x, z), window={size=1x3x3 stride=1x2x2}, to_apply=add }",
    "overlapping maxima": "max { a = bf16[] parameter(0)\n b = bf16[] parameter(1)\n ROOT c = bf16[] maximum(a, b) }\n"
    "ENTRY e { x = bf16[5,40] parameter(0)\n z = bf16[] constant(-inf)\n"
    " ROOT p = bf16[5,40] reduce-window(x, z), window={size=1x5 pad=0_0x2_2}, to_apply=max }",
    "sorts abreast": "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n i = s32[] parameter(2)\n"
    " j = s32[] parameter(3)\n ROOT c = pred[] compare(a, b), direction=LT }\n"
    "ENTRY e { x = f32[50,9] parameter(0)\n i = s32[50,9] iota(), iota_dimension=1\n"
    " ROOT s = (f32[50,9], s32[50,9]) sort(x, i), dimensions={1}, to_apply=less }",
    "sorted columns": "less { a = s16[] parameter(0)\n b = s16[] parameter(1)\n"
    " ROOT c = pred[] compare(a, b), direction=GT }\n"
    "ENTRY e { x = s16[12,64] parameter(0)\n ROOT s = s16[12,64] sort(x), dimensions={0}, to_apply=less }",
    "long sort": "less { a = u64[] parameter(0)\n b = u64[] parameter(1)\n"
    " ROOT c = pred[] compare(a, b), direction=LT }\n"
    "ENTRY e { x = u64[2,900] parameter(0)\n ROOT s = u64[2,900] sort(x), dimensions={1}, to_apply=less }",
    "planes of bytes": "ENTRY e { x = u8[2,1500,3] parameter(0)\n"
    " ROOT t = u8[2,3,1500] transpose(x), dimensions={0,2,1} }",
    "planes": "ENTRY e { x = f32[2,900,3] parameter(0)\n ROOT t = f32[2,3,900] transpose(x), dimensions={0,2,1} }",
    "padded rows of bytes": "ENTRY e { x = s8[900,5] parameter(0)\n z = s8[] constant(3)\n"
    " ROOT p = s8[900,8] pad(x, z), padding=0_0x1_2 }",
    "padded rows": "ENTRY e { x = f32[900,6] parameter(0)\n z = f32[] constant(3)\n"
    " ROOT p = f32[900,8] pad(x, z), padding=0_0x1_1 }",
    "narrow beside others": "ENTRY e { x = bf16[90,61] parameter(0)\n z = bf16[] constant(3)\n"
    " p = bf16[90,64] pad(x, z), padding=0_0x1_2\n ROOT n = bf16[90,64] negate(p) }",
    "transpose": "ENTRY e { x = f32[70,90] parameter(0)\n ROOT t = f32[90,70] transpose(x), dimensions={1,0} }",
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


def run_there(module, machine, program, folder, there):
    """Run the program's kernels elsewhere on the machine's memory, which is then as they leave it."""
    files = [folder / "main.c"]
    for number, text in enumerate((module.llvm_ir, *module.helpers)):
        files.append(folder / f"kernels{number}.o")
        files[-1].write_bytes(compile_object(text, EmitOptions(there.target), cache=None))
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
    subprocess.run(
        [there.compiler, "-static", "-o", folder / "program", *files, "-lm"], check=True, capture_output=True
    )
    image = bytearray(size)
    for start, block in zip(starts, machine.memory):
        image[start : start + block.nbytes] = block.tobytes()
    command = [*there.emulator, folder / "program"]
    done = subprocess.run(command, input=bytes(image), capture_output=True, timeout=120, check=True)
    after = np.frombuffer(done.stdout, np.uint8)
    machine.memory[:] = [after[start : start + block.nbytes] for start, block in zip(starts, machine.memory)]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("processor", PROCESSORS)
def test_both_stacks_agree_with_the_evaluator(processor, name, tmp_path):
    there = PROCESSORS[processor]
    if there.lacking:
        pytest.skip(there.lacking)
    if processor == "riscv64" and HALF in name:
        pytest.skip("GCC 12 has no conversions of f16 for RISC-V")
    module = parse_module("HloModule m\n" + PROGRAMS[name])
    program, inputs = plan(module), fake_inputs(module, 3)
    results = {"evaluator": evaluate(module, inputs)}
    for stack, emit in (("legacy", legacy.emit), ("mlir", mlir_emitters.emit)):
        machine = Machine(program, inputs, 0)
        (tmp_path / stack).mkdir()
        run_there(emit(program.kernels, EmitOptions(there.target)), machine, program, tmp_path / stack, there)
        results[stack] = loaded_results(machine)
    assert judge(results, bounds_of(module)).agrees
