"""The table of families of programs by form and limit of the stacks' tables, from which limits are read.

A form or a limit without a family fails tests/migration/test_form_limits.py.
"""

from __future__ import annotations

from ...codegen.forms import Limit
from ...migration.forms import form_tables
from .form_family import Family
from .form_moves import CONCATENATIONS, NESTS, PADDINGS, REPETITIONS
from .form_products import CONVOLUTIONS, DOTS
from .form_rows import REDUCTIONS, ROWS, SORTS, WINDOWS

FAMILIES: tuple[Family, ...] = (
    *ROWS,
    *REDUCTIONS,
    *WINDOWS,
    *SORTS,
    *DOTS,
    *CONVOLUTIONS,
    *CONCATENATIONS,
    *PADDINGS,
    *REPETITIONS,
    *NESTS,
)

LIMITS: dict[tuple[str, str, str], Limit] = {
    (stack, form.name, limit.name): limit
    for stack, table in form_tables().items()
    for form in table
    for limit in form.limits
}
"""(Stack, form, name) → the limit."""
