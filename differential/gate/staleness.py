"""Whether the evidence of a row is of the code that its programs get now, and if not, which forms have changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...migration.ledger import Evidence, Row

NO_FORMS = "no evidence by form"
VERSIONS = "other versions of libraries"


@dataclass(frozen=True)
class Stale:
    """forms: whose code has changed, is new or is gone. why: in words."""

    forms: tuple[str, ...]
    why: str


def stale(row: Row, digests: Mapping[str, str], versions: str) -> Stale | None:
    """What is stale of a row's evidence; None if nothing is. digests: of the code of now."""
    evidence = row.evidence
    if evidence is None or not evidence.forms:
        return Stale(tuple(sorted(digests)), NO_FORMS)
    if libraries_of(evidence.versions) != libraries_of(versions):
        return Stale(tuple(sorted(digests)), VERSIONS)
    forms = changed_forms(evidence, digests)
    return Stale(forms, f"changed: {', '.join(forms)}") if forms else None


def libraries_of(versions: str) -> str:
    """The versions without the testbed's own: what that changes of the code shows in the digests."""
    return versions.partition(", ")[2]


def changed_forms(evidence: Evidence, digests: Mapping[str, str]) -> tuple[str, ...]:
    """Forms whose digest is not that of the evidence, sorted."""
    before = {f.form: f.digest for f in evidence.forms}
    return tuple(sorted(form for form in before.keys() | digests.keys() if before.get(form) != digests.get(form)))
