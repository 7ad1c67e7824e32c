"""How the row's own kernels compare without tolerances, by form: exact evidence, before any program is drawn."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...codegen.options import EmitOptions
from ...hlo.errors import UnsupportedError
from ...migration.choose import emit_for
from ...migration.flags import Flags
from ...migration.form_evidence import weakest
from ...planning.plan import KernelRequest
from ..exact.check import Status
from ..exact.evidence import evidence_of
from .digests import drawn_kernels, forms_of, own_kernels

MOST_COMPLAINTS = 3


def exact_forms(
    unit: str,
    dtypes: str,
    seeds: Mapping[str, int],
    stacks: Sequence[str],
    only: Collection[str] | None = None,
) -> tuple[dict[str, str], list[str]]:
    """(Form → the weakest method that holds for each of the row's kernels in it; a sentence for each that differs).

    seeds: of drawn programs, of forms that the row's own programs do not have. only: forms; None: all.
    """
    kernels = own_kernels(unit, dtypes)
    for seed in sorted(set(seeds.values())):
        kernels += drawn_kernels(unit, dtypes, seed, stacks)
    methods: dict[str, list[str]] = {}
    wrong: list[str] = []
    for request in kernels:
        forms = _forms(request, stacks)
        if only is not None and not forms & set(only):
            continue
        found = evidence_of(request)
        if found.row.status is Status.DIFFER:
            wrong.append(f"{request.name} ({request.instruction.opcode.value}): {found.row.reason}")
        method = found.method.value.split()[0] if found.row.is_equal else "sampled"
        for form in forms:
            methods.setdefault(form, []).append(method)
        if len(wrong) >= MOST_COMPLAINTS:
            break
    return {form: weakest(each) for form, each in methods.items()}, wrong


def _forms(request: KernelRequest, stacks: Sequence[str]) -> set[str]:
    """The forms of a kernel on this machine."""
    found = set()
    for stack in stacks:
        try:
            made = emit_for(Flags.parse(stack))(request).emit([request], EmitOptions.host())
        except UnsupportedError:
            continue
        found |= {f"{stack} {name}" for name in forms_of(made)}
    return found
