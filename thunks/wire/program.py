"""A compiled program as a value, and its sections: what a file holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...hlo.devices import Devices
from ...hlo.errors import InputError, VerificationError
from ...hlo.records import dataclass, replace
from ...hlo.shapes import Shape
from ..image import Image, Kernel, KernelArgument
from ..kinds import Check
from ..verify import verify_image
from .container import (
    LEAST_READER,
    OF_CHECKS,
    OF_DEVICE_CODE,
    OF_DEVICES,
    OF_SPLIT,
    Container,
    Section,
    SectionKind,
    pack,
    unpack,
)
from .device import DeviceCode, device_of, device_values
from .memory import Values, buffer_values, constants_of, image_of
from .protobuf import decode, encode
from .shapes import shape_of, shape_values
from .thunks import sequence_of, split_of, split_values, thunk_values


@dataclass(frozen=True, slots=True)
class Needs:
    """What the machine code needs: LLVM's names of the processor's features, and symbols of libraries.

    producer, version: who wrote the file.
    """

    producer: str
    version: str
    triple: str
    features: tuple[str, ...]
    symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """label: what JAX calls it, params['w']."""

    name: str
    label: str
    shape: Shape


@dataclass(frozen=True, slots=True)
class TreeBytes:
    """JAX's trees of arguments and results, in its own serialised form; kept: as in hlo/trees.py."""

    arguments: bytes
    results: bytes | None
    kept: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """How callers know the program."""

    name: str
    parameters: tuple[Parameter, ...]
    result: Shape
    trees: TreeBytes | None = None


@dataclass(frozen=True, eq=False)
class ProgramFile:
    """A compiled program. objects: its machine code, object files. host: MLIR bytecode of the compiled host program,
    whose code is one of the objects; empty if there is none, or an older version wrote the file. device: of a program
    for another device than the host; the objects are then what it computes on the host.
    """

    needs: Needs
    entry: Entry
    image: Image
    objects: tuple[bytes | memoryview, ...]
    host: bytes = b""
    device: DeviceCode | None = None


def write_program(program: ProgramFile, key: bytes | None = None) -> Iterator[bytes | memoryview]:
    """The bytes of the file, in pieces. key: signs it. Raises VerificationError for what a reader would refuse."""
    verify_image(program.image)
    buffers, constants = buffer_values(program.image)
    messages = (
        (SectionKind.TARGET, "Target", _fields(program.needs)),
        (SectionKind.ENTRY, "Entry", _entry_values(program.entry)),
        (SectionKind.BUFFERS, "Buffers", buffers),
        (SectionKind.PROGRAM, "Program", _program_values(program.image)),
    )
    sections = [Section(kind, encode(name, values)) for kind, name, values in messages]
    sections += [Section(SectionKind.CODE, data) for data in program.objects]
    sections += [Section(SectionKind.HOST, program.host, required=False)] if program.host else []
    if program.device is not None:
        sections.append(Section(SectionKind.DEVICE, encode("Device", device_values(program.device))))
    return pack([*sections, Section(SectionKind.CONSTANTS, constants)], key, _least_reader(program))


def _least_reader(program: ProgramFile) -> int:
    if program.device is not None:
        return OF_DEVICE_CODE
    image = program.image
    if any(isinstance(thunk, Check) for thunk in image.thunks.walk()):
        return OF_CHECKS
    if image.depends_on_device:
        return OF_DEVICES
    return OF_SPLIT if any(kernel.split for kernel in image.kernels) else LEAST_READER


