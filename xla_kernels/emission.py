"""Sealed kernel requests → LLVM IR of adaptors, which build XLA's call frame and call XLA's code.

The code is the object as XLA compiled it, or XLA's LLVM IR, which our LLVM then optimises together with the adaptor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from ..codegen.disassembly import assembly
from ..codegen.errors import CodegenError
from ..codegen.llvm import parse
from ..codegen.options import EmitOptions, EmittedModule, Target
from ..hlo.errors import InputError, UnsupportedError
from ..hlo.library.calls import is_sealed
from ..hlo.records import dataclass, field
from ..planning.plan import KernelRequest
from .ir_text import adapted
from .kernels import REMAKE, KernelFiles, XlaKernel, read_file, read_text
from .processor import NOT_PORTABLE, refused_ir
from .seal import symbol_in, workgroups_in


class Code(Enum):
    """Where the code of XLA's kernels comes from."""

    OBJECT = "object"
    IR = "ir"


@dataclass(frozen=True, eq=False)
class XlaEmitter:
    """The stack of one dump: `emit` and `unsupported` are what migration/ gives to a back end. held: keeps a temporary
    folder as long as its files may be read.
    """

    kernels: KernelFiles
    code: Code
    held: Any = field(default=None, repr=False)
    _texts: dict[str, str] = field(default_factory=dict, repr=False)

    def emit(self, requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
        """Adaptors for sealed requests, and the code that they call. Raises UnsupportedError, InputError."""
        for error in self.unsupported(requests):
            raise error
        chosen = {symbol_in(r.instruction): self.kernels.kernels[symbol_in(r.instruction)] for r in requests}
        text = _HEADER + "".join(f"declare ptr {_at(s)}(ptr)\n" for s in chosen) + "\n".join(map(adaptor, requests))
        stages = tuple(s for k in chosen.values() for s in self._stages(k)) if options.keep_stages else ()
        if self.code is Code.IR:
            return EmittedModule(self._linked(text, list(chosen.values()), [r.name for r in requests]), stages)
        objects = {data: None for kernel in chosen.values() for data in self.kernels.objects_for(kernel)}
        return EmittedModule(text, stages, objects=tuple(objects))

    def _stages(self, kernel: XlaKernel) -> Iterator[tuple[str, str]]:
        """XLA's own stages of a kernel, as far as they were dumped: MLIR, LLVM IR before and after LLVM's passes."""
        for name in ("before", "after", "lowered"):
            path = self.kernels.files.parts[name].get(kernel.part)
            if path is not None:
                yield f"{kernel.symbol}.{name}.mlir", read_text(path)
        if kernel.ir_text:
            yield f"{kernel.symbol}.ll", kernel.ir_text
        if kernel.optimised is not None:
            yield f"{kernel.symbol}.optimized.ll", read_text(kernel.optimised)
        if kernel.code is not None:
            yield f"{kernel.symbol}.s", _assembly(kernel.code)

    def unsupported(self, requests: Sequence[KernelRequest]) -> list[UnsupportedError]:
        """One error for each request that has no code of XLA's."""
        return [error for request in requests if (error := self._refusal(request)) is not None]

    def _refusal(self, request: KernelRequest) -> UnsupportedError | None:
        i = request.instruction
        if not is_sealed(i):
            return UnsupportedError("xla_kernels", i.opcode.value, remedy="use another stack", location=i.location)
        kernel = self.kernels.kernels.get(symbol_in(i))
        if kernel is None or (kernel.ir if self.code is Code.IR else kernel.code) is None:
            what = f"{symbol_in(i)}: the dump has no {'LLVM IR' if self.code is Code.IR else 'object'}"
            return UnsupportedError("xla_kernels", what, remedy=REMAKE, location=i.location)
        return None

    def _linked(self, text: str, kernels: Sequence[XlaKernel], names: Sequence[str]) -> str:
        """The adaptors and the whole of XLA's modules that they call, in one; only the adaptors are visible."""
        context = llvm.create_context()
        module = parse(text, context)
        try:
            return self._all_in(module, kernels, names, context)
        finally:
            module.close()  # not by the garbage collector, which may free the context first

    def _all_in(
        self, module: llvm.ModuleRef, kernels: Sequence[XlaKernel], names: Sequence[str], context: llvm.ContextRef
    ) -> str:
        """The text of a module with XLA's modules linked in."""
        for part in dict.fromkeys(kernel.part for kernel in kernels):
            kernel = next(k for k in kernels if k.part == part)
            try:
                module.link_in(parse(self._text(kernel), context))
            except (CodegenError, RuntimeError) as error:
                what = getattr(error, "message", str(error))
                raise InputError(f"{kernel.ir}: {what}", remedy="take the objects: xla-new, xla-old") from None
        for function in module.functions:
            if not function.is_declaration and function.name not in names:
                function.linkage = "internal"
        return str(module)

    def _text(self, kernel: XlaKernel) -> str:
        """A module's LLVM IR before XLA's LLVM passes, or after them if it calls functions that these define."""
        if kernel.part not in self._texts:
            assert kernel.ir is not None
            text = read_text(kernel.ir)
            if calls_private(text) and kernel.optimised is not None:
                text = read_text(kernel.optimised)
            try:
                made = self._texts[kernel.part] = adapted(text)
            except ValueError as error:
                raise InputError(f"{kernel.ir}: {error}", remedy=REMAKE) from None
            if why := refused_ir(made, Target.host()):
                raise InputError(f"{kernel.ir}: {why}", remedy=NOT_PORTABLE)
        return self._texts[kernel.part]


def _assembly(path: Path) -> str:
    """The code of an object as text, or why there is none."""
    try:
        return assembly(read_file(path))
    except CodegenError as error:
        return f"no assembly: {path}: {error}\n"


def calls_private(text: str) -> bool:
    """Whether XLA's IR calls functions that only XLA's own LLVM passes define, such as xla.tanh.f32."""
    return "@xla." in text


_HEADER = """%frame = type { ptr, ptr, i64, ptr }
%dim3 = type { i64, i64, i64 }
%argument = type { ptr, i64 }
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def _at(symbol: str) -> str:
    return f'@"{symbol}"'


def adaptor(request: KernelRequest) -> str:
    """The function of a request: it makes the call frame and calls XLA's kernel, once a workgroup."""
    i, groups = request.instruction, workgroups_in(request.instruction)
    passed, copies = _passed(request)
    parameters = ", ".join(
        f"ptr noalias align {a.alignment} dereferenceable({a.slice.size}) %a{n}" if a.slice.size else f"ptr %a{n}"
        for n, a in enumerate(request.arguments)
    )
    lines = [f"define void @{request.name}({parameters}) {{"]
    lines += [f"  %arguments = alloca [{len(passed)} x %argument], align 16", "  %count = alloca %dim3, align 16"]
    lines += ["  %id = alloca %dim3, align 16", "  %frame = alloca %frame, align 16"]
    for source, target, size in copies:
        lines.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr %a{target}, ptr %a{source}, i64 {size}, i1 false)")
    for n, (argument, size) in enumerate(passed):
        lines += _store(f"%argument, ptr %arguments, i64 {n}", f"%p{n}", (f"ptr %a{argument}", f"i64 {size}"))
    lines += _store("%dim3, ptr %count, i64 0", "%c", (f"i64 {groups}", "i64 1", "i64 1"))
    values = ("ptr %count", "ptr %id", f"i64 {len(passed)}", "ptr %arguments")
    lines += _store("%frame, ptr %frame, i64 0", "%f", values)
    for group in range(groups):
        lines += _store("%dim3, ptr %id, i64 0", f"%g{group}.", (f"i64 {group}", "i64 0", "i64 0"))
        lines.append(f"  %r{group} = call ptr {_at(symbol_in(i))}(ptr %frame)")
    return "\n".join([*lines, "  ret void", "}", ""])


def _store(of: str, name: str, values: Sequence[str]) -> list[str]:
    """Store the fields of a struct."""
    lines = []
    for n, value in enumerate(values):
        lines += [f"  {name}.{n} = getelementptr inbounds {of}, i32 {n}", f"  store {value}, ptr {name}.{n}, align 8"]
    return lines


def _passed(request: KernelRequest) -> tuple[list[tuple[int, int]], list[tuple[int, int, int]]]:
    """(argument, bytes) for each place in XLA's frame: operands, then results; and (source, target, bytes) copies.

    An operand that XLA's code overwrites is passed as the result: copied there first, where the Plan keeps both.
    """
    i = request.instruction
    numbers = {index: n for n, (index, _) in enumerate(i.shape.leaves())}
    operands = list(request.operands)
    copies: dict[int, tuple[int, int, int]] = {}
    for alias in i.attributes.get("output_to_operand_aliasing", ()):
        target = request.results[numbers[alias.output]]
        if operands[alias.operand] != target:
            size = request.arguments[target].slice.size
            copies.setdefault(target, (operands[alias.operand], target, size))
            operands[alias.operand] = target
    places = [*operands, *request.results]
    return [(n, request.arguments[n].slice.size) for n in places], list(copies.values())
