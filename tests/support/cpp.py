"""C++ against the header of XLA's FFI that jaxlib ships: builds libraries of handlers, and programs that print."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


def include_dir() -> Path | None:
    """The folder of jaxlib's headers, or None. It imports nothing of jaxlib."""
    spec = importlib.util.find_spec("jaxlib")
    if spec is None or not spec.origin:
        return None
    folder = Path(spec.origin).parent / "include"
    return folder if (folder / "xla/ffi/api/c_api.h").exists() else None


def need_cpp() -> None:
    """Skip a test that needs g++ and jaxlib's header."""
    lacking = [] if shutil.which("g++") else ["g++"]
    if include_dir() is None:
        lacking.append("jaxlib")
    if lacking:
        pytest.skip(f"{' and '.join(lacking)} not installed (Debian: g++; ./testbed setup --xla)")


def compile_cpp(source: str, *options: str, shared: bool = True) -> Path:
    """Build C++17 as a shared library, or a program. Builds of one process are kept; equal sources are built once."""
    need_cpp()
    return _built(source, options, shared)


@functools.cache
def _built(source: str, options: tuple[str, ...], shared: bool) -> Path:
    name = hashlib.blake2b("\0".join([source, *options, str(shared)]).encode(), digest_size=8).hexdigest()
    folder = Path(_folder().name)
    code, target = folder / f"{name}.cc", folder / (f"lib{name}.so" if shared else name)
    code.write_text(source, encoding="utf-8")
    flags = ["-shared", "-fPIC"] if shared else []
    command = ["g++", "-std=c++17", "-O1", "-w", *flags, f"-I{include_dir()}", str(code), "-o", str(target), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return target


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=f"ffi_{os.getpid()}_")


def run_program(program: Path) -> str:
    return subprocess.run([program], check=True, capture_output=True, text=True, timeout=60).stdout
