"""What libraries of handlers call of our API by themselves: registrations of handlers and of types, and states."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest

from ...ffi import abi, registry
from ...ffi.api import native, take_error
from ...ffi.calls import CallError
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module
from ..support.raw_handlers import answers, handler

NAME = "registration.test"


@pytest.fixture(autouse=True)
def forgotten():
    yield
    for platform in ("Host", "CUDA"):
        registry.unregister(NAME, platform)


def api(name: str, args: Any, size: int | None = None) -> tuple[str, str] | None:
    """Call a function of the API; the error that it returned, as code and text. size: what stands in struct_size."""
    args.struct_size = abi.size_of(type(args)) if size is None else size
    function = abi.HANDLER(getattr(abi.Api5.from_address(native().api), name))
    error = function(ctypes.addressof(args))
    if not error:
        return None
    code, text = take_error(error)
    return abi.ErrorCode(code).name, text


_KEPT: list[Any] = []


def span(text: str) -> abi.ByteSpan:
    """The text without a zero byte behind it, as C++'s string_view."""
    buffer = ctypes.create_string_buffer(text.encode() + b"#")
    _KEPT.append(buffer)
    return abi.ByteSpan(ctypes.addressof(buffer), len(text.encode()))


@pytest.mark.parametrize("kind, stages", [(abi.HandlerRegisterArgs, 4), (abi.HandlerRegisterArgs5, 5)])
@pytest.mark.parametrize("platform, found", [("Host", "Host"), ("cpu", "Host"), ("CUDA", "CUDA")])
def test_a_registration_of_each_version(kind, stages, platform, found):
    """Version 0.5 has one stage more, and its structure is longer by that."""
    functions = [0x1000 * (n + 1) for n in range(stages)]
    args = kind(0, None, span(NAME), span(platform), _bundle(kind, functions), 1)
    assert api("Handler_Register", args) is None
    made = registry.lookup(NAME, found)
    assert [made.of(stage) for stage in abi.Stage][:stages] == functions
    assert made.record == (functions[4] if stages == 5 else 0) and made.traits == 1
    assert api("Handler_Register", args) is None  # the same again
    code, text = api("Handler_Register", kind(0, None, span(NAME), span(platform), _bundle(kind, functions[::-1]), 0))
    assert code == "ALREADY_EXISTS" and NAME in text and found in text
    assert registry.lookup(NAME, found) == made


def _bundle(kind: Any, functions: list[int]) -> Any:
    return dict(kind._fields_)["bundle"](*functions)


def test_a_type_has_one_number_and_one_deleter():
    name, number = "registration.type", abi.TypeId(0)
    info = abi.TypeInfo(abi.size_of(abi.TypeInfo), None, 0x5000)
    args = abi.TypeRegisterArgs(0, None, span(name), ctypes.pointer(number), ctypes.pointer(info))
    size = abi.TypeRegisterArgs.type_info.offset
    assert api("Type_Register", args, size) is None
    first = number.type_id
    assert first > 0 and registry.type_info(first) == 0x5000
    again = abi.TypeId(0)
    args.type_id = ctypes.pointer(again)
    assert api("Type_Register", args, size) is None and again.type_id == first
    again.type_id = first + 1
    refused = api("Type_Register", args, size)
    assert refused == (
        "INVALID_ARGUMENT",
        f"Type name {name} already registered with type id {first} vs {first + 1}",
    )


def set_state(version: tuple[int, int], ctx: int, kind: abi.TypeId, value: int) -> tuple[str, str] | None:
    """Set the state of the stage instantiate, with the structure of a version."""
    pointer = ctypes.pointer(kind)
    if version < (0, 2):
        return api("State_Set", abi.OldestStateSetArgs(0, None, ctx, pointer, value, DELETER))
    if version < (0, 3):
        return api("State_Set", abi.OldStateArgs(0, None, ctx, pointer, value))
    return api("State_Set", abi.StateArgs(0, None, ctx, abi.Stage.INSTANTIATE, pointer, value))


def get_state(version: tuple[int, int], ctx: int, kind: abi.TypeId) -> tuple[Any, int | None]:
    """The error, and the state."""
    pointer = ctypes.pointer(kind)
    args: Any = abi.OldStateArgs(0, None, ctx, pointer, None)
    if version >= (0, 3):
        args = abi.StateArgs(0, None, ctx, abi.Stage.INSTANTIATE, pointer, None)
    return api("State_Get", args), args.state


DELETED: list[int] = []
_DELETE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda state: DELETED.append(state or 0))
DELETER = ctypes.cast(_DELETE, ctypes.c_void_p).value or 0

TEXT = f"""HloModule m
ENTRY e {{
  ROOT r = f32[1]{{0}} custom-call(), custom_call_target="{NAME}", api_version=API_VERSION_TYPED_FFI
}}
"""


