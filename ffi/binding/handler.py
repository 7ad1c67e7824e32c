"""A handler: decodes call frames by its binding, calls a Python function, and encodes what that returns.

The first call of a call site runs through `Handler._slow`; the native trampoline then calls the function directly.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...hlo.errors import InputError
from .. import abi
from ..abi import CallFrame, Stage
from .api import OURS, Api, ApiError, api_at
from .calls import Counts, compile_call, decode_all
from .context import Call
from .declare import Declaration
from .errors import Error, error_of
from .frames import FrameError, snapshot
from .futures import Future
from .states import native, set_state, type_id
from .trampoline import Known, Trampoline, form, own_memory, references


class Handler:
    """A function that runtimes call through XLA's C ABI, for one stage.

    traits: bits of XLA_FFI_Handler_TraitsBits, as COMMAND_BUFFER_COMPATIBLE. state: the class of the state that the
    function returns (only before the stage execute). Called as a function, it is the Python function itself.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        binding: Declaration,
        traits: tuple[int, ...] = (),
        state: type | None = None,
    ):
        if state is not None and binding.stage == Stage.EXECUTE:
            raise InputError("Execute stage doesn't support setting a state", remedy="make it when instantiating")
        self.function, self.binding, self.state = function, binding, state
        self.traits = functools.reduce(int.__or__, map(int, traits), 0)
        self._counts = Counts.of(binding.specs)
        self._asynchronous = False

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return f"<handler {name}, {self.binding.stage.name.lower()}>"

    @functools.cached_property
    def _trampoline(self) -> Trampoline:
        return Trampoline(self._slow, self.binding.stage)

    @property
    def ffi_address(self) -> int:
        """The address of the C function. It stays valid as long as the process lives."""
        return self._trampoline.address

    # -- a call, in Python --------------------------------------------------------------------------------------------
    def _slow(self, address: int) -> int:
        frame = CallFrame.from_address(address)
        api = api_at(frame.api)
        try:
            native().bury()
            if _is_probe(frame):
                error = self._tell(frame)
            else:
                error = self._refused(frame) or self._run(frame, api, address)
        except BaseException as raised:
            error = error_of(raised)
        return self._encoded(api, error)

    def _encoded(self, api: Api, error: Error | None) -> int:
        return api.error(error) if error is not None and error.failure else 0

    def _refused(self, frame: CallFrame) -> Error | None:
        """What is wrong with a frame before it is decoded."""
        if frame.struct_size != abi.CALL_FRAME_SIZE:
            return _size_error("XLA_FFI_CallFrame", abi.CALL_FRAME_SIZE, frame.struct_size, "")
        stage = self.binding.stage
        if frame.stage != stage:
            expected, got = stage.name.lower(), _stage_name(frame.stage)
            return Error.invalid_argument(f"Wrong execution stage: expected `{expected}` but got `{got}`")
        return self._counts.refused(frame, stage.name.lower())

    def _run(self, frame: CallFrame, api: Api, address: int) -> Error | None:
        stage = self.binding.stage.name.lower()
        try:
            found = snapshot(frame)
        except FrameError as error:
            return Error.invalid_argument(f"[{stage}] Failed to read the call frame: {error}")
        refused = self._counts.refused_attributes(found.attrs, stage)
        if refused is not None:
            return refused
        decoded = decode_all(self.binding.specs, found, stage, Call(frame.api, frame.ctx or 0))
        if isinstance(decoded, Error):
            return decoded
        call = compile_call(self.function, self.binding.specs, decoded, frame.api, stage)
        arrays = [array for _, array in decoded.views]
        counts, forms = [references(a) for a in arrays], [form(a) for a in arrays]
        value = call(frame.ctx or 0) if decoded.wants_ctx else call()
        if decoded.packed and isinstance(value, Future):
            why = "a handler that finishes later cannot write results of elements narrower than a byte"
            return Error.internal(f"{why}: return None when they are written")
        decoded.write_back()
        after = [references(a) for a in arrays]
        kept = [a for a, count, now in zip(arrays, counts, after) if now != count]
        for array in kept:
            own_memory(array)
        changed = kept or forms != [form(a) for a in arrays]
        if value is None and decoded.repeatable and not changed and not self._asynchronous and self.state is None:
            finish = self._finish
            self._trampoline.remember(address, Known(found.notes, decoded.views, call, decoded.wants_ctx, finish))
        return None if value is None else self._result(frame, api, value)

    def _finish(self, address: int, value: Any) -> int:
        """The error of what the function returned to native code."""
        frame = CallFrame.from_address(address)
        api = api_at(frame.api)
        try:
            error = self._result(frame, api, value)
        except BaseException as raised:
            error = error_of(raised)
        return self._encoded(api, error)

    def _result(self, frame: CallFrame, api: Api, value: Any) -> Error | None:
        if isinstance(value, Error):
            return value
        if isinstance(value, Future):
            self._asynchronous = True
            frame.future = value.start(api)
            return None
        if self.state is not None and isinstance(value, self.state):
            try:
                set_state(api, frame.api, frame.ctx, self.binding.stage, self.state, value)
            except ApiError as error:
                return Error.internal(str(error))
            return None
        name = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        expected = "None, an ffi.Error or an ffi.Future" if self.state is None else f"{self.state.__qualname__}"
        return Error.internal(f"the handler returned {name}, not {expected}")

    # -- metadata -----------------------------------------------------------------------------------------------------
    def _tell(self, frame: CallFrame) -> Error | None:
        """Answer the probe of a runtime: version, traits, and the type of the state."""
        extension = abi.MetadataExtension.from_address(frame.extension_start)
        size = abi.size_of(abi.MetadataExtension)
        if extension.extension_base.struct_size < size:
            got = extension.extension_base.struct_size
            return _size_error("XLA_FFI_Metadata_Extension", size, got, "at least ")
        metadata = extension.metadata.contents
        if metadata.struct_size < abi.METADATA_SIZE:
            return _size_error("XLA_FFI_Metadata", abi.METADATA_SIZE, metadata.struct_size, "at least ")
        api = api_at(frame.api)
        major, minor = min(OURS, api.version)
        metadata.api_version = abi.ApiVersion(abi.size_of(abi.ApiVersion), None, major, minor)
        metadata.traits = self.traits
        if api.version < (0, 2):
            return None  # there is no id of a state
        metadata.state_type_id = abi.TypeId(0)
        if self.state is not None:
            try:
                metadata.state_type_id = abi.TypeId(type_id(api, frame.api, self.state).type_id)
            except ApiError as error:
                return Error(abi.ErrorCode.FAILED_PRECONDITION, str(error))
        return None


def _is_probe(frame: CallFrame) -> bool:
    """Whether a runtime only asks for the metadata."""
    if frame.struct_size != abi.CALL_FRAME_SIZE or not frame.extension_start:
        return False
    return bool(abi.ExtensionBase.from_address(frame.extension_start).type == abi.METADATA)


def _stage_name(number: int) -> str:
    return Stage(number).name.lower() if number in set(Stage) else str(number)


def _size_error(name: str, expected: int, got: int, least: str) -> Error:
    text = f"Unexpected {name} size: expected {least}{expected} got {got}. Check installed software versions."
    return Error.invalid_argument(text)
