"""Types shared by both stacks and codegen: the target, the options of an emission, and its result."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping

from ..hlo.errors import InputError
from ..hlo.records import dataclass, field
from . import libllvm
from .field.element import Field
from .forms import ChosenForms
from .metadata import assumed_metadata
from .processors import Processor, present_features, processor_of, vector_bits_of

SETTINGS = (
    "pass_list.py 3 or O3 slp loop-vectorize interleave unroll, or O0; pic small; one-lane stores plain; "
    "signs tested by bits; FMAs of small kernels decided"
)
"""The settings of `open_module` in words, a part of every cache key. Change them together."""


OPTIMIZED = 3
"""LLVM's level of optimisation, as in -O3; without optimisation it is 0."""


@dataclass(frozen=True, slots=True)
class Target:
    """A target machine. features: LLVM's '+avx2,-sse4a' form; vector_bits: width of the widest vector register.

    What else its family of processors has, the property `processor` says.
    """

    triple: str
    cpu: str
    features: str
    vector_bits: int

    @staticmethod
    def host() -> Target:
        """The target of this process's machine, or the processor that `assume_host` set."""
        return _assumed or _host()

    @staticmethod
    def machine() -> Target:
        """The machine itself, whatever `assume_host` set."""
        return _host()

    @staticmethod
    def of(cpu: str) -> Target:
        """The host as if it had this processor: 'host' or a level of LEVELS.

        Raises InputError for another name, or if this machine cannot run such code.
        """
        host = _host()
        if cpu == "host":
            return host
        remedy = f"choose from {', '.join(['host', *Target.levels()])}"
        if cpu not in LEVELS:
            raise InputError(f"unknown processor {cpu!r}", remedy=remedy)
        if host.architecture != "x86_64":
            reason = f"it is an {host.architecture} processor"
            raise InputError(f"this machine cannot run code for {cpu}: {reason}", remedy=remedy)
        missing = sorted(present_features(Target.level(cpu).features) - present_features(host.features))
        if missing:
            raise InputError(f"this machine cannot run code for {cpu}: it lacks {', '.join(missing)}", remedy=remedy)
        return Target.level(cpu)

    @staticmethod
    def levels() -> list[str]:
        """The names in LEVELS whose code this machine can run."""
        host = _host()
        if host.architecture != "x86_64":
            return []
        present = present_features(host.features)
        return [name for name in LEVELS if present.issuperset(present_features(Target.level(name).features))]

    @staticmethod
    def level(cpu: str) -> Target:
        """A level of the x86-64 psABI by its name. This machine need not be able to run its code."""
        names = list(LEVELS)
        features = ",".join(f"+{f}" for name in names[: names.index(cpu) + 1] for f in LEVELS[name])
        return Target("x86_64-unknown-linux-gnu", cpu, features, vector_bits_of(features))

    @property
    def processor(self) -> Processor:
        """What its family of processors has."""
        return processor_of(self.architecture, self.features)

    @property
    def architecture(self) -> str:
        """The first component of the triple: 'x86_64', 'aarch64', …"""
        return self.triple.partition("-")[0]

    @property
    def has_fma(self) -> bool:
        """Whether it has instructions that multiply and add floats with one rounding."""
        always = self.architecture.startswith(("aarch64", "amdgcn", "nvptx", "spirv"))
        return always or not present_features(self.features).isdisjoint(("fma", "fma4", "avx512f", "neon"))

    @property
    def integer_products(self) -> int:
        """How many products of adjacent integers an instruction on its widest vectors adds to a 32-bit lane: 4 of bytes
        (VNNI of x86), 2 of 16-bit integers (pmaddwd), or 1.
        """
        pairs = {512: "avx512bw", 256: "avx2", 128: "sse2"}.get(self.vector_bits)
        bytes_ = {512: "avx512vnni", 256: "avxvnni"}.get(self.vector_bits)
        present = present_features(self.features) if self.architecture == "x86_64" else frozenset()
        return 1 if pairs not in present else 4 if bytes_ in present else 2

    @property
    def adds_bf16_pairs(self) -> bool:
        """Whether an instruction on its widest vectors adds two products of adjacent bf16 numbers to a lane of f32,
        with a rounding each (vdpbf16ps of x86; it flushes subnormals in any mode).
        """
        found = self.architecture == "x86_64" and "avx512bf16" in present_features(self.features)
        return found and self.vector_bits == 512


GROUP_SPACE = 3
"""The address space of the memory of a group of work items."""

BARRIER, STEP, ACROSS, DOWN = (f"testbed_{name}" for name in ("barrier", "step", "across", "down"))
"""Functions that a back end defines for kernels of groups: wait for the other items of the group; the number of the
step; the item's two numbers in its group. A kernel asks for them again behind each barrier: a compiler that runs
a group as loops between barriers keeps in memory what crosses one, and no longer knows how it differs between items.
"""


@dataclass(frozen=True, slots=True)
class GroupShape:
    """Groups of a device's work items that compute a step of a kernel together (ADR 70).

    lanes: the most items that share a row: a power of two. across, down: items that share a tile of a product, each of
    which computes `columns` × `rows` of its elements; depth: terms that they have in memory at once. memory: the most
    bytes of a group's memory. vectors: the device's compiler makes one vector of neighbours across, if it sees that
    they read and write neighbours.
    """

    lanes: int
    across: int
    down: int
    columns: int
    rows: int
    depth: int
    memory: int
    vectors: bool = False


