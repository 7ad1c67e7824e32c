"""Which custom calls cannot be made, and why: unknown targets, types that no buffer has, configs that XLA rejects."""

from __future__ import annotations

from ..hlo.conventions import CALL_REMEDIES
from ..hlo.errors import InputError, UnsupportedError
from ..hlo.ir import Instruction
from ..hlo.library.calls import refusal as routine_refusal
from ..hlo.library.foreign import aliases, is_packed
from .abi import DATA_TYPES
from .attributes import attributes_of
from .description import config_text
from .registry import HOST, CallVersion, lookup, platform_name


def refusal(i: Instruction, platform: str = HOST) -> UnsupportedError | None:
    """Why a custom call cannot be made on a platform; None if it can."""
    target = str(i.attributes.get("custom_call_target", ""))

    def refused(why: str) -> UnsupportedError:
        return UnsupportedError("ffi", f"custom-call({target})", remedy=why, location=i.location)

    shapes = [leaf for o in (*i.operands, i) for _, leaf in o.shape.leaves()]
    version = str(getattr(v := i.attributes.get("api_version", "API_VERSION_ORIGINAL"), "text", v))
    if target in CALL_REMEDIES:
        return refused(CALL_REMEDIES[target])
    if version not in CallVersion.__members__:
        return refused(f"{i.name} has the api_version {version}; one of {', '.join(CallVersion.__members__)}")
    strange = [s for s in shapes if s.dtype not in DATA_TYPES]
    if strange:
        return refused(f"{i.name} has an operand or result {strange[0]}, which no buffer of a handler can be")
    narrow = [s for s in shapes if is_packed(s)]
    if narrow and platform_name(platform) != HOST:
        return refused(f"convert {narrow[0]} to a type of whole bytes: {i.name} would not see it packed on a device")
    if any(s.is_dynamic for s in shapes):
        return refused(f"every dimension of {i.name} needs a fixed size")
    rows = i.attributes.get("output_to_operand_aliasing", ())
    if len(aliases(i)) != len(rows):
        return refused(f"{i.name} aliases an operand with several results")
    if routine_refusal(i) is not None:
        return None  # the call says it when it runs
    try:
        handler = lookup(target, platform, what=i.name, location=i.location)
        if handler.version is CallVersion.API_VERSION_TYPED_FFI:
            attributes_of(config_text(i))
    except UnsupportedError as error:
        return error
    except InputError as error:
        return refused(f"{i.name}: {error.message}")
    if platform_name(platform) != HOST and handler.version is not CallVersion.API_VERSION_TYPED_FFI:
        return refused(f"{i.name} has {version}; handlers on a device have API_VERSION_TYPED_FFI")
    if handler.version != CallVersion[version]:
        return refused(f"{i.name} has {version}, and its handler is registered with {handler.version.name}")
    return None
