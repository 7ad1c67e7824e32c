"""The kernels of a module's dump, by symbol: which emitter made each, the files of its code, and what it takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..codegen.elf import ElfObject, read_object
from ..codegen.errors import CodegenError
from ..hlo.errors import InputError
from ..hlo.records import dataclass, field
from .folder import DumpFiles
from .processor import ELSEWHERE, refused_object

REMAKE = "make the dump again into an empty folder"

_NAME = r'(?:"(?P<quoted>[^"\n]+)"|(?P<plain>[-\w.$]+))'
_KERNEL = re.compile(rf"^define (?:[\w() ]+ )?ptr @{_NAME}\(ptr (?:[\w() ]+ )?%\w+\)[^\n]*\{{$", re.MULTILINE)
_ARGUMENT = re.compile(
    r"^ *%(?P<place>[-\w.$]+) = getelementptr (?:[a-z]+ )*%XLA_CPU_KernelArg, ptr %[-\w.$]+, i32 (?P<n>\d+), i32 0$",
    re.MULTILINE,
)
_LOAD = re.compile(
    r"^ *%[-\w.$]+ = load ptr, ptr %(?P<place>[-\w.$]+),[^\n]*!dereferenceable !(?P<node>\d+)", re.MULTILINE
)
_NODE = re.compile(r"^!(\d+) = !\{i64 (\d+)\}$", re.MULTILINE)
_EMITTER = re.compile(r'!"xla_cpu_emitter__(?P<emitter>\w+?)__hlo_opcode__(?P<opcode>[\w-]+)"')
_EMITTER_NAMES = re.compile(r"(?:_kernel_emitter|_fusion_emitter)$")


@dataclass(frozen=True, eq=False)
class XlaKernel:
    """One function of XLA's with a call frame. part: of the module's files that holds it. sizes: number of an argument
    → its bytes, as far as the IR says. ir_text: of the function alone; '' if no IR was dumped.
    """

    symbol: str
    part: str
    emitter: str
    sizes: Mapping[int, int]
    ir: Path | None
    optimised: Path | None
    code: Path | None
    ir_text: str = field(repr=False, default="")


@dataclass(frozen=True, eq=False)
class KernelFiles:
    """All kernels of a module's dump. defines: symbol of any kind → the object that defines it. made_here: by jaxlib on
    this machine, so that its processor has what the objects need.
    """

    files: DumpFiles
    kernels: Mapping[str, XlaKernel]
    defines: Mapping[str, Path]
    damaged: Mapping[Path, str]
    made_here: bool = False

    def objects_for(self, kernel: XlaKernel) -> list[bytes]:
        """The object that defines a kernel, and those that define what it needs.

        Raises InputError for one that is missing or damaged, or that this machine cannot run.
        """
        if kernel.code is None:
            raise InputError(f"{self.files.folder}: no object defines {kernel.symbol}", remedy=REMAKE)
        waiting, found = [kernel.code], dict[Path, bytes]()
        while waiting:
            path = waiting.pop()
            if path in found:
                continue
            found[path] = data = read_file(path)
            needed = _read(path, data).global_symbols.undefined
            if not self.made_here and (why := refused_object(data)):
                raise InputError(f"{path}: {why}", remedy=ELSEWHERE)
            waiting += [self.defines[name] for name in needed if name in self.defines]
        return list(found.values())


def read_kernels(files: DumpFiles, made_here: bool = False) -> KernelFiles:
    """Every kernel of the files, from the IR and from the objects. Raises InputError for a file that is no text."""
    irs = {part: read_text(path) for part, path in files.parts["ir"].items()}
    defines: dict[str, Path] = {}
    damaged: dict[Path, str] = {}
    for path in files.parts["code"].values():
        try:
            defines |= dict.fromkeys(_read(path, read_file(path)).global_symbols.defined, path)
        except InputError as error:
            damaged[path] = error.message
    kernels = {kernel.symbol: kernel for part, text in irs.items() for kernel in _in_text(files, part, text, defines)}
    for part, path in files.parts["code"].items():
        if part in irs:
            continue  # what is no kernel in the IR is none: comparators of sorts
        for symbol in (name for name, at in defines.items() if at == path and name not in kernels):
            kernels[symbol] = XlaKernel(symbol, part, "", {}, None, None, path)
    return KernelFiles(files, kernels, defines, damaged, made_here)


def _in_text(files: DumpFiles, part: str, text: str, defines: Mapping[str, Path]) -> Iterator[XlaKernel]:
    nodes = {number: int(size) for number, size in _NODE.findall(text)}
    named = _EMITTER.search(text)
    emitter = _EMITTER_NAMES.sub("", named["emitter"]) if named else _by_part(part)
    for found in _KERNEL.finditer(text):
        symbol = found["quoted"] or found["plain"]
        body = text[found.start() : text.find("\n}", found.end()) + 2]
        code = defines.get(symbol) or files.parts["code"].get(part)
        yield XlaKernel(
            symbol,
            part,
            emitter,
            _sizes(body, nodes),
            files.parts["ir"][part],
            files.parts["optimised"].get(part),
            code,
            body,
        )


def _by_part(part: str) -> str:
    """The emitter of a kernel whose metadata names none, as before jaxlib 0.6: by the name of its module."""
    return "elemental" if part.endswith("_elemental_kernel_module") else "ir_emitter2" if part[:5] == "part_" else ""


def _sizes(body: str, nodes: Mapping[str, int]) -> dict[int, int]:
    """Number of an argument → bytes, of the arguments that a function loads from its call frame."""
    places = {found["place"]: int(found["n"]) for found in _ARGUMENT.finditer(body)}
    sizes = {places[found["place"]]: nodes.get(found["node"], -1) for found in _LOAD.finditer(body)
             if found["place"] in places}  # fmt: skip
    return {number: sizes.get(number, -1) for number in sorted(places.values())}


def _read(path: Path, data: bytes) -> ElfObject:
    try:
        return read_object(data)
    except CodegenError as error:
        raise InputError(f"{path}: {error.message}", remedy=REMAKE) from None


def read_file(path: Path) -> bytes:
    """The content of a file of a dump. Raises InputError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", remedy=REMAKE) from None


def read_text(path: Path) -> str:
    """The text in a file of a dump. Raises InputError."""
    try:
        return read_file(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text at byte {error.start}", remedy=REMAKE) from None
