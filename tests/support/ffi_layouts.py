"""The layout of XLA's FFI structures by its header: `python -m testbed.tests.support.ffi_layouts INCLUDE` prints it.

INCLUDE is the folder `include` of a jaxlib wheel. A C++ program prints sizes and offsets, so that no rule of layout is
assumed. tests/cases/ffi_layouts.py keeps what the headers of versions 0.1 and 0.2 say otherwise than that of 0.3.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

_STRUCT = re.compile(r"^(?:typedef )?struct XLA_FFI_(\w+) \{(.*?)^\}", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"(?:(\w+)|\(\*(\w+)\)\([^)]*\));")
_FUNCTION = re.compile(r"_XLA_FFI_API_STRUCT_FIELD\(XLA_FFI_(\w+)\);")


def program(header: str) -> str:
    """C++ that prints `Name size` and `Name.field offset` of each structure, and `Api.Function offset`."""
    lines = []
    text = re.sub(r"//[^\n]*", "", header)
    for name, body in _STRUCT.findall(text):
        lines.append(f'say("{name}", sizeof(XLA_FFI_{name}));')
        fields = [] if name == "Api" else ["".join(found) for found in _FIELD.findall(body)]
        lines += [f'say("{name}.{field}", offsetof(XLA_FFI_{name}, {field}));' for field in fields]
    lines += [f'say("Api.{name}", offsetof(XLA_FFI_Api, XLA_FFI_{name}));' for name in _FUNCTION.findall(text)]
    head = '#include <cstddef>\n#include <cstdio>\n#include "xla/ffi/api/c_api.h"\n'
    say = 'static void say(const char* name, long value) { std::printf("%s %ld\\n", name, value); }\n'
    return head + say + "int main() {\n" + "\n".join(lines) + "\n}\n"


def layout(include: Path) -> dict[str, int]:
    """Name → size or offset in bytes, by g++."""
    header = (include / "xla/ffi/api/c_api.h").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        code, target = Path(folder, "a.cc"), Path(folder, "a")
        code.write_text(program(header), encoding="utf-8")
        command = ["g++", "-std=c++17", "-w", f"-I{include}", str(code), "-o", str(target)]
        subprocess.run(command, check=True, timeout=300)
        printed = subprocess.run([target], check=True, capture_output=True, text=True, timeout=60).stdout
    return {name: int(value) for name, value in map(str.split, printed.splitlines())}


def main(include: str) -> None:
    for name, value in layout(Path(include)).items():
        print(name, value)


if __name__ == "__main__":
    main(sys.argv[1])
