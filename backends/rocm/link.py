"""Object files of AMD GPUs → code objects (hsaco), by LLVM's linker."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from ..device import BackendError

LINKERS = ("ld.lld", "ld.lld-22", "ld.lld-21", "ld.lld-20", "ld.lld-19")
LIMIT = 60.0
"""Seconds for one object."""


def linker() -> tuple[str, ...]:
    """The command that is LLVM's linker, of the system or of the extra `gpu`; empty if there is none."""
    own = next(((path,) for name in LINKERS if (path := shutil.which(name)) is not None), ())
    return own or ((sys.executable, "-m", "ziglang", "ld.lld") if find_spec("ziglang") is not None else ())


def linked(code: bytes) -> bytes:
    """The shared object that HIP loads. Raises BackendError without a linker, and with its first line if it refuses."""
    program = linker()
    if not program:
        raise BackendError("HIP needs LLVM's linker, ld.lld", remedy="apt-get install lld-19, or ./testbed setup --gpu")
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "a.o"), Path(folder, "a.hsaco")
        given.write_bytes(code)
        command = [*program, "-shared", "--no-undefined", "-o", str(made), str(given)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["no message"])[0]
            said = said.partition("error: ")[2].replace(str(given), "the object file") or said
            raise BackendError(f"{LINKERS[0]}: {said}", remedy="use the host for this kernel")
        return made.read_bytes()
