"""Kernels of both stacks as code of a device: needs no device. Errors of OpenCL in words, with a library that fails."""

import ctypes
import re
import signal
from types import SimpleNamespace

import pytest

from ...backends.accelerator import emitters
from ...backends.accelerator.addresses import with_chains
from ...backends.accelerator.emit import prepared
from ...backends.accelerator.emitters import emitted_apart
from ...backends.accelerator.items import forms, work_of
from ...backends.accelerator.legal import legal
from ...backends.accelerator.steps import Builder
from ...backends.accelerator.targets import SPIRV, amdgcn, nvptx
from ...backends.accelerator.text import Work, device_text, entry_name
from ...backends.base import CompileOptions
from ...backends.device import BackendError
from ...backends.host.compiler import HostCompiler
from ...backends.opencl.errors import check
from ...backends.opencl.library import Device
from ...backends.opencl.memory import UsmMemory
from ...backends.opencl.spirv import is_framed
from ...backends.opencl.stream import OpenClStream
from ...codegen.errors import CodegenError
from ...codegen.llvm import make_machine, parse
from ...codegen.options import EmitOptions
from ...formats.text.parser import parse_module
from ...hlo.verify.verifier import verify
from ...migration.choose import emitter

MAGIC = (0x07230203).to_bytes(4, "little")

PROGRAM = """HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e {
  p = f32[40,30] parameter(0)
  q = f32[30,20] parameter(1)
  d = f32[40,20] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[40,20] sine(d)
  z = f32[] constant(0)
  ROOT r = f32[20] reduce(s, z), dimensions={0}, to_apply=add
}
"""


def _requests():
    module = parse_module(PROGRAM)
    verify(module)
    return HostCompiler().run_hlo_passes(module, CompileOptions()).emitted


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_each_element_is_an_item(stack):
    options = EmitOptions(SPIRV.target, strict=True, ranges=True, by_element=True)
    for request in _requests():
        form = next(forms(request))
        module = emitter(stack).emit([form], options)
        assert form.name in module.ranged, f"{stack} has no element of {form.name} by itself"
        work = work_of(form, True)
        assert work.extent == form.result_shapes[0].size and work.each == 1
        code = emitted_apart(device_text(module.llvm_ir, [work], SPIRV), SPIRV)
        assert code.startswith(MAGIC) and entry_name(form.name).encode() in code


BIASED = """HloModule m
ENTRY e {
  p = f32[64,192] parameter(0)
  q = f32[64] parameter(1)
  s = f32[64,64] slice(p), slice={[0:64],[64:128]}
  b = f32[64,64] broadcast(q), dimensions={1}
  ROOT r = f32[64,64] add(s, b)
}
"""


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_a_vector_of_items_sees_neighbours_in_a_row(stack):
    """Each address is a base and the number of the item in its vector; an item has no loop, and divides nothing."""
    (request,) = HostCompiler().run_hlo_passes(parse_module(BIASED), CompileOptions()).emitted
    form = next(forms(request))
    module = emitter(stack).emit([form], EmitOptions(SPIRV.target, strict=True, ranges=True, by_element=True))
    machine, text = make_machine(SPIRV.target), device_text(module.llvm_ir, [work_of(form, True)], SPIRV)
    made = str(prepared(text, SPIRV, machine))
    assert len(re.findall(r"getelementptr float, .*, i64 %lane", made)) == 3
    assert not re.search(r" = (?:phi|[us]rem|[us]div) ", made)


@pytest.mark.parametrize("walks", [False, True])
@pytest.mark.parametrize("items", [1, 5, 16, 17, 1000, 1024, 1040, 5000])
@pytest.mark.parametrize("target", [SPIRV, nvptx("sm_80")], ids=["rows", "one row"])
def test_a_launch_has_each_item_once(target, items, walks):
    device = SimpleNamespace(code_target=target, shares_memory=True)
    dimensions = Builder(device, {}, None, 0, {})._dimensions(Work("k", 1, items, walks=walks))
    (x, y, z), (across, down, _) = dimensions.blocks, dimensions.threads
    width, rows = x * across, y * down
    numbers = {row * (target.lanes or 0) + lane for row in range(rows) for lane in range(width)}
    assert z == 1 and len(numbers) == width * rows and numbers >= set(range(items))
    assert across * down <= (target.row_group if walks else target.group)
    assert width * rows < items + max(target.group, 16)


FUSED = """define spir_kernel void @k(ptr addrspace(1) %p) {
entry:
  %a = load float, ptr addrspace(1) %p, align 4
  %product = fmul float %a, %a
  %sum = fadd float %product, 1.0
  store float %sum, ptr addrspace(1) %p, align 4
  ret void
}
"""


