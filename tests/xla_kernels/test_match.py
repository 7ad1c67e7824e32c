"""Dumps of XLA: which kernel computes which instruction, in whose buffer, and what a damaged folder gives."""

import gc
import re

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...backends.host.compiler import by_stack, ir_of
from ...cli.main import main
from ...hlo.errors import InputError
from ...migration import Flags, emit_for
from ...migration.programs import load_program
from ...migration.stacks import prepare
from ...migration.xla_programs import read_program
from ...planning.planner import plan
from ...xla_kernels.folder import one_module
from ..support.xla_dump import PREFIX, write_dump

INPUTS = [np.array([1, -2, 0.5, -0.0], np.float32), np.array([9], np.float32)]
SUM, UPDATE = f"{PREFIX}.obj-file.add_fusion_kernel_module.o", f"{PREFIX}.obj-file.update_fusion_kernel_module.o"
IR = f"{PREFIX}.add_fusion_kernel_module.ir-no-opt.ll"
MODULE, ASSIGNMENT = (f"{PREFIX}.cpu_after_optimizations{end}.txt" for end in ("", "-buffer-assignment"))


@pytest.fixture
def dump(tmp_path):
    return write_dump(tmp_path / "dump")


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_kernels_are_matched_with_their_buffers_and_workgroups(dump):
    program = read_program(one_module(dump))
    found = {i.name: (m.kernel.symbol, m.workgroups, m.overwritten) for i, m in program.matches.found.items()}
    assert found == {
        "add_fusion": ("add_fusion", 2, ()),
        "update_fusion": ("update_fusion", 1, ((0, ()),)),
    }
    assert (program.generation, program.matches.broken, program.matches.idle) == ("new", {}, ())


@pytest.mark.parametrize(
    ("stack", "flags", "stacks"),
    [
        ("xla-new", None, ["xla-new", "xla-new"]),
        ("xla-new-ir", None, ["xla-new-ir", "xla-new-ir"]),
        ("xla-new", "xla-new,dynamic-update-slice=mlir", ["xla-new", "mlir"]),
        ("mlir", "mlir,dynamic-update-slice=xla-new-ir", ["mlir", "xla-new-ir"]),
        ("legacy", None, ["legacy", "legacy"]),
    ],
)
def test_a_folder_runs_with_the_evaluators_bits(dump, stack, flags, stacks):
    program = load_program(str(dump))
    expected = prepare("evaluator", program).run(INPUTS)
    made = prepare(stack, program, flags)
    for _ in range(2):
        assert [r.tobytes() for r in made.run(INPUTS)] == [e.tobytes() for e in expected]
    assert [name for _, name in made.kernels] == stacks


def test_an_array_at_any_address_is_taken(dump):
    made = prepare("xla-new", load_program(str(dump)))
    memory = np.zeros(8, np.float32)
    memory[3:7] = INPUTS[0]
    assert made.run([memory[3:7], INPUTS[1]])[0].tobytes() == made.run(INPUTS)[0].tobytes()


def test_an_operand_that_lives_on_is_not_overwritten(dump):
    edit(dump / MODULE, "ROOT %update_fusion", "%update_fusion")
    pair = "  ROOT %t = (f32[4]{0}, f32[4]{0}) tuple(%add_fusion, %update_fusion)\n"
    edit(dump / MODULE, "calls=%update\n", f"calls=%update\n{pair}")
    edit(dump / MODULE, "-> f32[4] {\n  %x", "-> (f32[4], f32[4]) {\n  %x")
    edit(dump / MODULE, ")->f32[4]{0}}", ")->(f32[4]{0}, f32[4]{0})}")
    made = prepare("xla-new", load_program(str(dump))).run(INPUTS)
    assert [list(r) for r in made] == [[2, -4, 1, 0], [2, -4, 9, 0]]


