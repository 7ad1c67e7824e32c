"""LLVM IR of the native code that gives launches to a GPU's driver (launch_words.py)."""

from __future__ import annotations

from llvmlite import ir

from ..host.words import I32, I64, NULL, PTR, NativeModule
from .launch_words import BLOCKS, COUNT, KERNEL, PLACES, THREADS

LAUNCH = ir.FunctionType(I32, (PTR, *[I32] * 7, PTR, PTR, PTR))


def launches_ir() -> str:
    """testbed_gpu_launches(words, count, bases, stream, launch, most): 0, or of the launch that failed its number above
    the 32 bits of the driver's code. launch: cuLaunchKernel or hipModuleLaunchKernel, which copies the arguments. most:
    arguments of a launch.
    """
    m = NativeModule({})
    types = PTR, I64, PTR, PTR, LAUNCH.as_pointer(), I64
    with m.function("testbed_gpu_launches", I64, *types) as (b, arguments):
        words, count, bases, stream, launch, most = arguments
        values, pointers = b.alloca(I64, most), b.alloca(PTR, most)
        with b.each(most) as n:
            b.put(pointers, n, b.word(values, n))
        at = b.slot(PTR)
        b.store(words, at)
        with b.each(count) as number:
            row = b.load(at, typ=PTR)
            arity, places = b.get(row, COUNT), b.word(row, PLACES)
            with b.each(arity) as n:
                twice = b.shl(n, I64(1))
                base = b.get(bases, b.get(places, twice))
                b.put(values, n, b.add(base, b.get(places, b.add(twice, I64(1)))))
            shape = [b.trunc(b.get(row, first + n), I32) for first in (BLOCKS, THREADS) for n in range(3)]
            code = b.call(launch, (b.get(row, KERNEL, PTR), *shape, I32(0), stream, pointers, NULL))
            with b.if_then(b.icmp_signed("!=", code, I32(0)), likely=False):
                b.ret(b.or_(b.shl(number, I64(32)), b.zext(code, I64)))
            b.store(b.word(places, b.shl(arity, I64(1))), at)
        b.ret(I64(0))
    return m.text()
