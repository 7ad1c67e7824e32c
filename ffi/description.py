"""A description of one call site: what its handler is called with. It lies in the program's code, also in its file."""

from __future__ import annotations

import ctypes
import json
from dataclasses import asdict, dataclass

from ..formats.documents import json_of
from ..hlo.dtypes import DType
from ..hlo.errors import InputError
from ..hlo.ir import Instruction
from ..hlo.library.calls import refusal
from ..hlo.shapes import Shape
from .attributes import Attributes, attributes_of
from .registry import CallVersion

CALL, SITE, COPYING = ".ffi_call", ".ffi_site", ".ffi_copying"
"""Behind the symbol of a kernel: its description; the word for the address of its call site (sites.py); and the
function for calls with a frame of their own.
"""


@dataclass(frozen=True, slots=True)
class Description:
    """name: of the HLO instruction. version: name of a CallVersion. config: the text of its backend_config.

    operands, results: (name of the element type, dimensions) of each leaf. is_tuple: the result is one, which matters
    to the older versions only. attributes: those of the config, decoded; of a typed call only. refusal: why the
    target's routine does not take the call, which it says when it runs; "" where there is no such reason.
    """

    name: str
    target: str
    version: str
    config: str
    operands: tuple[tuple[str, tuple[int, ...]], ...]
    results: tuple[tuple[str, tuple[int, ...]], ...]
    is_tuple: bool
    attributes: Attributes = ()
    refusal: str = ""

    def to_bytes(self) -> bytes:
        """As JSON with a zero byte behind it."""
        return json.dumps(asdict(self), separators=(",", ":")).encode("ascii") + b"\0"

    @staticmethod
    def at(address: int) -> Description:
        """Read what `to_bytes` wrote to memory. Raises InputError if that is damaged."""
        return Description.of_bytes(ctypes.string_at(address))

    @staticmethod
    def of_bytes(data: bytes) -> Description:
        """What `to_bytes` wrote, without the zero byte. Raises InputError if that is damaged."""
        try:
            fields = json_of(data)
            for key in ("operands", "results"):
                fields[key] = tuple((str(dtype), tuple(map(int, dims))) for dtype, dims in fields[key])
            return Description(**fields)
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(f"a custom call whose description is damaged: {error}") from None


def describe(i: Instruction) -> Description:
    """The description of a custom call whose operands are arrays or tokens."""
    given = i.attributes.get("api_version", CallVersion.API_VERSION_ORIGINAL.name)
    why = refusal(i) or ""
    name = CallVersion.API_VERSION_TYPED_FFI.name if why else str(getattr(given, "text", given))
    return Description(
        i.name,
        str(i.attributes["custom_call_target"]),
        name,
        config_text(i),
        tuple(_leaf(leaf) for o in i.operands for _, leaf in o.shape.leaves()),
        tuple(_leaf(leaf) for _, leaf in i.shape.leaves()),
        i.shape.is_tuple,
        attributes_of(config_text(i)) if name == CallVersion.API_VERSION_TYPED_FFI.name and not why else (),
        why,
    )


def config_text(i: Instruction) -> str:
    """The backend_config as text, whether it was quoted or a bare dictionary."""
    config = i.attributes.get("backend_config", "")
    return str(getattr(config, "text", config))


def _leaf(shape: Shape) -> tuple[str, tuple[int, ...]]:
    return shape.dtype.value, () if shape.dtype is DType.TOKEN else shape.dims