def test_products_and_sums_of_devices_are_fused():
    """SPIR-V has no flag that lets a device do it."""
    words = memoryview(emitted_apart(FUSED, SPIRV)).cast("I").tolist()
    assert not {133, 129} & {word & 0xFFFF for word in words[5:] if word >> 16 == 5}, "no OpFMul, no OpFAdd"
    text = emitted_apart(FUSED.replace("spir_kernel", "ptx_kernel"), nvptx("sm_80")).decode()
    assert "fma.rn.f32" in text and "mul.f32" not in text
    assert SPIRV.target.has_fma and nvptx("sm_80").target.has_fma and amdgcn("gfx942").target.has_fma


def test_blocks_of_a_module_have_numbers_of_their_own():
    """LLVM 22 keeps the numbers of another module's blocks; here each module has its own process."""
    options = EmitOptions(SPIRV.target, strict=True, ranges=True, by_element=True)
    form = next(forms(_requests()[0]))
    text = device_text(emitter("legacy").emit([form], options).llvm_ir, [work_of(form, True)], SPIRV)
    codes = {emitted_apart(text, SPIRV) for _ in range(3)}
    assert len(codes) == 1
    words = memoryview(codes.pop()).cast("I").tolist()
    labels, place = [], 5
    while place < len(words):
        if words[place] & 0xFFFF == 248:  # OpLabel
            labels.append(words[place + 1])
        place += words[place] >> 16
    assert labels and len(set(labels)) == len(labels)


def test_what_ends_llvm_is_one_line():
    store = "  store i129 0, ptr addrspace(1) %p\n"
    for bad in (f"define spir_kernel void @k(ptr addrspace(1) %p) {{\n{store}  ret void\n}}\n", "define nothing"):
        with pytest.raises(CodegenError) as caught:
            emitted_apart(bad, SPIRV)
        assert "\n" not in str(caught.value)
    assert emitted_apart("define spir_kernel void @k() {\n  ret void\n}\n", SPIRV).startswith(MAGIC)


def test_a_late_answer_is_no_answer_to_the_next_request(monkeypatch):
    """The emitter is ended: what it still sends belongs to another kernel."""
    texts = {name: f"define spir_kernel void @{name}() {{\n  ret void\n}}\n" for name in ("late", "next")}
    emitted_apart(texts["next"], SPIRV)
    used = emitters._idle[-1]
    monkeypatch.setattr(emitters, "LIMIT", 0.0)
    with pytest.raises(CodegenError, match=r"LLVM makes no code for spirv within 0 s \(use the host for this kernel\)"):
        emitted_apart(texts["late"], SPIRV)
    assert used not in emitters._idle and used.process.returncode == -signal.SIGKILL and used.connection.closed
    monkeypatch.undo()
    code = emitted_apart(texts["next"], SPIRV)
    assert b"next" in code and b"late" not in code


SUMMED = """define void @f(ptr addrspace(1) %p, i64 %n) {
entry:
  %row = shl nsw i64 %n, 10
  br label %loop

loop:                                             ; preds = %loop, %entry
  %1 = phi i64 [ %4, %loop ], [ 0, %entry ]
  %2 = add nsw i64 %1, %row
  %3 = getelementptr inbounds float, ptr addrspace(1) %p, i64 %2
  store float 1.0, ptr addrspace(1) %3, align 4
  store i64 %2, ptr addrspace(1) %p, align 8
  %4 = add nuw nsw i64 %1, 1
  %5 = icmp eq i64 %4, 16
  br i1 %5, label %end, label %loop

end:                                              ; preds = %loop
  ret void
}
"""


def test_a_sum_in_an_address_is_a_chain_with_the_loops_part_at_its_end():
    made = with_chains(SUMMED)
    first, second = (line.strip() for line in made.splitlines() if "getelementptr" in line)
    assert first == "%to.3.1 = getelementptr float, ptr addrspace(1) %p, i64 %row"
    assert second == "%3 = getelementptr float, ptr addrspace(1) %to.3.1, i64 %1"
    assert str(parse(made)) and with_chains(made) == made


def test_a_sum_without_a_carry_is_a_sum():
    text = SUMMED.replace("%2 = add nsw i64", "%2 = or disjoint i64")
    assert "or disjoint" in text and with_chains(text).count("getelementptr") == 2


