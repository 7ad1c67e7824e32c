"""No decision is shared between the Plan and LLVM IR text (docs/adr/0001): what both stacks import, and which numbers
of rooms above they read. Equal numbers in both stacks are no share: each stack has measured its own.

Each table gives a reason a row; a row that no longer holds is an error, as is a share that no row permits.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

# The real checkout, also from inside Bazel's sandbox.
ROOT = Path(__file__).resolve().parents[2]
STACKS = ("legacy", "mlir_emitters")

SHARED = {
    "codegen/processors.py": "what a family of processors has: facts, no decisions",
    "codegen/field/element.py": "the interface: constants as elements of a finite field, where an option asks for them",
    "codegen/field/names.py": "the interface: names of the calls that stand for functions then",
    "codegen/forms.py": "the interface: what a stack says of the forms that it chose, as values",
    "codegen/helpers.py": "the interface: texts of functions that programs share, emitted once a process",
    "codegen/options.py": "the interface: target and options in, LLVM IR text out",
    "hlo/attributes.py": "the language: windows and dimension numbers",
    "hlo/dtypes.py": "the language: element types",
    "hlo/errors.py": "an op without a row is refused in the same words",
    "hlo/ir.py": "the language: instructions and literals of a request",
    "hlo/records.py": "how a class of values is written, as by the standard library",
    "hlo/opclasses.py": "the language: sets of opcodes",
    "hlo/opcodes.py": "the language: opcodes",
    "hlo/shapes.py": "the language: shapes and layouts",
    "planning/allocation.py": "the interface: what memory of ours is aligned to",
    "planning/partition.py": "the interface: the steps that a kernel may be split into",
    "planning/plan.py": "the interface: KernelRequest",
    "planning/scratch.py": "the interface: ON_STACK, what a request without scratch memory permits",
}
"""Modules that both stacks import."""

ONE_ONLY = {
    "codegen/lite_text.py": ("legacy", "the interface: a module of llvmlite's as LLVM IR text"),
    "codegen/mlir.py": ("mlir_emitters", "the interface: MLIR's own translation to LLVM IR text"),
    "hlo/analysis/sorted_parts.py": ("legacy", "the form of a request: a sort of which slices are the results"),
    "hlo/analysis/windows.py": ("legacy", "the language: what a windowed reduction computes"),
    "hlo/layouts.py": ("legacy", "the language: which bitcasts change elements"),
    "lhlo/dialect.py": ("mlir_emitters", "LHLO's operations, to make a context that knows them"),
    "lhlo/from_hlo.py": ("mlir_emitters", "requests as LHLO"),
    "lhlo/module.py": ("mlir_emitters", "an LHLO module as a value"),
    "lhlo/read.py": ("mlir_emitters", "LHLO's reader"),
}
"""Modules above the fork that one stack imports: the other must answer the same question by itself."""

NUMBERS = {
    ("codegen/options.py", "GROUP_SPACE"): "the interface: the address space of a group's memory, a parameter",
    ("planning/allocation.py", "POOL_ALIGNMENT"): "a promise of the Plan: what every buffer of ours is aligned to",
    ("planning/scratch.py", "ON_STACK"): "a promise of the Plan: scratch memory that a request need not offer",
}
"""Numbers of rooms above the fork that a stack reads."""

ROOMS_ABOVE = ("hlo", "passes", "planning", "lhlo", "codegen", "formats")


def files(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def module_file(parts: tuple[str, ...]) -> Path | None:
    """The file of a module of the package, if there is one."""
    path = ROOT.joinpath(*parts)
    candidates = [path.with_suffix(".py")] if parts else []
    return next((p for p in [*candidates, path / "__init__.py"] if p.is_file()), None)


@cache
def imports(path: Path) -> tuple[tuple[Path, str | None, str], ...]:
    """(Imported file, name in it or None for the module, name by which it is known here) of the package's modules."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[Path, str | None, str]]:
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(tree(path)):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = (*package[: len(package) - node.level + 1], *(node.module.split(".") if node.module else ()))
        for alias in node.names:
            module = module_file((*base, alias.name))
            name = None if module else alias.name
            found = module or module_file(base)
            assert found is not None, f"{path}: no file for {'.'.join(base)}"
            yield found, name, alias.asname or alias.name


