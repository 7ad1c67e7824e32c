"""C99 text → an object file, by whatever C compiler this machine has: gcc, clang or tcc, or the one that is set."""

from __future__ import annotations

import functools
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..hlo.records import dataclass
from .cache import ObjectCache, cache_key
from .errors import CodegenError
from .options import EmitOptions

if TYPE_CHECKING:
    from .optimize import CompiledObject

NAMES = ("gcc", "clang", "tcc", "cc")
"""Compilers that are looked for, in this order, unless `set_c_compiler` names one."""

FLAGS = ("-std=c99", "-O2", "-fno-math-errno", "-fno-strict-aliasing", "-fPIC", "-w")
"""Of gcc and clang."""

FEATURES = (
    *("avx", "avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl"),
    *("bmi", "bmi2", "f16c", "fma", "lzcnt", "popcnt"),
)
"""LLVM's names of features of x86-64 that gcc and clang have an option for."""

SMALL_FLAGS = ("-std=c99", "-fPIC", "-w")
"""Of tcc."""

SECONDS = 600


@dataclass(frozen=True, slots=True)
class CCompiler:
    """path: of the program. version: its own words, a part of cache keys. arguments: that always come first."""

    path: str
    version: str
    arguments: tuple[str, ...] = ()

    def flags(self, options: EmitOptions) -> tuple[str, ...]:
        """For a target. As in LLVM, sums and products may contract, unless options.strict."""
        if "tcc" in Path(self.path).name:
            return (*self.arguments, *SMALL_FLAGS)
        target = options.target
        present = set(target.features.split(",")) if target.architecture == "x86_64" else set[str]()
        features = (f"-m{name}" for name in FEATURES if f"+{name}" in present)
        return (*self.arguments, *FLAGS, f"-ffp-contract={'off' if options.strict else 'fast'}", *features)

    def __str__(self) -> str:
        return f"{Path(self.path).name} ({self.version})"


_chosen: str | None = None


def set_c_compiler(name: str | None) -> None:
    """From now on, `c_compiler()` is this one in this process, maybe with arguments (`gcc -m32`); None: the first that
    there is. The command line sets it to the environment's CC.
    """
    global _chosen
    _chosen = name


def chosen_c_compiler() -> str | None:
    """The latest argument of `set_c_compiler`."""
    return _chosen


def c_compiler() -> CCompiler:
    """The compiler. Raises CodegenError if there is none."""
    words = shlex.split(_chosen or "")
    names = words[:1] or NAMES
    where = next((path for path in map(shutil.which, names) if path is not None), None)
    if where is None:
        what = f"no C compiler {_chosen!r}" if _chosen else f"no C compiler: none of {', '.join(NAMES)}"
        raise CodegenError(f"there is {what}", remedy="install gcc, clang or tcc, or set CC to a C99 compiler")
    return CCompiler(where, _version(where), tuple(words[1:]))


@functools.lru_cache(8)
def _version(where: str) -> str:
    """The first line of what a compiler says of itself. Raises CodegenError if it cannot be run."""
    asked = "-v" if Path(where).name == "tcc" else "--version"
    try:
        text = subprocess.run([where, asked], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        why = " ".join(str(error).split())
        raise CodegenError(f"the C compiler {where} cannot be run: {why}", remedy="set CC to another one") from None
    return " ".join(text.partition("\n")[0].split())


def build_c_object(text: str, options: EmitOptions, cache: ObjectCache | None) -> CompiledObject:
    """Compile one C file. Raises CodegenError with the compiler's first complaint."""
    from .optimize import CompiledObject

    compiler = c_compiler()
    flags = compiler.flags(options)
    key = cache_key(text, compiler.path, compiler.version, *flags)
    if cache is not None and (found := cache.read(key)) is not None:
        return CompiledObject(found, 0.0, 0.0, cached=True)
    start = time.perf_counter()
    data = run_compiler(compiler, text, (*flags, "-c"))
    if cache is not None:
        cache.write(key, data)
    return CompiledObject(data, 0.0, time.perf_counter() - start, cached=False)


def c_assembly(text: str, options: EmitOptions) -> str:
    """The assembly of one C file."""
    compiler = c_compiler()
    return run_compiler(compiler, text, (*compiler.flags(options), "-S")).decode()


def run_compiler(compiler: CCompiler, text: str, flags: Sequence[str]) -> bytes:
    """What the compiler makes of a file. flags: with `-c` for an object, `-S` for assembly."""
    with tempfile.TemporaryDirectory(prefix="testbed-") as folder:
        source, made = Path(folder, "program.c"), Path(folder, "program.out")
        source.write_text(text)
        command = [compiler.path, *flags, "program.c", "-o", made.name]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            raise CodegenError(f"{compiler.path} cannot be run: {' '.join(str(error).split())}") from None
        if done.returncode or not made.exists():
            complaint = re.search(r"^.*\b(?:error|fatal)\b.*$", done.stderr, re.MULTILINE)
            words = complaint.group() if complaint else done.stderr.strip().partition("\n")[0]
            what = f"{compiler}: {words or f'exit status {done.returncode}'}"
            raise CodegenError(what, remedy="set CC to another C compiler")
        return made.read_bytes()
