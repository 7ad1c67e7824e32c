"""A program as JAX sends it → a compiled program: StableHLO's portable bytecode and compile options → HLO → code."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, TypeVar

from ..backends.base import CompileOptions
from ..backends.host.executable import HostExecutable
from ..formats.proto.proto import module_from_proto
from ..hlo.dtypes import DType
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opcodes import Op
from ..hlo.records import dataclass, replace
from ..hlo.shapes import Shape
from . import api, repro
from .client import DEVICES_VARIABLE, client
from .errors import PjrtError
from .settings import settings

STACK_BYTES = 256 << 20
"""Of a thread that compiles. The framework compiles on threads of 2 MiB; pages that are not touched cost nothing."""

PYTHON_TARGET = "testbed_python_callback"
"""The custom-call target of pure_callback and its like."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Slot:
    """A parameter or result as the framework sees it. leaf: its number among arrays, or None for a token."""

    dtype: DType
    dims: tuple[int, ...]
    leaf: int | None

    @property
    def bytes(self) -> int:
        size = self.dtype.bytes if self.dtype.is_array else 0
        for d in self.dims:
            size *= d
        return size


@dataclass(frozen=True, eq=False, slots=True)
class Compiled:
    """proto: the module as it came, an HloModuleProto. donated: numbers of parameters that callers give up.

    options: the serialised compile options. device: the number of the one that runs it.
    """

    name: str
    executable: HostExecutable
    parameters: tuple[Slot, ...]
    results: tuple[Slot, ...]
    donated: frozenset[int]
    proto: bytes
    options: bytes
    device: int

    @property
    def calls_python(self) -> bool:
        """Whether it calls functions of this process by their numbers."""
        return PYTHON_TARGET.encode() in self.proto


@dataclass(frozen=True, slots=True)
class Request:
    """What compile options ask for."""

    device: int
    overrides: tuple[tuple[str, Any], ...]


def on_large_stack(work: Callable[[], T]) -> T:
    """What `work` returns or raises, on a thread with room for deep recursion."""
    found: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            failed.append(error.with_traceback(None))

    with _STARTING:
        before = threading.stack_size(STACK_BYTES)
        try:
            thread = threading.Thread(target=run, name="pjrt-compile", daemon=True)
            thread.start()
        finally:
            threading.stack_size(before)
    thread.join()
    if failed:
        raise failed.pop()
    return found.pop()


_STARTING = threading.Lock()


def requested(options: bytes) -> Request:
    """Raises PjrtError for what this plugin does not have: several devices, options of XLA's."""
    from jax._src.lib import xla_client

    given = xla_client.CompileOptions.ParseFromString(options)
    count = max(1, given.num_replicas) * max(1, given.num_partitions)
    build = given.executable_build_options
    count = max(count, build.num_replicas * build.num_partitions)
    if count > 1:
        what = f"a program for {count} devices: {DEVICES_VARIABLE} simulates devices of one program each"
        raise PjrtError(api.ErrorCode.UNIMPLEMENTED, what)
    assignment = given.device_assignment or build.device_assignment
    device = int(assignment.flatten()[0]) if hasattr(assignment, "flatten") else _only_device(assignment)
    overrides = tuple(given.env_option_overrides)
    if overrides:
        name = overrides[0][0]
        raise PjrtError(api.ErrorCode.INVALID_ARGUMENT, f"No such compile option: '{name}'")
    return Request(device, overrides)


def _only_device(assignment: Any) -> int:
    """The device of an assignment of one."""
    if assignment is None:
        return 0
    data = assignment.serialize()  # DeviceAssignmentProto: counts, then lists of device numbers
    return _device_in(data)


def _device_in(data: bytes) -> int:
    found, at = 0, 0
    while at < len(data):
        tag = data[at]
        if tag & 7 == 2:
            size = data[at + 1]
            inner = data[at + 2 : at + 2 + size]
            if tag >> 3 == 3 and len(inner) >= 2:
                found = _varint(inner, 2 if inner[0] & 7 == 2 else 1)
            at += 2 + size
        else:
            at += 2
    return found


def _varint(data: bytes, at: int) -> int:
    value = shift = 0
    while at < len(data):
        value |= (data[at] & 127) << shift
        if data[at] < 128:
            break
        at, shift = at + 1, shift + 7
    return value


