"""Call sites: the memory that compiled code calls a handler with, the stages of a handler, and its states."""

from __future__ import annotations

import ctypes
import itertools
import weakref
from collections.abc import Callable, Iterable, Sequence

from ..codegen.load import LoadedCode
from ..hlo.errors import InputError, UnsupportedError
from .abi import (
    CALL_FRAME_SIZE,
    METADATA,
    METADATA_SIZE,
    NEWEST,
    OLDEST,
    ApiVersion,
    Buffer,
    CallFrame,
    ErrorCode,
    ExtensionBase,
    Metadata,
    MetadataExtension,
    Stage,
)
from .api import SITES, error_of, native, take_error, wait
from .calls import CallError, F, Lent, Run, Runs, carried, current, key, running
from .description import CALL, SITE, Description
from .layout import (
    FRAME,
    HANDLER,
    IDENTITY,
    INVOKE,
    ON_DEVICE,
    OPAQUE,
    OPAQUE_SIZE,
    OWNER,
    STATE,
    STATE_TYPE,
    FrameLayout,
)
from .memory import Memory
from .refusing import refusing
from .registry import HOST, CallVersion, Handler, lookup

_NUMBERS = itertools.count(1)
_INVOKE = {
    CallVersion.API_VERSION_ORIGINAL: "original",
    CallVersion.API_VERSION_STATUS_RETURNING: "status",
    CallVersion.API_VERSION_STATUS_RETURNING_UNIFIED: "unified",
    CallVersion.API_VERSION_TYPED_FFI: "typed",
}
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Site:
    """A handler, and all that it is called with but the addresses of buffers. The instance keeps its memory and state.

    Raises CallError for what the stage INSTANTIATE reports, and InputError for a handler of another version.
    """

    def __init__(self, description: Description, handler: Handler):
        self.description, self.handler = description, handler
        self.number = next(_NUMBERS)
        self.version, self.traits, self.state_type = (0, 1), handler.traits, 0
        self._memory, self._states = Memory(), _States()
        self._given: dict[int, Lent] = {}  # by address
        self.invoke, host = _INVOKE[handler.version], native()
        self._operands, self._results = description.operands, description.results
        size = FRAME + FrameLayout(len(self._operands), len(self._results)).size
        block = (ctypes.c_char * (size + 64))()
        self.address = -(-self._memory.keep(block) // 64) * 64
        config = description.config.encode("utf-8", "surrogateescape")
        words = {
            INVOKE: host.invoke[self.invoke],
            HANDLER: handler.execute,
            IDENTITY: self.number,
            OPAQUE: self._memory.data(config + b"\0"),
            OPAQUE_SIZE: len(config),
            OWNER: 0 if handler.platform == HOST else ON_DEVICE & (1 << 64) - 1,
        }
        for place, word in words.items():
            ctypes.c_uint64.from_address(self.address + place).value = word
        SITES[self.number] = self._states.site = _Weak(self)
        self._end = weakref.finalize(self, _forget, self.number, self._states)
        if handler.version is CallVersion.API_VERSION_TYPED_FFI:
            self._attrs = self._memory.attributes(description.attributes)
            self._fill(self.address + FRAME)
            self._probe()
            if handler.instantiate:
                self._call_stage(Stage.INSTANTIATE, with_buffers=False)

    def _fill(self, block: int, with_buffers: bool = True) -> None:
        operands, results = (self._operands, self._results) if with_buffers else ((), ())
        self._memory.fill_frame(block, operands, results, self._attrs, native().api, self.address)

    @property
    def name(self) -> str:
        return self.description.name

    def _probe(self) -> None:
        """Ask the handler for its version, its traits and the type of its state."""
        metadata = Metadata(METADATA_SIZE, ApiVersion(24, None, 0, 0))
        extension = MetadataExtension(ExtensionBase(32, METADATA, None), ctypes.pointer(metadata))
        frame = CallFrame(CALL_FRAME_SIZE, ctypes.addressof(extension), native().api, None, int(Stage.EXECUTE))
        error = native().call(self.handler.execute, ctypes.addressof(frame))
        if error:
            raise self._error(*take_error(error))
        self.version = (metadata.api_version.major_version, metadata.api_version.minor_version)
        if not OLDEST <= self.version <= NEWEST:
            have, most = (".".join(map(str, v)) for v in (self.version, NEWEST))
            remedy = "compile it against a header of these versions"
            raise InputError(
                f"{self.name}: the FFI handler of {self.handler.name!r} has version {have}, and versions 0.1 to {most} "
                "can be called",
                remedy=remedy,
            )
        self.traits |= metadata.traits
        self.state_type = metadata.state_type_id.type_id

    def _call_stage(self, stage: Stage, with_buffers: bool = True) -> None:
        layout = FrameLayout(len(self._operands), len(self._results))
        block = (ctypes.c_uint64 * (layout.size // 8))()
        memory = self._memory if stage is Stage.INSTANTIATE else Memory()
        leaves = (self._operands, self._results) if with_buffers else ((), ())
        memory.fill_frame(ctypes.addressof(block), *leaves, self._attrs, native().api, self.address)
        CallFrame.from_buffer(block).stage = int(stage)
        self._call(self.handler.of(stage), ctypes.addressof(block))

    def _call(self, function: int, frame: int) -> None:
        """Call a function of the handler, and wait for the future that it returns. Raises CallError."""
        error = native().call(function, frame)
        if error:
            raise self._error(*take_error(error))
        future = CallFrame.from_address(frame).future
        if future:
            wait(self.address, future)

    def begin(self) -> None:
        """Call the stages that come before a run."""
        for stage in (Stage.PREPARE, Stage.INITIALIZE):
            if self.handler.of(stage):
                self._call_stage(stage)

    def execute(self, buffers: Sequence[int]) -> None:
        """Call the handler with operands and results at these addresses, in a frame of this call. Raises CallError."""
        layout = FrameLayout(len(self._operands), len(self._results))
        block = (ctypes.c_uint64 * (layout.size // 8))()
        frame = ctypes.addressof(block)
        ctypes.memmove(frame, self.address + FRAME, layout.size)
        for place, target in layout.places.items():
            ctypes.c_uint64.from_address(frame + place).value = frame + target
        for number, data in enumerate(buffers):
            Buffer.from_address(frame + layout.buffer(number)).data = data
        self._call(self.handler.execute, frame)

    # --- memory of a device -------------------------------------------------------------------------------------------

    def allocate(self, size: int, alignment: int) -> int:
        """Memory of the device that the run on this thread is on, until `free`."""
        run = current()
        if run is None or run.lent is None:
            raise InputError(f"{self.name} asks for memory of a device outside of a run")
        address = run.lent.allocate(size, alignment)
        self._given[address] = run.lent
        return address

    def free(self, address: int) -> None:
        lent = self._given.pop(address, None)
        if lent is None:
            raise InputError(f"{self.name} gives back memory at {address:#x}, which it does not have")
        lent.free(address)

    def _error(self, code: int, text: str) -> CallError:
        return CallError(self.name, self.handler.name, code, text)

    def failed(self, code: int, text: str) -> None:
        """Let the run on this thread end with an error."""
        run = current()
        error = self._error(code, text)
        if run is not None:
            run.fail(error)
        else:
            self._states.errors.append(error)

    # --- states ------------------------------------------------------------------------------------------------------

    def set_state(self, stage: int, type_id: int, state: int, deleter: int) -> int | None:
        """Keep a state; returns an error, or None."""
        if stage == Stage.INSTANTIATE:
            if self._states.instance is not None:
                return error_of_exists("instantiate")
            self._states.instance = state, deleter
            ctypes.c_uint64.from_address(self.address + STATE).value = state
            ctypes.c_uint64.from_address(self.address + STATE_TYPE).value = type_id
            return None
        run = current()
        if run is None:
            return error_of_exists("of no run")
        if deleter:
            run.ending.append((deleter, state))
        run.states[self.number, stage] = type_id, state
        return None

    def state(self, stage: int, type_id: int) -> int | str:
        """The address of a state, or why there is none."""
        if stage == Stage.INSTANTIATE:
            have, address = (ctypes.c_uint64.from_address(self.address + p).value for p in (STATE_TYPE, STATE))
        else:
            run = current()
            have, address = run.states.get((self.number, stage), (0, 0)) if run is not None else (0, 0)
        if not address:
            return "State is not set"
        if have != type_id:
            return f"Set state with type id {have}, but got state with type id {type_id}"
        return address


def error_of_exists(stage: str) -> int:
    return error_of(ErrorCode.FAILED_PRECONDITION, f"State is already set ({stage})")


class _Weak:
    """A call site for native code, which must not keep it."""

    def __init__(self, site: Site):
        self._site = weakref.ref(site)

    def __getattr__(self, name: str) -> object:
        return getattr(self._site(), name)


class _States:
    def __init__(self) -> None:
        self.instance: tuple[int, int] | None = None
        self.errors: list[CallError] = []
        self.site: _Weak | None = None


def _forget(number: int, states: _States) -> None:
    SITES.pop(number, None)
    if states.instance is not None and states.instance[1]:
        _DELETER(states.instance[1])(states.instance[0])


def _known(description: Description) -> Handler:
    """The handler of a call in a program that is loaded. Raises InputError if there is none."""
    if description.refusal:
        return refusing(description)
    try:
        return lookup(description.target, what=description.name)
    except UnsupportedError as error:
        raise InputError(error.message, remedy=error.remedy) from None


class Sites:
    """The call sites of an executable. Empty without any. made: those of a device, which no compiled code calls."""

    def __init__(self, code: LoadedCode | None, symbols: Iterable[str], made: Iterable[Site] = ()):
        self.sites: list[Site] = [*made]
        for symbol in symbols:
            assert code is not None
            description = Description.at(code.address(symbol + CALL))
            handler = _known(description)
            if handler.version != CallVersion[description.version]:
                raise InputError(
                    f"{description.name} calls {description.target!r} with {description.version}",
                    remedy=f"its handler is registered with {handler.version.name}",
                )
            site = Site(description, handler)
            ctypes.c_uint64.from_address(code.address(symbol + SITE)).value = site.address
            self.sites.append(site)
        self._beginning = [s for s in self.sites if s.handler.prepare or s.handler.initialize]

    @property
    def begins(self) -> bool:
        """Whether any has stages that are called before each run."""
        return bool(self._beginning)

    @property
    def key(self) -> int:
        """The key under which a thread keeps the address of a run's block."""
        return key()

    def runs(self, stop: Callable[..., object]) -> Runs:
        """What the runs of a context are to handlers, where native code begins and ends them."""
        return Runs(stop)

    def carried(self, function: F) -> F:
        """A function for another thread, whose runs begin with the options and the user data of this one."""
        return carried(function)

    def run(self, go: Callable[[], object], stop: Callable[..., object], device: int, lent: Lent | None = None) -> None:
        """Run a program with these call sites. stop: lets it end, or go on if called with False. lent: of a device.

        Raises CallError.
        """
        run = Run(stop, device, lent)
        try:
            with running(run):
                for site in self._beginning:
                    site.begin()
                if run.error is None:
                    go()
        except Exception:
            if run.error is None:
                raise
        finally:
            run.end()
        run.raise_error()
