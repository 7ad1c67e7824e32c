"""`load`: a module from whatever holds one: a path, text, bytes, a stage of JAX, a module of XLA or MLIR."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..hlo.errors import InputError, TestbedError
from ..hlo.ir import Module
from ..hlo.records import replace
from ..hlo.trees import Trees
from ..hlo.verify.verifier import verify
from .files import HLO, LOADERS, PROTO, STABLEHLO, TEXT_PROTO, Loaded, format_of, is_named, load_module
from .program import read_bytes, source_file

FORMATS = {"hlo": HLO, "stablehlo": STABLEHLO, "proto": PROTO, "pbtxt": TEXT_PROTO}
"""Name of a format as `load` takes it → its kind."""

TAKEN = "give a path, HLO or StableHLO text, the bytes of a file, a Module, or from JAX a Lowered, Compiled or Exported"


Read = Callable[[bytes, str], Loaded]
"""Reads the bytes of a file of this name, whose format it finds out."""


def load(source: Any, *, file: str | None = None, format: str | None = None, read: Read = load_module) -> Loaded:
    """The verified module in `source`, with its text if it has one.

    source: a path (a file, or a folder with module.hlo), HLO text, StableHLO text or bytecode, the text or bytes of
    an XLA proto (HloModuleProto, HloProto, HloSnapshot), an open file, a Module; from JAX a Traced, Lowered, Compiled
    or Exported, whose trees of arguments and results are kept; an MLIR module of StableHLO; an XlaComputation or
    HloModule of jaxlib; a protobuf message. A str is a path if it has one line and such a file exists, or if it holds
    neither `{` nor `=`.
    file: name of text or bytes in messages. format: 'hlo', 'stablehlo', 'proto' or 'pbtxt'; without it, the end of the
    file's name or the content decides. read: reads files of more formats than this room knows.

    Raises InputError if nothing can be read, ParseError with line and column if the text is malformed,
    VerificationError if the module breaks a rule of HLO.
    """
    if format is not None and format not in FORMATS:
        raise InputError(f"unknown format {format!r}", remedy=f"choose from {', '.join(FORMATS)}")
    if isinstance(source, Module):
        loaded = Loaded(source, "")
    elif isinstance(source, os.PathLike):
        loaded = _from_path(Path(source), format, read)
    elif isinstance(source, str):
        loaded = _from_str(source, file, format, read)
    elif isinstance(source, (bytes, bytearray, memoryview)):
        loaded = _from_bytes(bytes(source), file or "<bytes>", format, read)
    else:
        loaded = _from_object(source, file, format, read)
    verify(loaded.module)
    return loaded


def _from_str(source: str, file: str | None, format: str | None, read: Read) -> Loaded:
    one_line = "\n" not in source and "\0" not in source and source.strip()
    if one_line and file is None and (len(source) < 4096 and os.path.exists(source)):
        return _from_path(Path(source), format, read)
    if one_line and format is None and not set("{=") & set(source):
        raise InputError(
            f"{_cut(source)}: no such file, and no text of a module: it is one line without {{ or =", remedy=TAKEN
        )
    return _from_bytes(source.encode("utf-8", "surrogatepass"), file or "<string>", format, read)


def _from_path(path: Path, format: str | None, read: Read) -> Loaded:
    found = source_file(path)
    return _from_bytes(read_bytes(found), str(found), format, read)


def _from_bytes(data: bytes, file: str, format: str | None, read: Read) -> Loaded:
    if format is not None:
        return LOADERS[FORMATS[format]](data, file)
    kind = format_of(data, file)
    try:
        return read(data, file)
    except TestbedError as error:
        why = "" if is_named(data, file) else _why(kind, data)
        if why:
            other = f"taken for {kind}: {why}; format='…' names another ({', '.join(FORMATS)})"
            error.remedy = f"{error.remedy}; {other}" if error.remedy else other
        raise


def _why(kind: str, data: bytes) -> str:
    """Why a kind was guessed from the content, if the guess is a weak one."""
    if kind == PROTO:
        return "it is neither UTF-8 text nor MLIR bytecode"
    if kind == HLO and data.strip() and not data.lstrip().startswith((b"HloModule", b"ENTRY", b"//", b"/*", b"%")):
        return "it looks neither like StableHLO nor like a proto"
    return ""


def _cut(text: str, most: int = 60) -> str:
    return repr(text if len(text) <= most else text[: most - 1] + "…")


# -- objects of other libraries, recognised by their methods, so that none of them is imported -------------------------
def _from_object(source: Any, file: str | None, format: str | None, read: Read) -> Loaded:
    for methods, read_object in READERS:
        if all(hasattr(source, name) for name in methods):
            return Loaded(read_object(source), "")
    if callable(getattr(source, "read", None)):
        data = source.read()
        name = file or getattr(source, "name", None)
        shown = name if isinstance(name, str) else "<file>"
        return _from_bytes(data.encode() if isinstance(data, str) else bytes(data), shown, format, read)
    raise InputError(f"no module can be read from {_type_of(source)}", remedy=TAKEN)


def _type_of(source: Any) -> str:
    kind = type(source)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _from_lowered(lowered: Any) -> Module:
    module = _from_mlir(lowered.compiler_ir("stablehlo"), "<jax Lowered>")
    kept = getattr(getattr(lowered, "_lowering", None), "compile_args", {}).get("kept_var_idx")
    return _with_trees(module, lowered.in_tree, lowered.out_tree, kept)


def _from_compiled(compiled: Any) -> Module:
    """The module as XLA optimised it."""
    modules = compiled.runtime_executable().hlo_modules()
    if len(modules) != 1:
        raise InputError(f"this Compiled holds {len(modules)} modules", remedy="load each of its hlo_modules()")
    kept = getattr(getattr(compiled, "_executable", None), "_kept_var_idx", None)
    return _with_trees(_from_xla(modules[0], "<jax Compiled>"), compiled.in_tree, compiled.out_tree, kept)


def _from_exported(exported: Any) -> Module:
    module = LOADERS[STABLEHLO](exported.mlir_module_serialized, "<jax Exported>").module
    return _with_trees(module, exported.in_tree, exported.out_tree, exported.module_kept_var_idx)


def _from_jitted(function: Any) -> Module:
    raise InputError(
        f"the jitted function {getattr(function, '__name__', function)!r} has no shapes yet",
        remedy="give function.lower(*arguments)",
    )


def _from_mlir(module: Any, file: str = "<MLIR module>") -> Module:
    text = module.operation.get_asm(enable_debug_info=True)
    from .stablehlo.stablehlo import parse_stablehlo

    return parse_stablehlo(text.encode(), file)


def _from_xla(holder: Any, file: str = "<XLA module>") -> Module:
    return LOADERS[PROTO](holder.as_serialized_hlo_module_proto(), file).module


def _from_message(message: Any) -> Module:
    return LOADERS[PROTO](message.SerializeToString(), f"<{type(message).__name__}>").module


def _with_trees(module: Module, arguments: Any, results: Any, kept: Any) -> Module:
    """The module with JAX's trees. Raises InputError if its parameters are not the kept leaves of the arguments."""
    count, given = len(module.entry.parameters), arguments.num_leaves
    chosen = tuple(range(given)) if kept is None else tuple(sorted(kept))
    if len(chosen) != count:
        raise InputError(
            f"the module takes {count} parameters, but JAX passes {len(chosen)} leaves of the function's arguments",
            remedy="load the text of the module, .as_text(), and pass the leaves yourself",
        )
    return replace(module, trees=Trees(arguments, results, chosen))


READERS: tuple[tuple[tuple[str, ...], Callable[[Any], Module]], ...] = (
    (("compiler_ir", "in_tree", "out_tree"), _from_lowered),
    (("runtime_executable", "in_tree", "out_tree"), _from_compiled),
    (("mlir_module_serialized", "in_tree", "out_tree"), _from_exported),
    (("jaxpr", "in_tree", "lower"), lambda traced: _from_lowered(traced.lower())),
    (("lower", "trace", "eval_shape"), _from_jitted),
    (("as_serialized_hlo_module_proto",), _from_xla),
    (("operation", "context"), _from_mlir),
    (("SerializeToString", "DESCRIPTOR"), _from_message),
)
"""Methods that a class has → how its module is read; the first row that fits."""