def imported(room: str) -> set[str]:
    """Files outside a room that its files import."""
    found = {target.relative_to(ROOT).as_posix() for path in files(room) for target, _, _ in imports(path)}
    return {name for name in found if not name.startswith(f"{room}/")}


def number(node: ast.expr | None) -> int | float | None:
    """The value of an expression of number literals, alone or combined."""
    if node is None or not all(isinstance(n, NUMERIC) for n in ast.walk(node)):
        return None
    if any(isinstance(n, ast.Constant) and type(n.value) not in (int, float) for n in ast.walk(node)):
        return None
    return eval(compile(ast.Expression(node), "<number>", "eval"), {"__builtins__": {}})


NUMERIC = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)


def numbers(path: Path) -> dict[str, int | float]:
    """Module-level names that are a number."""
    found = {}
    for node in tree(path).body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if is_annotated(node) else []
        value = number(node.value) if targets else None
        if value is not None:
            found.update({target.id: value for target in targets if isinstance(target, ast.Name)})
    return found


def is_annotated(node: ast.stmt) -> bool:
    return isinstance(node, ast.AnnAssign)


def numbers_read(room: str) -> set[tuple[str, str]]:
    """(File above, name) of the numbers that a room imports, by name or through their module."""
    found = set()
    for path in files(room):
        for target, name, alias in imports(path):
            file = target.relative_to(ROOT).as_posix()
            if file.split("/")[0] not in ROOMS_ABOVE:
                continue
            names = numbers(target)
            read = {name} if name else attributes_of(path, alias)
            found |= {(file, n) for n in read if n in names}
    return found


def attributes_of(path: Path, module: str) -> set[str]:
    used = (n for n in ast.walk(tree(path)) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name))
    return {n.attr for n in used if n.value.id == module}


def test_the_scan_sees():
    """What the tests below rest on finds known imports and numbers."""
    assert "planning/plan.py" in imported("legacy") and "lhlo/dialect.py" in imported("mlir_emitters")
    assert numbers(ROOT / "planning/allocation.py")["POOL_ALIGNMENT"] == 64
    assert numbers(ROOT / "hlo/analysis/kernel_forms.py")["ROW_BYTES"] == 1 << 18
    assert number(ast.parse("f(3)", mode="eval").body) is None


def test_no_stack_imports_the_other():
    for stack, other in (STACKS, STACKS[::-1]):
        assert not {name for name in imported(stack) if name.startswith(f"{other}/")}


def test_both_stacks_import_the_language_and_the_interface_only():
    legacy, mlir = map(imported, STACKS)
    assert legacy & mlir == set(SHARED)


def test_what_one_stack_imports_is_said_too():
    legacy, mlir = map(imported, STACKS)
    found = {**dict.fromkeys(legacy - mlir, "legacy"), **dict.fromkeys(mlir - legacy, "mlir_emitters")}
    assert found == {name: stack for name, (stack, _) in ONE_ONLY.items()}


def test_no_stack_reaches_a_pass():
    """Nor does anything that a stack imports. The contract of kernels is for passes and tests."""
    for stack in STACKS:
        reached: set[Path] = set()
        left = [ROOT / name for name in imported(stack)]
        assert ROOT / "hlo/analysis/kernel_forms.py" not in left
        while left:
            path = left.pop()
            if path not in reached:
                reached.add(path)
                left += [target for target, _, _ in imports(path)]
        assert not [path for path in reached if path.relative_to(ROOT).parts[0] == "passes"]


def test_no_number_of_a_shared_room_decides_in_a_stack():
    assert numbers_read("legacy") | numbers_read("mlir_emitters") == set(NUMBERS)


@pytest.mark.parametrize("table", [SHARED, NUMBERS, {k: v for k, (_, v) in ONE_ONLY.items()}])
def test_every_row_has_a_reason(table):
    assert all(reason.strip() for reason in table.values())
