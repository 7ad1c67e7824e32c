"""Programs whose kernels are XLA's: XLA's scheduled module, sealed where the flags give a kernel to XLA, and its dump.

The dump is a folder that a user brings, or is made by jaxlib in a child process and kept in the user's cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..backends.base import CompileOptions, EmitFor, Emitter
from ..codegen.private import is_private, make_private
from ..formats.files import load_module
from ..formats.whole_files import write_folder
from ..hlo.dtypes import DType
from ..hlo.errors import InputError, UnsupportedError
from ..hlo.ir import Instruction, Module
from ..hlo.library.calls import is_sealed
from ..hlo.opcodes import Op
from ..hlo.records import dataclass, field, replace
from ..planning.plan import Plan
from ..xla_kernels.beside import Beside
from ..xla_kernels.emission import Code, XlaEmitter
from ..xla_kernels.folder import DumpFiles, one_module
from ..xla_kernels.kernels import REMAKE, KernelFiles, read_file, read_kernels
from ..xla_kernels.match import Matches, kernels_of, match_kernels
from ..xla_kernels.seal import SEALED, seal
from ..xla_kernels.slices import read_slices
from .choose import emit_for, stacks_of
from .flags import SHADOW, Flags

if TYPE_CHECKING:
    from ..backends.host.executable import HostExecutable
    from ..formats.program import Program

MOST_DUMPS = 128
"""Folders that are kept in the user's cache."""

NEW = frozenset({"loop_fusion", "tiled_emitter", "concatenate_fusion", "cpu_scatter_fusion", "dynamic_update_slice"})
OLD = frozenset({"ir_emitter2", "elemental", "computation"})
"""Emitters by which a dump shows its generation; both have that of dots, and that of a dynamic-update-slice alone."""


@dataclass(frozen=True, eq=False)
class XlaProgram:
    """A module as XLA scheduled it, and its kernels. held: keeps a temporary folder alive. asked: the generation that
    jaxlib was asked for; '' for a folder that was brought.
    """

    files: DumpFiles
    module: Module
    kernels: KernelFiles
    matches: Matches
    held: Any = field(default=None, repr=False)
    asked: str = ""

    @cached_property
    def generation(self) -> str:
        """The generation of its emitters, 'old' or 'new'; '' if it does not show."""
        if self.asked:
            return self.asked
        matches, kernels = self.matches.by_symbol, self.kernels.kernels
        both = {s for s, match in matches.items() if match.instruction.opcode is Op.DYNAMIC_UPDATE_SLICE}
        emitters = {kernel.emitter for symbol, kernel in kernels.items() if symbol not in both}
        return "new" if emitters & NEW else "old" if emitters & OLD else ""

    @property
    def instructions(self) -> Iterator[Instruction]:
        """The instructions of the host program that compute something, in order; their names are unique."""
        return kernels_of(self.module)

    def name_of(self, i: Instruction) -> str:
        """The name in XLA's module of an instruction of a plan, which may be sealed."""
        return i.name.removesuffix(SEALED) if is_sealed(i) else i.name

    def emitter(self, stack: str) -> Emitter:
        """The stack of this program's sealed kernels. Raises InputError if they are of the other generation."""
        made = self._emitter(stack)
        return Emitter(stack, made.emit, made.unsupported, alone=True)

    def _emitter(self, stack: str) -> XlaEmitter:
        generation = stack.split("-")[1]
        if self.generation not in ("", generation):
            raise InputError(
                f"{self.files.folder}: these are kernels of XLA's {self.generation} emitters",
                remedy=f"use --emitters {stack.replace(generation, self.generation)}",
            )
        return XlaEmitter(self.kernels, Code.IR if stack.endswith("-ir") else Code.OBJECT, self.held)

    def emit_for(self, flags: Flags) -> EmitFor:
        """The emitters of a plan of this program, by the same flags."""
        made = self._emitter(flags.xla)
        xla, beside = Emitter(flags.xla, made.emit, made.unsupported, alone=True), Beside(made, self.matches)
        return emit_for(flags, xla, replace(xla, name=SHADOW, emit=beside.emit, unsupported=beside.unsupported))

    def plan(
        self, flags: Flags, options: CompileOptions, only: Collection[str] | None = None, reuse: bool = True
    ) -> Plan:
        """The plan of XLA's module, whose kernels are sealed where all their ops are XLA's by the flags.

        only: names of instructions that may be sealed; None for all. reuse: as in PlanOptions; where XLA's kernels are
        shadows, no values share memory, since their code was not compiled for that.
        """
        from ..hlo.verify.verifier import verify
        from ..passes.pipeline import PipelineOptions
        from ..planning.allocation import POOL_ALIGNMENT
        from ..planning.planner import PlanOptions, plan

        def chosen(i: Instruction) -> bool:
            return stacks_of(flags, i) == {flags.xla} and (only is None or i.name in only)

        for i, why in self.matches.broken.items():
            if chosen(i):
                raise InputError(
                    f"{self.files.folder}: no kernel for {i.name}: {why}",
                    remedy=f"{REMAKE}, or leave it to another stack: --emitters {flags.xla},{i.opcode.value}=legacy",
                )
        sealed = seal(self.module, self.matches.found, chosen)
        verify(sealed)
        passes = PipelineOptions(devices=options.devices)
        reuse = reuse and not flags.has_xla_shadows
        return plan(sealed, PlanOptions(passes, reuse, POOL_ALIGNMENT, self.kernels.defines))

    def alone(self, i: Instruction) -> Program:
        """The program of one matched kernel: its operands are parameters, its results are the results.

        An operand that it has twice is one parameter: XLA's kernel reads one array.
        """
        from ..passes.rewriting import alone, callees_first

        entry = alone(i, "kernel")
        module = Module(i.name, callees_first(entry), entry, {"is_scheduled": True})
        match = replace(self.matches.found[i], instruction=entry.root)
        matches = Matches({entry.root: match}, {}, {}, (), {match.kernel.symbol: match})
        return as_program(XlaProgram(self.files, module, self.kernels, matches, self.held))


