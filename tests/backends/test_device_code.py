"""Code for GPUs, without one: PTX of both stacks' kernels assembles, code objects link, and keep the contract."""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from ...backends.accelerator.build import build_device_code
from ...backends.accelerator.items import forms, work_of
from ...backends.accelerator.targets import DeviceTarget, amdgcn, nvptx
from ...backends.accelerator.text import device_text, entry_name
from ...backends.device import BackendError
from ...backends.rocm.link import linked, linker
from ...codegen.options import EmitOptions
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
    emitter, options = emit_for(Flags.parse(stack))(request), EmitOptions(target.target, strict=True, ranges=True)
    for form in forms(request):
        module = emitter.emit([form], options)
        if form.partition is None or form.name in module.ranged:
            work = work_of(form, form.name in module.ranged)
            return build_device_code(device_text(module.llvm_ir, [work], target), target, None)
    raise AssertionError("a kernel has a form without a range")


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


def lines_of(stack: str) -> Iterator[str]:
    (request,) = plan(parse_module(TANH)).emitted
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
