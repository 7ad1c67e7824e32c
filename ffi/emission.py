"""Custom calls as kernels: one kernel request → LLVM IR text of a wrapper, the same for both stacks.

The wrapper of a typed call puts the addresses of the buffers into a call frame, and calls through what the site names
(sites.py). The frame is the site's own, or a copy on the stack: of small ones, and while another call uses the site's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from ..codegen.library.frame import I8, I64, POINTER, VOID, Frame, Part
from ..codegen.options import EmitOptions, EmittedModule
from ..hlo.errors import UnsupportedError
from ..hlo.ir import Instruction
from ..hlo.library.foreign import aliases, moved, scratch_bytes, wanted_shapes
from ..hlo.shapes import Shape
from ..planning.plan import KernelRequest
from .abi import Buffer, CallFrame
from .description import CALL, SITE, describe
from .layout import FRAME, INVOKE, TAKEN, FrameLayout
from .refusals import refusal
from .registry import CallVersion

NULL = ir.Constant(POINTER, None)


def emit_module(requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
    """The LLVM module of the kernels. Its text depends only on the requests and the options."""
    errors = missing(requests)
    if errors:
        raise errors[0]
    module = ir.Module("ffi", context=ir.Context())
    module.triple = options.target.triple
    for request in requests:
        frame = Frame(module, request)
        _emit(frame)
        frame.finish()
    return EmittedModule(str(module))


def missing(requests: Sequence[KernelRequest]) -> list[UnsupportedError]:
    """One error for each target that cannot be called, in order of first use."""
    found: dict[str, UnsupportedError] = {}
    for request in requests:
        error = refusal(request.instruction)
        if error is not None:
            found.setdefault(error.what, error)
    return list(found.values())


def _emit(frame: Frame) -> None:
    i = frame.request.instruction
    description = describe(i)
    data = description.to_bytes()
    _global(frame, CALL, ir.ArrayType(I8, len(data)), bytearray(data)).global_constant = True
    word = _global(frame, SITE, POINTER, None)
    operands, results = _operands(frame, i), _results(frame)
    site = frame.b.load(word, typ=POINTER, align=8)
    block = None
    if CallVersion[description.version] is CallVersion.API_VERSION_TYPED_FFI:
        block = _call_frame(frame, site, operands, results)
        first, second = block.pointer, NULL
    else:
        made = _pointers(frame, results)
        first, second = _pointers(frame, operands), made if i.shape.is_tuple else (*results, NULL)[0]
    invoke = frame.b.load(frame.offset(site, INVOKE, 1), typ=POINTER, align=8)
    frame.b.call(_Callee(invoke), [site, first, second])
    if block is not None:
        _give_back(frame, site, block)


def _global(frame: Frame, suffix: str, kind: ir.Type, value: object) -> ir.GlobalVariable:
    made = ir.GlobalVariable(frame.module, kind, frame.request.name + suffix)
    made.initializer, made.align = ir.Constant(kind, value), 8
    return made


class _Callee:
    """A function at an address, as llvmlite wants what it calls."""

    function_type = ir.FunctionType(VOID, [POINTER] * 3)
    calling_convention = ""

    def __init__(self, pointer: ir.Value):
        self.type, self.get_reference = pointer.type, pointer.get_reference


def _operands(frame: Frame, i: Instruction) -> list[ir.Value]:
    """The address of each operand. One in another layout is copied to the scratch memory; an aliased one to its result,
    unless it is there."""
    request, elsewhere, aliased = frame.request, moved(i), aliases(i)
    work = frame.work_space(scratch_bytes(i)) if elsewhere else None
    leaves, found = [shape for _, shape in i.shape.leaves()], []
    for n, (o, wanted) in enumerate(zip(i.operands, wanted_shapes(i), strict=True)):
        number = request.operands[n]
        if number < 0:
            found.append(NULL)
            continue
        home = pointer = frame.argument(number)
        if n in aliased:
            argument = request.results[aliased[n]]
            pointer = frame.argument(argument)
            frame.copy(_part(home, number, o.shape), _part(pointer, argument, leaves[aliased[n]]))
        elif n in elsewhere:
            assert work is not None
            pointer = frame.offset(work, elsewhere[n], 1)
            frame.copy(_part(home, number, o.shape), _part(pointer, -1, wanted))
        found.append(pointer)
    return found


def _results(frame: Frame) -> list[ir.Value]:
    return [NULL if n < 0 else frame.argument(n) for n in frame.request.results]


def _part(pointer: ir.Value, argument: int, shape: Shape) -> Part:
    return Part(pointer, argument, shape.dtype, shape.dims, shape.strides)


FEW = 4
"""Buffers up to which it is faster to copy a block than to take that of the site."""


@dataclass(frozen=True, eq=False, slots=True)
class _Block:
    """The block of a call. taken: whether it is the site's, an i1; None: it never is."""

    pointer: ir.Value
    taken: ir.Value | None = None


def _call_frame(frame: Frame, site: ir.Value, operands: Sequence[ir.Value], results: Sequence[ir.Value]) -> _Block:
    """A call frame with the addresses of the buffers: in the site, unless another call is there, or on the stack."""
    layout = FrameLayout(len(operands), len(results))
    block = _block(frame, site, layout)
    for number, pointer in enumerate([*operands, *results]):
        frame.b.store(pointer, frame.offset(block.pointer, layout.buffer(number) + Buffer.data.offset, 1), align=8)
    return block


def _block(frame: Frame, site: ir.Value, layout: FrameLayout) -> _Block:
    own, b = frame.stack(layout.size), frame.b
    if layout.operands + layout.results <= FEW:
        _copy_block(frame, site, own, layout)
        return _Block(own)
    before = b.atomic_rmw("xchg", frame.offset(site, TAKEN, 1), I64(1), "acquire")
    free = b.icmp_unsigned("==", before, I64(0))
    with b.if_else(free) as (there, here):
        with there:
            shared, first = frame.offset(site, FRAME, 1), b.block
            b.store(NULL, frame.offset(shared, CallFrame.future.offset, 1), align=8)
        with here:
            _copy_block(frame, site, own, layout)
            second = b.block
    block = b.phi(POINTER)
    block.add_incoming(shared, first)
    block.add_incoming(own, second)
    return _Block(block, free)


def _copy_block(frame: Frame, site: ir.Value, block: ir.Value, layout: FrameLayout) -> None:
    """Copy the block of the site. Pointers into the site become pointers into the copy."""
    copy = frame.declare("llvm.memcpy.p0.p0.i64", VOID, [POINTER, POINTER, I64, ir.IntType(1)])
    frame.b.call(copy, [block, frame.offset(site, FRAME, 1), I64(layout.size), ir.IntType(1)(0)])
    frame.b.store(NULL, frame.offset(block, CallFrame.future.offset, 1), align=8)
    for place, target in layout.places.items():
        frame.b.store(frame.offset(block, target, 1), frame.offset(block, place, 1), align=8)


def _give_back(frame: Frame, site: ir.Value, block: _Block) -> None:
    if block.taken is not None:
        with frame.when(block.taken):
            place = frame.offset(site, TAKEN, 1)
            store = ir.instructions.StoreAtomicInstr(frame.b.block, I64(0), place, "release", 8)
            frame.b._insert(store)  # the builder's method asks for the type that a pointer points to


def _pointers(frame: Frame, values: Sequence[ir.Value]) -> ir.Value:
    """An array of pointers on the stack, as the older versions take them."""
    block = frame.stack(8 * len(values))
    for number, pointer in enumerate(values):
        frame.b.store(pointer, frame.offset(block, number, 8), align=8)
    return block