def read_program(data: bytes | memoryview, key: bytes | None = None) -> tuple[ProgramFile, Container]:
    """The program in a file's bytes, verified. Its constants and objects are views of `data`.

    key: refuse a file that is not signed with it. Raises InputError or VerificationError with the reason.
    """
    container = unpack(data, key)

    def message(kind: SectionKind, name: str) -> Values:
        return decode(name, bytes(_only(container, kind).data))

    target, entry = message(SectionKind.TARGET, "Target"), message(SectionKind.ENTRY, "Entry")
    program = message(SectionKind.PROGRAM, "Program")
    buffers = message(SectionKind.BUFFERS, "Buffers")
    constants = constants_of(buffers, memoryview(_only(container, SectionKind.CONSTANTS).data))
    if program["thunks"] is None:
        raise InputError("the program has no thunks")
    functions = tuple(_kernel_of(values) for values in program["functions"])
    image = image_of(buffers, constants, functions, sequence_of(program["thunks"]))
    image = replace(image, devices=Devices(program["replicas"] or 1, program["partitions"] or 1))
    verify_image(image)
    hosts = _all(container, SectionKind.HOST)
    if len(hosts) > 1:
        raise InputError(f"{len(hosts)} sections host, where one may be")
    code = tuple(_all(container, SectionKind.CODE))
    device = None
    if _all(container, SectionKind.DEVICE):
        device = device_of(message(SectionKind.DEVICE, "Device"))
    found = ProgramFile(_needs_of(target), _entry_of(entry), image, code, bytes(hosts[0]) if hosts else b"", device)
    _check_entry(found)
    return found, container


def _only(container: Container, kind: SectionKind) -> Section:
    found = [s for s in container.sections if s.kind == kind]
    if len(found) != 1:
        raise InputError(f"{len(found)} sections {kind.name.lower()}, where one must be")
    return found[0]


def _all(container: Container, kind: SectionKind) -> list[bytes | memoryview]:
    return [s.data for s in container.sections if s.kind == kind]


def _check_entry(program: ProgramFile) -> None:
    """What callers see fits what the program takes."""
    image, border = program.image, program.image.border
    callers = {
        "parameters": ([p.shape for p in program.entry.parameters], image.parameters, border and len(border.shapes)),
        "results": ([program.entry.result], image.results, border and border.outputs),
    }
    for what, (outer, inner, kept) in callers.items():
        seen = [leaf for shape in outer for _, leaf in shape.leaves() if leaf.is_array]
        held = inner[: kept if isinstance(kept, int) else None]
        if [(s.dtype, s.dims) for s in seen] != [(s.dtype, s.dims) for s in held]:
            raise VerificationError(f"the {what} that callers see are not those of the program")


# -- messages ----------------------------------------------------------------------------------------------------------
def _fields(value: Any) -> Values:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def _needs_of(values: Values) -> Needs:
    names = (tuple(values[name]) for name in ("features", "symbols"))
    return Needs(values["producer"], values["version"], values["triple"], *names)


def _entry_values(entry: Entry) -> Values:
    parameters = [{**_fields(p), "shape": shape_values(p.shape)} for p in entry.parameters]
    trees = None if entry.trees is None else _fields(entry.trees)
    return {"name": entry.name, "parameters": parameters, "result": shape_values(entry.result), "trees": trees}


def _entry_of(values: Values) -> Entry:
    parameters = tuple(Parameter(p["name"], p["label"], shape_of(p["shape"])) for p in values["parameters"])
    trees = values["trees"]
    if trees is not None:
        trees = TreeBytes(trees["arguments"], trees["results"], tuple(trees["kept"]))
    return Entry(values["name"], parameters, shape_of(values["result"]), trees)


def _program_values(image: Image) -> Values:
    functions = [
        {**_fields(k), "arguments": [_fields(a) for a in k.arguments], "split": split_values(k.split)}
        for k in image.kernels
    ]
    devices = {name: count if count > 1 else 0 for name, count in _fields(image.devices).items()}
    return {"functions": functions, "thunks": thunk_values(image.thunks), **devices}


def _kernel_of(values: Values) -> Kernel:
    arguments = (KernelArgument(a["size"], a["alignment"], a["written"]) for a in values["arguments"])
    try:
        split = None if values["split"] is None else split_of(values["split"])
    except ValueError as error:
        raise InputError(f"kernel {values['symbol']}: {error}") from None
    return Kernel(values["symbol"], values["emitter"], tuple(arguments), split)
