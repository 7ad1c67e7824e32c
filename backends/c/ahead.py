"""Plan → one C99 file with kernels, control flow and constants, its header, and an example that calls it."""

from __future__ import annotations

from ...codegen.options import EmitOptions
from ...hlo.errors import InputError
from ...hlo.library.calls import LIBRARY
from ...hlo.opclasses import OUTSIDE
from ...planning.allocation import POOL_ALIGNMENT
from ...planning.plan import Plan
from ...thunks.image import Image
from ...thunks.lowering import from_plan
from ..base import AheadOptions
from ..host.ahead import entry_point
from ..host.ahead_files import example, header
from ..host.ahead_ir import MISALIGNED, Arena
from ..host.image import image_of
from ..host.parts import refuse_queues
from ..host.signature import Signature
from .control import constant_text, steps_text
from .program import kernels_text


def compile_c_ahead(plan: Plan, options: AheadOptions) -> dict[str, bytes]:
    """The files by name: NAME.c, NAME.h, main.c, Makefile. The target names no processor: any C compiler's will do.

    Raises UnsupportedError for an op without a row, and InputError for one that needs a library or several devices, and
    for dynamic dimensions at the border.
    """
    name = entry_point(plan, options)
    refuse_queues(plan.kernels)
    _refuse_others(plan)
    emitters = {request.name: "c" for request in plan.emitted}
    image = image_of(plan, from_plan(plan), emitters, not options.emit.strict)
    signature, arena = Signature.of(image), Arena.of(image)
    text = program_text(name, plan, image, signature, arena, options.emit)
    return {
        f"{name}.c": text.encode(),
        f"{name}.h": header(name, plan.module, signature, arena, options.emit.target).encode(),
        "main.c": example(name).encode(),
        "Makefile": _MAKEFILE.format(name=name).encode(),
    }


def _refuse_others(plan: Plan) -> None:
    from ...hlo.dynamic_border import DynamicBorder

    for request in plan.kernels:
        i = request.instruction
        if i.opcode in LIBRARY or i.opcode in OUTSIDE:
            what = f"ahead of time: {i.opcode.value} {i.name} needs more than a C compiler"
            raise InputError(
                what, location=i.location, remedy="testbed compile makes programs that find what they need"
            )
    if DynamicBorder.of(plan.module) is not None:
        location = plan.module.entry.root.location
        what = "ahead of time: no dynamic dimensions of inputs and outputs"
        raise InputError(what, location=location, remedy="give the arrays static shapes")


def program_text(name: str, plan: Plan, image: Image, signature: Signature, arena: Arena, options: EmitOptions) -> str:
    """The C file. Its one public function is `int NAME(inputs, outputs, scratch)` of docs/aot.md."""
    inputs = [f"in{n}" for n in range(len(signature.inputs))]
    outputs = [f"out{n}" for n in range(len(signature.outputs))]
    bases = dict(zip(signature.variable, (*inputs, *outputs), strict=True))  # of an aliased pair the output, the later
    bases |= {index: f"(char *)constant{index}" for index in image.constants}
    bases |= {index: f"scratch_bytes + {offset}" for index, offset in arena.offsets.items()}
    bases |= {a.index: "scratch_bytes" for a in image.allocations if a.index not in bases}
    lines = [f"char *in{n} = (char *)inputs[{n}];" for n in range(len(inputs))]
    lines += [f"char *out{n} = (char *)outputs[{n}];" for n in range(len(outputs))]
    lines.append("char *scratch_bytes = (char *)scratch;")
    tested = [(at, leaf) for at, leaf in zip((*inputs, *outputs), (*signature.inputs, *signature.outputs), strict=True)]
    wrong = [f"(uintptr_t){at} % {leaf.alignment}" for at, leaf in tested if leaf.bytes and leaf.alignment > 1]
    wrong += [f"(uintptr_t)scratch_bytes % {POOL_ALIGNMENT}"] if arena.size else []
    unused = "".join(f" (void){at};" for at in (*inputs, *outputs, "scratch_bytes"))
    lines.append(unused.strip())
    if wrong:
        lines.append(f"if ({' || '.join(wrong)}) return {MISALIGNED};")
    for n, output in signature.aliased:
        size = signature.inputs[n].bytes
        lines.append(f"if (out{output} != in{n}) memmove(out{output}, in{n}, {size});")
    lines += steps_text(plan.steps, bases)
    for number, part in signature.copied:
        lines.append(f"memcpy(out{number}, {bases[part.allocation]} + {part.offset}, {part.size});")
    body = "\n".join(f"  {line}" for line in (*lines, "return 0;"))
    constants = "".join(constant_text(f"constant{index}", bytes(block)) for index, block in image.constants.items())
    kernels = kernels_text(plan.emitted, options, "static ")
    head = f"int {name}(const void *const *inputs, void *const *outputs, void *scratch)"
    declared = "(void)inputs; (void)outputs;"
    return f"{kernels}\n{constants}\n{head};\n\n{head} {{\n{body.replace(unused.strip(), declared + unused)}\n}}\n"


_MAKEFILE = """\
# Builds the example. CC: any C compiler, for any processor; the program is C99, the example C11.
CFLAGS ?= -O2
LDFLAGS +=

example: main.c {name}.h {name}.o
\t$(CC) $(CFLAGS) -o $@ main.c {name}.o $(LDFLAGS) -lm

{name}.o: {name}.c
\t$(CC) $(CFLAGS) -std=c99 -w -c -o $@ {name}.c

clean:
\trm -f example {name}.o

.PHONY: clean
"""
