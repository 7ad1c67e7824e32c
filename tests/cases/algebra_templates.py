"""The templates of every algebraic rule, by the rule's name."""

from __future__ import annotations

from .algebra_template import Template
from .algebra_templates_movement import MOVEMENT
from .algebra_templates_sums import SUMS
from .algebra_templates_values import VALUES

TEMPLATES: dict[str, tuple[Template, ...]] = {**VALUES, **MOVEMENT, **SUMS}
