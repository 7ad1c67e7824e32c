"""The layouts of ffi/abi.py are those of the C header that jaxlib ships."""

from __future__ import annotations

import ctypes
import re

import pytest

from ...ffi import abi
from ...hlo.dtypes import DType
from ..cases.ffi_layouts import LAYOUTS
from ..support.cpp import compile_cpp, include_dir, need_cpp, run_program
from ..support.ffi_layouts import layout

STRUCTS = {
    "Extension_Base": abi.ExtensionBase,
    "Api_Version": abi.ApiVersion,
    "ByteSpan": abi.ByteSpan,
    "Scalar": abi.Scalar,
    "Array": abi.Array,
    "Buffer": abi.Buffer,
    "Args": abi.Args,
    "Attrs": abi.Attrs,
    "CallFrame": abi.CallFrame,
    "TypeId": abi.TypeId,
    "TypeInfo": abi.TypeInfo,
    "Metadata": abi.Metadata,
    "Metadata_Extension": abi.MetadataExtension,
    "Error_Create_Args": abi.ErrorCreateArgs,
    "Error_Destroy_Args": abi.ErrorDestroyArgs,
    "Future_Create_Args": abi.FutureCreateArgs,
    "Future_SetAvailable_Args": abi.FutureSetAvailableArgs,
    "Future_SetError_Args": abi.FutureSetErrorArgs,
    "Type_Register_Args": abi.TypeRegisterArgs,
    "ExecutionContext_Get_Args": abi.ExecutionContextGetArgs,
    "State_Set_Args": abi.StateArgs,
    "State_Get_Args": abi.StateArgs,
    "Stream_Get_Args": abi.StreamGetArgs,
    "DeviceMemory_Allocate_Args": abi.DeviceMemoryAllocateArgs,
    "DeviceMemory_Free_Args": abi.DeviceMemoryFreeArgs,
    "ThreadPool_Schedule_Args": abi.ThreadPoolScheduleArgs,
    "ThreadPool_NumThreads_Args": abi.ThreadPoolNumThreadsArgs,
    "RunId_Get_Args": abi.RunIdGetArgs,
    "DeviceOrdinal_Get_Args": abi.DeviceOrdinalGetArgs,
}
NEWEST = {
    "Error_GetDetails_Args": abi.ErrorGetMessageArgs,
    "InvokeContext_FindExtension_Args": abi.FindExtensionArgs,
    "CustomOptions_Get_Args": abi.CustomOptionsGetArgs,
}
"""Structures that only the header of version 0.5 has."""

RENAMED = {
    "Extension_Base": "InternalExtension",
    "ExecutionContext_Get": "InvokeContext_Get",
    "ExecutionContext_Get_Args": "InvokeContext_Get_Args",
    "Error_GetMessage": "Error_GetDetails",
}
"""What the header of version 0.5 calls things of earlier ones."""

CODES = {f"XLA_FFI_Error_Code_{code.name}": int(code) for code in abi.ErrorCode}
TYPES = {f"XLA_FFI_DataType_{dtype.name}": number for dtype, number in abi.DATA_TYPES.items()}
OTHERS = {
    **{f"XLA_FFI_AttrType_{kind.name}": int(kind) for kind in abi.AttrType},
    "XLA_FFI_ArgType_BUFFER": abi.BUFFER,
    "XLA_FFI_RetType_BUFFER": abi.BUFFER,
    "XLA_FFI_Extension_Metadata": abi.METADATA,
    "XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE": abi.COMMAND_BUFFER_COMPATIBLE,
    "XLA_FFI_CallFrame_STRUCT_SIZE": abi.CALL_FRAME_SIZE,
    "XLA_FFI_Metadata_STRUCT_SIZE": abi.METADATA_SIZE,
}


def header() -> str:
    folder = include_dir()
    assert folder is not None
    return (folder / "xla/ffi/api/c_api.h").read_text(encoding="utf-8")


def is_newest() -> bool:
    """Whether jaxlib's header is that of version 0.5 (jaxlib 0.12)."""
    (minor,) = re.findall(r"#define XLA_FFI_API_MINOR (\d+)", header())
    return (0, int(minor)) >= abi.NEWEST


def named(name: str) -> str:
    return RENAMED.get(name, name) if is_newest() else name


def structs() -> dict[str, type[ctypes.Structure]]:
    """The structures, as the header's version has them."""
    registration = abi.HandlerRegisterArgs5 if is_newest() else abi.HandlerRegisterArgs
    found = {**STRUCTS, "Handler_Register_Args": registration}
    return {**found, **NEWEST} if is_newest() else found