def hlo_proto(code: bytes, form: str) -> bytes:
    """The HloModuleProto of a program. form: mlir or hlo, as PJRT_Program.format says. Raises PjrtError."""
    if form == "hlo":
        return code
    if form != "mlir":
        raise PjrtError(api.ErrorCode.INVALID_ARGUMENT, f"a program in the format {form!r}; mlir and hlo are known")
    from jaxlib._jax import mlir

    try:
        computation = mlir.mlir_module_to_xla_computation(code, use_tuple_args=False, return_tuple=False)
    except Exception as error:
        raise PjrtError(api.ErrorCode.INVALID_ARGUMENT, f"StableHLO that XLA does not convert: {error}") from None
    return bytes(computation.as_serialized_hlo_module_proto())


def compile_program(code: bytes, form: str, options: bytes) -> Compiled:
    """Compile what the framework sends. Raises PjrtError, or an error of the compiler."""
    request = requested(options)
    proto = hlo_proto(code, form)
    return on_large_stack(lambda: _compiled(proto, options, request))


def _compiled(proto: bytes, options: bytes, request: Request) -> Compiled:
    from ..migration.compile import compile_module

    module = module_from_proto(proto)
    chosen = settings()
    noted = chosen.profile and not chosen.flags.has_shadows
    try:
        executable = compile_module(with_row_major_results(module), chosen.flags, CompileOptions(profile=noted))
    except Exception as error:
        if chosen.repro is not None:
            repro.keep_failure(chosen.repro, module, None, error)
        raise
    return Compiled(
        module.name,
        executable,
        *slots_of(module),
        donated_of(module),
        proto,
        options,
        request.device if request.device < len(client().devices) else 0,
    )


def donated_of(module: Module) -> frozenset[int]:
    """Numbers of the parameters that callers give up."""
    aliases = module.attributes.get("input_output_alias", ())
    donors = module.attributes.get("buffer_donor", ())
    return frozenset([a.parameter for a in aliases] + [d.parameter for d in donors])


def slots_of(module: Module) -> tuple[tuple[Slot, ...], tuple[Slot, ...]]:
    """Parameters and results. Raises PjrtError for a parameter that is a tuple."""
    parameters = [p.shape for p in module.entry.parameters]
    return _slots(parameters), _slots([shape for _, shape in module.result_shape.leaves()])


def _slots(shapes: list[Shape]) -> tuple[Slot, ...]:
    found: list[Slot] = []
    arrays = 0
    for shape in shapes:
        if shape.is_tuple:
            raise PjrtError(api.ErrorCode.UNIMPLEMENTED, "parameters that are tuples")
        found.append(Slot(shape.dtype, shape.dims, arrays if shape.is_array else None))
        arrays += shape.is_array
    return tuple(found)


def with_row_major_results(module: Module) -> Module:
    """The module with copies behind results that would lie otherwise, since buffers are row-major."""
    entry = module.entry
    if all(shape.is_row_major for _, shape in module.result_shape.leaves()):
        return module
    made = list(entry.instructions)
    names = {i.name for i in made}

    def row_major(value: Instruction) -> Instruction:
        if not value.shape.is_array or value.shape.is_row_major:
            return value
        shape = value.shape.with_layout(tuple(reversed(range(len(value.shape.dims)))))
        copied = Instruction(Op.COPY, _unused(f"{value.name}.row_major", names), shape, (value,))
        made.append(copied)
        return copied

    root = entry.root
    if root.shape.is_array:
        new_root = row_major(root)
    else:
        parts = root.operands if root.opcode is Op.TUPLE else _elements(root, made, names)
        values = tuple(row_major(part) for part in parts)
        shape = replace(root.shape, elements=tuple(v.shape for v in values))
        new_root = Instruction(Op.TUPLE, _unused("results", names), shape, values)
        made.append(new_root)
    attributes = {k: v for k, v in module.attributes.items() if k != "entry_computation_layout"}
    new_entry = Computation(entry.name, tuple(made), new_root, entry.attributes)
    computations = tuple(new_entry if c is entry else c for c in module.computations)
    return replace(module, computations=computations, entry=new_entry, attributes=MappingProxyType(attributes))


def _elements(root: Instruction, made: list[Instruction], names: set[str]) -> list[Instruction]:
    found = []
    for n, shape in enumerate(root.shape.elements):
        name = _unused(f"{root.name}.{n}", names)
        found.append(Instruction(Op.GET_TUPLE_ELEMENT, name, shape, (root,), MappingProxyType({"index": n})))
    made += found
    return found


def _unused(name: str, names: set[str]) -> str:
    while name in names:
        name += "_"
    names.add(name)
    return name
