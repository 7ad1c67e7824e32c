"""Other versions of jaxlib, each in a folder of the user's cache: installing one, and what XLA makes of a module."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ...formats.proto.proto import module_to_proto
from ...formats.text.parser import parse_module
from ...formats.whole_files import write_folder
from ...hlo.errors import InputError
from ...hlo.ir import Module
from .errors import XlaRefused, reason_of_death
from .unoptimize import unoptimised

SCRIPT = Path(__file__).with_name("version_script.py")
PYTHONS = ("3.11", "3.12", "3.13", "3.14", "3.10")
"""Versions of Python that are looked for on PATH and among pyenv's, besides this one."""

INSTALL_SECONDS, COMPILE_SECONDS = 900, 300

DUMPS = ("--xla_dump_hlo_as_text", "--xla_dump_hlo_as_proto", "--xla_dump_emitter_re=llvm")
"""What is written. From 0.12 on, LLVM IR, whose metadata names the emitter, is written only where this matches."""

FLAGS = (
    "--xla_cpu_multi_thread_eigen=false",
    "--xla_cpu_experimental_ynn_fusion_type=",
    "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=0",
)
"""As in dump.py; a version leaves out what it does not know."""

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+){0,2}")
_UNKNOWN = re.compile(r"Unknown flags? in XLA_FLAGS: (.*)")

_CHOICE = "--xla_cpu_use_fusion_emitters="
EMITTERS = {"default": (), "old": (f"{_CHOICE}false",), "new": (f"{_CHOICE}true",)}
"""Flags for a generation of emitters."""

NEW_ALONE = (0, 11)
"""A version that does not know the choice has the new emitters alone, or before this one the old ones."""


@dataclass(frozen=True)
class XlaVersion:
    """One jaxlib that is installed in a folder. python: the interpreter that it is for."""

    version: str
    folder: Path
    python: str


def provided(version: str, cache: Path, pyenv: Path | None = None) -> XlaVersion:
    """The version, installed if it is not yet. pyenv: the folder of pyenv, whose Pythons are tried, too.

    Raises InputError if it cannot be: in one line.
    """
    if not _VERSION.fullmatch(version):
        raise InputError(f"{version!r} is no version of jaxlib", remedy="write versions as 0.10.2, with commas between")
    reasons = []
    pythons = _pythons(pyenv)
    for python in pythons:
        folder = cache / f"{version}-py{python.name}"
        if folder.is_dir():
            return XlaVersion(version, folder, python.path)
    for python in pythons:
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


def _pythons(pyenv: Path | None) -> list[_Python]:
    """This Python, then one of each other version that starts and has pip."""
    found = [_Python("{}.{}".format(*sys.version_info), sys.executable)]
    for name in PYTHONS:
        if name != found[0].name and (path := next(filter(_has_pip, _places(name, pyenv)), None)):
            found.append(_Python(name, path))
    return found


def _places(name: str, pyenv: Path | None) -> Iterator[str]:
    """Where a Python of this version may be. On PATH, pyenv's shims stand for versions that are not chosen, too."""
    on_path = shutil.which(f"python{name}")
    if on_path is not None:
        yield on_path
    if pyenv is not None:
        yield from (str(path) for path in sorted(pyenv.glob(f"versions/{name}.*/bin/python3")))


def _has_pip(python: str) -> bool:
    return subprocess.run([python, "-c", "import pip"], capture_output=True, check=False).returncode == 0


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


def _install(version: str, python: str, folder: Path) -> None:
    """pip, into a folder of its own. A version with two numbers is the newest of its series."""
    exact = f"=={version}" if version.count(".") > 1 else f"=={version}.*"
    old = _numbers(version) < (0, 7)
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


@dataclass(frozen=True)
class Ran:
    """What a version made of a whole program. seconds: of the fastest run. results: its leaves. compile_bytes: by which
    compiling raised the peak of the process's memory.
    """

    compile_seconds: float
    seconds: float
    results: tuple[np.ndarray, ...]
    compile_bytes: int = 0


