"""Folders of XLA's dumps that are damaged or from elsewhere: one line with place and remedy, and no crash."""

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ...cli.main import main
from ...codegen.optimize import compile_object
from ...codegen.options import EmitOptions, Target
from ...codegen.targets import target_of
from ...hlo.errors import TestbedError
from ...migration.programs import load_program
from ...migration.stacks import prepare
from ...xla_kernels.ir_text import adapted
from ...xla_kernels.processor import refused_ir
from ..support.xla_dump import KERNELS, PREFIX, write_dump

INPUTS = [np.array([1, -2, 0.5, 4], np.float32), np.array([9], np.float32)]
NAMES = ("add_fusion", "update_fusion")
OBJECTS = {name: f"{PREFIX}.obj-file.{name}_kernel_module.o" for name in NAMES}
IRS = {name: f"{PREFIX}.{name}_kernel_module.ir-no-opt.ll" for name in NAMES}
TEXTS = [*IRS.values(), *(f"{PREFIX}.cpu_after_optimizations{end}.txt" for end in ("", "-buffer-assignment"))]
only_x86 = pytest.mark.skipif(Target.machine().architecture != "x86_64", reason="makes objects of x86-64")
WIDE = KERNELS["add_fusion"].replace("<2 x float>", "<16 x float>").replace("i64 16}", "i64 128}")


@pytest.fixture
def dump(tmp_path):
    return write_dump(tmp_path / "dump")


def refused(arguments, capfd, status=2):
    assert main(arguments) == status
    error = capfd.readouterr().err
    assert "Traceback" not in error
    return next(line for line in error.splitlines() if line.startswith("testbed: error: "))


@only_x86
def test_an_object_for_more_than_this_processor_is_named(dump, capfd, monkeypatch):
    """As on a machine with AVX2: an instruction of AVX-512 would end the process."""
    path = dump / OBJECTS["add_fusion"]
    path.write_bytes(compile_object(adapted(WIDE), EmitOptions(Target.level("x86-64-v4"))))
    monkeypatch.setattr(Target, "machine", staticmethod(lambda: Target.level("x86-64-v3")))
    line = refused(["run", str(dump), "--emitters", "xla-new"], capfd)
    assert f"{path}: it has instructions of avx512f" in line and "which this machine lacks" in line
    assert "make the dump on this machine, or take XLA's LLVM IR: xla-new-ir" in line
    assert main(["run", str(dump), "--emitters", "xla-new-ir"]) == 0, "the IR is compiled for this machine"


@pytest.mark.parametrize("stack", ["xla-new", "mlir+xla-new"])
def test_an_object_of_another_architecture_is_named(dump, capfd, stack):
    path = dump / OBJECTS["update_fusion"]
    other = "aarch64" if Target.machine().architecture == "x86_64" else "x86_64"
    path.write_bytes(compile_object(adapted(KERNELS["update_fusion"]), EmitOptions(target_of(other))))
    line = refused(["run", str(dump), "--emitters", stack], capfd)
    assert f"{path}: it is for {other}, and this is {Target.machine().architecture}" in line


def test_a_damaged_instruction_is_named(dump, capfd):
    from ...codegen.elf import SHF_EXECINSTR, read_object

    path = dump / OBJECTS["add_fusion"]
    data = bytearray(path.read_bytes())
    section = next(s for s in read_object(bytes(data)).sections if s.flags & SHF_EXECINSTR and s.size)
    data[section.offset : section.offset + 4] = b"\x06\0\0\0"
    path.write_bytes(bytes(data))
    line = refused(["run", str(dump), "--emitters", "xla-new"], capfd)
    assert f"{path}: the bytes at 0x0 of its code are no instruction" in line


FOREIGN_IR = {
    "another triple": (
        'target triple = "s390x-ibm-linux"\n%XLA_CPU_KernelCallFrame =',
        "its IR is for s390x, and this is ",
    ),
    "another processor's intrinsic": (
        "declare void @llvm.ppc.sync()\n%XLA_CPU_KernelCallFrame =",
        "it calls @llvm.ppc.sync, and this is ",
    ),
    "an intrinsic that this processor lacks": (
        "declare void @llvm.x86.tdpbssd.internal()\n%XLA_CPU_KernelCallFrame =",
        "it calls @llvm.x86.tdpbssd, and this ",
    ),
}


@pytest.mark.parametrize("name", FOREIGN_IR)
def test_ir_for_another_processor_is_named(dump, capfd, monkeypatch, name):
    if name.startswith("an intrinsic"):
        level = Target.level("x86-64-v3")
        monkeypatch.setattr(Target, "host", staticmethod(lambda: level))
    begin, expected = FOREIGN_IR[name]
    path = dump / IRS["add_fusion"]
    path.write_text(path.read_text().replace("%XLA_CPU_KernelCallFrame =", begin, 1))
    line = refused(["run", str(dump), "--emitters", "xla-new-ir"], capfd)
    assert f"{path}: {expected}" in line and "make the dump on this machine" in line


