"""A binding and a frame → the arguments of the Python function, and a function that passes them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..abi import AttrType, CallFrame
from .attributes import FAILED, AttrDecoding, Diagnostics, attr_decoding
from .buffers import Remaining, RemainingArgs, RemainingRets, decode_operand, is_narrow, write_back
from .context import Call, close, decode_context
from .errors import Error, error_of
from .frames import RawAttr, RawAttrs, RawBuffer, Snapshot
from .specs import ArgSpec, AttrSpec, AttrsSpec, BufferSpec, CtxSpec, OptionalSpec, RemainingSpec, ResultSpec, Spec


@dataclass(frozen=True, slots=True)
class Bound:
    """How many of a kind a binding has; remaining: and all further ones."""

    count: int
    optional: int
    remaining: bool

    def refused(self, got: int, what: str, stage: str) -> Error | None:
        """XLA's check of the number of arguments or results, with the numbers that it prints."""
        if self.remaining or self.optional:
            if got >= self.count:
                return None
            least = self.count - self.optional - (1 if self.remaining else 0)
            text = f"Wrong number of {what}: expected at least {least} but got {got}"
        elif got == self.count or not self.count:
            return None
        else:
            text = f"Wrong number of {what}: expected {self.count} but got {got}"
        return Error.invalid_argument(f"[{stage}] {text}")


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of parameters of a binding, and the names of its attributes in their order and sorted."""

    args: Bound
    rets: Bound
    names: tuple[bytes, ...]

    @staticmethod
    def of(specs: tuple[Spec, ...]) -> Counts:
        def bound(kind: type, is_result: bool) -> Bound:
            optional = sum(isinstance(s, OptionalSpec) and s.is_result == is_result for s in specs)
            return Bound(sum(isinstance(s, kind) for s in specs), optional, RemainingSpec(is_result) in specs)

        names = tuple((s.name or "").encode() for s in specs if isinstance(s, AttrSpec))
        return Counts(bound(ArgSpec, False), bound(ResultSpec, True), names)

    def refused(self, frame: CallFrame, stage: str) -> Error | None:
        args = self.args.refused(frame.args.size, "arguments", stage)
        return args or self.rets.refused(frame.rets.size, "results", stage)

    def refused_attributes(self, attrs: RawAttrs, stage: str) -> Error | None:
        if not self.names or len(attrs.names) == len(self.names):
            return None
        text = f"[{stage}] Wrong number of attributes: expected {len(self.names)} but got {len(attrs.names)}"
        if attrs.names:
            text += " with name(s): " + ", ".join(n.decode("utf-8", "replace") for n in attrs.names)
        return Error.invalid_argument(text)


@dataclass(slots=True)
class Decoded:
    """The arguments of one call site. makers: number of a parameter → what makes its value at each call.

    views: pairs of a buffer's address and the array on it. packed: results whose arrays have memory of their own.
    repeatable: whether later calls may reuse all this.
    """

    values: list[Any] = field(default_factory=list)
    makers: dict[int, Callable[[], Any]] = field(default_factory=dict)
    contexts: dict[int, Any] = field(default_factory=dict)
    views: list[tuple[int, np.ndarray]] = field(default_factory=list)
    packed: list[tuple[RawBuffer, np.ndarray]] = field(default_factory=list)
    repeatable: bool = True

    @property
    def wants_ctx(self) -> bool:
        return bool(self.contexts)

    def add_view(self, buffer: RawBuffer, array: np.ndarray) -> None:
        """Note an array on a buffer's memory; one that has memory of its own follows no buffer."""
        if isinstance(array.base, ctypes.Array):
            self.views.append((buffer.address, array))
        elif array.size:
            self.repeatable = False
            if is_narrow(buffer) and array.flags.writeable:
                self.packed.append((buffer, array))

    def write_back(self) -> None:
        """Pack the results whose elements are narrower than a byte."""
        for buffer, array in self.packed:
            write_back(buffer, array)


def decode_all(specs: tuple[Spec, ...], found: Snapshot, stage: str, call: Call) -> Decoded | Error:
    """Decode all parameters, but those of the context, which differ from call to call."""
    return _Decoder(specs, found).run(stage, call)


