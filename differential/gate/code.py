"""The code that a row's programs get, as digests by stack and form: what evidence is evidence of.

A digest is that of the LLVM IR that a stack emits, before LLVM's passes, for the processors of LEVELS: of any machine
the same. The programs are the row's own, so that they are the same in every process, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib import import_module

from ...backends.base import CompileOptions
from ...backends.host.compiler import HostCompiler
from ...codegen.options import assume_host, assumed_host
from ...formats.text.parser import parse_module
from ...hlo.errors import UnsupportedError
from ...hlo.library.calls import LIBRARY
from ...hlo.verify.verifier import verify
from ...migration.choose import ROOMS, dtypes_of
from ...migration.units import pairs_of
from ...planning.plan import KernelRequest
from ..row_programs import cases_of, workloads_of
from .drawn import drawn_module
from .processors import LEVELS
from .scales import FACTORS, scaled

PROGRAMS, DRAWN_PROGRAMS = 24, 30
"""Small programs of a row whose code is digested, besides its timed ones and those that grow; and drawn ones."""

Code = Mapping[str, str]
"""'STACK FORM' → a digest of the code of the row's kernels that have the form. Of a kernel with several, each."""


def code_of(unit: str, dtypes: str, stacks: tuple[str, str]) -> Code:
    """The code of a row on stacks that have tables of forms. A kernel that a stack refuses counts by what it says."""
    told: defaultdict[str, list[str]] = defaultdict(list)
    before = assumed_host()
    try:
        for level in LEVELS:
            assume_host(level)
            for kernel in row_kernels(unit, dtypes):
                for stack in stacks:
                    forms, text = _emitted(stack, kernel)
                    for form in forms:
                        told[f"{stack} {form}"].append(text)
    finally:
        assume_host(before)
    return {key: sha256("\n".join(texts).encode()).hexdigest()[:12] for key, texts in sorted(told.items())}


def row_kernels(unit: str, dtypes: str) -> Iterator[KernelRequest]:
    """The kernels that a row's programs have for the row's ops, planned for the host that is assumed."""
    texts = [*cases_of(unit, dtypes, PROGRAMS), *workloads_of(unit, dtypes)]
    texts += [scaled(unit, dtypes, factor) for factor in FACTORS]
    modules = [parse_module(text, f"{unit}.{dtypes}") for text in texts]
    for module in [*modules, *(drawn_module(unit, dtypes, seed) for seed in range(DRAWN_PROGRAMS))]:
        verify(module)
        for kernel in HostCompiler().run_hlo_passes(module, CompileOptions()).emitted:
            if kernel.instruction.opcode not in LIBRARY and is_of_row(kernel, unit, dtypes):
                yield kernel


def is_of_row(kernel: KernelRequest, unit: str, dtypes: str) -> bool:
    """Whether a kernel's instruction, or one within it, needs the row of a unit and class."""
    left = [kernel.instruction]
    while left:
        i = left.pop()
        if (unit, dtypes) in pairs_of(i.opcode, dtypes_of(i)):
            return True
        left += [inner for computation in i.called() for inner in computation.instructions]
    return False


def forms_of_kernel(stack: str, kernel: KernelRequest) -> Sequence[str]:
    """The names of the forms that a stack gives a kernel."""
    return _emitted(stack, kernel)[0]


def _emitted(stack: str, kernel: KernelRequest) -> tuple[Sequence[str], str]:
    """(The names of a kernel's forms, its LLVM IR and what else decides its machine code)."""
    try:
        made = import_module(ROOMS[stack], "testbed.migration").emit([kernel], CompileOptions().emit)
    except UnsupportedError as error:
        return ("refused",), str(error)
    forms = made.forms[kernel.name].names if kernel.name in made.forms else ("none",)
    return forms, repr((made.llvm_ir, made.helpers, sorted(made.ranged), sorted(made.glue), sorted(made.lean)))
