"""LLVM IR of the native code that enqueues launches (launch_words.py)."""

from __future__ import annotations

from llvmlite import ir

from ..host.words import I32, I64, NULL, PTR, NativeModule, Words
from .launch_words import ALLOCATION, COUNT, EACH, GROUP, KERNEL, LAST, OFFSET, PLACES, SIZES

GIVE = ir.FunctionType(I32, (PTR, I32, I64))
ENQUEUE = ir.FunctionType(I32, (PTR, PTR, I32, PTR, PTR, PTR, I32, PTR, PTR))


def launches_ir() -> str:
    """testbed_launches(words, count, bases, queue, give, enqueue, forget): 0, or of the launch that failed its number
    above the 32 bits of OpenCL's code. give: clSetKernelArgMemPointerINTEL, enqueue: clEnqueueNDRangeKernel. forget:
    NOWHERE, if an argument is to be given again although its address is the last one's; else 0.
    """
    m = NativeModule({})
    types = PTR, I64, PTR, PTR, GIVE.as_pointer(), ENQUEUE.as_pointer(), I64
    with m.function("testbed_launches", I64, *types) as (b, arguments):
        words, count, bases, queue, give, enqueue, forget = arguments
        at = b.slot(PTR)
        b.store(words, at)
        with b.each(count) as number:
            launch = b.load(at, typ=PTR)
            kernel, arity = b.get(launch, KERNEL, PTR), b.get(launch, COUNT)
            places = b.word(launch, PLACES)
            with b.each(arity) as n:
                place = b.word(places, b.mul(n, I64(EACH)))
                address = b.add(b.get(bases, b.get(place, ALLOCATION)), b.get(place, OFFSET))
                with b.if_then(b.icmp_signed("!=", address, b.get(place, LAST))):
                    _stop(b, number, b.call(give, (kernel, b.trunc(n, I32), address)))
                    b.put(place, LAST, b.or_(address, forget))
            sizes, group, none = b.word(launch, SIZES), b.word(launch, GROUP), I32(0)
            code = b.call(enqueue, (queue, kernel, I32(3), NULL, sizes, group, none, NULL, NULL))
            _stop(b, number, code)
            b.store(b.word(places, b.mul(arity, I64(EACH))), at)
        b.ret(I64(0))
    return m.text()


def _stop(b: Words, number: ir.Value, code: ir.Value) -> None:
    """Return where a call failed."""
    with b.if_then(b.icmp_signed("!=", code, I32(0)), likely=False):
        b.ret(b.or_(b.shl(number, I64(32)), b.zext(code, I64)))
