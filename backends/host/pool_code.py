"""The native code of the pool: take a block, give it back, free idle blocks. pool_words.py has their records."""

from __future__ import annotations

import sys

from llvmlite import ir

from ...planning.allocation import POOL_ALIGNMENT
from .pool_words import (
    CAPACITY,
    CLOCK,
    IDLE,
    IDLE_BLOCKS,
    IDLE_LIMIT,
    IN_USE,
    LIMIT,
    LOCK,
    MADE,
    NEXT,
    PEAK,
    POOL_OF,
    POOL_WORDS,
    SHELF_WORDS,
    SHELVES,
    TAKEN,
    USED,
)
from .words import I32, I64, NULL, PTR, VOID, NativeModule, Words

HUGE = 4 << 20
"""Bytes from which a new block asks for huge pages, as numpy does: touching it is several times as fast."""

MADV_HUGEPAGE = 14

EXTERNAL: dict[str, tuple[ir.Type, tuple[ir.Type, ...]]] = {
    "calloc": (PTR, (I64, I64)),
    "aligned_alloc": (PTR, (I64, I64)),
    "free": (VOID, (PTR,)),
    "sched_yield": (I32, ()),
    "madvise": (I32, (PTR, I64, I32)),
}


def pool_ir() -> str:
    """LLVM IR of the functions of the pool:

    testbed_pool() and testbed_shelf(pool, capacity) make records, which are never freed;
    testbed_take(shelf) gives the address of a block, or 0: beyond the limit, or no memory;
    testbed_give(shelf, block) makes it idle, or frees it; testbed_trim(pool, bytes) frees idle blocks down to a limit.
    """
    m = NativeModule(EXTERNAL)
    _records(m)
    _lock(m)
    _shrink(m)
    _fresh(m)
    _take(m)
    _give(m)
    with m.function("testbed_trim", VOID, PTR, I64) as (b, (pool, limit)):
        m.call(b, "lock", pool)
        m.call(b, "shrink", pool, limit)
        _unlock(b, pool)
        b.ret_void()
    return m.text()


def _records(m: NativeModule) -> None:
    with m.function("testbed_pool", PTR) as (b, _):
        b.ret(m.call(b, "calloc", I64(POOL_WORDS), I64(8)))
    with m.function("testbed_shelf", PTR, PTR, I64) as (b, (pool, capacity)):
        shelf = m.call(b, "calloc", I64(SHELF_WORDS), I64(8))
        with b.if_then(b.is_null(shelf)):
            b.ret(shelf)
        b.put(shelf, CAPACITY, capacity)
        b.put(shelf, POOL_OF, pool)
        b.put(shelf, NEXT, b.get(pool, SHELVES))
        b.put(pool, SHELVES, shelf)
        b.ret(shelf)


def _lock(m: NativeModule) -> None:
    with m.function("lock", VOID, PTR, internal=True) as (b, (pool,)):
        again, waiting, done = (b.append_basic_block(name) for name in ("again", "waiting", "done"))
        b.branch(again)
        b.position_at_end(again)
        before = b.atomic_rmw("xchg", b.word(pool, LOCK), I64(1), "acquire")
        b.cbranch(b.same(before, I64(0)), done, waiting)
        b.position_at_end(waiting)
        m.call(b, "sched_yield")
        b.branch(again)
        b.position_at_end(done)
        b.ret_void()


def _unlock(b: Words, pool: ir.Value) -> None:
    b.atomic_rmw("xchg", b.word(pool, LOCK), I64(0), "release")


def _shrink(m: NativeModule) -> None:
    """Free idle blocks of the shelf that was not used for the longest time until at most `limit` bytes are idle."""
    with m.function("shrink", VOID, PTR, I64, internal=True) as (b, (pool, limit)):
        blocks = [b.append_basic_block(name) for name in ("head", "scan", "look", "better", "next", "free", "done")]
        head, scan, look, better, following, freeing, done = blocks
        b.branch(head)
        b.position_at_end(head)
        b.cbranch(b.less(limit, b.get(pool, IDLE)), scan, done)
        b.position_at_end(scan)
        first = b.get(pool, SHELVES, PTR)
        b.branch(look)
        b.position_at_end(look)
        shelf, best = b.phi(PTR), b.phi(PTR)
        shelf.add_incoming(first, scan)
        best.add_incoming(NULL, scan)
        b.cbranch(b.is_null(shelf), freeing, better)
        b.position_at_end(better)
        no_block = b.is_null(b.get(shelf, IDLE_BLOCKS, PTR))
        held = b.select(b.is_null(best), shelf, best)
        older = b.or_(b.is_null(best), b.less(b.get(shelf, USED), b.get(held, USED)))
        chosen = b.select(b.and_(b.not_(no_block), older), shelf, best)
        b.branch(following)
        b.position_at_end(following)
        shelf.add_incoming(b.get(shelf, NEXT, PTR), following)
        best.add_incoming(chosen, following)
        b.branch(look)
        b.position_at_end(freeing)
        with b.if_then(b.is_null(best)):
            b.branch(done)
        block = b.get(best, IDLE_BLOCKS, PTR)
        b.put(best, IDLE_BLOCKS, b.get(block, 0))
        b.increase(pool, IDLE, b.neg(b.get(best, CAPACITY)))
        m.call(b, "free", block)
        b.branch(head)
        b.position_at_end(done)
        b.ret_void()


