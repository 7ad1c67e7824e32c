"""Custom calls as kernels: one kernel request → LLVM IR text of a wrapper, the same for both stacks.

The wrapper of a typed call puts the addresses of the buffers into a call frame, and calls through what the site names
(sites.py). The frame is the site's own for the first thread that calls, unless that is in a call there; else a copy.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ..codegen.library.frame import I8, I64, POINTER, VOID, Frame, Part
from ..codegen.options import EmitOptions, EmittedModule
from ..hlo.errors import UnsupportedError
from ..hlo.ir import Instruction
from ..hlo.library.foreign import aliases, is_packed, moved, scratch_bytes, wanted_shapes
from ..hlo.shapes import Shape
from ..planning.plan import KernelRequest
from .abi import Buffer, CallFrame
from .description import CALL, COPYING, SITE, describe
from .layout import FRAME, INVOKE, OWNER, FrameLayout
from .packing_ir import emit_pack, emit_unpack
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
    if CallVersion[description.version] is CallVersion.API_VERSION_TYPED_FFI:
        _typed_call(frame, site, FrameLayout(len(operands), len(results)), [*operands, *results])
    else:
        made = _pointers(frame, results)
        second = made if i.shape.is_tuple else (*results, NULL)[0]
        _invoke(frame.b, site, _pointers(frame, operands), second)
    for (_, shape), pointer in zip(i.shape.leaves(), results, strict=True):
        if is_packed(shape):
            emit_unpack(frame, pointer, shape)


def _global(frame: Frame, suffix: str, kind: ir.Type, value: object) -> ir.GlobalVariable:
    made = ir.GlobalVariable(frame.module, kind, frame.request.name + suffix)
    made.initializer, made.align = ir.Constant(kind, value), 8
    return made


def _operands(frame: Frame, i: Instruction) -> list[ir.Value]:
    """The address of each operand. One in another layout, or to be packed, is copied to the scratch memory; an aliased
    one to its result, unless it is there."""
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
        if is_packed(o.shape):
            emit_pack(frame, pointer, wanted)
        found.append(pointer)
    return found


def _results(frame: Frame) -> list[ir.Value]:
    return [NULL if n < 0 else frame.argument(n) for n in frame.request.results]


def _part(pointer: ir.Value, argument: int, shape: Shape) -> Part:
    return Part(pointer, argument, shape.dtype, shape.dims, shape.strides)


THREAD_POINTER = ("x86_64", "aarch64", "riscv64")
"""Architectures on which a thread's number, the address of its control block, is in a register."""


def _typed_call(frame: Frame, site: ir.Value, layout: FrameLayout, buffers: Sequence[ir.Value]) -> None:
    """A call with the frame of the site, which belongs to the first thread that calls, or with a copy.

    The owner needs no atomic instruction, and nothing on its stack: what it calls last gives the frame back.
    """
    b, copied = frame.b, _copying(frame, layout)
    if not _has_thread(frame):
        b.call(copied, [site, *buffers])
        return
    thread, owner = _thread(frame.module, b), _at(b, site, OWNER)
    is_mine = b.icmp_unsigned("==", b.load_atomic(owner, "monotonic", 8, typ=I64), thread)
    with b.if_else(is_mine, likely=True) as (mine, others):
        with mine:
            busy = ir.instructions.StoreAtomicInstr(b.block, b.add(thread, I64(1)), owner, "monotonic", 8)
            b._insert(busy)  # the builder's method asks for the type that a pointer points to
            _fill(b, _at(b, site, FRAME), layout, buffers)
            _invoke(b, site, _at(b, site, FRAME), thread)
        with others:
            b.call(copied, [site, *buffers])


def _copying(frame: Frame, layout: FrameLayout) -> ir.Function:
    """The function of calls with a copy of the site's frame. The first one makes its thread the owner of that."""
    module = frame.module
    made = ir.Function(module, ir.FunctionType(VOID, [POINTER] * (1 + layout.buffers)), frame.request.name + COPYING)
    made.linkage = "internal"
    made.attributes.add("noinline")
    b = ir.IRBuilder(made.append_basic_block("entry"))
    site, *buffers = made.args
    block = b.alloca(ir.ArrayType(I8, layout.size))
    block.align, block.type = 64, POINTER
    if _has_thread(frame):
        owner = _at(b, site, OWNER)
        with b.if_then(b.icmp_unsigned("==", b.load_atomic(owner, "monotonic", 8, typ=I64), I64(0))):
            b.cmpxchg(owner, I64(0), _thread(module, b), "monotonic", "monotonic")
    copy = frame.declare("llvm.memcpy.p0.p0.i64", VOID, [POINTER, POINTER, I64, ir.IntType(1)])
    b.call(copy, [block, _at(b, site, FRAME), I64(layout.size), ir.IntType(1)(0)])
    b.store(NULL, _at(b, block, CallFrame.future.offset), align=8)
    for place, target in layout.places.items():
        b.store(_at(b, block, target), _at(b, block, place), align=8)
    _fill(b, block, layout, buffers)
    _invoke(b, site, block, I64(0))
    b.ret_void()
    return made


def _has_thread(frame: Frame) -> bool:
    return str(frame.module.triple).partition("-")[0] in THREAD_POINTER


def _thread(module: ir.Module, b: ir.IRBuilder) -> ir.Value:
    """The thread pointer as a number."""
    name = "llvm.thread.pointer.p0"
    found = module.globals.get(name) or ir.Function(module, ir.FunctionType(POINTER, []), name)
    return b.ptrtoint(b.call(found, []), I64)


def _at(b: ir.IRBuilder, pointer: ir.Value, offset: int) -> ir.Value:
    return b.gep(pointer, [I64(offset)], source_etype=I8)


def _fill(b: ir.IRBuilder, block: ir.Value, layout: FrameLayout, buffers: Sequence[ir.Value]) -> None:
    """Write the addresses of the buffers to a frame."""
    for number, pointer in enumerate(buffers):
        b.store(pointer, _at(b, block, layout.buffer(number) + Buffer.data.offset), align=8)


def _invoke(b: ir.IRBuilder, site: ir.Value, first: ir.Value, second: ir.Value) -> None:
    """Call the function that the site names."""
    function = b.load(_at(b, site, INVOKE), typ=POINTER, align=8)
    b.call(_Callee(function, second.type), [site, first, second])


class _Callee:
    """A function at an address, as llvmlite wants what it calls."""

    calling_convention = ""

    def __init__(self, pointer: ir.Value, last: ir.Type):
        self.function_type = ir.FunctionType(VOID, [POINTER, POINTER, last])
        self.type, self.get_reference = pointer.type, pointer.get_reference


def _pointers(frame: Frame, values: Sequence[ir.Value]) -> ir.Value:
    """An array of pointers on the stack, as the older versions take them."""
    block = frame.stack(8 * len(values))
    for number, pointer in enumerate(values):
        frame.b.store(pointer, frame.offset(block, number, 8), align=8)
    return block