@dataclass(frozen=True, slots=True)
class Grouped:
    """A kernel that groups compute: the number of its steps, the items of a group (`across` · `down`), the bytes that
    they share.
    """

    steps: int
    across: int
    down: int
    memory: int


@dataclass(frozen=True, slots=True)
class EmitOptions:
    """Options of an emission. All of them except keep_stages, which changes no code, are part of every cache key.

    strict: no FP contraction, no reassociation of reductions, subnormals are kept. keep_stages: print every
    intermediate IR, which adds about a quarter to MLIR's time. ranges: a kernel that may be split takes the steps that
    it computes, if its stack's loops can; code never depends on the number of threads. optimized: False leaves out
    LLVM's optimiser and selects instructions the fast way, for a program that runs once on little data: its code is
    made in a tenth of the time, and is slow. straight: LLVM only joins equal values, and searches less, for a long line
    of calls, in which there is nothing else to gain. glue: kernels are loops around calls of shared functions, which
    take the time: few passes, and instructions are selected the fast way, with the same registers (glue.py). lean:
    kernels in whose loops there is nothing to find: as few passes, but code is generated as for others. No stack reads
    these. by_element: the outer shape of devices (ADR 65): a step of a range is one element, or row, and is computed
    alone, without blocks, tiles and panels of neighbours. metadata: names in METADATA (metadata.py) that the stacks
    give LLVM.
    group: make only kernels that groups of items compute; a stack leaves out a request that it has no such form of.
    without_forms: forms that a stack does not choose, as `stack:form`, so that the next one in its table is: to find
    out which one is guilty of a wrong result.
    exact: kernels for the rewriting over a field (docs/exact.md): constants are its elements, and functions are called
    by their names. LLVM IR of these means nothing before that.
    """

    target: Target
    strict: bool = False
    keep_stages: bool = False
    ranges: bool = False
    optimized: bool = True
    straight: bool = False
    by_element: bool = False
    glue: bool = False
    lean: bool = False
    metadata: tuple[str, ...] = field(default_factory=assumed_metadata)
    group: GroupShape | None = None
    exact: Field | None = None
    without_forms: tuple[str, ...] = ()

    @staticmethod
    def host(strict: bool = False) -> EmitOptions:
        """Options for this process's machine. Kernels take ranges, so that no result depends on the threads that run
        them.
        """
        return EmitOptions(Target.host(), strict, ranges=True)


@dataclass(frozen=True, slots=True)
class EmittedModule:
    """One LLVM module as text. stages: earlier IRs as (file extension, text), if requested. language: of the text, if
    that is another one: c.

    ranged: names of the kernels that take ranges. Their last parameters are `i64 begin, i64 end`: the kernel computes
    the steps [begin, end) of its request's partition. Both are multiples of its `least`, or `extent`; begin < end.
    objects: compiled code that the module calls, to be linked with it. helpers: LLVM IR of modules that it calls, one
    function each, which are the same for many programs: they are compiled once a process. grouped: kernels that groups
    compute. Their last parameter is `ptr addrspace(GROUP_SPACE) memory`, the group's memory; they call BARRIER, STEP,
    ACROSS and DOWN. glue: names of kernels that spend their time in functions of `helpers` (EmitOptions.glue).
    lean: names of others for which few passes are enough (EmitOptions.lean). forms: kernel → the forms that the stack
    chose for it, where it says so.
    """

    llvm_ir: str
    stages: tuple[tuple[str, str], ...] = ()
    ranged: frozenset[str] = frozenset()
    objects: tuple[bytes, ...] = ()
    language: str = "llvm"
    grouped: Mapping[str, Grouped] = field(default_factory=dict)
    helpers: tuple[str, ...] = ()
    glue: frozenset[str] = frozenset()
    lean: frozenset[str] = frozenset()
    forms: Mapping[str, ChosenForms] = field(default_factory=dict)


@functools.cache
def _host() -> Target:
    """By the LLVM that makes the code, so that no other one is loaded."""
    if os.uname().machine in libllvm.GENERATORS:
        triple, cpu, features = libllvm.processor()
    else:
        import llvmlite.binding as llvm

        triple, cpu = llvm.get_process_triple(), llvm.get_host_cpu_name()
        features = llvm.get_host_cpu_features().flatten()
    return Target(triple, cpu, features, vector_bits_of(features))


LEVELS = {
    "x86-64-v2": (
        *("64bit", "cx16", "cx8", "fxsr", "mmx", "popcnt", "sahf"),
        *("sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3"),
    ),
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
    "x86-64-v4": ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"),
}
"""Level of the x86-64 psABI → the features that it adds to the previous level, in LLVM's names."""


_assumed: Target | None = None


def assume_host(cpu: str | Target | None) -> None:
    """From now on `Target.host()` is `Target.of(cpu)` in this process; None: the machine itself again.

    For the command line and the tests, which run the whole system as on another processor.
    """
    global _assumed
    _assumed = Target.of(cpu) if isinstance(cpu, str) else cpu


def assumed_host() -> Target | None:
    """The latest argument of `assume_host`."""
    return _assumed
