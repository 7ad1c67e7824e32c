"""Writes the lock files from pyproject.toml: `python3 tools/python/lock.py [--upgrade]` (needs uv: `pip install uv`).

pyproject.toml has ranges, the locks have pins: those that are locked stay while they are within their ranges, unless
--upgrade asks for the newest. locks/requirements.txt has everything that a run needs, requirements-NAME.txt what the
extra NAME needs. They apply to every platform and to Python 3.11 and later, have hashes, and name no index, so that any
mirror works. A package has one version in all of them, except where a marker chooses it by the Python version.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).absolute().parents[2]
LOCKS = ROOT / "locks"
PYTHON = "3.11"

TITLES = {
    "plot": "The lock of the plot extra, over requirements.txt: drawing.",
    "dev": "The lock of the dev extra, over requirements.txt: testing, linting and checking types.",
    "gpu": "The lock of the gpu extra, over requirements.txt: what assembles code for GPUs, for tests.",
    "opencl": "The lock of the opencl extra, over requirements.txt: an OpenCL device, Intel's CPU runtime.",
    "xla": "The lock of the xla extra, over requirements.txt: XLA itself, the newest that each Python has.",
    "handlers": "The lock of the handlers extra, over requirements-xla.txt: libraries with FFI handlers, for tests.",
}
"""Extra → the first line of its lock."""

HEADER = """\
# {title}
# Written by tools/python/lock.py from pyproject.toml: do not edit.
"""


def compile_lock(source: str, target: Path, title: str, constraints: list[Path]) -> None:
    command = ["uv", "pip", "compile", "-", "--universal", "--generate-hashes", "--python-version", PYTHON]
    command += ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links", "--quiet"]
    command += ["--only-binary", ":all:", "--output-file", str(target), *sys.argv[1:]]
    for lock in constraints:
        command += ["--constraints", str(lock)]
    subprocess.run(command, input=source, text=True, check=True, cwd=ROOT)
    target.write_text(HEADER.format(title=title) + target.read_text())


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    written = [LOCKS / "requirements.txt"]
    runtime = "\n".join(project["dependencies"])
    compile_lock(runtime, written[0], "The complete lock of a run.", [])
    for extra, title in TITLES.items():
        lock = LOCKS / f"requirements-{extra}.txt"
        compile_lock("\n".join(project["optional-dependencies"][extra]), lock, title, written)
        written.append(lock)
    return 0


if __name__ == "__main__":
    sys.exit(main())
