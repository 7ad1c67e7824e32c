"""Other versions of jaxlib, each in a folder of the user's cache: installing one, and what XLA makes of a module."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ...formats.proto.proto import module_to_proto
from ...formats.whole_files import write_folder
from ...hlo.errors import InputError
from ...hlo.ir import Module
from .errors import XlaRefused, reason_of_death
from .unoptimize import unoptimised

SCRIPT = Path(__file__).with_name("version_script.py")
PYTHONS = ("3.11", "3.12", "3.13", "3.14", "3.10")
"""Versions of Python that are looked for on PATH, beside this one."""

INSTALL_SECONDS, COMPILE_SECONDS = 900, 300

FLAGS = (
    "--xla_dump_hlo_as_text",
    "--xla_dump_hlo_as_proto",
    "--xla_cpu_multi_thread_eigen=false",
    "--xla_cpu_experimental_ynn_fusion_type=",
    "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=0",
)
"""As in dump.py; a version leaves out what it does not know."""

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+){0,2}")
_UNKNOWN = re.compile(r"Unknown flags? in XLA_FLAGS: (.*)")


@dataclass(frozen=True)
class XlaVersion:
    """One jaxlib that is installed in a folder. python: the interpreter that it is for."""

    version: str
    folder: Path
    python: str


def provided(version: str, cache: Path) -> XlaVersion:
    """The version, installed if it is not yet. Raises InputError if it cannot be: in one line."""
    if not _VERSION.fullmatch(version):
        raise InputError(f"{version!r} is no version of jaxlib", remedy="write versions as 0.10.2, with commas between")
    reasons = []
    for python in _pythons():
        folder = cache / f"{version}-py{python.name}"
        if folder.is_dir():
            return XlaVersion(version, folder, python.path)
    for python in _pythons():
        try:
            write_folder(cache / f"{version}-py{python.name}", partial(_install, version, python.path))
        except InputError as error:
            reasons.append(f"Python {python.name}: {error.message}")
            continue
        return XlaVersion(version, cache / f"{version}-py{python.name}", python.path)
    raise InputError(
        f"jaxlib {version}: not installed: {'; '.join(reasons)}", remedy="put a Python that has it on PATH"
    )


@dataclass(frozen=True)
class _Python:
    name: str
    path: str


def _pythons() -> list[_Python]:
    """This Python, then those on PATH that start."""
    found = [_Python("{}.{}".format(*sys.version_info), sys.executable)]
    for name in PYTHONS:
        path = shutil.which(f"python{name}")
        if path is None or name == found[0].name:
            continue
        done = subprocess.run([path, "-c", "import pip"], capture_output=True, check=False)
        if done.returncode == 0:
            found.append(_Python(name, path))
    return found


def _install(version: str, python: str, folder: Path) -> None:
    """pip, into a folder of its own. A version with two numbers is the newest of its series."""
    exact = f"=={version}" if version.count(".") > 1 else f"=={version}.*"
    old = tuple(map(int, version.split(".")[:2])) < (0, 7)
    wanted = [f"jaxlib{exact}", f"jax{exact}", *(["numpy<2.3"] if old else [])]
    command = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:"]
    try:
        done = subprocess.run(
            [*command, "--target", str(folder), *wanted],
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"pip took more than {INSTALL_SECONDS} s") from None
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")]
        raise InputError((errors or ["pip failed"])[-1].removeprefix("ERROR: ")[:200])


def dump_with(version: XlaVersion, module: Module, folder: Path, flags: tuple[str, ...] = ()) -> float:
    """Let a version compile a module and fill a folder. Returns the seconds that it took. Raises XlaRefused."""
    folder.mkdir(parents=True, exist_ok=True)
    proto, seconds = folder / "testbed.module.pb", folder / "testbed.seconds"
    proto.write_bytes(unoptimised(module_to_proto(module)))
    wanted = [f"--xla_dump_to={folder}", *FLAGS, *flags]
    while True:
        environment = {"PYTHONPATH": str(version.folder), "XLA_FLAGS": " ".join(wanted), "JAX_PLATFORMS": "cpu"}
        try:
            done = subprocess.run(
                [version.python, str(SCRIPT), str(proto), str(seconds)],
                env={**environment, "TF_CPP_MIN_LOG_LEVEL": "2"},
                capture_output=True,
                text=True,
                timeout=COMPILE_SECONDS,
                check=False,
                preexec_fn=_on_one_processor,
            )
        except subprocess.TimeoutExpired:
            raise XlaRefused(f"jaxlib {version.version} gives no answer within {COMPILE_SECONDS} s") from None
        unknown = _UNKNOWN.search(done.stderr)
        left = [flag for flag in wanted if not unknown or flag not in unknown[1].split()]
        if unknown is None or len(left) == len(wanted):
            break
        wanted = left
    if done.returncode or not seconds.is_file():
        raise XlaRefused(f"jaxlib {version.version}: {reason_of_death(done.stderr) or 'no reason given'}")
    return float(seconds.read_text(encoding="ascii"))


def _on_one_processor() -> None:
    """XLA cuts kernels into parts for several."""
    import os

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
