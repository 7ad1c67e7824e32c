"""All programs of numerics.py, by name."""

from . import pairs, products, rows, sums

PROGRAMS = {**sums.PROGRAMS, **pairs.PROGRAMS, **rows.PROGRAMS, **products.PROGRAMS}