@pytest.mark.parametrize("version", [(0, 1), (0, 2), (0, 3), (0, 5)])
def test_a_state_is_set_once_and_has_a_type(version):
    """In each version's structures; before 0.3 a state has no stage, and in 0.1 it brings its own deleter."""
    mine, other, seen = abi.TypeId(0), abi.TypeId(0), []
    for kind, name in ((mine, "registration.mine"), (other, "registration.other")):
        info = abi.TypeInfo(abi.size_of(abi.TypeInfo), None, DELETER)
        args = abi.TypeRegisterArgs(0, None, span(name), ctypes.pointer(kind), ctypes.pointer(info))
        assert api("Type_Register", args, abi.TypeRegisterArgs.type_info.offset) is None

    def make(frame: int) -> None:
        if not answers(frame, version):
            ctx = abi.CallFrame.from_address(frame).ctx or 0
            seen.append(set_state(version, ctx, mine, 0x7700))
            seen.append(set_state(version, ctx, mine, 0x7711))

    def use(frame: int) -> None:
        if not answers(frame, version):
            ctx = abi.CallFrame.from_address(frame).ctx or 0
            seen.extend([get_state(version, ctx, mine), get_state(version, ctx, other)[0]])

    registry.register(NAME, {"instantiate": handler(make), "execute": handler(use)})
    executable = compile_module(parse_module(TEXT), Flags.parse("legacy"))
    executable.execute([])
    assert seen[0] is None and seen[1] is not None and seen[1][0] == "FAILED_PRECONDITION"
    assert seen[1][1].startswith("State is already set")
    assert seen[2] == (None, 0x7700)
    number, another = mine.type_id, other.type_id
    assert seen[3] == ("NOT_FOUND", f"Set state with type id {number}, but got state with type id {another}")
    DELETED.clear()
    del executable
    gc.collect()
    assert DELETED == [0x7700]


def test_a_state_of_an_unknown_type_is_refused():
    errors: list[Any] = []

    def make(frame: int) -> None:
        if not answers(frame, (0, 3)):
            ctx = abi.CallFrame.from_address(frame).ctx or 0
            errors.append(set_state((0, 3), ctx, abi.TypeId(1 << 40), 8))

    registry.register(NAME, {"instantiate": handler(make), "execute": handler(lambda f: answers(f, (0, 3)) and None)})
    compile_module(parse_module(TEXT), Flags.parse("legacy"))
    assert errors == [("INVALID_ARGUMENT", f"Type id {1 << 40} is not registered with a static registry")]


def test_traits_are_those_of_registration_and_metadata():
    def run(frame: int) -> None:
        answers(frame, (0, 3), traits=4)

    registry.register(NAME, handler(run), traits=abi.COMMAND_BUFFER_COMPATIBLE)
    executable = compile_module(parse_module(TEXT), Flags.parse("legacy"))
    assert [site.traits for site in executable._sites.sites] == [5]


def test_a_handler_of_a_later_version_is_refused():
    registry.register(NAME, handler(lambda f: answers(f, (0, 6)) and None))
    with pytest.raises(Exception, match=r"version 0.6, and versions 0.1 to 0.5 can be called"):
        compile_module(parse_module(TEXT), Flags.parse("legacy"))
    registry.register(NAME, handler(lambda f: answers(f, (1, 0)) and None), replace=True)
    with pytest.raises(Exception, match=r"version 1.0, and versions 0.1 to 0.5 can be called"):
        compile_module(parse_module(TEXT), Flags.parse("legacy"))


FUSED = """HloModule m
ENTRY e {
  x = f32[8]{0} parameter(0)
  two = f32[] constant(2)
  t = f32[8]{0} broadcast(two), dimensions={}
  a = f32[8]{0} multiply(x, t)
  b = f32[8]{0} exponential(a)
  c = f32[8]{0} custom-call(b), custom_call_target="registration.test", api_version=API_VERSION_TYPED_FFI
  d = f32[8]{0} add(c, b)
  ROOT r = f32[8]{0} negate(d)
}
"""


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_neighbours_are_fused_and_the_call_is_none(stack):
    """Elementwise neighbours become kernels of their own on both sides of the call."""

    def run(frame: int) -> None:
        if answers(frame, (0, 3)):
            return
        given = abi.CallFrame.from_address(frame)
        x, y = (abi.Buffer.from_address(b.args[0]) for b in (given.args, given.rets))
        values = (ctypes.c_float * 8).from_address(x.data)
        (ctypes.c_float * 8).from_address(y.data)[:] = [3 * v for v in values]

    registry.register(NAME, handler(run))
    executable = compile_module(parse_module(FUSED), Flags.parse(stack))
    assert [emitter for _, emitter in executable.kernels].count("ffi") == 1 and len(executable.kernels) == 3
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    np.testing.assert_allclose(executable.execute([x])[0], -4 * np.exp(2 * x), rtol=1e-6)


def test_an_error_that_is_no_code_is_unknown():
    def run(frame: int) -> int | None:
        if answers(frame, (0, 3)):
            return None
        args = abi.ErrorCreateArgs(28, None, b"odd", 99)
        return abi.HANDLER(abi.Api.from_address(native().api).Error_Create)(ctypes.addressof(args))

    registry.register(NAME, handler(run))
    executable = compile_module(parse_module(TEXT), Flags.parse("legacy"))
    with pytest.raises(CallError, match=r"^r: custom-call\(registration.test\): UNKNOWN: odd$") as error:
        executable.execute([])
    assert error.value.code is abi.ErrorCode.UNKNOWN
