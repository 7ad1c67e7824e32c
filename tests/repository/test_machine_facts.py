"""No file of a stack reads the width of vectors, or a number of its own, as another fact about the processor."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from ... import legacy, mlir_emitters

FOLDERS = [Path(str(room.__file__)).parent for room in (legacy, mlir_emitters)]
FILES = {
    path.relative_to(folder.parent).as_posix(): path.read_text(encoding="utf-8")
    for folder in FOLDERS
    for path in sorted(folder.rglob("*.py"))
}
"""Of both stacks: name → text."""

ABOUT_WIDTH = {
    "legacy/loops/loops.py": 1,  # whether a vector is a whole line
    "legacy/numerics/integer.py": 1,  # two lanes of 64-bit integers gain nothing
    "mlir_emitters/numerics/integer_division.py": 2,  # the same, and a minimum of lanes
    "mlir_emitters/products/dot_narrow.py": 1,  # whether there are vectors
    "mlir_emitters/products/dot_product.py": 1,
    "mlir_emitters/reductions/complex_sums.py": 1,
    "mlir_emitters/rows/row_walks.py": 1,  # the width at which a call was measured to pay off
}
"""File → its comparisons of the width of vectors that are about nothing else."""


def comparisons(text: str) -> Iterator[ast.Compare]:
    """Comparisons of `vector_bits` itself, or of a multiple or a part of it, with anything."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare) and any(map(_is_width, (node.left, *node.comparators))):
            yield node


def _is_width(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.FloorDiv)):
        constant = isinstance(node.right, ast.Constant) or isinstance(node.left, ast.Constant)
        return constant and (_is_width(node.left) or _is_width(node.right))
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("max", "min"):
        return any(map(_is_width, node.args))
    return getattr(node, "attr", getattr(node, "id", "")) == "vector_bits"


def test_widths_of_vectors_are_compared_as_widths_only():
    found = {name: len(list(comparisons(text))) for name, text in FILES.items()}
    assert {name: count for name, count in found.items() if count} == ABOUT_WIDTH, (
        "ask View.processor or Facts.processor for masks, gathers, registers, instructions (codegen/processors.py); "
        "what is about widths belongs into ABOUT_WIDTH, with a reason"
    )


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("masks = view.vector_bits >= 512", 1),
        ("registers = 32 if vector_bits >= 512 else 16", 1),
        ("gathers = WIDE == b.facts.vector_bits", 1),
        ("wide = max(view.vector_bits, 128) > 256", 1),
        ("near = facts.vector_bits // 8 > LINE", 1),
        ("lanes = facts.vector_bits // dtype.bits\nmasks = facts.processor.masks", 0),
        ("lanes = max(view.vector_bits, 128) // 32\nfew = rows < lanes", 0),
    ],
)
def test_a_comparison_is_found(text, count):
    assert len(list(comparisons(text))) == count
