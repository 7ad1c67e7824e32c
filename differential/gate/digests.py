"""Digests of the code that a row's programs get from the stacks, by form: what evidence for the row belongs to.

Code is LLVM IR before LLVM's passes, for two processors that are named and not this machine's, so that a digest is the
same on every machine. Versions of the libraries stand in the evidence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from ...codegen.options import EmitOptions, EmittedModule, Target
from ...formats.text.parser import parse_module
from ...hlo.errors import UnsupportedError
from ...hlo.ir import Module
from ...migration.choose import emit_for, needs
from ...migration.flags import Flags
from ...migration.ledger_states import USUAL
from ...migration.names import HOST
from ...planning.plan import KernelRequest
from ..exact.check import kernels_of
from ..exact.corpus import key_of
from ..row_programs import cases_of, workloads_of
from .campaign import subject
from .processors import LEVELS
from .scales import FACTORS, scaled

CASES = 40
"""Of the row's own small programs, besides those that are timed and those that are scaled."""

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    *("legacy", "mlir_emitters", "lhlo", "codegen", "planning", "passes", "hlo", "formats", "backends/host"),
    "evaluator",  # computes the constants that passes fold
)
FILES = (
    *("migration/choose.py", "migration/units.py", "migration/form_evidence.py"),
    *("differential/row_programs.py", "differential/generate"),
    *(f"differential/gate/{name}.py" for name in ("scales", "digests", "campaign", "sized", "drawn")),
)
"""Besides ROOMS: what decides the digests."""


@cache
def code_hash() -> str:
    """A hash of all files on which digests may depend; while it stays, they do."""
    found = hashlib.sha256()
    for place in (*ROOMS, *FILES):
        path = ROOT / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            found.update(f"{file.relative_to(ROOT)}\0".encode())
            found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()[:12]


def own_modules(unit: str, dtypes: str) -> Iterator[Module]:
    """The row's own programs, always the same."""
    texts = [*cases_of(unit, dtypes, CASES), *workloads_of(unit, dtypes), *(scaled(unit, dtypes, n) for n in FACTORS)]
    return (parse_module(text, f"{unit}.{dtypes} program {n}") for n, text in enumerate(texts))


def own_kernels(unit: str, dtypes: str) -> list[KernelRequest]:
    """The distinct kernels of the row's own programs."""
    return _distinct(own_modules(unit, dtypes))


def drawn_kernels(unit: str, dtypes: str, seed: int, stacks: Sequence[str] = USUAL) -> list[KernelRequest]:
    """The distinct kernels that need the row, of a program that is drawn for it."""
    name = f"{unit}.{dtypes}.{HOST}"
    module = subject(unit, dtypes, seed, stacks, 0).module
    return [k for k in _distinct([module]) if name in needs(k)]


def _distinct(modules: Iterator[Module] | list[Module]) -> list[KernelRequest]:
    found: dict[Hashable, KernelRequest] = {}
    for module in modules:
        try:
            for request in kernels_of(module):
                found.setdefault(key_of(request), request)
        except UnsupportedError:
            continue
    return list(found.values())


def form_digests(
    unit: str, dtypes: str, seeds: Collection[tuple[str, int]] = (), stacks: Sequence[str] = USUAL
) -> dict[str, str]:
    """Form of a stack → a digest of the code of the row's kernels in that form. A kernel that a stack refuses has the
    form 'refused', and its message for code. seeds: forms that only a drawn program has, with its seed.
    """
    found = _of_kernels(own_kernels(unit, dtypes), stacks)
    missing = [(form, seed) for form, seed in seeds if form not in found]
    return {**found, **drawn_digests(unit, dtypes, missing, stacks)}


def drawn_digests(
    unit: str, dtypes: str, seeds: Iterable[tuple[str, int]], stacks: Sequence[str] = USUAL
) -> dict[str, str]:
    """Form → a digest of the code of the row's kernels in the form, of the drawn program of its seed, if it has any."""
    by_seed: dict[int, list[str]] = {}
    for form, seed in seeds:
        by_seed.setdefault(seed, []).append(form)
    made = {}
    for seed, forms in by_seed.items():
        found = _of_kernels(drawn_kernels(unit, dtypes, seed, stacks), stacks)
        made.update({form: found[form] for form in forms if form in found})
    return made


def _of_kernels(kernels: Sequence[KernelRequest], stacks: Sequence[str]) -> dict[str, str]:
    codes: dict[str, list[bytes]] = {}
    for request in kernels:
        for stack in stacks:
            for options in _options():
                for form, code in _coded(request, stack, options):
                    codes.setdefault(form, []).append(hashlib.sha256(code).digest())
    return {form: hashlib.sha256(b"".join(each)).hexdigest()[:12] for form, each in sorted(codes.items())}


@cache
def _options() -> tuple[EmitOptions, ...]:
    return tuple(EmitOptions(Target.level(level), ranges=True, metadata=()) for level in LEVELS)


def _coded(request: KernelRequest, stack: str, options: EmitOptions) -> Iterator[tuple[str, bytes]]:
    """(Form, the kernel's code) for each form that a stack gives a kernel."""
    try:
        made = emit_for(Flags.parse(stack))(request).emit([request], options)
    except UnsupportedError as error:
        yield f"{stack} refused", error.what.encode()
        return
    for name in forms_of(made):
        yield f"{stack} {name}", _text(made)


def forms_of(made: EmittedModule) -> list[str]:
    """The forms of an emitted module, each once."""
    return list(dict.fromkeys(name for chosen in made.forms.values() for name in chosen.names))


def _text(made: EmittedModule) -> bytes:
    """As tools/same_ir.py compares it, but for the shapes of groups."""
    told = (made.llvm_ir, made.helpers, sorted(made.ranged), sorted(made.glue), sorted(made.lean))
    return repr(told).encode()
