"""The LHLO dialect: IRDL text that is generated from the op table and loaded once into each MLIR context."""

from __future__ import annotations

import sys
from functools import cache
from types import ModuleType

from mlir import ir
from mlir.dialects import irdl

from .table import MEMREF, MNEMONIC, OP_FORMS, STRUCTURAL, OpForm, Structural

BINDINGS = f"{__package__}.bindings"
ir._globals.append_dialect_search_prefix(BINDINGS)  # the bindings find `lhlo.py` there

PLAIN = ("arith", "builtin", "cf", "func", "linalg", "llvm", "math", "memref", "scf", "vector")
"""Dialects whose operations are plain `ir.Operation` unless somebody imports mlir.dialects.NAME. At the first operation
of each, the bindings would import its generated classes: 70 ms for all, which nobody here needs.
"""


def _leave_out_classes() -> None:
    """Have the bindings take an empty module for that of each dialect in PLAIN."""
    places = ir._globals.dialect_search_modules
    ir._globals.dialect_search_modules = [BINDINGS]
    for dialect in PLAIN:
        name = f"{BINDINGS}.{dialect}"
        sys.modules[name] = ModuleType(name)
        ir._globals._check_dialect_module_loaded(dialect)
        del sys.modules[name]
    ir._globals.dialect_search_modules = places


_leave_out_classes()


@cache
def dialect_text() -> str:
    """The dialect as an IRDL module, the input of `mlir-opt --irdl-file=`."""
    operations = [_operation(MNEMONIC[op], form) for op, form in OP_FORMS.items()]
    operations += [_structural(name, form) for name, form in STRUCTURAL.items()]
    return "irdl.dialect @lhlo {\n  irdl.type @profiler {}\n" + "\n".join(operations) + "\n}\n"


LOADED = ("func", "memref", "vector")
"""Dialects of MLIR that LHLO needs at once. A parser loads others when it meets them; to load all takes 10 ms."""


def context() -> ir.Context:
    """A new MLIR context with LHLO loaded. Use it in a `with` statement, or through lhlo/parse.py."""
    new = ir.Context(load_on_create_dialects=LOADED)
    load(new)
    return new


def load(ctx: ir.Context) -> None:
    """Load LHLO into a context unless it is loaded already. MLIR aborts the process if a dialect is loaded twice."""
    if ctx.is_registered_operation("lhlo.add"):
        return
    with ctx, ir.Location.unknown(ctx):
        irdl.load_dialects(ir.Module.parse(dialect_text()))


def _operation(mnemonic: str, form: OpForm) -> str:
    # Each operand has a constraint value of its own: a shared one would force all operands to have one type.
    lines = _attributes(form.required)
    if form.mixed:
        lines += _regions((*form.bodies, "operands"))
    else:
        names = [f"in{i}" for i in range(form.inputs)]
        names += ["indices"] * form.variadic + [f"out{i}" for i in range(form.outputs)]
        lines += _operands(names)
    return f"  irdl.operation @{mnemonic} {{\n" + "\n".join(lines) + "\n  }"


def _structural(mnemonic: str, form: Structural) -> str:
    lines = _attributes(form.required) + _operands([f"in{i}" for i in range(form.operands)], form.operand)
    if form.results:
        lines += [f"    %r = irdl.base {MEMREF}", "    irdl.results(result: %r)"]
    return f"  irdl.operation @{mnemonic} {{\n" + "\n".join(lines + _regions(form.regions)) + "\n  }"


def _attributes(required: tuple[tuple[str, str], ...]) -> list[str]:
    if not required:
        return []
    lines = [f'    %a{i} = irdl.base "#builtin.{kind}"' for i, (_, kind) in enumerate(required)]
    named = ", ".join(f'"{name}" = %a{i}' for i, (name, _) in enumerate(required))
    return [*lines, f"    irdl.attributes {{{named}}}"]


def _operands(names: list[str], type_: str = MEMREF) -> list[str]:
    if not names:
        return []
    slots = ", ".join(f"{name}: {'variadic ' if name == 'indices' else ''}%{name}" for name in names)
    return [f"    %{name} = irdl.base {type_}" for name in names] + [f"    irdl.operands({slots})"]


def _regions(names: tuple[str, ...]) -> list[str]:
    if not names:
        return []
    lines = [f"    %r{i} = irdl.region" for i in range(len(names))]
    return [*lines, f"    irdl.regions({', '.join(f'{name}: %r{i}' for i, name in enumerate(names))})"]