def dump_with(version: XlaVersion, module: Module, folder: Path, flags: tuple[str, ...] = ()) -> None:
    """Let a version compile a module and fill a folder. Raises XlaRefused."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="testbed-version-") as work:
        _compile(version, module, Path(work), 0, (f"--xla_dump_to={folder}", *DUMPS, *FLAGS, *flags))


def run_with(
    version: XlaVersion,
    module: Module,
    inputs: Sequence[np.ndarray],
    runs: int,
    flags: tuple[str, ...] = FLAGS,
    limit: float = COMPILE_SECONDS,
) -> Ran:
    """Let a version compile a module, without dumps, and run it. limit: seconds for both. Raises XlaRefused, InputError
    for a choice of EMITTERS that it does not have.
    """
    with TemporaryDirectory(prefix="testbed-version-") as work:
        folder = Path(work)
        for number, x in enumerate(inputs):
            (folder / f"in{number}.bin").write_bytes(np.ascontiguousarray(x).tobytes())
        (folder / "arrays.json").write_text(json.dumps([[x.dtype.name, x.shape] for x in inputs]), encoding="ascii")
        compile_seconds, seconds, peak = _compile(version, module, folder, runs, flags, limit)
        described = json.loads((folder / "results.json").read_text(encoding="ascii"))
        leaves = [leaf for _, leaf in module.entry.root.shape.leaves() if leaf.is_array]
        files = [folder / f"out{number}.bin" for number in range(len(described))]
        results = tuple(
            np.frombuffer(file.read_bytes(), leaf.dtype.numpy).reshape(leaf.dims)
            for file, leaf in zip(files, leaves, strict=True)
        )
    return Ran(compile_seconds, seconds, results, peak)


def require_emitters(version: XlaVersion, emitters: str) -> None:
    """Raise InputError if a version lacks a generation of emitters, a key of EMITTERS."""
    if EMITTERS[emitters]:
        scalar = parse_module("HloModule m\nENTRY e { ROOT r = f32[] constant(1) }")
        run_with(version, scalar, [], 1, EMITTERS[emitters])


def _compile(
    version: XlaVersion,
    module: Module,
    folder: Path,
    runs: int,
    flags: tuple[str, ...],
    limit: float = COMPILE_SECONDS,
) -> tuple[Any, ...]:
    """(Seconds of the compilation, of the fastest run, bytes of compiling) by a child that works in a folder."""
    (folder / "module.pb").write_bytes(unoptimised(module_to_proto(module)))
    while True:
        environment = {"PYTHONPATH": str(version.folder), "XLA_FLAGS": " ".join(flags), "JAX_PLATFORMS": "cpu"}
        try:
            done = subprocess.run(
                [version.python, str(SCRIPT), str(folder), str(runs)],
                env={**environment, "TF_CPP_MIN_LOG_LEVEL": "2"},
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
                preexec_fn=_on_one_processor,
            )
        except subprocess.TimeoutExpired:
            raise XlaRefused(f"jaxlib {version.version} gives no answer within {limit:g} s") from None
        unknown = _UNKNOWN.search(done.stderr)
        left = tuple(flag for flag in flags if not unknown or flag not in unknown[1].split())
        if unknown is None or len(left) == len(flags):
            break
        has = "new" if _numbers(version.version) >= NEW_ALONE else "old"
        if any(f.startswith(_CHOICE) and f not in (*left, *EMITTERS[has]) for f in flags):
            raise InputError(
                f"jaxlib {version.version} has the {has} emitters alone", remedy="compare it with --emitters default"
            )
        flags = left
    seconds = folder / "seconds.json"
    if done.returncode or not seconds.is_file():
        ended = signal.Signals(-done.returncode).name if done.returncode < 0 else ""
        why = ": ".join(filter(None, (ended, reason_of_death(done.stderr)))) or "no reason given"
        raise XlaRefused(f"jaxlib {version.version}: {why}")
    return tuple(json.loads(seconds.read_text(encoding="ascii")))


def _on_one_processor() -> None:
    """XLA cuts kernels into parts for several."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