def numbers() -> dict[str, int]:
    stages = {f"XLA_FFI_ExecutionStage_{stage.name}": int(stage) for stage in abi.Stage}
    if not is_newest():
        del stages["XLA_FFI_ExecutionStage_RECORD"]
    return {**CODES, **TYPES, **OTHERS, **stages}


def functions() -> tuple[str, ...]:
    return (*map(named, abi.FUNCTIONS), *(abi.APPENDED if is_newest() else ()))


def program() -> str:
    """A C++ program that prints sizes, offsets and constants, a line each."""
    lines = []
    for name, kind in structs().items():
        lines.append(f'say("{name}", sizeof(XLA_FFI_{named(name)}));')
        for field in _fields(kind):
            lines.append(f'say("{name}.{field}", offsetof(XLA_FFI_{named(name)}, {field}));')
    lines += [f'say("{name}", {name});' for name in numbers()]
    lines += [f'say("Api.{name}", offsetof(XLA_FFI_Api, XLA_FFI_{name}));' for name in functions()]
    head = '#include <cstdio>\n#include "xla/ffi/api/c_api.h"\n'
    say = 'static void say(const char* name, long value) { std::printf("%s %ld\\n", name, value); }\n'
    return head + say + "int main() {\n" + "\n".join(lines) + "\n}\n"


def _fields(kind: type[ctypes.Structure]) -> list[str]:
    return [str(row[0]) for base in reversed(kind.__mro__) for row in base.__dict__.get("_fields_", ())]


def expected() -> dict[str, int]:
    found = {}
    for name, kind in structs().items():
        found[name] = ctypes.sizeof(kind)
        for field in _fields(kind):
            found[f"{name}.{field}"] = getattr(kind, field).offset
    fields = [*abi.FUNCTIONS, *abi.APPENDED]
    offsets = {f"Api.{name}": getattr(abi.Api5, field).offset for name, field in zip(functions(), fields, strict=False)}
    return {**found, **numbers(), **offsets}


def test_layouts_and_numbers_are_the_headers():
    need_cpp()
    printed = dict(line.split() for line in run_program(compile_cpp(program(), shared=False)).splitlines())
    assert {name: int(value) for name, value in printed.items()} == expected()


def test_the_header_has_no_function_type_or_code_that_is_missing_here():
    need_cpp()
    assert tuple(re.findall(r"_XLA_FFI_API_STRUCT_FIELD\(XLA_FFI_(\w+)\);", header())) == functions()
    codes = set(re.findall(r"(XLA_FFI_(?:DataType|Error_Code)_\w+) = \d", header()))
    assert codes - TYPES.keys() - CODES.keys() == {"XLA_FFI_DataType_INVALID"}


@pytest.mark.parametrize(
    "kind, size",
    [
        (abi.Api5, 208),
        (abi.HandlerRegisterArgs5, 92),
        (abi.OldStateArgs, 40),
        (abi.OldestStateSetArgs, 48),
        (abi.ErrorGetMessageArgs, 36),
    ],
)
def test_sizes_of_other_versions(kind: type[ctypes.Structure], size: int):
    assert abi.size_of(kind) == size


def place(kind: type[ctypes.Structure], field: str) -> int:
    return getattr(kind, field).offset if field else ctypes.sizeof(kind)


@pytest.mark.parametrize("jaxlib", LAYOUTS)
def test_structures_of_older_headers(jaxlib: str):
    """As g++ laid them out (tests/support/ffi_layouts.py)."""
    oldest = jaxlib != "0.8.1"
    kinds: dict[str, type[ctypes.Structure]] = {
        "State_Get_Args": abi.OldStateArgs,
        "State_Set_Args": abi.OldestStateSetArgs if oldest else abi.OldStateArgs,
    }
    for name, bytes_ in LAYOUTS[jaxlib].items():
        kind, _, field = name.partition(".")
        if kind in kinds:
            assert place(kinds[kind], field) == bytes_, name
    registration = LAYOUTS[jaxlib].get("TypeId_Register_Args.type_id", abi.TypeRegisterArgs.type_id.offset)
    assert registration == abi.TypeRegisterArgs.type_id.offset
    assert LAYOUTS[jaxlib].get("Metadata", 48) >= abi.METADATA_SIZE


def test_the_script_measures_what_the_structures_say():
    need_cpp()
    folder = include_dir()
    assert folder is not None
    measured = layout(folder)
    for name, kind in structs().items():
        found = {key: value for key, value in measured.items() if key.partition(".")[0] == named(name)}
        assert found == {f"{named(name)}{'.' if f else ''}{f}": place(kind, f) for f in ("", *_fields(kind))}


def test_every_type_of_a_buffer_has_a_number():
    assert abi.DATA_TYPES.keys() == set(DType) - {DType.TUPLE, DType.OPAQUE}
    assert abi.DTYPES[11] is DType.F32
