"""The hot functions of the C API as LLVM IR: events, buffers, memories. They never take the interpreter's lock.

Each is `PJRT_Error* PJRT_<name>(PJRT_<name>_Args*)`, and returns null.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ..backends.host.words import I32, I64, NULL, PTR, VOID, NativeModule, Words
from . import api
from .records import BUFFER, NODE, READY, W

I8 = ir.IntType(8)
CALLBACK = ir.FunctionType(VOID, (PTR, PTR)).as_pointer()
"""Of a function that takes two pointers: a callback of an event, or what gives memory back."""

EXTERNAL: dict[str, tuple[ir.Type, tuple[ir.Type, ...]]] = {
    "malloc": (PTR, (I64,)),
    "aligned_alloc": (PTR, (I64, I64)),
    "free": (VOID, (PTR,)),
    "memcpy": (PTR, (PTR, PTR, I64)),
    "memmove": (PTR, (PTR, PTR, I64)),
    "sched_yield": (I32, ()),
    "testbed_take": (PTR, (PTR,)),
    "testbed_give": (VOID, (PTR, PTR)),
}

SLOW = ("Client_BufferFromHostBuffer", "LoadedExecutable_Execute", "Error_Destroy")
"""Functions whose native form leaves what is rare to Python."""

TYPE_COUNT = len(api.BufferType)
LAYOUT_RANKS = 32
"""Ranks of which layouts are made in advance."""

COPIED_NATIVELY = 1 << 17
"""Bytes up to which a host buffer is copied to fresh memory here. Larger ones take memory of the pool, whose pages have
been touched before; Python's share of the time is small then.
"""

ZERO_COPY_MASK = 15
"""Alignment - 1 of host memory that buffers may lie in: that of a program's inputs."""

GETTERS: dict[str, tuple[str, str, dict[str, str]]] = {
    "Buffer_ElementType": ("buffer", "buffer", {"type": "type"}),
    "Buffer_Dimensions": ("buffer", "buffer", {"dims": "dims", "num_dims": "rank"}),
    "Buffer_UnpaddedDimensions": ("buffer", "buffer", {"unpadded_dims": "dims", "num_dims": "rank"}),
    "Buffer_OnDeviceSizeInBytes": ("buffer", "buffer", {"on_device_size_in_bytes": "bytes"}),
    "Buffer_Device": ("buffer", "buffer", {"device": "device"}),
    "Buffer_Memory": ("buffer", "buffer", {"memory": "memory"}),
    "Buffer_IsDeleted": ("buffer", "buffer", {"is_deleted": "deleted"}),
    "Buffer_UnsafePointer": ("buffer", "buffer", {"buffer_pointer": "data"}),
    "Buffer_OpaqueDeviceMemoryDataPointer": ("buffer", "buffer", {"device_memory_ptr": "data"}),
    "Layouts_PJRT_Buffer_MemoryLayout": ("buffer", "buffer", {"layout": "layout"}),
    "Layouts_MemoryLayout_Serialize": (
        "layout",
        "layout",
        {"serialized_bytes": "text", "serialized_bytes_size": "size"},
    ),
    "Memory_Kind": ("memory", "memory", {"kind": "kind", "kind_size": "kind_size"}),
    "Executable_NumOutputs": ("executable", "executable", {"num_outputs": "outputs"}),
    "Executable_NumReplicas": ("executable", "executable", {"num_replicas": "replicas"}),
    "Executable_NumPartitions": ("executable", "executable", {"num_partitions": "partitions"}),
}
"""Function → the argument with the handle, its table of words, and field → word. Most calls of a dispatch are these."""


