"""Which products with few rows read the right operand in place: each of its elements is used in one tile or two."""

from __future__ import annotations

import math

from ...hlo.dtypes import DType
from ..core.facts import Facts
from .dot_product import Product, is_readable
from .dot_registers import FEW_REGISTERS

PAGE = 4096  # bytes at whose multiples lines share a set of the first cache
FEW_WAYS = 4  # lines of a set that A may take, of eight
FLAT_ROWS = 16  # of a tile that reads B in place; of more rows, the addresses of A's rows would be on the stack
FLAT_TILES = 2  # of rows that read B in place; more of them gain from a copy of it
LARGE = 1 << 22  # bytes of B that come from beyond the second cache
FAR = 128  # vectors between rows of B beyond which one of each takes as long to read as four
NEAR_TILE = 8  # rows of A, up to which a tile reads several vectors of each row of B
PACK_ROWS = 8  # with fewer rows, a panel is used too few times to be packed


def is_flat(product: Product, wide: DType, facts: Facts, narrow: bool) -> bool:
    """Whether each element of B is used in one tile of rows, or two, so that it needs no copy. narrow: tiles have the
    whole depth.
    """
    rows = product.factors
    if rows < PACK_ROWS:
        return True
    if product.left.dtype is not wide or not is_readable(product, wide):
        return False
    if is_large(product, wide) and (
        narrow or (rows > near_rows(facts) and 8 * product.depth.rhs * wide.bytes > FAR * facts.vector_bits)
    ):
        return False
    if narrow and shares_lines(product):
        return False
    return rows <= FLAT_TILES * min(FLAT_ROWS, facts.processor.vector_registers - 2)


def near_rows(facts: Facts) -> int:
    """The most rows whose tiles read parts of a large B along all columns: those of two tiles, if these are wide."""
    return 2 * NEAR_TILE if facts.processor.vector_registers > FEW_REGISTERS else NEAR_TILE


def is_large(product: Product, wide: DType) -> bool:
    return product.depth.size * product.column.size * wide.bytes > LARGE


def shares_lines(product: Product) -> bool:
    """Whether elements of a column of A are so far apart that the first cache has no room for all their lines."""
    stride = product.row.lhs * product.left.dtype.bytes
    return product.depth.lhs == product.parts and product.row.size > FEW_WAYS * (PAGE // math.gcd(stride, PAGE))
