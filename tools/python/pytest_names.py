"""Makes pytest import every file of this checkout as `testbed.…`, whatever the name of the folder is.

pytest derives a module's name from the folders above it. In a checkout named `main/` it would load `main.hlo` besides
`testbed.hlo` and so two copies of every class. The root conftest.py loads this file by path before any test.
"""

import importlib.util
import sys
from pathlib import Path

import _pytest.pathlib


def module_name(path: Path, root: Path) -> str | None:
    """`testbed.tests.test_x` for ROOT/tests/test_x.py; None outside ROOT or if the path is no module name."""
    try:
        parts = path.relative_to(root).with_suffix("").parts
    except ValueError:
        return None
    if parts[-1] == "__init__":
        parts = parts[:-1]
    if not all(part.isidentifier() for part in parts):
        return None
    return ".".join(("testbed", *parts))


def import_root(root: Path) -> None:
    """Make `root` the package `testbed` in this process, with precedence over an installed copy."""
    loaded = sys.modules.get("testbed")
    if loaded is not None:
        if list(loaded.__path__) != [str(root)]:
            raise ImportError(f"testbed is already imported from {list(loaded.__path__)}, not from {root}")
        return
    spec = importlib.util.spec_from_file_location(
        "testbed", root / "__init__.py", submodule_search_locations=[str(root)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["testbed"] = module
    spec.loader.exec_module(module)


def install(root: Path) -> None:
    import_root(root)
    original = _pytest.pathlib.resolve_pkg_root_and_module_name

    def resolve(path: Path, *, consider_namespace_packages: bool = False) -> tuple[Path, str]:
        name = module_name(path, root)
        if name is not None:
            return root.parent, name
        return original(path, consider_namespace_packages=consider_namespace_packages)

    _pytest.pathlib.resolve_pkg_root_and_module_name = resolve