@only_x86
def test_attributes_for_another_processor_do_not_count(dump):
    """Code is made for this machine, whatever a function says of the processor that XLA compiled it for."""
    text = KERNELS["add_fusion"].replace(
        '"frame-pointer"="all"', '"target-cpu"="sapphirerapids" "target-features"="+avx512f,+amx-tile"'
    )
    assert "sapphirerapids" in text and "target-" not in adapted(text)
    (dump / IRS["add_fusion"]).write_text(text)
    assert list(prepare("xla-new-ir", load_program(str(dump))).run(INPUTS)[0]) == [2, -4, 9, 8]


def test_what_ir_may_call_depends_on_the_processor():
    old, new = Target.level("x86-64-v2"), Target.level("x86-64-v4")
    for name, feature in (("avx512.mask.cmp", "avx512f"), ("avx2.psad.bw", "avx2"), ("fma.vfmadd", "fma")):
        assert refused_ir(f"call @llvm.x86.{name}", old).endswith(f"this machine lacks {feature}")
        assert refused_ir(f"call @llvm.x86.{name}", new) == ""
    assert refused_ir("call @llvm.fma.f32", old) == ""


def test_no_file_of_a_folder_can_be_missing_or_empty_with_a_crash(dump, capfd):
    for path in sorted(dump.iterdir()):
        data = path.read_bytes()
        for damage in (path.unlink, lambda path=path: path.write_bytes(b"")):
            damage()
            for emitters in ("xla-new", "xla-new-ir"):
                status = main(["run", str(dump), "--emitters", emitters])
                error = capfd.readouterr().err
                assert status in (0, 2) and "Traceback" not in error, (path.name, error)
                assert status == 0 or re.search(r"testbed: error: .+\(.+\)|no such file", error), (path.name, error)
        path.write_bytes(data)


def test_a_file_that_is_a_folder_or_not_readable_is_one_line(dump, capfd):
    for name in (*OBJECTS.values(), *TEXTS):
        data = (dump / name).read_bytes()
        (dump / name).unlink()
        (dump / name).mkdir()
        assert main(["run", str(dump), "--emitters", "xla-new"]) in (0, 2)
        assert "Traceback" not in capfd.readouterr().err
        (dump / name).rmdir()
        (dump / name).write_bytes(data)
    assert main(["run", str(dump), "--emitters", "xla-new"]) == 0


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return write_dump(tmp_path_factory.mktemp("shared") / "dump")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_an_edited_text_is_refused_or_runs(shared, data):
    """A line of a text goes, comes twice, or gets another number, word or character: an error, or results."""
    name = data.draw(st.sampled_from(TEXTS))
    whole = (shared / name).read_bytes()
    lines = whole.decode().splitlines(keepends=True)
    at = data.draw(st.integers(0, len(lines) - 1))
    kind = data.draw(st.sampled_from(("drop", "twice", "number", "cut", "swap")))
    other = data.draw(st.integers(0, len(lines) - 1))
    number = data.draw(st.sampled_from(("0", "1", "3", "-1", "7", "4294967296", "99999999999999999999")))
    if kind == "drop":
        del lines[at]
    elif kind == "twice":
        lines.insert(at, lines[at])
    elif kind == "number":
        lines[at] = re.sub(r"\d+", number, lines[at], count=1)
    elif kind == "cut":
        lines[at] = lines[at][: len(lines[at]) // 2]
    else:
        lines[at], lines[other] = lines[other], lines[at]
    (shared / name).write_text("".join(lines))
    try:
        # What parses is not called: edited code may do anything, as any machine code from a folder may.
        made = load_program(str(shared)).plan
        assert made is not None
        prepare("legacy", load_program(str(shared))).run(INPUTS)
    except TestbedError as error:
        assert str(error)
    finally:
        (shared / name).write_bytes(whole)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(NAMES), st.integers(0, 10**6), st.integers(0, 255))
def test_an_edited_object_is_refused_or_linked(shared, name, place, byte):
    """One byte of an object outside its code: headers, tables, names."""
    from ...backends.base import CompileOptions
    from ...codegen.elf import SHF_EXECINSTR, read_object
    from ...migration.compile import compile_program
    from ...migration.flags import Flags

    path = shared / OBJECTS[name]
    whole = path.read_bytes()
    code = [(s.offset, s.offset + s.size) for s in read_object(whole).sections if s.flags & SHF_EXECINSTR]
    data = bytearray(whole)
    at = place % len(data)
    if any(begin <= at < end for begin, end in code):
        at = 0x28
    data[at] = byte
    path.write_bytes(bytes(data))
    try:
        made = compile_program(load_program(str(shared)), Flags.parse("xla-new"), CompileOptions(cache=None))
        assert made.kernels
    except TestbedError as error:
        assert str(error)
    finally:
        path.write_bytes(whole)
