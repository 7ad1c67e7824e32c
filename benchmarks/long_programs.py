"""All programs of long_numerics.py, by name."""

from . import long_pairs, long_products, long_rows, long_sums

PROGRAMS = {**long_sums.PROGRAMS, **long_pairs.PROGRAMS, **long_rows.PROGRAMS, **long_products.PROGRAMS}
