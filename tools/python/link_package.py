"""Writes the import shim `testbed.py` into a site-packages folder, so that `import testbed` loads this checkout.

Another one lets JAX find the plugin, as the entry point of an installed package does.

Run it with the interpreter that is to be linked: `PYTHON tools/python/link_package.py`. An editable install would need
setuptools and a build. The shim needs neither, and its relative path lets checkout and .venv move together.
"""

import os
import sysconfig
from pathlib import Path

ROOT = Path(__file__).absolute().parents[2]

SHIM = '''\
"""Makes the checkout importable as `testbed`, whatever its folder is called. From tools/python/link_package.py."""
import importlib.util
import os
import sys

root = os.path.normpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), {relative!r}))
spec = importlib.util.spec_from_file_location(
    "testbed", os.path.join(root, "__init__.py"), submodule_search_locations=[root]
)
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
if __name__ == "__main__":  # python -m testbed
    import runpy

    runpy.run_module("testbed", run_name="__main__", alter_sys=True)
'''

PLUGIN = '''\
"""The module jax_plugins.testbed, which JAX looks for. From tools/python/link_package.py."""
try:
    from testbed.pjrt.discovery import initialize
except ModuleNotFoundError:  # of a part of the checkout, as Bazel gives it to a test

    def initialize():
        pass
'''


def link_package(site_packages: Path, root: Path = ROOT) -> Path:
    """Write the shims and return the path of the one of the package."""
    relative = os.path.relpath(os.path.realpath(root), os.path.realpath(site_packages))
    plugin = site_packages / "jax_plugins" / "testbed"
    plugin.mkdir(parents=True, exist_ok=True)
    _write(plugin / "__init__.py", PLUGIN)
    return _write(site_packages / "testbed.py", SHIM.format(relative=relative))


def _write(file: Path, text: str) -> Path:
    """Write a file atomically: another process may be importing it."""
    temporary = file.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, file)
    return file


if __name__ == "__main__":
    link_package(Path(sysconfig.get_path("purelib")))
