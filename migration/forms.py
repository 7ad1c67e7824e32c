"""The tables of forms of the stacks, as values: for reports and coverage. Only a stack decides by its own."""

from __future__ import annotations

from ..codegen.forms import FormInfo


def form_tables() -> dict[str, tuple[FormInfo, ...]]:
    """Stack → its forms, in the order in which they are asked."""
    from .. import legacy, mlir_emitters

    return {"legacy": legacy.form_table(), "mlir": mlir_emitters.form_table()}
