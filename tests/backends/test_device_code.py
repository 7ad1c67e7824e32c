"""Code for GPUs, without one: PTX of both stacks' kernels assembles, code objects link, and keep the contract."""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from ...backends.accelerator import device_library
from ...backends.accelerator.build import build_device_code
from ...backends.accelerator.compiler import emitted_for
from ...backends.accelerator.targets import DeviceTarget, amdgcn, nvptx
from ...backends.accelerator.text import entry_name
from ...backends.device import BackendError
from ...backends.rocm.link import linked, linker
from ...codegen.errors import CodegenError
from ...codegen.llvm import parse
from ...formats.text.parser import parse_module
from ...hlo.library.calls import LIBRARY
from ...migration.choose import emit_for
from ...migration.flags import Flags
from ...planning.plan import KernelRequest
from ...planning.planner import plan
from ..support.corpus import DEEP, sample, some

PTXAS = next(Path(sysconfig.get_path("purelib"), "nvidia").glob("*/bin/ptxas"), None)
STACKS = ("legacy", "mlir")
PROCESSORS = ("sm_80", "sm_90", "sm_100")
KERNELS = None if DEEP else 6
"""Kernels for each processor; all of the programs in a deep run."""

needs_ptxas = pytest.mark.skipif(PTXAS is None, reason="needs ptxas (./testbed setup --gpu)")
needs_linker = pytest.mark.skipif(not linker(), reason="needs ld.lld (Debian: lld-19; ./testbed setup --gpu)")


def requests() -> list[KernelRequest]:
    """The distinct kernels of programs, without what a library computes on the host."""
    found = []
    for path in sample("jax_programs/*/module.hlo", None if DEEP else 0):
        found += plan(parse_module(path.read_text(encoding="utf-8"))).emitted
    return some([r for r in found if r.instruction.opcode not in LIBRARY], KERNELS, 1)


def code_of(request: KernelRequest, stack: str, target: DeviceTarget) -> bytes:
    made = emitted_for(target, emit_for(Flags.parse(stack))(request), request)
    return build_device_code(made.text, target, None)


