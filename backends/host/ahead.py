"""Plan → an object file, a C header and an example that calls it: compilation ahead of time.

docs/adr/0035-ahead-of-time.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...codegen.glue import modules_of
from ...codegen.options import EmitOptions
from ...codegen.whole import RELOCATIONS, needed_symbols, whole_object
from ...hlo.dynamic_border import DynamicBorder
from ...hlo.errors import InputError
from ...hlo.library.calls import is_foreign
from ...planning.plan import KernelRequest, Plan
from ...thunks.host_build import host_ir, module_of
from ...thunks.lowering import from_plan
from ..base import AheadOptions as AheadOptions
from ..base import EmitFor
from .ahead_files import example, header, makefile
from .ahead_ir import Arena, entry_ir
from .c_names import COMPILER, LIBRARIES, is_free
from .estimate import seconds_by_kernel
from .image import image_of
from .parts import Part, by_stack, refuse_queues, refuse_unsupported
from .signature import Signature


def compile_ahead(plan: Plan, emit_for: EmitFor, options: AheadOptions) -> dict[str, bytes]:
    """The files by name: NAME.o, NAME.h, main.c, Makefile.

    Raises UnsupportedError for a kernel that its stack does not support, and InputError for one that needs another
    library than libm, a name that C does not allow, and dynamic dimensions at the border.
    """
    name = entry_point(plan, options)
    _refuse_dynamic(plan)
    _refuse_handlers(plan)
    refuse_queues(plan.kernels)
    parts = by_stack(plan.kernels, emit_for)
    _refuse_languages(parts)
    refuse_unsupported(parts)
    thunks = from_plan(plan)
    emitters = {request.name: part.emitter.name for part in parts for request in part.requests}
    image = image_of(plan, thunks, emitters, not options.emit.strict)
    signature, arena = Signature.of(image), Arena.of(image)
    host = module_of(thunks, options.emit, seconds_by_kernel(plan))
    modules = [part.emitter.emit(part.requests, options.emit) for part in parts]
    texts: list[str | tuple[str, EmitOptions]] = [text for m in modules for text in modules_of(m, options.emit)]
    texts += [*dict.fromkeys(text for m in modules for text in m.helpers), host_ir(host)]
    entry = entry_ir(name, image, signature, arena, len(host.loops))
    data = whole_object(texts, entry, name, options.emit, options.relocation_model)
    if foreign(needed_symbols(data)):
        _refuse_libraries(parts, options)
    return {
        f"{name}.o": data,
        f"{name}.h": header(name, plan.module, signature, arena, options.emit.target).encode(),
        "main.c": example(name).encode(),
        "Makefile": makefile(name, options.emit.target, options.relocation_model).encode(),
    }


def _refuse_languages(parts: Sequence[Part]) -> None:
    """An object file here is made by LLVM alone."""
    other = next((part for part in parts if part.emitter.language != "llvm"), None)
    if other is not None:
        name = other.requests[0].name
        remedy = f"--emitters {other.emitter.name} for all of them, or for none"
        raise InputError(f"ahead of time: kernel {name} by {other.emitter.name} among kernels by LLVM", remedy=remedy)


def entry_point(plan: Plan, options: AheadOptions) -> str:
    """The name of the C function. Raises InputError."""
    if options.relocation_model not in RELOCATIONS:
        remedy = f"choose from {', '.join(RELOCATIONS)}"
        raise InputError(f"unknown relocation model {options.relocation_model!r}", remedy=remedy)
    if options.entry_point is None:
        name = re.sub(r"\W", "_", plan.module.name, flags=re.ASCII)
        return next(n for n in (name, f"run_{name}", f"run_{name[:100]}_call") if is_free(n))
    if not is_free(options.entry_point):
        remedy = "give a name such as run_model, of letters, digits and _"
        raise InputError(f"no C function can be called {options.entry_point!r} here", remedy=remedy)
    return options.entry_point


def foreign(symbols: frozenset[str]) -> list[str]:
    """The symbols that a C compiler with -lm does not find."""
    return sorted(s for s in symbols - LIBRARIES if not COMPILER.fullmatch(s))


def _refuse_dynamic(plan: Plan) -> None:
    border = DynamicBorder.of(plan.module)
    if border is None:
        return
    if border.parameters:
        what = f"dynamic dimension {border.parameters[0].dimension} of input {border.parameters[0].leaf}"
    else:
        what = f"dynamic dimension {border.results[0].dimension} of output {border.results[0].leaf}"
    location = plan.module.entry.root.location
    raise InputError(f"ahead of time: no {what}", location=location, remedy="give the array a static shape")


def _refuse_handlers(plan: Plan) -> None:
    """Raises InputError for a call of a handler: handlers are known to a process of Python only."""
    for i in (request.instruction for request in plan.kernels):
        if is_foreign(i):
            what = f"ahead of time: custom-call {i.name} of {i.attributes['custom_call_target']!r}"
            raise InputError(what, location=i.location, remedy="testbed compile makes programs that find handlers")


def _refuse_libraries(parts: Sequence[Part], options: AheadOptions) -> None:
    """Raises UnsupportedError with the instruction whose kernel needs another library."""
    for part in parts:
        for request in part.requests:
            found = _foreign_of(part, request, options)
            if found:
                i = request.instruction
                what = f"ahead of time: {i.opcode.value} {i.name} calls {', '.join(found)}, not in libm"
                raise InputError(what, location=i.location, remedy="testbed compile makes programs that find it")


def _foreign_of(part: Part, request: KernelRequest, options: AheadOptions) -> list[str]:
    module = part.emitter.emit([request], options.emit)
    empty = "define void @testbed_nothing() { ret void }"
    texts = [*module.helpers, module.llvm_ir]
    data = whole_object(texts, empty, "testbed_nothing", options.emit, options.relocation_model)
    return foreign(needed_symbols(data))