def _fresh(m: NativeModule) -> None:
    """A block from the system, or null. Idle blocks go if the limit or the system asks for it."""
    with m.function("fresh", PTR, PTR, I64, internal=True) as (b, (pool, capacity)):
        wanted = b.add(b.get(pool, IN_USE), capacity)
        limit = b.get(pool, LIMIT)
        with b.if_then(b.less(limit, wanted), likely=False):
            b.ret(NULL)
        room = b.sub(limit, wanted)
        with b.if_then(b.less(room, b.get(pool, IDLE)), likely=False):
            m.call(b, "shrink", pool, room)
        slot = b.slot(PTR)
        b.store(m.call(b, "aligned_alloc", I64(POOL_ALIGNMENT), capacity), slot)
        with b.if_then(b.is_null(b.load(slot, typ=PTR)), likely=False):
            m.call(b, "shrink", pool, I64(0))
            b.store(m.call(b, "aligned_alloc", I64(POOL_ALIGNMENT), capacity), slot)
        block = b.load(slot, typ=PTR)
        with b.if_then(b.is_null(block), likely=False):
            b.ret(NULL)
        b.increase(pool, MADE, I64(1))
        if sys.platform == "linux":
            with b.if_then(b.icmp_unsigned(">=", capacity, I64(HUGE))):
                address = b.ptrtoint(block, I64)
                ahead = b.and_(b.neg(address), I64(4095))
                m.call(b, "madvise", b.inttoptr(b.add(address, ahead), PTR), b.sub(capacity, ahead), I32(MADV_HUGEPAGE))
        b.ret(block)


def _take(m: NativeModule) -> None:
    with m.function("testbed_take", PTR, PTR) as (b, (shelf,)):
        pool, capacity = b.get(shelf, POOL_OF, PTR), b.get(shelf, CAPACITY)
        m.call(b, "lock", pool)
        idle = b.get(shelf, IDLE_BLOCKS, PTR)
        slot = b.slot(PTR)
        with b.if_else(b.is_null(idle)) as (none, some):
            with none:
                b.store(m.call(b, "fresh", pool, capacity), slot)
            with some:
                b.put(shelf, IDLE_BLOCKS, b.get(idle, 0))
                b.increase(pool, IDLE, b.neg(capacity))
                b.store(idle, slot)
        block = b.load(slot, typ=PTR)
        with b.if_then(b.not_(b.is_null(block))):
            used = b.increase(pool, IN_USE, capacity)
            peak = b.get(pool, PEAK)
            b.put(pool, PEAK, b.select(b.less(peak, used), used, peak))
            b.increase(pool, TAKEN, I64(1))
            b.put(shelf, USED, b.increase(pool, CLOCK, I64(1)))
        _unlock(b, pool)
        b.ret(block)


def _give(m: NativeModule) -> None:
    with m.function("testbed_give", VOID, PTR, PTR) as (b, (shelf, block)):
        pool, capacity = b.get(shelf, POOL_OF, PTR), b.get(shelf, CAPACITY)
        m.call(b, "lock", pool)
        b.increase(pool, IN_USE, b.neg(capacity))
        limit = b.get(pool, IDLE_LIMIT)
        with b.if_else(b.less(limit, capacity), likely=False) as (large, usual):
            with large:
                m.call(b, "free", block)
            with usual:
                b.put(block, 0, b.get(shelf, IDLE_BLOCKS))
                b.put(shelf, IDLE_BLOCKS, block)
                b.put(shelf, USED, b.increase(pool, CLOCK, I64(1)))
                idle = b.increase(pool, IDLE, capacity)
                with b.if_then(b.less(limit, idle), likely=False):
                    m.call(b, "shrink", pool, limit)
        _unlock(b, pool)
        b.ret_void()
