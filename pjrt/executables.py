"""Functions of executables: compile, describe, run, serialise."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backends.host.addresses import address_of
from ..planning.allocation import AllocationKind
from . import api
from .client import MEMORY_KINDS, Pointers, Text
from .compile import compile_program
from .loaded import Loaded, call_execute
from .native import bytes_at, text_record
from .serial import from_bytes, to_bytes

if TYPE_CHECKING:
    from .native import Native
    from .report import Report


class Executables:
    """The loaded programs of the process by handle, and the functions on them."""

    def __init__(self, native: Callable[[], Native]):
        self._native = native
        self._held: dict[int, Loaded] = {}
        self.report: Report | None = None

    @property
    def native(self) -> Native:
        return self._native()

    def _load(self, loaded: Loaded) -> int:
        self._held[loaded.handle] = loaded
        return loaded.handle

    def held(self) -> list[Loaded]:
        """All programs that the framework holds."""
        return list(self._held.values())

    def of(self, args: Any) -> Loaded:
        return self._held[args.executable]

    # -- life ----------------------------------------------------------------------------------------------------------
    def compile(self, args: Any) -> None:
        program = api.structure("PJRT_Program").from_address(args.program)
        code, form = bytes_at(program.code, program.code_size), bytes_at(program.format, program.format_size).decode()
        options = bytes_at(args.compile_options, args.compile_options_size)
        args.executable = self._load(Loaded(compile_program(code, form, options), self.native))

    def load(self, args: Any) -> None:
        """Executable_DeserializeAndLoad."""
        data = bytes_at(args.serialized_executable, args.serialized_executable_size)
        options = bytes_at(args.overridden_serialized_compile_options, args.overridden_serialized_compile_options_size)
        args.loaded_executable = self._load(Loaded(from_bytes(data, options), self.native))

    def share(self, args: Any) -> None:
        """LoadedExecutable_GetExecutable."""
        loaded = self._held[args.loaded_executable]
        loaded.references += 1
        args.executable = loaded.handle

    def destroy(self, args: Any) -> None:
        loaded = self._held.get(args.executable)
        if loaded is not None:
            loaded.references -= 1
            if not loaded.references:
                del self._held[loaded.handle]
                if self.report is not None:
                    self.report.take(loaded.compiled)

    def delete(self, args: Any) -> None:
        self.of(args).deleted = True
        self.of(args).words[1] = 0

    def execute(self, args: Any) -> int | None:
        """LoadedExecutable_Execute for what its native form leaves; its first runs, too, which make a context."""
        loaded = self.of(args)
        if not loaded.deleted and args.num_devices == 1 and loaded.add_context():
            return self.native.execute(ctypes.addressof(args))
        call_execute(self.native, args, loaded)
        return None

    # -- descriptions --------------------------------------------------------------------------------------------------
    def devices(self, args: Any) -> None:
        devices = self._kept(args, "devices", lambda loaded: Pointers([loaded.device.handle]))
        args.addressable_devices, args.num_addressable_devices = devices.address, 1

    def logical_ids(self, args: Any) -> None:
        ids = self._kept(args, "ids", lambda loaded: np.zeros(2, np.int32))
        args.addressable_device_logical_ids, args.num_addressable_device_logical_ids = address_of(ids), 1

    def assignment(self, args: Any) -> None:
        """DeviceAssignmentProto with one replica and one computation."""

        def made(loaded: Loaded) -> tuple[int, int, bytes]:
            number = loaded.device.number
            varint = bytes([number]) if number < 128 else bytes([number & 127 | 128, number >> 7])
            inner = b"\x0a" + bytes([len(varint)]) + varint
            return text_record(b"\x08\x01\x10\x01\x1a" + bytes([len(inner)]) + inner)

        address, size, _ = self._kept(args, "assignment", made)
        args.serialized_bytes, args.serialized_bytes_size = address, size
        args.serialized_device_assignment = address
        args.serialized_device_assignment_deleter = self.native.nothing

    def name(self, args: Any) -> None:
        text = self._kept(args, "name", lambda loaded: Text(loaded.compiled.name))
        args.executable_name, args.executable_name_size = text.address, text.size

    def fingerprint(self, args: Any) -> None:
        text = self._kept(args, "fingerprint", lambda loaded: Text(hashlib.sha256(loaded.compiled.proto).hexdigest()))
        args.executable_fingerprint, args.executable_fingerprint_size = text.address, text.size

    def result_types(self, args: Any) -> None:
        types = self._kept(
            args, "types", lambda loaded: np.array([api.TYPE_OF[s.dtype] for s in loaded.compiled.results], np.int32)
        )
        args.output_types, args.num_output_types = address_of(types), len(types)

    def result_dims(self, args: Any) -> None:
        def made(loaded: Loaded) -> tuple[np.ndarray, np.ndarray]:
            dims = [d for s in loaded.compiled.results for d in s.dims]
            return np.array(dims, np.int64), np.array([len(s.dims) for s in loaded.compiled.results], np.uint64)

        dims, sizes = self._kept(args, "dims", made)
        args.num_outputs, args.dims, args.dim_sizes = len(sizes), address_of(dims), address_of(sizes)

    def _kinds(self, count_field: str, count: Callable[[Loaded], int]) -> Callable[[Any], None]:
        def answer(args: Any) -> None:
            def made(loaded: Loaded) -> tuple[Pointers, Pointers, Text]:
                text, number = Text(MEMORY_KINDS[0]), count(loaded)
                return Pointers([text.address] * number), Pointers([text.size] * number), text

            kinds, sizes, _ = self._kept(args, count_field, made)
            setattr(args, count_field, kinds.count)
            args.memory_kinds, args.memory_kind_sizes = kinds.address, sizes.address

        return answer

    def _layouts(self, count_field: str, slots: Callable[[Loaded], Any]) -> Callable[[Any], None]:
        """Functions of the Layouts extension. The number is an input, too, and must be as it is here."""

        def answer(args: Any) -> None:
            def made(loaded: Loaded) -> Pointers:
                return Pointers([self.native.layout(len(slot.dims)) for slot in slots(loaded)])

            layouts = self._kept(args, f"layouts {count_field}", made)
            setattr(args, count_field, layouts.count)
            args.layouts = layouts.address

        return answer

    def default_layout(self, args: Any) -> None:
        args.layout = self.native.layout(args.num_dims)

    def cost(self, args: Any) -> None:
        def made(loaded: Loaded) -> Any:
            from ..formats.proto.proto import module_from_proto
            from ..hlo.analysis.cost_analysis import CostAnalysis

            module = module_from_proto(loaded.compiled.proto)
            found = CostAnalysis().of_computation(module.entry)
            rows = {"flops": found.flops, "transcendentals": found.transcendentals, "bytes accessed": found.bytes}
            kind = api.structure("PJRT_NamedValue")
            values = (kind * len(rows))()
            texts = [Text(name) for name in rows]
            for value, text, number in zip(values, texts, rows.values(), strict=True):
                value.struct_size, value.name, value.name_size = ctypes.sizeof(kind), text.address, text.size
                value.type, value.value_size = int(api.NamedValueType.FLOAT), 1
                ctypes.c_float.from_buffer(value, kind.value.offset).value = number
            return values, texts

        values, _ = self._kept(args, "cost", made)
        args.num_properties, args.properties = len(values), ctypes.addressof(values)

    def memory(self, args: Any) -> None:
        compiled = self.of(args).compiled
        image = compiled.executable.image
        temporary = sum(a.size for a in image.allocations if a.kind is AllocationKind.TEMPORARY)
        given = sum(slot.bytes for slot in compiled.parameters)
        made = sum(slot.bytes for slot in compiled.results)
        shared = sum(image.results[target].bytes for _, target in compiled.executable.parts[0].aliased)
        values = {
            "generated_code_size_in_bytes": _code_size(compiled.executable),
            "argument_size_in_bytes": given,
            "output_size_in_bytes": made,
            "alias_size_in_bytes": shared,
            "temp_size_in_bytes": temporary,
            "peak_memory_in_bytes": given + made - shared + temporary,
            "total_size_in_bytes": given + made - shared + temporary,
        }
        for name, _ in args._fields_[3:]:
            field = getattr(type(args), name)
            if field.offset + field.size <= args.struct_size:
                setattr(args, name, values.get(name, 0))

    def optimized(self, args: Any) -> None:
        """The program, once for its size and once for its bytes."""
        program = api.structure("PJRT_Program").from_address(args.program)
        form = self._kept(args, "form", lambda loaded: Text("hlo_with_config"))
        data = self._kept(args, "program", lambda loaded: with_config(loaded.compiled.proto))
        program.format, program.format_size = form.address, form.size
        if program.code:
            ctypes.memmove(program.code, data, min(len(data), program.code_size))
        program.code_size = len(data)

    def serialize(self, args: Any) -> None:
        address, size, data = text_record(to_bytes(self.of(args).compiled))
        _SERIALIZED[address] = data
        args.serialized_bytes, args.serialized_bytes_size = address, size
        args.serialized_executable = address
        args.serialized_executable_deleter = ctypes.cast(_FORGET, ctypes.c_void_p).value

    def compile_options(self, args: Any) -> None:
        address, size, _ = self._kept(args, "options", lambda loaded: text_record(loaded.compiled.options))
        args.serialized_bytes, args.serialized_bytes_size = address, size
        args.serialized_compile_options, args.serialized_compile_options_deleter = address, self.native.nothing

    def _kept(self, args: Any, key: str, make: Callable[[Loaded], Any]) -> Any:
        """What a function answers with, made once for an executable and alive as long as it."""
        loaded = self.of(args)
        if key not in loaded.answers:
            loaded.answers[key] = make(loaded)
        return loaded.answers[key]

    def functions(self) -> dict[str, Callable[[Any], Any]]:
        return {
            "Client_Compile": self.compile,
            "Executable_DeserializeAndLoad": self.load,
            "Executable_Destroy": self.destroy,
            "Executable_Name": self.name,
            "Executable_SizeOfGeneratedCodeInBytes": lambda args: setattr(
                args, "size_in_bytes", _code_size(self.of(args).compiled.executable)
            ),
            "Executable_GetCostAnalysis": self.cost,
            "Executable_OutputMemoryKinds": self._kinds("num_outputs", lambda loaded: len(loaded.compiled.results)),
            "Executable_ParameterMemoryKinds": self._kinds(
                "num_parameters", lambda loaded: len(loaded.compiled.parameters)
            ),
            "Executable_OptimizedProgram": self.optimized,
            "Executable_Serialize": self.serialize,
            "Executable_OutputElementTypes": self.result_types,
            "Executable_OutputDimensions": self.result_dims,
            "Executable_Fingerprint": self.fingerprint,
            "Executable_GetCompiledMemoryStats": self.memory,
            "Executable_GetCompileOptions": self.compile_options,
            "LoadedExecutable_Destroy": self.destroy,
            "LoadedExecutable_GetExecutable": self.share,
            "LoadedExecutable_AddressableDevices": self.devices,
            "LoadedExecutable_AddressableDeviceLogicalIds": self.logical_ids,
            "LoadedExecutable_GetDeviceAssignment": self.assignment,
            "LoadedExecutable_Delete": self.delete,
            "LoadedExecutable_IsDeleted": lambda args: setattr(args, "is_deleted", self.of(args).deleted),
            "LoadedExecutable_Execute": self.execute,
            "LoadedExecutable_Fingerprint": self.fingerprint,
            "Layouts_PJRT_Client_GetDefaultLayout": self.default_layout,
            "Layouts_PJRT_Topology_GetDefaultLayout": self.default_layout,
            "Layouts_PJRT_Executable_GetOutputLayouts": self._layouts(
                "num_outputs", lambda loaded: loaded.compiled.results
            ),
            "Layouts_PJRT_Executable_GetParameterLayouts": self._layouts(
                "num_parameters", lambda loaded: loaded.compiled.parameters
            ),
        }


_SERIALIZED: dict[int, bytes] = {}
"""Serialised programs that the framework reads, by address."""


def _forget(address: int | None) -> None:
    _SERIALIZED.pop(address or 0, None)


_FORGET = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_forget)


def _code_size(executable: Any) -> int:
    return sum(len(data) for data in executable.code.objects)


def with_config(proto: bytes) -> bytes:
    """HloModuleProtoWithConfig: the module, and a configuration whose layout of the entry is the module's."""
    shape = _field(proto, 4)
    config = b"\x0a" + _length(shape) + shape if shape is not None else b""
    return b"\x0a" + _length(proto) + proto + b"\x12" + _length(config) + config


def _length(data: bytes) -> bytes:
    size, out = len(data), bytearray()
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    out.append(size)
    return bytes(out)


def _field(proto: bytes, number: int) -> bytes | None:
    """The bytes of a message's field."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = proto[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(proto):
        tag = varint()
        kind = tag & 7
        if kind == 2:
            size = varint()
            if tag >> 3 == number:
                return proto[at : at + size]
            at += size
        elif kind == 0:
            varint()
        else:
            at += {1: 8, 5: 4}[kind]
    return None