class Native(NativeModule):
    """The functions as one module. The addresses of records that Python makes are data of the module."""

    def __init__(self) -> None:
        slow = {f"slow_{name}": (PTR, (PTR,)) for name in SLOW}
        super().__init__(EXTERNAL | slow)
        self.ready = self.data("pjrt_ready_event")
        self.layouts, self.widths = self.data("pjrt_layouts"), self.data("pjrt_widths")
        self._releases()
        self._events()
        self._buffers()
        self._references()
        for name, (handle, table, fields) in GETTERS.items():
            self._getter(name, handle, table, fields)
        self._host_buffer()

    # -- what functions are written with -------------------------------------------------------------------------------
    def api(self, name: str, write: Callable[[Words, ir.Value], None]) -> None:
        """A function of the table. write: its body; it returns null if the body does not return."""
        with self.function(f"PJRT_{name}", PTR, PTR) as (b, (args,)):
            write(b, args)
            if not b.basic_block.is_terminated:
                b.ret(NULL)

    def argument(self, b: Words, args: ir.Value, function: str, name: str, kind: ir.Type = PTR) -> ir.Value:
        return b.field(args, api.offset(function, name), kind)

    def answer(self, b: Words, args: ir.Value, function: str, name: str, value: ir.Value) -> None:
        """Store a result, as wide as its field."""
        field = getattr(api.arguments(function), name)
        kind = {1: I8, 4: I32, 8: I64}[field.size]
        if isinstance(value.type, ir.PointerType):
            kind = PTR
        elif kind is not value.type:
            value = b.trunc(value, kind)
        b.store(value, b.gep(args, [I64(field.offset)], source_etype=I8))

    def add(self, b: Words, record: ir.Value, word: int, by: int) -> ir.Value:
        """Add to a word that other threads use. Returns what it was."""
        return b.atomic_rmw("add", b.word(record, word), I64(by % (1 << 64)), "acq_rel")

    def swap(self, b: Words, record: ir.Value, word: int, value: ir.Value) -> ir.Value:
        return b.atomic_rmw("xchg", b.word(record, word), value, "acq_rel")

    def _getter(self, name: str, handle: str, table: str, fields: dict[str, str]) -> None:
        def write(b: Words, args: ir.Value) -> None:
            record = self.argument(b, args, name, handle)
            for field, word in fields.items():
                self.answer(b, args, name, field, b.get(record, W[table][word]))
            if name == "Layouts_MemoryLayout_Serialize":
                self.answer(b, args, name, "serialized_layout", record)
                self.answer(b, args, name, "serialized_layout_deleter", self.functions["nothing"])

        self.api(name, write)

    # -- memory --------------------------------------------------------------------------------------------------------
    def _releases(self) -> None:
        """Functions for the words release, release_a and release_b of a buffer, and one that does nothing."""
        with self.function("nothing", VOID, PTR) as (b, _):
            b.ret_void()
        with self.function("PJRT_none", PTR, PTR) as (b, _):
            b.ret(NULL)
        with self.function("release_allocated", VOID, PTR, PTR) as (b, (block, _)):
            self.call(b, "free", block)
            b.ret_void()
        word = W["buffer"]
        with self.function("release", VOID, PTR, internal=True) as (b, (buffer,)):
            data = self.swap(b, buffer, word["data"], I64(0))
            with b.if_then(b.same(data, I64(0))):
                b.ret_void()
            with b.if_then(b.not_(b.same(b.get(buffer, word["release"]), I64(0)))):
                given = b.get(buffer, word["release_a"], PTR), b.get(buffer, word["release_b"], PTR)
                b.call(b.get(buffer, word["release"], CALLBACK), given)
            b.ret_void()
        with self.function("testbed_drop", VOID, PTR) as (b, (buffer,)):
            # Give up a reference.
            left = b.sub(self.add(b, buffer, word["refs"], -1), I64(1))
            with b.if_then(b.same(left, I64(0))):
                self.call(b, "release", buffer)
                self.call(b, "free", buffer)
                b.ret_void()
            only = b.and_(b.same(left, I64(1)), b.not_(b.same(b.get(buffer, word["deleted"]), I64(0))))
            with b.if_then(only, likely=False):
                self.call(b, "release", buffer)
            b.ret_void()
        with self.function("testbed_delete", VOID, PTR) as (b, (buffer,)):
            # Mark a buffer as deleted, and give its memory back if nothing else reads it.
            before = self.swap(b, buffer, word["deleted"], I64(1))
            first = b.and_(b.same(before, I64(0)), b.same(b.get(buffer, word["refs"]), I64(1)))
            with b.if_then(first):
                self.call(b, "release", buffer)
            b.ret_void()

    # -- events --------------------------------------------------------------------------------------------------------
    def _events(self) -> None:
        refs, waiting = W["event"]["refs"], W["event"]["waiting"]

        def is_ready(b: Words, event: ir.Value) -> ir.Value:
            return b.same(b.atomic_rmw("or", b.word(event, waiting), I64(0), "acquire"), I64(READY))

        with self.function("drop_event", VOID, PTR, internal=True) as (b, (event,)):
            with b.if_then(b.same(event, self.ready), likely=True):
                b.ret_void()
            before = self.add(b, event, refs, -1)
            with b.if_then(b.same(before, I64(1))):
                self.call(b, "free", event)
            b.ret_void()
        with self.function("finish_event", VOID, PTR, PTR) as (b, (event, _)):
            # Make an event ready, call what waits for it, and give up a reference.
            first = b.inttoptr(self.swap(b, event, waiting, I64(READY)), PTR)
            node = b.slot(PTR)
            b.store(first, node)
            head, body, done = (b.append_basic_block(name) for name in ("head", "body", "done"))
            b.branch(head)
            b.position_at_end(head)
            held = b.load(node, typ=PTR)
            b.cbranch(b.is_null(held), done, body)
            b.position_at_end(body)
            following = b.get(held, W["node"]["next"], PTR)
            b.call(b.get(held, W["node"]["callback"], CALLBACK), [NULL, b.get(held, W["node"]["argument"], PTR)])
            self.call(b, "free", held)
            b.store(following, node)
            b.branch(head)
            b.position_at_end(done)
            self.call(b, "drop_event", event)
            b.ret_void()

        def destroy(b: Words, args: ir.Value) -> None:
            event = self.argument(b, args, "Event_Destroy", "event")
            with b.if_then(b.not_(b.is_null(event))):
                self.call(b, "drop_event", event)

        def ask(b: Words, args: ir.Value) -> None:
            ready = is_ready(b, self.argument(b, args, "Event_IsReady", "event"))
            self.answer(b, args, "Event_IsReady", "is_ready", b.zext(ready, I64))

        def wait(b: Words, args: ir.Value) -> None:
            event = self.argument(b, args, "Event_Await", "event")
            head, body, done = (b.append_basic_block(name) for name in ("head", "body", "done"))
            b.branch(head)
            b.position_at_end(head)
            b.cbranch(is_ready(b, event), done, body)
            b.position_at_end(body)
            self.call(b, "sched_yield")
            b.branch(head)
            b.position_at_end(done)

        def on_ready(b: Words, args: ir.Value) -> None:
            event, argument = (self.argument(b, args, "Event_OnReady", name) for name in ("event", "user_arg"))
            function = self.argument(b, args, "Event_OnReady", "callback", CALLBACK)
            now, later, again, push = (b.append_basic_block(name) for name in ("now", "later", "again", "push"))
            b.cbranch(is_ready(b, event), now, later)
            b.position_at_end(now)
            b.call(function, [NULL, argument])
            b.ret(NULL)
            b.position_at_end(later)
            node = self.call(b, "malloc", I64(8 * len(NODE)))
            b.put(node, W["node"]["callback"], function)
            b.put(node, W["node"]["argument"], argument)
            b.branch(again)
            b.position_at_end(again)
            before = b.atomic_rmw("or", b.word(event, waiting), I64(0), "acquire")
            became = b.append_basic_block("became")
            b.cbranch(b.same(before, I64(READY)), became, push)
            b.position_at_end(became)
            self.call(b, "free", node)
            b.branch(now)
            b.position_at_end(push)
            b.put(node, W["node"]["next"], before)
            pair = b.cmpxchg(b.word(event, waiting), before, b.ptrtoint(node, I64), "acq_rel", "acquire")
            done = b.append_basic_block("done")
            b.cbranch(b.extract_value(pair, 1), done, again)
            b.position_at_end(done)

        def destroy_error(b: Words, args: ir.Value) -> None:
            # The framework destroys the absent error of each event that it has waited for.
            with b.if_then(b.not_(b.is_null(self.argument(b, args, "Error_Destroy", "error"))), likely=False):
                b.ret(self.call(b, "slow_Error_Destroy", args))

        self.api("Error_Destroy", destroy_error)
        self.api("Event_Destroy", destroy)
        self.api("Event_IsReady", ask)
        self.api("Event_Error", lambda b, args: None)
        self.api("Event_Await", wait)
        self.api("Event_OnReady", on_ready)

    # -- buffers -------------------------------------------------------------------------------------------------------
    def _buffers(self) -> None:
        def with_buffer(name: str, function: str) -> None:
            self.api(name, lambda b, args: self._with(b, args, name, function))

        with_buffer("Buffer_Destroy", "testbed_drop")
        with_buffer("Buffer_Delete", "testbed_delete")
        with_buffer("Buffer_DecreaseExternalReferenceCount", "testbed_drop")

        def on_cpu(b: Words, args: ir.Value) -> None:
            self.answer(b, args, "Buffer_IsOnCpu", "is_on_cpu", I64(1))

        def static(b: Words, args: ir.Value) -> None:
            for field in ("dynamic_dim_indices", "num_dynamic_dims"):
                self.answer(b, args, "Buffer_DynamicDimensionIndices", field, I64(0))

        def event(b: Words, args: ir.Value) -> None:
            self.answer(b, args, "Buffer_ReadyEvent", "event", b.ptrtoint(self.ready, I64))

        self.api("Buffer_IsOnCpu", on_cpu)
        self.api("Buffer_DynamicDimensionIndices", static)
        self.api("Buffer_ReadyEvent", event)
        self.api("Layouts_MemoryLayout_Destroy", lambda b, args: None)

    def _with(self, b: Words, args: ir.Value, name: str, function: str) -> None:
        buffer = self.argument(b, args, name, "buffer")
        with b.if_then(b.not_(b.is_null(buffer))):
            self.call(b, function, buffer)

    def _references(self) -> None:
        def increase(b: Words, args: ir.Value) -> None:
            buffer = self.argument(b, args, "Buffer_IncreaseExternalReferenceCount", "buffer")
            self.add(b, buffer, W["buffer"]["refs"], 1)

        self.api("Buffer_IncreaseExternalReferenceCount", increase)

    def _host_buffer(self) -> None:
        """A buffer of dense row-major host memory: on that memory, or on a small copy of it. All else is Python's."""
        name, word = "Client_BufferFromHostBuffer", W["buffer"]

        def write(b: Words, args: ir.Value) -> None:
            def given(field: str, kind: ir.Type = I64) -> ir.Value:
                return self.argument(b, args, name, field, kind)

            def leave(condition: ir.Value) -> None:
                with b.if_then(condition, likely=False):
                    b.ret(self.call(b, f"slow_{name}", args))

            rank, dims, strides = given("num_dims"), given("dims", PTR), given("byte_strides", PTR)
            kind, memory = b.zext(given("type", I32), I64), self._memory(b, given("memory", PTR), given("device", PTR))
            leave(b.not_(b.less(kind, I64(TYPE_COUNT))))
            leave(b.not_(b.less(rank, I64(LAYOUT_RANKS))))
            leave(b.not_(b.is_null(given("device_layout", PTR))))
            width = b.get(self.widths, kind)
            leave(b.same(width, I64(0)))
            size = self._dense_bytes(b, rank, dims, strides, given("num_byte_strides"), width, leave)
            data = given("data")
            aligned = b.same(b.and_(data, I64(ZERO_COPY_MASK)), I64(0))
            semantics = b.zext(given("host_buffer_semantics", I32), I64)
            least = I64(int(api.HostBufferSemantics.IMMUTABLE_ZERO_COPY))
            may_stay = b.and_(b.not_(b.less(semantics, least)), b.not_(b.same(size, I64(0))))
            zero_copy = b.and_(aligned, may_stay)
            leave(b.and_(b.not_(zero_copy), b.less(I64(COPIED_NATIVELY), size)))
            buffer = self.call(b, "malloc", b.add(I64(8 * len(BUFFER)), b.mul(rank, I64(8))))
            copy = b.gep(buffer, [I64(8 * len(BUFFER))], source_etype=I8)
            self.call(b, "memcpy", copy, dims, b.mul(rank, I64(8)))
            values = {"refs": I64(1), "deleted": I64(0), "bytes": size, "type": kind, "rank": rank, "dims": copy}
            values["layout"] = b.get(self.layouts, rank, PTR)
            values["memory"], values["release_b"] = memory, I64(0)
            values["device"] = b.get(memory, W["memory"]["device"], PTR)
            for field, value in values.items():
                b.put(buffer, word[field], value)
            with b.if_else(zero_copy) as (there, copied):
                with there:
                    event = self.call(b, "malloc", I64(8 * 2))
                    b.put(event, W["event"]["refs"], I64(2))
                    b.put(event, W["event"]["waiting"], I64(0))
                    b.put(buffer, word["data"], data)
                    b.put(buffer, word["release"], self.functions["finish_event"])
                    b.put(buffer, word["release_a"], event)
                    b.put(buffer, word["owned"], I64(0))
                    self.answer(b, args, name, "done_with_host_buffer", event)
                with copied:
                    room = b.and_(b.add(size, I64(127)), I64(~63 % (1 << 64)))
                    block = self.call(b, "aligned_alloc", I64(64), room)
                    self.call(b, "memcpy", block, b.inttoptr(data, PTR), size)
                    b.put(buffer, word["data"], block)
                    b.put(buffer, word["release"], self.functions["release_allocated"])
                    b.put(buffer, word["release_a"], block)
                    b.put(buffer, word["owned"], I64(1))
                    self.answer(b, args, name, "done_with_host_buffer", self.ready)
            self.answer(b, args, name, "buffer", buffer)

        self.api(name, write)

    def _memory(self, b: Words, memory: ir.Value, device: ir.Value) -> ir.Value:
        """The memory space of a new buffer: the one that is given, or the default of the device."""
        found = b.slot(PTR)
        b.store(memory, found)
        with b.if_then(b.is_null(memory), likely=False):
            b.store(b.get(device, W["device"]["default_memory"], PTR), found)
        return b.load(found, typ=PTR)

    def _dense_bytes(
        self,
        b: Words,
        rank: ir.Value,
        dims: ir.Value,
        strides: ir.Value,
        count: ir.Value,
        width: ir.Value,
        leave: Callable[[ir.Value], None],
    ) -> ir.Value:
        """Bytes of an array whose strides are those of row-major order; other strides are left to Python."""
        size = b.slot(I64)
        b.store(width, size)
        listed = b.not_(b.or_(b.is_null(strides), b.same(count, I64(0))))
        with b.each(rank) as i:
            at = b.sub(b.sub(rank, I64(1)), i)
            step, extent = b.load(size, typ=I64), b.get(dims, at)
            with b.if_then(listed):
                leave(b.not_(b.or_(b.same(b.get(strides, at), step), b.less(extent, I64(2)))))
            b.store(b.mul(step, extent), size)
        return b.load(size, typ=I64)
