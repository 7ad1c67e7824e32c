"""Writes the lock files from pyproject.toml: `python3 tools/python/lock.py` (needs uv: `pip install uv`).

requirements.txt contains everything for running and testing; requirements-xla.txt contains what the `xla` extra adds.
Both apply to every platform and to Python from 3.11 on, have hashes, and name no index, so that any mirror works.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).absolute().parents[2]
PYTHON = "3.11"

HEADER = """\
# {title}
# Written by tools/python/lock.py from pyproject.toml: do not edit.
"""


def compile_lock(source: str, target: Path, title: str, constraints: Path | None = None) -> None:
    command = ["uv", "pip", "compile", "-", "--universal", "--generate-hashes", "--python-version", PYTHON]
    command += ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links", "--quiet"]
    command += ["--only-binary", ":all:", "--no-emit-options", "--output-file", str(target)]
    if constraints:
        command += ["--constraints", str(constraints)]
    subprocess.run(command, input=source, text=True, check=True, cwd=ROOT)
    target.write_text(HEADER.format(title=title) + target.read_text())


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    full, xla = ROOT / "requirements.txt", ROOT / "requirements-xla.txt"
    everything = "\n".join([*project["dependencies"], *extras["dev"]])
    (ROOT / "requirements.in").write_text(f"# Written by tools/python/lock.py from pyproject.toml.\n{everything}\n")
    compile_lock(everything, full, "The complete lock: all that runs and tests the project.")
    compile_lock("\n".join(extras["xla"]), xla, "The lock of the xla extra, over requirements.txt.", constraints=full)
    return 0


if __name__ == "__main__":
    sys.exit(main())
