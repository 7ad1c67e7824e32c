"""Numbers of the stacks: each has one docstring, and a name that says what it counts."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ... import legacy, mlir_emitters

FILES = {
    path.relative_to(folder.parent).as_posix(): path.read_text(encoding="utf-8")
    for folder in (Path(str(room.__file__)).parent for room in (legacy, mlir_emitters))
    for path in sorted(folder.rglob("*.py"))
}
"""Of both stacks: name → text."""

COEFFICIENTS = ("legacy/numerics/", "mlir_emitters/numerics/")
"""Folders whose numbers are those of formulas, each of which says where it is from."""

SIZES = "LEAST|MOST|FEW|FEWEST|MANY|WIDE|WIDEST|NARROW|SHORT|SHORTEST|LONG|LONGEST|LARGE|SMALL|FAR|NEAR|CHEAP|DEAR"
PLACES = "ALONE|BESIDE|TOGETHER|AHEAD|ABREAST|ACROSS|LESS|ODD|WHOLE|LIGHT"
NO_NOUN = re.compile(rf"(?:{SIZES}|{PLACES})|(?:LEAST|MOST|FEWEST)_\w+")
"""Names that do not say of what they are a number, or in which unit."""


def numbers(text: str) -> Iterator[tuple[str, bool]]:
    """(Name, whether a docstring follows) of each constant of a module that is a number, or some."""
    body = ast.parse(text).body
    for node, following in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.Assign) or not _is_number(node.value):
            continue
        told = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        for target in node.targets:
            for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(name, ast.Name) and not name.id.startswith("_"):
                    yield name.id, told


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(map(_is_number, node.elts))
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "range"
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) or _is_number(node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


@pytest.mark.parametrize("name", [name for name in FILES if not name.startswith(COEFFICIENTS)])
def test_each_number_says_what_it_counts(name):
    found = [n for n, told in numbers(FILES[name]) if not told or NO_NOUN.fullmatch(n)]
    assert found == [], (
        "name what is counted, MINIMUM_ROW_ELEMENTS, not LEAST, and write a docstring with the unit below it"
    )


def test_there_are_such_numbers():
    assert sum(1 for text in FILES.values() for _ in numbers(text)) > 300


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('LEAST = 4\n"""Elements."""', [("LEAST", True)]),
        ("ROWS = 1 << 4  # of a tile", [("ROWS", False)]),
        ('LOW, HIGH = 3, 2 * HALF\n"""Elements of a row."""', [("LOW", True), ("HIGH", True)]),
        ("LENGTHS = range(3, 9)", [("LENGTHS", False)]),
        ("NAMES = ('a', 'b')\nKINDS = {1: 2}\n_OWN = 3", []),
    ],
)
def test_numbers_are_found(text, found):
    assert list(numbers(text)) == found
