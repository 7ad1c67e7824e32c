"""Writes a module in any format that files.py reads. What a format cannot express is refused, with its place."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..hlo.errors import InputError
from ..hlo.ir import Module
from .files import HLO, PROTO, STABLEHLO, SUFFIXES, TEXT_PROTO
from .stablehlo.stablehlo import export_in_child, parse_stablehlo
from .text.printer import print_module

BYTECODE = "StableHLO bytecode"

ENDINGS = {**SUFFIXES, ".mlirbc": BYTECODE}
"""The end of a file's name → the format that is written."""

DEVICES = ("replica_count", "num_partitions")
"""Attributes of a header that protos and StableHLO do not keep, and that change what a program computes."""


def output_format(name: str) -> str:
    """The format of a file to write, by its name. Raises InputError for a name with another ending."""
    for end, kind in ENDINGS.items():
        if name.endswith(end):
            return kind
    raise InputError(f"{name}: no format has this ending", remedy=f"end it in one of {', '.join(ENDINGS)}")


def module_to_bytes(module: Module, kind: str, name: str) -> bytes:
    """The module in a format. name: of the module's file, for errors.

    Raises InputError, with an instruction's place where one is to blame, for what the format cannot express.
    """
    return _WRITERS[kind](module, name)


def _hlo(module: Module, name: str) -> bytes:
    return print_module(module).encode("utf-8")


def _proto(module: Module, name: str) -> bytes:
    from .proto.proto import module_to_proto

    _check_devices(module, name, "a proto")
    return module_to_proto(module)


def _text_proto(module: Module, name: str) -> bytes:
    from .proto.proto import module_to_text_proto

    _check_devices(module, name, "a proto")
    return module_to_text_proto(module).encode("utf-8")


def _check_devices(module: Module, name: str, target: str) -> None:
    for key in DEVICES:
        if (count := int(module.attributes.get(key, 1))) != 1:
            raise InputError(
                f"{name}: {target} has no field for {key}={count} of the header",
                remedy=f"remove it, and give it to the compiler that reads {target}",
            )


_PLACE = re.compile(r'loc\("i(\d+)"')
_OPERATION = re.compile(r"'(\w+\.\w+)'")


def _stablehlo(bytecode: bool) -> Callable[[Module, str], bytes]:
    def write(module: Module, name: str) -> bytes:
        from .proto.proto import module_to_numbered_proto, module_to_proto

        _check_devices(module, name, "StableHLO")
        if module.attributes.get("is_scheduled"):
            raise InputError(
                f"{name}: StableHLO has no schedule", remedy="remove is_scheduled=true from the module's header"
            )
        code, _ = export_in_child(module_to_proto(module), name, bytecode=bytecode)
        if not code:
            _, message = export_in_child(module_to_numbered_proto(module), name, bytecode=bytecode)
            raise _refusal(module, message, name)
        _check_border(module, parse_stablehlo(code, name, isolate=True), name)
        return code

    return write


def _refusal(module: Module, message: str, name: str) -> InputError:
    """What the converter says of a module whose instructions are named i0, i1, …, with the place of the instruction."""
    place, operation = _PLACE.search(message), _OPERATION.search(message)
    first = next((line for line in message.splitlines() if "error: " in line), message.strip())
    why = f"XLA's {operation[1]} is no operation of StableHLO" if operation else first.split("error: ")[-1][:200]
    if place is None:
        return InputError(f"{name}: StableHLO cannot express this module: {why}")
    i = list(module.instructions())[int(place[1])]
    return InputError(
        f"{'' if i.location else f'{name}: '}StableHLO cannot express {i.name} = {i.opcode.value}(…): {why}",
        location=i.location,
        remedy="convert the module as it was before XLA's passes, or write a proto",
    )


def _check_border(module: Module, back: Module, name: str) -> None:
    """Raises InputError if the module, read back, has other parameters, results or aliases between them."""
    pairs = [
        ("parameters", *(tuple(s.without_layout() for s in m.parameter_shapes) for m in (module, back))),
        ("result", *(m.result_shape.without_layout() for m in (module, back))),
        *(
            (key, *(m.attributes.get(key) or None for m in (module, back)))
            for key in ("input_output_alias", "buffer_donor")
        ),
    ]
    for what, given, kept in pairs:
        if given != kept:
            shown = f" {given}" if what in ("parameters", "result") else ""
            raise InputError(f"{name}: StableHLO does not keep the module's {what}{shown}", remedy="write a proto")


_WRITERS: dict[str, Callable[[Module, str], bytes]] = {
    HLO: _hlo,
    PROTO: _proto,
    TEXT_PROTO: _text_proto,
    STABLEHLO: _stablehlo(bytecode=False),
    BYTECODE: _stablehlo(bytecode=True),
}
