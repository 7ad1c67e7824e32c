"""All programs of long_numerics.py, by name."""

from . import long_products, long_rows, long_sums

PROGRAMS = {**long_sums.PROGRAMS, **long_rows.PROGRAMS, **long_products.PROGRAMS}
