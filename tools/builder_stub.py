"""Writes formats/builder/elementwise.pyi from the table of opcodes; with --check only says whether it is up to date."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).absolute().parents[1]
STUB = ROOT / "formats/builder/elementwise.pyi"

HEAD = '''"""Written by tools/builder_stub.py from the table of opcodes."""

from collections.abc import Callable, Sequence

from ...hlo.opcodes import Op
from .values import Value, XlaOp

ALIASES: dict[str, Op]
UNARY: dict[str, Op]
BINARY: dict[str, Op]
FUNCTIONS: dict[str, Callable[..., XlaOp]]

def name_of(op: Op) -> str: ...
def xla_name(op: Op) -> str: ...
'''


def stub_text() -> str:
    """The stub: a line for each function."""
    from testbed.formats.builder.elementwise import ALIASES, BINARY, FUNCTIONS

    names = {*BINARY, *(name for name, op in ALIASES.items() if op in BINARY.values())}
    lines = []
    for name in FUNCTIONS:
        takes = "lhs: Value, rhs: Value, broadcast_dimensions: Sequence[int] = ()"
        takes = takes if name in names else "operand: XlaOp, result_accuracy: str | None = None"
        lines.append(f"def {name}({takes}) -> XlaOp: ...\n")
    listed = ", ".join(f'"{name}"' for name in sorted(FUNCTIONS))
    return f"{HEAD}{''.join(lines)}\n__all__ = [{listed}]\n"


def formatted(text: str) -> str:

    command = [
        sys.executable,
        "-m",
        "ruff",
        "format",
        f"--config={ROOT / 'pyproject.toml'}",
        "--stdin-filename=x.pyi",
        "-",
    ]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def main(argv: list[str]) -> int:
    text = formatted(stub_text())
    if "--check" in argv:
        if not STUB.exists() or STUB.read_text(encoding="utf-8") != text:
            print(f"{STUB.relative_to(ROOT)} is not what the table gives: run tools/builder_stub.py", file=sys.stderr)
            return 1
        return 0
    STUB.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
