"""The tables of the C API: against the header of XLA's CPU plugin (minor version 81), and what later versions added."""

import ctypes
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import platformdirs
import pytest

from ...pjrt import api, api_rows

WHEEL = "xla-cpu-pjrt==0.0.1"
HEADER_MINOR = 81
SCALARS = {
    "size_t": ctypes.c_size_t,
    "int": ctypes.c_int,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "bool": ctypes.c_bool,
    "float": ctypes.c_float,
    "uintptr_t": ctypes.c_size_t,
    "intptr_t": ctypes.c_ssize_t,
}


@pytest.fixture(scope="module")
def header() -> str:
    """The header's text without comments. TESTBED_PJRT_HEADER names a file; else it comes from the wheel."""
    named = os.environ.get("TESTBED_PJRT_HEADER")
    if named:
        text = Path(named).read_text()
    else:
        folder = Path(platformdirs.user_cache_dir("testbed", appauthor=False)) / "wheels"
        if not list(folder.glob("xla_cpu_pjrt-*.whl")):
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "--timeout", "30", "--retries", "1"]
            done = subprocess.run([*command, "-d", str(folder), WHEEL], capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"pip cannot download {WHEEL}: {done.stderr.strip()[-300:]}")
        with zipfile.ZipFile(next(folder.glob("xla_cpu_pjrt-*.whl"))) as wheel:
            text = wheel.read("xla_plugins/xla_cpu_pjrt/include/pjrt_c_api.h").decode()
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


def parsed(header: str) -> dict[str, list[tuple[str, object]]]:
    """Structure → (field, ctypes type) of each, as the C compiler lays them out."""
    enums = set(re.findall(r"typedef enum \{[^}]*\} *(\w+);", header))
    made: dict[str, type] = {}
    found: dict[str, list[tuple[str, object]]] = {}

    def kind(declaration: str) -> tuple[str, object]:
        pointer = re.match(r"void \(\*(\w+)\)", declaration)
        if pointer:
            return pointer[1], ctypes.c_void_p
        words = re.match(r"(.*?)(\w+)$", declaration)
        assert words, declaration
        text, name = words[1].replace("const ", "").replace("struct ", "").strip(), words[2]
        if "*" in text or text.endswith(("Callback", "ValueDeleter")):
            return name, ctypes.c_void_p
        return name, ctypes.c_int if text in enums else SCALARS.get(text) or made[text]

    for name, body in re.findall(r"struct (PJRT_\w+) \{(.*?)\n\}", header, re.S):
        if name == "PJRT_Api":
            continue
        fields = []
        for number, union in enumerate(re.findall(r"union \{(.*?)\};", body, re.S)):
            inner = [kind(" ".join(part.split())) for part in union.split(";") if part.strip()]
            made[f"union{number}"] = type("U", (ctypes.Union,), {"_fields_": inner})
        numbers = iter(range(9))
        body = re.sub(r"union \{.*?\};", lambda _, n=numbers: f"union{next(n)} value;", body, flags=re.S)
        fields = [kind(" ".join(part.split())) for part in body.split(";") if part.strip()]
        made[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
        found[name] = fields
    return found


def test_structures_are_those_of_the_header(header):
    assert int(re.search(r"PJRT_API_MINOR (\d+)", header)[1]) == HEADER_MINOR
    wanted = parsed(header)
    ours = {name: api.structure(name, HEADER_MINOR) for name, row in api.structures().items()
            if row.since <= HEADER_MINOR and "_Layouts_" not in name and name != "PJRT_LogicalDeviceIds"}  # fmt: skip
    assert set(ours) == set(wanted)
    renamed = {"PJRT_Buffer_MemoryLayout"}  # the union has the name of its larger member
    for name, fields in wanted.items():
        theirs = type(name, (ctypes.Structure,), {"_fields_": fields})
        assert ctypes.sizeof(ours[name]) == ctypes.sizeof(theirs), name
        places = [(f, getattr(theirs, f).offset, getattr(theirs, f).size) for f, _ in fields]
        mine = [(f, getattr(ours[name], f).offset, getattr(ours[name], f).size) for f, _ in ours[name]._fields_]
        if name in renamed:
            places, mine = [place[1:] for place in places], [place[1:] for place in mine]
        assert mine == places, name


def test_functions_are_those_of_the_header_in_order(header):
    table = re.search(r"typedef struct PJRT_Api \{(.*?)\} PJRT_Api;", header, re.S)[1]
    wanted = re.findall(r"_PJRT_API_STRUCT_FIELD\(PJRT_(\w+)\)", table)
    assert list(api.functions(HEADER_MINOR)) == wanted


@pytest.mark.parametrize(
    ("ours", "prefix", "values"),
    [
        (api.ErrorCode, "PJRT_Error_Code_", None),
        (api.BufferType, "PJRT_Buffer_Type_", 30),  # S1 and U1 came with 94
        (api.NamedValueType, "PJRT_NamedValue_k", None),
        (api.HostBufferSemantics, "PJRT_HostBufferSemantics_k", None),
        (api.LayoutType, "PJRT_Buffer_MemoryLayout_Type_", None),
    ],
)
def test_enumerations_are_those_of_the_header(header, ours, prefix, values):
    words = re.findall(rf"\b{prefix}(\w+?)\b(?=[ ,=\n])", "".join(re.findall(r"typedef enum \{([^}]*)\}", header)))
    assert [w.upper().replace("_", "") for w in words] == [
        ("IMMUTABLE" if w.name in ("ONLY_DURING_CALL", "UNTIL_TRANSFER_COMPLETES") else "") + w.name.replace("_", "")
        for w in ours
    ][:values]


def test_later_versions_append():
    for minor in range(HEADER_MINOR, api_rows.MINOR):
        before, after = api.functions(minor), api.functions(minor + 1)
        assert after[: len(before)] == before
        for name, row in api.structures().items():
            if row.since <= minor:
                names = [f for f, _ in api.structure(name, minor)._fields_]
                assert [f for f, _ in api.structure(name, minor + 1)._fields_][: len(names)] == names, name
    assert api.table_size() == 40 + 8 * 135


def test_size_of_a_structure_is_without_padding():
    assert api.size_of("PJRT_Error_GetCode_Args") == 28
    assert ctypes.sizeof(api.structure("PJRT_Error_GetCode_Args")) == 32
    assert api.size_of("PJRT_Executable_GetCompiledMemoryStats_Args", 81) == 24 + 11 * 8
    assert api.size_of("PJRT_Executable_GetCompiledMemoryStats_Args") == 24 + 15 * 8
    assert api.offset("Client_BufferFromHostBuffer", "buffer") == 24 + 11 * 8


def test_layouts_extension_has_seven_functions():
    assert len(api.layout_functions()) == 7
    assert all(f"PJRT_{name}_Args" in api.structures() for name in api.layout_functions())
