"""Which products with few rows read the right operand in place: each of its elements is used in one tile or two."""

from __future__ import annotations

import math

from ...hlo.dtypes import DType
from ..core.facts import Facts
from .dot_product import Product, is_readable
from .dot_registers import FEW_REGISTERS

FLAT_ROWS = 16
"""Rows of a tile that reads B in place; of more rows, the addresses of A's rows would be on the stack."""

FLAT_TILES = 2
"""Tiles of rows that read B in place; more of them gain from a copy of it."""

LARGE_CACHES = 4
"""Second caches: a B that fills more comes from beyond them."""

FAR_VECTORS = 128
"""Vectors between rows of B: beyond these, one of each row takes as long to read as four."""

NEAR_TILE_ROWS = 8
"""Rows of A, up to which a tile reads several vectors of each row of B."""

MINIMUM_PACK_ROWS = 8
"""Rows of A: with fewer, a panel is used too few times to be packed."""


def is_flat(product: Product, wide: DType, facts: Facts, narrow: bool) -> bool:
    """Whether each element of B is used in one tile of rows, or two, so that it needs no copy. narrow: tiles have the
    whole depth.
    """
    rows = product.factors
    if rows < MINIMUM_PACK_ROWS:
        return True
    if product.left.dtype is not wide or not is_readable(product, wide):
        return False
    if is_large(product, wide, facts) and (
        narrow or (rows > near_rows(facts) and 8 * product.depth.rhs * wide.bytes > FAR_VECTORS * facts.vector_bits)
    ):
        return False
    if narrow and shares_lines(product, facts):
        return False
    return rows <= FLAT_TILES * min(FLAT_ROWS, facts.processor.vector_registers - 2)


def near_rows(facts: Facts) -> int:
    """The most rows whose tiles read parts of a large B along all columns: those of two tiles, if these are wide."""
    return 2 * NEAR_TILE_ROWS if facts.processor.vector_registers > FEW_REGISTERS else NEAR_TILE_ROWS


def is_large(product: Product, wide: DType, facts: Facts) -> bool:
    return product.depth.size * product.column.size * wide.bytes > LARGE_CACHES * facts.processor.second_cache_bytes


def shares_lines(product: Product, facts: Facts) -> bool:
    """Whether elements of a column of A are so far apart that their lines take more than half of a set of the first
    cache.
    """
    stride = product.row.lhs * product.left.dtype.bytes
    way, lines = facts.processor.way_bytes, facts.processor.first_cache_ways // 2
    return product.depth.lhs == product.parts and product.row.size > lines * (way // math.gcd(stride, way))
