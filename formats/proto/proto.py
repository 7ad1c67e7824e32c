"""HloModuleProto, HloProto and HloSnapshot, binary and text, ↔ Module: the files that `xla_dump_to` writes.

Names are kept; ids are numbered again on writing. A proto always has layouts and `entry_computation_layout`, so a
module without them comes back with row-major ones. The proto does not hold what XLA keeps in its HloModuleConfig
(replica_count, num_partitions, sharding propagation), so these are lost; docs/formats.md says more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from ...hlo.errors import InputError, TestbedError
from ...hlo.ir import Literal, Module
from ...hlo.shapes import Shape
from .damage import find_damage
from .reader import read_module
from .schema import message
from .shapes import read_literal, write_literal
from .writer import write_module


@dataclass(frozen=True)
class Snapshot:
    """A module with the arguments and the result of one run (None if the dump has no result)."""

    module: Module
    arguments: tuple[Literal, ...] = ()
    result: Literal | None = None
    platform: str = ""


# -- modules ----------------------------------------------------------------------------------------------------------
def module_from_proto(data: bytes, file: str = "<bytes>") -> Module:
    """The module in a serialised HloModuleProto, HloProto or HloSnapshot.

    Raises InputError with the byte offset or the field of the mistake.
    """
    return snapshot_from_proto(data, file).module


def module_to_proto(module: Module) -> bytes:
    """A serialised HloModuleProto."""
    return _guarded("<module>", lambda: write_module(module).SerializeToString(deterministic=True))


def module_to_numbered_proto(module: Module) -> bytes:
    """`module_to_proto` with instructions named i0, i1, … in the order of the module, and without metadata.

    XLA's diagnostics on it name an instruction by its number.
    """
    proto = _guarded("<module>", lambda: write_module(module))
    instructions = (i for computation in proto.computations for i in computation.instructions)
    for number, instruction in enumerate(instructions):
        instruction.name = f"i{number}"
        instruction.ClearField("metadata")
    return proto.SerializeToString(deterministic=True)


def module_from_text_proto(text: str, file: str = "<string>") -> Module:
    return snapshot_from_text_proto(text, file).module


def module_to_text_proto(module: Module) -> str:
    return _guarded("<module>", lambda: text_format.MessageToString(write_module(module)))


# -- snapshots --------------------------------------------------------------------------------------------------------
def snapshot_from_proto(data: bytes, file: str = "<bytes>") -> Snapshot:
    """The module of a proto of any of the three kinds, with arguments and result if it is an HloSnapshot.

    Raises InputError if the bytes are none of the three or are damaged.
    """
    best: tuple[int, str] | None = None
    for kind in ("HloSnapshot", "HloProto", "HloModuleProto"):
        proto = message(kind)()
        try:
            proto.ParseFromString(data)
        except (DecodeError, ValueError, RuntimeError):
            damage = find_damage(data, proto.DESCRIPTOR)
            best = max(best, damage) if best else damage
            continue
        if _module_of(proto).computations:
            return _guarded(file, partial(_snapshot, proto))
    if best is None or not data:
        raise InputError(
            f"{file}: no computation in this proto", remedy="give an HloModuleProto, HloProto or HloSnapshot"
        )
    raise InputError(f"{file}: damaged at byte {best[0]} of {len(data)}: {best[1]}", remedy="is the file whole?")


def snapshot_from_text_proto(text: str, file: str = "<string>") -> Snapshot:
    """`snapshot_from_proto` for the text form of a proto."""
    failures: list[tuple[tuple[int, int], str]] = []
    for kind in ("HloModuleProto", "HloProto", "HloSnapshot"):
        proto = message(kind)()
        try:
            text_format.Parse(text, proto)
        except text_format.ParseError as error:
            failures.append(((error.GetLine() or 1, error.GetColumn() or 1), str(error)))
            continue
        except (ValueError, RecursionError, OverflowError, TypeError) as error:
            failures.append(((1, 1), str(error)))
            continue
        if _module_of(proto).computations:
            return _guarded(file, partial(_snapshot, proto))
    if not failures or len(failures) < 3:
        raise InputError(
            f"{file}: no computation in this proto", remedy="give an HloModuleProto, HloProto or HloSnapshot"
        )
    (line, column), why = max(failures)
    why = why.split(" : ", 1)[-1]
    raise InputError(f"{file}:{line}:{column}: not the text of an HLO proto: {why}", remedy="is the file whole?")


def snapshot_to_proto(snapshot: Snapshot) -> bytes:
    """A serialised HloSnapshot."""
    return _guarded("<snapshot>", lambda: _write_snapshot(snapshot).SerializeToString(deterministic=True))


def snapshot_to_text_proto(snapshot: Snapshot) -> str:
    return _guarded("<snapshot>", lambda: text_format.MessageToString(_write_snapshot(snapshot)))


def _module_of(proto: Any) -> Any:
    for field in ("hlo", "hlo_module"):
        if field in proto.DESCRIPTOR.fields_by_name:
            proto = getattr(proto, field)
    return proto


def _snapshot(proto: Any) -> Snapshot:
    module = read_module(_module_of(proto))
    if proto.DESCRIPTOR.name != "HloSnapshot":
        return Snapshot(module)
    arguments = tuple(read_literal(a, f"arguments[{i}]") for i, a in enumerate(proto.arguments))
    result = read_literal(proto.result, "result") if proto.HasField("result") else None
    return Snapshot(module, arguments, result, proto.execution_platform)


def _write_snapshot(snapshot: Snapshot) -> Any:
    proto = message("HloSnapshot")()
    proto.hlo.hlo_module.CopyFrom(write_module(snapshot.module))
    for argument in snapshot.arguments:
        write_literal(argument, proto.arguments.add())
    if snapshot.result is not None:
        write_literal(snapshot.result, proto.result)
    proto.execution_platform = snapshot.platform
    return proto


def leaves(literals: Sequence[Literal]) -> tuple[np.ndarray, ...]:
    """The arrays of literals, with tuples flattened in order; a token has none."""
    out: list[np.ndarray] = []
    for literal in literals:
        if isinstance(literal.value, tuple):
            out.extend(leaves(literal.value))
        elif literal.shape.is_array:
            out.append(literal.array)
    return tuple(out)


def literal_of(arrays: Sequence[np.ndarray], shape: Shape) -> Literal:
    """A literal of `shape` (an array or a tuple) from its leaves."""
    queue = iter(arrays)

    def build(shape: Shape) -> Literal:
        if shape.is_tuple:
            return Literal(shape, tuple(build(e) for e in shape.elements))
        return Literal(shape, next(queue) if shape.is_array else None)

    return build(shape)


def _guarded(file: str, work: Any) -> Any:
    """Runs `work` and turns every error that bad values can cause into an InputError that names the file."""
    try:
        return work()
    except InputError as error:
        raise InputError(f"{file}: {error.message}", location=error.location, remedy=error.remedy) from None
    except TestbedError:
        raise
    except RecursionError:
        raise InputError(f"{file}: nests too deep", remedy="is the proto damaged?") from None
    except (ValueError, OverflowError, TypeError, UnicodeError) as error:
        raise InputError(f"{file}: {error}", remedy="is the proto damaged?") from None