def assembled(ptx: bytes, processor: str, folder: Path) -> str:
    """What ptxas says; empty if it takes the text."""
    assert PTXAS is not None
    text = folder / "a.ptx"
    text.write_bytes(ptx)
    command = [str(PTXAS), f"-arch={processor}", str(text), "-o", str(folder / "a.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return done.stderr + done.stdout if done.returncode else ""


@needs_ptxas
@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("processor", PROCESSORS)
def test_ptx_of_programs_assembles(processor: str, stack: str, tmp_path: Path):
    target, given = nvptx(processor), requests()
    assert given
    refused = {r.name: said for r in given if (said := assembled(code_of(r, stack, target), processor, tmp_path))}
    assert refused == {}


@needs_linker
@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("processor", ("gfx942", "gfx1100"))
def test_code_objects_of_programs_link(processor: str, stack: str):
    target, given = amdgcn(processor), requests()
    assert given
    for request in given:
        made = linked(code_of(request, stack, target))
        assert made[:4] == b"\x7fELF" and made[16:20] == b"\x03\x00\xe0\x00", "a shared object for AMD's GPUs"
        assert entry_name(request.name).encode() in made


@needs_linker
def test_what_is_no_object_is_refused_in_one_line():
    with pytest.raises(BackendError, match=r"^ld.lld: the object file:1: unknown directive: nothing \(use") as error:
        linked(b"nothing")
    assert "\n" not in str(error.value)


TANH = "HloModule m\nENTRY e { x = f32[4096] parameter(0) ROOT y = f32[4096] tanh(x) }\n"


SUM = """HloModule m
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[64,512] parameter(0)
 z = f32[] constant(0)
 ROOT y = f32[64] reduce(x, z), dimensions={1}, to_apply=add }
"""
DOT = """HloModule m
ENTRY e { x = f32[128,64] parameter(0)
 w = f32[64,128] parameter(1)
 ROOT y = f32[128,128] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
"""
CONVOLUTION = """HloModule m
ENTRY e { x = f32[2,16,16,32] parameter(0)
 k = f32[3,3,32,64] parameter(1)
 ROOT y = f32[2,16,16,64] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f }
"""
ACROSS = """HloModule m
ENTRY e { x = f32[100,130] parameter(0)
 ROOT y = f32[130,100] transpose(x), dimensions={1,0} }
"""


def lines_of(stack: str, program: str = TANH) -> Iterator[str]:
    (request,) = plan(parse_module(program)).emitted
    yield from code_of(request, stack, nvptx("sm_90")).decode().splitlines()


@pytest.mark.parametrize("stack", STACKS)
def test_ptx_reads_operands_past_the_coherent_cache_and_takes_bare_pointers(stack: str):
    """`noalias` of the kernels' contract: what nobody writes is read by ld.global.nc, and addresses are global ones."""
    text = list(lines_of(stack))
    loads = [line.split()[0] for line in text if line.strip().startswith("ld.") and "param" not in line]
    stores = [line.split()[0] for line in text if line.strip().startswith("st.")]
    assert loads and all(load.startswith("ld.global.nc") for load in loads)
    assert stores and all(store.startswith("st.global") for store in stores)
    assert sum(".param .u64" in line for line in text) == 2
    assert sum(line.startswith(".visible .entry") for line in text) == 1


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(
    ("program", "items", "waits"),
    [(SUM, "256, 1, 1", 2), (DOT, "16, 16, 1", 2), (CONVOLUTION, "16, 16, 1", 2), (ACROSS, "16, 16, 1", 1)],
    ids=["row", "tile", "convolution", "square"],
)
def test_ptx_of_groups_shares_memory_and_waits(program: str, items: str, waits: int, stack: str):
    """Operands are read past the coherent cache, the group's memory as shared memory, and the number of items is known,
    so that their ids have a range.
    """
    text = list(lines_of(stack, program))
    words = [line.split()[0] for line in text if line.startswith("\t")]
    loads = [word for word in words if word.startswith("ld.") and not word.startswith("ld.param")]
    assert {word.split(".")[1] for word in loads} == {"global", "shared"}
    assert all(word.startswith("ld.global.nc") for word in loads if word.startswith("ld.global"))
    assert {word.split(".")[1] for word in words if word.startswith("st.")} == {"global", "shared"}
    assert sum(word.startswith(("bar.sync", "barrier.sync")) for word in words) == waits
    assert any(line.startswith(f".reqntid {items}") for line in text)


SHIFT = """HloModule m
ENTRY e { x = TYPE[64] parameter(0)
 n = TYPE[64] parameter(1)
 ROOT y = TYPE[64] OP(x, n) }
"""


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("type_", ["s64", "u64"])
@pytest.mark.parametrize("op", ["shift-left", "shift-right-logical"])
def test_long_shifts_by_more_than_32_bits_say_shift_all_out(op: str, type_: str, stack: str):
    """PTX shifts by 32-bit numbers: the 64-bit amount is compared as it is (found on a card: x << 2^63 was x)."""
    text = [line.split() for line in lines_of(stack, SHIFT.replace("TYPE", type_).replace("OP", op))]
    shifts = [words for words in text if words and words[0] in ("shl.b64", "shr.u64") and words[-1].startswith("%")]
    masks = {words[1].rstrip(",") for words in text if words and words[0].startswith("and.") and words[-1] == "63;"}
    assert shifts and {words[-1].rstrip(";") for words in shifts} <= masks
    assert any(words and words[0].startswith("setp.") and words[-1] in ("64;", "63;") for words in text)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("type_", ["f32", "f64", "f16"])
def test_sums_and_products_are_rounded_in_ptx(type_: str, stack: str):
    """Without `.rn`, the assembler may fuse them."""
    program = f"""HloModule m
ENTRY e {{ x = {type_}[64] parameter(0)
 y = {type_}[64] exponential(x)
 z = {type_}[64] multiply(y, y)
 ROOT r = {type_}[64] add(z, x) }}
"""
    words = [line.split()[0].split(".") for line in lines_of(stack, program) if line.startswith("\t")]
    floats = [w for w in words if w[0] in ("add", "sub", "mul", "fma") and w[-1] in ("f16", "f32", "f64")]
    assert floats and all("rn" in w for w in floats)


OF_C = """HloModule m
ENTRY e { x = c128[64] parameter(0)
 p = f64[64] parameter(1)
 a = c128[64] exponential-minus-one(x)
 b = c128[64] atan2(x, a)
 d = f64[64] erf(p)
 f = f64[64] power(p, d)
 ROOT t = (c128[64], f64[64]) tuple(b, f) }
"""


@needs_ptxas
@pytest.mark.parametrize("stack", STACKS)
def test_functions_of_c_are_those_of_libdevice(stack: str, tmp_path: Path):
    given = plan(parse_module(OF_C)).emitted
    for request in given:
        ptx = code_of(request, stack, nvptx("sm_90"))
        assert b".extern" not in ptx and assembled(ptx, "sm_90", tmp_path) == ""


def test_without_libdevice_or_on_another_device_functions_of_c_are_refused(monkeypatch: pytest.MonkeyPatch):
    text = 'declare double @"pow"(double, double)\ndeclare double @llvm.sqrt.f64(double)\ndeclare i32 @_Z1f()\n'
    assert device_library.functions_of_c(text) == ["pow"]
    context = llvm.create_context()
    module = parse(text, context)
    with pytest.raises(CodegenError, match="calls pow of C, which gfx942 does not have") as caught:
        device_library.link_library(module, context, ["pow"], amdgcn("gfx942"))
    assert caught.value.remedy == "use the host for this kernel"
    monkeypatch.setattr(device_library, "libdevice", lambda: None)
    with pytest.raises(CodegenError, match="calls pow of C, which sm_90 does not have") as caught:
        device_library.link_library(module, context, ["pow"], nvptx("sm_90"))
    assert "setup --gpu" in (caught.value.remedy or "")


def test_libdevice_is_looked_for_where_cuda_puts_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    compiler = tmp_path / "toolkit" / "bin" / "nvcc"
    compiler.parent.mkdir(parents=True)
    compiler.touch(0o755)
    monkeypatch.setenv("PATH", str(compiler.parent))
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    wheel = tmp_path / "nvidia" / "cu13" / device_library.FILE
    wheel.parent.mkdir(parents=True)
    wheel.touch()
    found = list(device_library.candidates())
    assert found == [tmp_path / "toolkit" / device_library.FILE, wheel, Path("/usr/local/cuda", device_library.FILE)]