class _Decoder:
    def __init__(self, specs: tuple[Spec, ...], found: Snapshot):
        self.specs, self.found = specs, found
        self.taken = {False: 0, True: 0}
        self.diagnostics: Diagnostics = []
        self.out = Decoded()
        names = sorted({(s.name or "").encode() for s in specs if isinstance(s, AttrSpec)})
        self.places = {name: place for place, name in enumerate(names)}

    def run(self, stage: str, call: Call) -> Decoded | Error:
        texts: list[str] = []
        for number, spec in enumerate(self.specs):
            self.out.values.append(self.one(number, spec))
            texts.append("".join(self.diagnostics))
            self.diagnostics.clear()
        if all(value is not FAILED for value in self.out.values):
            return self.out
        for number, kind in self.out.contexts.items():  # so that the error names all that is wrong
            self.out.values[number] = decode_context(kind, call, self.diagnostics)
            texts[number] = "".join(self.diagnostics)
            self.diagnostics.clear()
            close(self.out.values[number])
        return _undecoded(stage, [n for n, value in enumerate(self.out.values) if value is FAILED], texts)

    def one(self, number: int, spec: Spec) -> Any:
        if isinstance(spec, (ArgSpec, ResultSpec)):
            return self.operand(number, spec.of, isinstance(spec, ResultSpec))
        if isinstance(spec, OptionalSpec):
            absent = self.taken[spec.is_result] >= len(self.buffers(spec.is_result))
            return None if absent else self.operand(number, spec.of, spec.is_result)
        if isinstance(spec, RemainingSpec):
            return self.remaining(spec.is_result)
        if isinstance(spec, AttrSpec):
            return self.attr(number, spec)
        if isinstance(spec, AttrsSpec):
            raw = RawAttr(AttrType.DICTIONARY, entries=self.found.attrs)
            return self.decoded(number, attr_decoding(spec.type), raw)
        assert isinstance(spec, CtxSpec)
        self.out.contexts[number] = spec.type
        return None

    def buffers(self, is_result: bool) -> tuple[RawBuffer, ...]:
        return self.found.rets if is_result else self.found.args

    def operand(self, number: int, of: Any, is_result: bool) -> Any:
        index = self.taken[is_result]
        self.taken[is_result] += 1
        buffer = self.buffers(is_result)[index]
        value = decode_operand(of, buffer, is_result, self.diagnostics)
        if isinstance(of, BufferSpec) and value is not FAILED:
            self.out.add_view(buffer, value)
        elif value is not FAILED:
            self.out.repeatable = False
        return value

    def remaining(self, is_result: bool) -> Remaining:
        rest = self.buffers(is_result)[self.taken[is_result] :]
        made = RemainingRets(rest) if is_result else RemainingArgs(rest)
        for buffer, array in zip(rest, made.views):
            if array is None:
                self.out.repeatable = False
            else:
                self.out.add_view(buffer, array)
        return made

    def attr(self, number: int, spec: AttrSpec) -> Any:
        name = (spec.name or "").encode()
        place = self.places[name]
        got = self.found.attrs.names[place]
        if got != name:
            self.diagnostics.append(f"Attribute name mismatch: {got.decode('utf-8', 'replace')} vs {spec.name}")
            return FAILED
        return self.decoded(number, attr_decoding(spec.type), self.found.attrs.attrs[place])

    def decoded(self, number: int, decoding: AttrDecoding, raw: RawAttr) -> Any:
        value = decoding.decode(raw, self.diagnostics)
        if not decoding.constant:
            self.out.makers[number] = lambda: decoding.decode(raw, [])
        return value


def _undecoded(stage: str, bad: list[int], diagnostics: Diagnostics) -> Error:
    places, why = ", ".join(map(str, bad)), "".join(diagnostics)
    text = f"[{stage}] Failed to decode all FFI handler operands (bad operands at: {places})"
    return Error.invalid_argument(text + (f"\nDiagnostics:\n{why}" if why else ""))


def compile_call(
    function: Callable[..., Any], specs: tuple[Spec, ...], decoded: Decoded, api_address: int, stage: str
) -> Callable[..., Any]:
    """A function that calls the handler with its decoded arguments, and returns an Error for what it raises.

    It takes the context's address, if the handler wants something of it.
    """
    names = [f"v{number}" for number in range(len(specs))]
    arguments = ", ".join(f"{n}()" if k in decoded.makers else n for k, n in enumerate(names))
    values = [decoded.makers.get(number, value) for number, value in enumerate(decoded.values)]
    if not decoded.contexts:
        return _generated(tuple(names), arguments)(function, error_of, *values)  # type: ignore[no-any-return]
    contexts = decoded.contexts

    def call(ctx: int) -> Any:
        diagnostics: Diagnostics = []
        given = Call(api_address, ctx)
        found = {number: decode_context(kind, given, diagnostics) for number, kind in contexts.items()}
        try:
            bad = [number for number, value in found.items() if value is FAILED]
            if bad:
                return _undecoded(stage, bad, diagnostics)
            made = [found.get(k, v() if k in decoded.makers else v) for k, v in enumerate(values)]
            return function(*made)
        except BaseException as error:
            return error_of(error)
        finally:
            for value in found.values():
                close(value)

    return call


_GENERATED: dict[tuple[tuple[str, ...], str], Any] = {}


def _generated(names: tuple[str, ...], arguments: str) -> Any:
    """`make` for a list of arguments: a closure of locals is what Python calls fastest."""
    made = _GENERATED.get((names, arguments))
    if made is None:
        defaults = ", ".join(["function=function", "failed=failed", *(f"{n}={n}" for n in names)])
        text = f"""
def make(function, failed, {", ".join(names)}):
    def call({defaults}):
        try:
            return function({arguments})
        except BaseException as error:
            return failed(error)
    return call
"""
        namespace: dict[str, Any] = {}
        exec(text, namespace)
        made = _GENERATED[names, arguments] = namespace["make"]
    return made
