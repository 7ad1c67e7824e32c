"""Where a run took place: the machine, versions of libraries, the commit."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

LIBRARIES = (
    *("numpy", "jaxlib", "jax", "llvmlite", "xtc-mlir-python-bindings", "scipy-openblas32"),
    *("torch", "iree-base-compiler", "iree-base-runtime"),
)


ROOT = Path(__file__).resolve().parents[2]


ISA = {"x86-64-v2": ("SSE4_2", "Nehalem"), "x86-64-v3": ("AVX2", "Haswell")}
"""Level of a processor → what XLA and OpenBLAS call its instructions. The level above has no common name."""


def as_on(level: str, given: Mapping[str, str]) -> dict[str, str]:
    """An environment, changed so that XLA's code and OpenBLAS do without the instructions above a level of ISA.

    The libraries that XLA calls for products and convolutions, and since jaxlib 0.12 for reductions and softmax, cannot
    be told so.
    """
    if level not in ISA:
        return dict(given)
    xla, blas = ISA[level]
    flags = f"{given.get('XLA_FLAGS', '')} --xla_cpu_max_isa={xla}".strip()
    return {**given, "XLA_FLAGS": flags, "OPENBLAS_CORETYPE": blas}


def levels() -> list[str]:
    """What `as_on` takes on this machine."""
    from ...codegen.options import Target

    return ["host", *(level for level in ISA if level in Target.levels())]


def machine(level: str = "host") -> dict[str, Any]:
    """The processor and memory. `fingerprint` is equal for runs whose times may be compared. level: of the code."""
    found: dict[str, Any] = {
        "processor": _cpuinfo("model name") or platform.processor() or platform.machine(),
        "architecture": platform.machine(),
        "level": level,
        "cpus": len(cpus()),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
    }
    parts = [found["processor"], _cpuinfo("flags"), str(os.cpu_count()), str(found["memory_bytes"] >> 30)]
    parts += [level] * (level != "host")
    found["fingerprint"] = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return found


def cpus() -> list[int]:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that are installed."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def commit(*status: str) -> str:
    """The commit of the checkout, with '+' if files differ from it; empty outside of one.

    status: arguments of git status, which say which files; those that git tracks if there are none.
    """

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, timeout=30)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        name = git("rev-parse", "--short=12", "HEAD")
        return name + ("+" if name and git("status", "--porcelain", *(status or ["--untracked-files=no"])) else "")
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _cpuinfo(key: str) -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == key), "")
