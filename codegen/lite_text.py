"""Names of values of llvmlite's, and the text of a module, as llvmlite gives them, in less time: an instruction is one
formatted string, and none keeps its text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from llvmlite.ir import instructions as kinds
from llvmlite.ir._utils import DuplicatedNameError, NameScope


class Names(NameScope):
    """The names of a function's values: the same ones, in one step."""

    def register(self, name: str, deduplicate: bool = False) -> str:
        used, base = self._useset, name
        if name in used and not deduplicate:
            raise DuplicatedNameError(name)
        while name in used:
            number = self._basenamemap[base] = self._basenamemap[base] + 1
            name = f"{base}.{number}"
        used.add(name)
        return name


def name_fast(function: ir.Function) -> None:
    """Name the values of a function by `Names` from now on. It must not have blocks yet."""
    function.scope.__class__ = Names


def module_text(module: ir.Module) -> str:
    """LLVM IR of a module."""
    lines = [
        f'; ModuleID = "{module.name}"',
        f'target triple = "{module.triple}"',
        f'target datalayout = "{module.data_layout}"',
        "",
        *(declared.get_declaration() for declared in module.get_identified_types().values()),
    ]
    for value in module.globals.values():
        lines.append(_function(value) if isinstance(value, ir.Function) and value.blocks else str(value))
    return "\n".join([*lines, *module._get_metadata_lines()])


def _function(function: ir.Function) -> str:
    """A function with a body."""
    names = "".join(function.scope._useset)
    if '"' in names or "\\" in names:
        return str(function)
    lines: list[str] = []
    function.descr_prototype(lines)
    lines.append("{\n")
    for block in function.blocks:
        lines.append(f"{block._format_name()}:\n")
        for instruction in block.instructions:
            write = _WRITERS.get(instruction.__class__)
            lines.append(write(instruction) if write is not None else f"  {instruction}\n")
    lines.append("}\n")
    return "".join(lines)


_KEPT = "_StrCaching__cached_str"
"""Where llvmlite's types keep their text, once asked for it."""


def _type(type_: Any) -> str:
    return getattr(type_, _KEPT, None) or str(type_)


def _reference(value: Any) -> str:
    """How an operand is written, without its type."""
    of = value.__class__
    if of in _NAMED:
        return f'%"{value._name}"'
    if of is ir.Constant:
        given, type_ = value.constant, value.type
        if given.__class__ is int and type_.__class__ is ir.IntType:
            return str(given)
        if given.__class__ is list and type_.__class__ is ir.VectorType:
            return f"<{', '.join([_typed(lane) for lane in given])}>"
    found: str = value.get_reference()
    return found


def _typed(value: Any) -> str:
    type_ = value.type
    return f"{getattr(type_, _KEPT, None) or str(type_)} {_reference(value)}"


def _end(i: Any, before: str = "") -> str:
    """The end of a line, of an instruction that has a space before its metadata or has none."""
    return f"{before}{i._stringify_metadata(leading_comma=True)}\n" if i.metadata else "\n"


def _operation(i: Any) -> str:
    name = f"{i.opname} {' '.join(i.flags)}" if i.flags else i.opname
    operands = ", ".join([_reference(value) for value in i.operands])
    return f'  %"{i._name}" = {name} {_type(i.type)} {operands}{_end(i)}'


def _call(i: Any) -> str:
    callee, *given = i.operands
    signature = callee.function_type
    if i.arg_attributes or i.cconv or signature.var_arg:
        return f"  {i}\n"
    result = signature.return_type
    before = "  " if result.__class__ is ir.VoidType else f'  %"{i._name}" = '
    if i.tail:
        before += f"{i.tail} "
    fast = f" {' '.join(i.fastmath._to_list(result))}" if i.fastmath else ""
    attributes = f" {' '.join(i.attributes._to_list(result))}" if i.attributes else ""
    arguments = ", ".join([_typed(value) for value in given])
    return f"{before}call{fast} {_type(result)} {callee.get_reference()}({arguments}){attributes}{_end(i)}"


def _terminator(i: Any) -> str:
    return f"  {i.opname} {', '.join([_typed(value) for value in i.operands])}{_end(i)}"


def _return(i: Any) -> str:
    value = _typed(i.operands[0]) if i.operands else ""
    return f"  ret {value}{_end(i)}" if value else f"  ret void{_end(i)}"


def _stack(i: Any) -> str:
    count = f", {_typed(i.operands[0])}" if i.operands else ""
    align = "" if i.align is None else f", align {i.align}"
    return f'  %"{i._name}" = alloca {_type(i.allocated_type)}{count}{align}{_end(i)}'


def _select(i: Any) -> str:
    condition, left, right = i.operands
    flags = " ".join(i.flags)
    return f'  %"{i._name}" = select {flags} {_typed(condition)}, {_typed(left)}, {_typed(right)}{_end(i, " ")}'


def _compare(i: Any) -> str:
    left, right = i.operands
    name = f"{i.opname} {' '.join(i.flags)}" if i.flags else i.opname
    return f'  %"{i._name}" = {name} {i.op} {_typed(left)}, {_reference(right)}{_end(i, " ")}'


def _cast(i: Any) -> str:
    return f'  %"{i._name}" = {i.opname} {_typed(i.operands[0])} to {_type(i.type)}{_end(i, " ")}'


def _load(i: Any) -> str:
    align = "" if i.align is None else f", align {i.align}"
    return f'  %"{i._name}" = load {_type(i.type)}, {_typed(i.operands[0])}{align}{_end(i)}'


def _store(i: Any) -> str:
    align = "" if i.align is None else f", align {i.align}"
    value, address = i.operands
    return f"  store {_typed(value)}, {_typed(address)}{align}{_end(i)}"


def _address(i: Any) -> str:
    name = "getelementptr inbounds" if i.inbounds else "getelementptr"
    indices = ", ".join([_typed(index) for index in i.indices])
    return f'  %"{i._name}" = {name} {_type(i.source_etype)}, {_typed(i.pointer)}, {indices}{_end(i, " ")}'


def _phi(i: Any) -> str:
    arms = ", ".join([f'[{_reference(value)}, %"{block._name}"]' for value, block in i.incomings])
    return f'  %"{i._name}" = phi {" ".join(i.flags)} {_type(i.type)} {arms}{_end(i, " ")}'


def _lanes(i: Any) -> str:
    """Of a lane, or lanes, of vectors. llvmlite prints metadata of shuffles only."""
    end = _end(i, " ") if i.__class__ is kinds.ShuffleVector else "\n"
    return f'  %"{i._name}" = {i.opname} {", ".join([_typed(value) for value in i.operands])}{end}'


_WRITERS: dict[type, Callable[[Any], str]] = {
    kinds.Instruction: _operation,
    kinds.CallInstr: _call,
    kinds.Branch: _terminator,
    kinds.ConditionalBranch: _terminator,
    kinds.Ret: _return,
    kinds.AllocaInstr: _stack,
    kinds.SelectInstr: _select,
    kinds.ICMPInstr: _compare,
    kinds.FCMPInstr: _compare,
    kinds.CastInstr: _cast,
    kinds.LoadInstr: _load,
    kinds.StoreInstr: _store,
    kinds.GEPInstr: _address,
    kinds.PhiInstr: _phi,
    kinds.ExtractElement: _lanes,
    kinds.InsertElement: _lanes,
    kinds.ShuffleVector: _lanes,
}
"""Class of an instruction → its line; llvmlite writes others."""

_NAMED = frozenset({*_WRITERS, ir.Block, ir.Argument, kinds.ExtractValue, kinds.InsertValue})
"""Classes of what has a name in its function."""
