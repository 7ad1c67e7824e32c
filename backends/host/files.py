"""Executable → the bytes of a .tbx file; and the module that stands for a program in such a file."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...codegen.features import needed_features
from ...codegen.load import symbols_of
from ...hlo.display import PACKAGE
from ...hlo.errors import InputError
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.trees import Trees
from ..calling import label_of

if TYPE_CHECKING:
    from ...codegen.load import LoadedCode
    from ...codegen.options import Target
    from ...thunks.image import Image
    from ...thunks.wire.program import Entry, TreeBytes

PRODUCER = "testbed"
CALLED = "testbed_executable"
"""Target of the custom call that stands for a program of which there is only machine code."""


def pieces(
    entry: Entry, image: Image, code: LoadedCode, host: bytes, target: Target, key: bytes | None
) -> Iterator[bytes | memoryview]:
    """The bytes of the file, in pieces. host: MLIR bytecode of the compiled host program, or nothing."""
    from ...thunks.wire.program import Needs, ProgramFile, write_program

    symbols = tuple(sorted(symbols_of(code.objects).undefined))
    version = import_module(PACKAGE).__version__
    needs = Needs(PRODUCER, version, target.triple, needed_features(target), symbols)
    return write_program(ProgramFile(needs, entry, image, code.objects, host), key)


def entry_of(module: Module) -> Entry:
    from ...thunks.wire.program import Entry, Parameter

    parameters = []
    for p in module.entry.parameters:
        label = label_of(p)
        parameters.append(Parameter(p.name, "" if label == p.name else label, p.shape))
    return Entry(module.name, tuple(parameters), module.result_shape, _tree_bytes(module.trees))


def module_of(entry: Entry) -> Module:
    """A module with the parameters and the result of a program, whose one instruction calls it."""
    parameters = []
    for number, p in enumerate(entry.parameters):
        attributes: dict[str, Any] = {"parameter_number": number}
        if p.label:
            from ...hlo.attributes import Raw

            escaped = p.label.replace("\\", "\\\\").replace('"', '\\"')
            attributes["metadata"] = Raw(f'{{op_name="{escaped}"}}')
        parameters.append(Instruction(Op.PARAMETER, p.name, p.shape, (), MappingProxyType(attributes)))
    name = "program"
    while name in {p.name for p in parameters}:
        name += "_"
    target = MappingProxyType({"custom_call_target": CALLED})
    root = Instruction(Op.CUSTOM_CALL, name, entry.result, tuple(parameters), target)
    main = Computation("main", (*parameters, root), root)
    return Module(entry.name, (main,), main)


# -- JAX's trees -------------------------------------------------------------------------------------------------------
def _tree_bytes(trees: Trees | None) -> TreeBytes | None:
    from ...thunks.wire.program import TreeBytes

    if trees is None:
        return None
    try:
        arguments = trees.arguments.serialize_using_proto()
        results = None if trees.results is None else trees.results.serialize_using_proto()
    except ValueError as error:
        raise InputError(
            f"the trees of the program cannot be written: {str(error).partition('. ')[0]}",
            remedy="lower a function of dicts, lists and tuples, or save the module read from its text",
        ) from None
    return TreeBytes(arguments, results, trees.kept)


def trees_of(entry: Entry) -> Trees | None:
    """The trees as values of JAX; None if there are none. Raises InputError where JAX is not installed, or for trees
    that are not of the program's arguments and results.
    """
    if entry.trees is None:
        return None
    try:
        from jax.tree_util import PyTreeDef, default_registry
    except ImportError:
        raise InputError(
            "the program takes and returns trees of JAX, which is not installed",
            remedy="install jax, or call execute() with a list of arrays",
        ) from None
    found, kept = [], entry.trees.kept
    for data in (entry.trees.arguments, entry.trees.results):
        try:
            found.append(None if data is None else PyTreeDef.deserialize_using_proto(default_registry, data))
        except Exception as error:  # JAX's own classes of errors differ between versions
            raise InputError(f"the program's trees are none of JAX: {error}") from None
    arguments, results = found
    given = sum(leaf.is_array for p in entry.parameters for _, leaf in p.shape.leaves())
    made = sum(leaf.is_array for _, leaf in entry.result.leaves())
    fits = arguments is not None and len(kept) == given and max(kept, default=-1) < arguments.num_leaves
    if not fits or (results is not None and results.num_leaves != made):
        raise InputError("the program's trees are not those of its arguments and results")
    return Trees(arguments, results, kept)