def read_program(files: DumpFiles, held: Any = None, made_here: bool = False) -> XlaProgram:
    """The program in a folder of XLA's. made_here: as of KernelFiles.

    Raises InputError, ParseError or VerificationError with the place.
    """
    from ..hlo.verify.verifier import verify

    path = files.scheduled
    module = load_module(read_file(path), str(path)).module
    verify(module)
    assignment = files.one("-buffer-assignment.txt")
    kernels = read_kernels(files, made_here)
    slices = read_slices(assignment) if assignment is not None else None
    return XlaProgram(files, module, kernels, match_kernels(module, kernels, slices), held)


def xla_program(program: Program, stack: str, cached: bool = True, mlir: bool = False) -> XlaProgram:
    """XLA's form of a program: the folder that it came from, or what jaxlib makes of it. mlir: with its MLIR.

    Raises InputError if jaxlib is absent, XlaRefused if XLA refuses it, UnsupportedError if it changes an array's type.
    """
    if isinstance(program.plan, XlaProgram):
        return program.plan
    made = made_by_jaxlib(program.text_for_xla, stack.split("-")[1], cached, mlir)
    for given, theirs in zip(_border(program.module), _border(made.module)):
        if given != theirs:
            what = f"{given.value} in parameters and results: jaxlib makes {theirs.value} of it"
            raise UnsupportedError(stack, what, remedy="choose another type, or another stack")
    return made


def _border(module: Module) -> list[DType]:
    """The types of the arrays that go in and out."""
    return [leaf.dtype for shape in (*module.parameter_shapes, module.result_shape) for _, leaf in shape.leaves()]


def made_by_jaxlib(text: str, generation: str, cached: bool = True, mlir: bool = False) -> XlaProgram:
    """What this jaxlib's emitters of a generation make of HLO text."""
    from ..backends.xla.dump import dump

    if not cached:
        held = tempfile.TemporaryDirectory(prefix="testbed-xla-")
        dump(text, generation, Path(held.name), mlir)
        return replace(read_program(one_module(Path(held.name)), held, made_here=True), asked=generation)
    folder = _cache() / _key(text, generation, mlir)
    if not _may_hold(folder):
        return made_by_jaxlib(text, generation, False, mlir)
    if not folder.is_dir():
        with contextlib.suppress(FileExistsError):
            write_folder(folder, lambda work: dump(text, generation, work, mlir), mode=0o700)
        _forget_oldest(folder.parent)
    os.utime(folder)
    return replace(read_program(one_module(folder), made_here=True), asked=generation)


def _cache() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("testbed", appauthor=False)) / "xla"


def _may_hold(folder: Path) -> bool:
    """Whether a folder of the cache, which may not be there yet, is for this user alone, as it holds code."""
    try:
        make_private(folder.parent)
        return is_private(folder.parent) and (not folder.is_dir() or is_private(folder))
    except OSError:
        return False


def _key(text: str, generation: str, mlir: bool) -> str:
    """All that the dump depends on."""
    from ..backends.xla.dump import ONCE, dump_flags, version
    from ..codegen.options import Target

    parts = (text, generation, version(), ONCE, str(dump_flags(generation, Path(), mlir)), repr(Target.machine()))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]


def _forget_oldest(cache: Path) -> None:
    """Remove the folders that were not used for the longest time."""
    with contextlib.suppress(OSError):
        folders = sorted((p for p in cache.iterdir() if p.is_dir()), key=lambda p: p.stat().st_mtime, reverse=True)
        for folder in folders[MOST_DUMPS:]:
            shutil.rmtree(folder, ignore_errors=True)


def compile_xla(program: Program, flags: Flags, options: CompileOptions) -> HostExecutable:
    """Compile a program whose kernels are XLA's by the flags, as far as XLA has code for them."""
    from ..backends.host.compiler import HostCompiler, Stopwatch

    watch = Stopwatch()
    with watch.measure("xla"):
        xla = xla_program(program, flags.xla, options.cache is not None, options.keep_stages)
    with watch.measure("plan"):
        plan = xla.plan(flags, options)
    return HostCompiler().compile(plan, xla.emit_for(flags), options, program.module, watch)


def as_program(xla: XlaProgram) -> Program:
    """XLA's scheduled module as a program, which any stack runs."""
    from ..formats.program import Program
    from ..formats.text.printer import print_module

    return Program(xla.module.name, print_module(xla.module), xla.module, plan=xla)