def cut(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def without(*names):
    return lambda dump: [(dump / name).unlink() for name in names]


DAMAGE = {
    "no object": (without(SUM), "xla-new", "no kernel for add_fusion|the dump has no object"),
    "no object and no IR": (
        without(SUM, IR),
        "xla-new",
        "no kernel for add_fusion: the dump has no kernel of this name",
    ),
    "a cut object": (lambda d: cut(d / UPDATE), "xla-new", "no kernel for update_fusion: .*damaged ELF object"),
    "an object of another kind": (
        lambda d: (d / SUM).write_bytes(b"\xcf\xfa\xed\xfe" * 99),
        "xla-new",
        "no kernel for add_fusion: .*not a 64-bit little-endian ELF object",
    ),
    "more arguments than the instruction has": (
        lambda d: edit(d / IR, "i32 2, i32 0", "i32 3, i32 0"),
        "xla-new",
        "no kernel for add_fusion: its code takes 4 arguments, and fusion add_fusion has 3",
    ),
    "arguments of another size": (
        lambda d: edit(d / IR, "!4 = !{i64 16}", "!4 = !{i64 64}"),
        "xla-new-ir",
        "argument 0 has 64 bytes in the code, and f32",
    ),
    "IR that LLVM refuses": (
        lambda d: edit(d / IR, "fadd <2 x float> %va", "fadd <3 x float> %va"),
        "xla-new-ir",
        "add_fusion_kernel_module.ir-no-opt.ll: LLVM refuses the IR",
    ),
    "a constant with too many bits": (
        lambda d: edit(d / IR, "f0x3F800000", "f0x3F80000000"),
        "xla-new-ir",
        "f0x3F80000000 has more bits than float",
    ),
    "IR that is no text": (lambda d: (d / IR).write_bytes(b"\xff\xfe"), "xla-new", "not UTF-8 text at byte 0"),
    "no buffer assignment": (without(ASSIGNMENT), "xla-new", "the dump has no buffer assignment"),
    "an empty buffer assignment": (
        lambda d: (d / ASSIGNMENT).write_text("nothing\n"),
        "xla-new",
        "no buffer assignment of XLA",
    ),
    "a buffer assignment of another module": (
        lambda d: edit(d / ASSIGNMENT, "add_fusion", "other"),
        "xla-new",
        "the buffer assignment has no place for add_fusion",
    ),
    "a module that does not parse": (
        lambda d: edit(d / MODULE, "fusion(%x, %x)", "fusion(%x, %nobody)"),
        "xla-new",
        "nobody",
    ),
    "the other generation": (
        lambda d: None,
        "xla-old",
        "these are kernels of XLA's new emitters.*use --emitters xla-new",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_folder_is_one_line(dump, capfd, name):
    damage, emitters, expected = DAMAGE[name]
    damage(dump)
    assert main(["run", str(dump), "--emitters", emitters]) == 2
    error = capfd.readouterr().err
    line = next(line for line in error.splitlines() if line.startswith("testbed: error: "))
    assert "Traceback" not in error
    assert re.search(expected, line), line


def test_xlas_ir_is_no_part_of_a_loop(dump):
    """Its invariant loads are so for one call: inlined into a loop, values of the first iteration would stay."""
    xla, options = read_program(one_module(dump)), CompileOptions()
    for stack, inlined in (("xla-new-ir", 0), ("legacy", 1)):
        flags = Flags.parse(stack)
        requests = xla.plan(Flags.parse("xla-new-ir"), options).emitted if inlined == 0 else plan(xla.module).emitted
        parts = by_stack(requests, emit_for(flags, xla.emitter("xla-new-ir") if inlined == 0 else None))
        assert len(ir_of({r.name for r in requests}, parts, options)) == inlined


def test_refused_ir_leaves_nothing_to_the_garbage_collector(dump):
    edit(dump / IR, "fadd <2 x float> %va", "fadd <3 x float> %va")
    program = load_program(str(dump))
    for _ in range(20):
        with pytest.raises(InputError, match="LLVM refuses the IR"):
            prepare("xla-new-ir", program)
        gc.collect()


def test_every_cut_of_an_object_is_refused_or_whole(dump):
    """No cut of a file crashes; what is given is the result."""
    path = dump / UPDATE
    data = path.read_bytes()
    for size in range(0, len(data), 97):
        path.write_bytes(data[:size])
        assert main(["run", str(dump), "--emitters", "xla-new"]) in (0, 2)
    path.write_bytes(data)
    assert main(["run", str(dump), "--emitters", "xla-new"]) == 0


def test_a_folder_with_no_or_several_modules(tmp_path, dump, capsys):
    assert main(["import", str(tmp_path / "nowhere")]) == 2
    assert main(["import", str(tmp_path)]) == 2
    assert "no module of XLA:CPU" in capsys.readouterr().err
    write_dump(dump, "module_0002.jit_other")
    assert main(["run", str(dump), "--emitters", "xla-new"]) == 2
    assert "2 modules (give one of" in capsys.readouterr().err
    assert main(["run", str(dump / "jit_other"), "--emitters", "xla-new"]) == 0


def test_import_lists_kernels(dump, capsys):
    assert main(["import", str(dump)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "add_fusion loop_fusion IR+object fusion 1" in out
    assert f"{PREFIX}, new emitters: 2 kernels, 2 of them matched with 2 instructions" in out
