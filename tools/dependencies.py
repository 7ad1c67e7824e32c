"""Which files of the checkout a Python file needs: imports, wherever they stand, and modules that it names in strings.

`./testbed test --for` and `--changed` select tests by it (tools/selection.py), and tests/rooms_of.bzl is made from it
(tools/rooms_of.py). Imports for type checkers do not count. What a file imports by a computed name stands in DYNAMIC.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).absolute().parents[1]
PACKAGE = "testbed"

DYNAMIC: dict[str, tuple[str, ...]] = {
    "benchmarks/sweep/suites.py": ("benchmarks/sweep/",),
    "cli/main.py": ("cli/",),
    "differential/planted/fault.py": ("legacy/", "mlir_emitters/"),
    "migration/choose.py": ("legacy/", "mlir_emitters/"),
    "migration/forms.py": ("legacy/", "mlir_emitters/"),
    "tests/migration/test_api.py": ("display/",),
    "tools/mutate.py": ("tools/mutations/",),
    "tools/changed_ops.py": ("evaluator/rules.py", "legacy/", "mlir_emitters/"),
    "tools/selection.py": ("legacy/", "mlir_emitters/"),
    # By names in tables of their own, which are found as strings.
    "backends/registry.py": (),
    "thunks/__init__.py": (),
    # No module of this checkout, or the root package alone, which loads what its user names.
    "__init__.py": (),
    "backends/accelerator/stored.py": (),
    "backends/host/entry.py": (),
    "backends/host/files.py": (),
    "benchmarks/suite/workload.py": (),
    "hlo/display.py": (),
    "hlo/later.py": (),
    "tools/same_ir.py": (),
}
"""File → what it may import by a name that it computes: files, and folders with all files in them."""

LOADS_MLIR = "codegen/mlir_import.py"
"""What the root package calls when somebody imports the library `mlir`."""

NAMES_FILES = frozenset({"tools/dependencies.py"})
"""Files whose strings name files that they do not need."""

NO_PART = frozenset({"dist", "node_modules", "repro"})
"""Folders of the checkout that hold no files of it; nor do those that begin with a point."""

WORD = re.compile(r"\.*[A-Za-z_]\w*(\.\w+)*(:\w*)?")
IMPORT = re.compile(rf"(?:from|import) +({PACKAGE}(?:\.\w+)*)(?: +import +\(?([\w, ]+))?")
COMMAND = "cli/start.py"
"""What `python -m testbed` runs, besides __main__.py."""


class Checkout:
    """The files of a checkout, as paths relative to it, with what they need. Files are read once."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self._named: dict[str, frozenset[str]] = {}
        self._strings: dict[str, frozenset[str]] = {}

    @cached_property
    def files(self) -> frozenset[str]:
        """All Python files."""
        found = (path.relative_to(self.root) for path in self.root.rglob("*.py"))
        return frozenset(p.as_posix() for p in found if not any(x[0] == "." or x in NO_PART for x in p.parts))

    @cached_property
    def by_name(self) -> dict[str, list[str]]:
        """Last part of a path → the files that have it."""
        found: dict[str, list[str]] = {}
        for file in sorted(self.files):
            found.setdefault(_name(file), []).append(file)
        return found

    @cached_property
    def tests(self) -> tuple[str, ...]:
        """All files of tests, sorted."""
        return tuple(sorted(f for f in self.files if f.startswith("tests/") and _name(f).startswith("test_")))

    def needs(self, file: str) -> frozenset[str]:
        """The files that a file needs directly, or may need by its row in DYNAMIC."""
        return self.named(file) | self._rows.get(file, frozenset())

    @cached_property
    def _rows(self) -> dict[str, frozenset[str]]:
        return {
            file: frozenset(f for row in rows for f in self.files if f == row or (row[-1] == "/" and f.startswith(row)))
            for file, rows in DYNAMIC.items()
        }

    def named(self, file: str) -> frozenset[str]:
        """The files that a file names, the packages around these and itself, and for a test the set-up of tests."""
        if file not in self._named:
            reader = _Reader(self, file)
            if file != "__init__.py":  # whose names load on first use: who uses one needs its file
                reader.visit(ast.parse((self.root / file).read_text(encoding="utf-8")))
            self._strings[file] = frozenset(reader.strings)
            self._named[file] = frozenset(self._all({*reader.found, file}) | self._set_up(file)) - {file}
        return self._named[file]

    def strings(self, file: str) -> frozenset[str]:
        """The strings of a file, without those that document it."""
        self.named(file)
        return self._strings[file]

    def closure(self, file: str) -> frozenset[str]:
        """All files that a file needs, directly or not, with itself."""
        found, left = {file}, [file]
        for reached in left:
            more = self.needs(reached) - found
            found |= more
            left += more
        return frozenset(found)

    def users(self, files: Iterable[str]) -> dict[str, str]:
        """Each file that needs one of these, directly or not, or is one of them → the one that it needs."""
        found = {file: file for file in files}
        left = [*found]
        for reached in left:
            for user in self._needed_by.get(reached, ()):
                if user not in found:
                    found[user] = found[reached]
                    left.append(user)
        return found

    @cached_property
    def _needed_by(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for file in sorted(self.files):
            for needed in self.needs(file):
                found.setdefault(needed, []).append(file)
        return found

    def _set_up(self, file: str) -> set[str]:
        if not (file.startswith("tests/") and _name(file).startswith("test_")):
            return set()
        return {f"{folder}/conftest.py".removeprefix("./") for folder in PurePosixPath(file).parents} & self.files

    def _all(self, found: Iterable[str]) -> set[str]:
        """Files with the packages around them, which are imported first."""
        packages = {f"{p}/__init__.py".removeprefix("./") for f in found for p in PurePosixPath(f).parents}
        return {*found, *packages} & self.files

    def module(self, parts: tuple[str, ...]) -> str | None:
        """The file of a module, by its path below the root package; None if there is none."""
        name = "/".join(parts)
        both = (f"{name}/__init__.py".removeprefix("/"), f"{name}.py")
        return next((f for f in both if f in self.files), None)

    def longest(self, parts: tuple[str, ...]) -> str | None:
        """The file of the longest beginning of a name that is a module, the root package left out."""
        for end in range(len(parts), 0, -1):
            if (file := self.module(parts[:end])) is not None:
                return file
        return None

    @cached_property
    def public(self) -> dict[str, str]:
        """Public name of the root package → the file that has it."""
        for node in ast.parse((self.root / "__init__.py").read_text(encoding="utf-8")).body:
            if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "_PUBLIC" and node.value:
                table: dict[str, str] = ast.literal_eval(node.value)
                rows = {name: self.module(tuple(room.rstrip(":").split("."))) for name, room in table.items()}
                return {name: file for name, file in rows.items() if file is not None}
        return {}


class _Reader(ast.NodeVisitor):
    """What one file needs. found: files; strings: without those that document."""

    def __init__(self, checkout: Checkout, file: str) -> None:
        self.checkout, self.file = checkout, file
        self.package = PurePosixPath(file).parent.parts
        self.found: set[str] = set()
        self.strings: set[str] = set()
        self._aliases = {PACKAGE}

    def visit_If(self, node: ast.If) -> None:
        test = ast.unparse(node.test)
        if test != "TYPE_CHECKING":
            self.visit(node.test)
            for child in node.body:
                self.visit(child)
        for child in node.orelse:
            self.visit(child)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            package, *rest = alias.name.split(".")
            if package == PACKAGE:
                self._module(tuple(rest), "")
                if not rest:
                    self._aliases.add(alias.asname or PACKAGE)
            elif package == "mlir":
                self.found.add(LOADS_MLIR)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = tuple(node.module.split(".")) if node.module else ()
        if node.level:
            base = (*self.package[: len(self.package) - node.level + 1], *base)
        elif base[0] == PACKAGE:
            base = base[1:]
        else:
            if base[0] == "mlir":
                self.found.add(LOADS_MLIR)
            return
        for alias in node.names:
            self._module(base, alias.name)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name) and node.value.id in self._aliases:
            self._module((), node.attr)
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        for part in node.values:
            if isinstance(part, ast.Constant):
                self._string(str(part.value).rstrip("."))
            else:
                self.visit(part)
        self._code(ast.unparse(node))

    def visit_List(self, node: ast.List | ast.Tuple) -> None:
        values = [x.value if isinstance(x, ast.Constant) else None for x in node.elts]
        if ("-m", PACKAGE) in pairwise(values):
            self.found |= {"__main__.py", COMMAND}
        self.generic_visit(node)

    visit_Tuple = visit_List  # type: ignore[assignment]

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._string(node.value)

    def _module(self, base: tuple[str, ...], name: str) -> None:
        """`from base import name`, or `import base`."""
        if name and (file := self.checkout.module((*base, name))):
            self.found.add(file)
        elif not base:
            self.found.add("__init__.py")
            if name in self.checkout.public:
                self.found |= {self.checkout.public[name], "hlo/collector.py"}
        elif file := self.checkout.longest(base):
            self.found.add(file)

    def _string(self, text: str) -> None:
        self.strings.add(text)
        if self.file in NAMES_FILES:
            return
        if text.endswith(".py") and "\n" not in text:
            self._path(text.lstrip("/"))
        elif WORD.fullmatch(text) and "." in text:
            self._dotted(text.partition(":")[0])
        elif "import" in text:
            self._code(text)

    def _path(self, text: str) -> None:
        """A path such as `tools/lint.py`. A room names files of its own folder only."""
        if self.file.startswith(("tests/", "tools/", "examples/")):
            if _name(text) not in ("__init__.py", "conftest.py"):
                self.found |= {f for f in self.checkout.by_name.get(_name(text), ()) if f"/{f}".endswith(f"/{text}")}
        else:
            self.found |= {"/".join((*self.package, text))} & self.checkout.files

    def _dotted(self, text: str) -> None:
        """A name such as `..legacy`, `hlo.errors`, `testbed.cli.main.command`."""
        name = text.lstrip(".")
        level, parts = len(text) - len(name), tuple(name.split("."))
        if level:
            base = self.package[: len(self.package) - level + 1]
            file = self.checkout.module((*base, *parts))
        elif parts[0] == PACKAGE:
            file = self.checkout.longest(parts[1:])
            self._module((), parts[1])
        else:
            file = self.checkout.module(parts)
        if file is not None:
            self.found.add(file)

    def _code(self, text: str) -> None:
        """Imports in a text that another process runs."""
        for match in IMPORT.finditer(text):
            base = tuple(match[1].split("."))[1:]
            for name in (match[2] or "").split(","):
                self._module(base, name.strip())
            if not base and not match[2]:
                for used in re.findall(rf"\b{PACKAGE}\.(\w+)", text):
                    self._module((), used)


def _name(file: str) -> str:
    return file.rpartition("/")[2]


def computed_imports(checkout: Checkout) -> Iterator[str]:
    """The files that import a module by a name that they compute; tests are left out."""
    for file in sorted(checkout.files):
        if not file.startswith(("tests/", "examples/")):
            tree = ast.parse((checkout.root / file).read_text(encoding="utf-8"))
            calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args)
            if any(ast.unparse(c.func).endswith("import_module") and not _is_literal(c.args[0]) for c in calls):
                yield file


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)