SCALED = """define void @f(ptr addrspace(1) %p, i64 %n, i64 %m) {
entry:
  %1 = getelementptr float, ptr addrspace(1) %p, i64 %n
  br label %loop

loop:                                             ; preds = %loop, %entry
  %2 = phi i64 [ %9, %loop ], [ 0, %entry ]
  %3 = add nsw i64 %2, %m
  %4 = mul nsw i64 %3, 12
  %5 = getelementptr i8, ptr addrspace(1) %1, i64 %4
  %6 = getelementptr i8, ptr addrspace(1) %5, i64 64
  %7 = getelementptr i8, ptr addrspace(1) %5, i64 3
  store float 1.0, ptr addrspace(1) %6, align 4
  store i8 1, ptr addrspace(1) %7, align 1
  %8 = getelementptr i8, ptr addrspace(1) %5, i64 %2
  store i8 1, ptr addrspace(1) %8, align 1
  %9 = add nuw nsw i64 %2, 1
  %10 = icmp eq i64 %9, 16
  br i1 %10, label %end, label %loop

end:                                              ; preds = %loop
  ret void
}
"""


def test_a_multiple_of_a_sum_is_a_chain_in_elements_without_a_base_that_addresses_share():
    made = with_chains(SCALED)
    lines = [line.strip() for line in made.splitlines()]
    assert "%5 = getelementptr float, ptr addrspace(1) %to.5.1, i64 %to.5.2.times" in lines
    assert "%to.5.2.times = mul i64 %2, 3" in lines and "%to.5.1.times = mul i64 %m, 3" in lines
    shared = [line for line in lines if line.startswith(("%to.6.", "%6 "))]
    assert shared[0] == "%to.6.1 = getelementptr float, ptr addrspace(1) %1, i64 16", "what is constant comes first"
    assert shared[-1] == "%6 = getelementptr float, ptr addrspace(1) %to.6.2, i64 %to.6.3.times"
    assert "%7 = getelementptr i8, ptr addrspace(1) %5, i64 3" in lines, "no number of elements"
    assert "%8 = getelementptr i8, ptr addrspace(1) %5, i64 %2" in lines
    assert str(parse(made)) and str(parse(with_chains(str(parse(made)), "at")))


def test_extrema_keep_a_nan():
    text = (
        'define float @"f"(float %a) {\n  %b = call float @"llvm.maximum.f32"(float %a, float %a)\n  ret float %b\n}\n'
    )
    text += 'declare float @"llvm.maximum.f32"(float %".1", float %".2")\n'
    made = legal(text)
    assert "llvm.maximum" not in made and '@"device.maximum.f32"' in made and "fcmp uno" in made
    assert legal("define void @f() {\n  ret void\n}\n") == "define void @f() {\n  ret void\n}\n"


@pytest.mark.parametrize(("extent", "each", "items"), [(0, 1, 1), (10, 1, 10), (10, 3, 4), (1, 8, 1)])
def test_items_of_a_kernel(extent, each, items):
    assert Work("k", 1, extent, each).items == items


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-4, "MEM_OBJECT_ALLOCATION_FAILURE .*use less memory"),
        (-2, "DEVICE_NOT_AVAILABLE .*device is lost"),
        (-9999, "error"),
    ],
)
def test_errors_have_names_and_remedies(code, words):
    check(0, "do nothing")
    with pytest.raises(BackendError, match=f"OpenCL cannot run it: {words}") as caught:
        check(code, "run it")
    assert "\n" not in str(caught.value) and caught.value.remedy


def test_a_lost_device_is_one_line():
    """A library whose queue fails, as one does whose device is gone."""
    calls = []

    def answer(name, code):
        def call(*arguments):
            calls.append(name)
            return code

        return call

    names = {
        "clFinish": -36,
        "clReleaseCommandQueue": 0,
        "clEnqueueMemcpyINTEL": -2,
        "clEnqueueMarkerWithWaitList": -36,
    }
    device = Device(1, 1, {name: answer(name, code) for name, code in names.items()})

    class Executor:
        context, ordinal = 1, 0

    Executor.device, Executor.usm = device, UsmMemory(device, 1, 0)
    stream = OpenClStream(Executor(), 7)
    stream.note_use()
    for name, arguments in (("synchronize", ()), ("marker", ()), ("copy", (1, 2, 3))):
        with pytest.raises(BackendError, match="the device is lost"):
            getattr(stream, name)(*arguments)
    assert calls == ["clFinish", "clEnqueueMarkerWithWaitList", "clEnqueueMemcpyINTEL"]
    del stream
    assert calls[-1] == "clReleaseCommandQueue"
    assert ctypes.sizeof(ctypes.c_void_p) == 8


def test_damaged_spirv_is_seen_before_a_driver_reads_it():
    void = [2 << 16 | 19, 1]  # OpTypeVoid %1
    code = b"".join(word.to_bytes(4, "little") for word in [0x07230203, 0x10400, 0, 2, 0, *void, *void])
    assert is_framed(code) and is_framed(code[:20])
    cut = [code[:size] for size in range(len(code)) if size not in (20, 28)]
    assert not any(map(is_framed, cut))
    assert not is_framed(code[:20] + bytes(40)), "an instruction of no words: a driver would read it for ever"
