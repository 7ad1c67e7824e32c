"""The function table as a C caller uses it, without JAX: life of buffers and events, errors, calls out of order."""

import ctypes

import numpy as np
import pytest

from ...pjrt import api, native_code, plugin
from ...pjrt.native import CALLBACK

ON_READY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
ON_DELETE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
FIRST = 5  # words before the functions


class Caller:
    """Calls functions of the table by name. An error raises, and is destroyed."""

    def __init__(self):
        self.table = plugin.table()
        self.words = self.table.words

    def raw(self, name, **fields):
        kind = api.arguments(name)
        args = kind(ctypes.sizeof(kind), None, **fields)
        address = int(self.words[FIRST + api.functions().index(name)])
        return args, CALLBACK(address)(ctypes.addressof(args))

    def __call__(self, name, **fields):
        args, error = self.raw(name, **fields)
        if error:
            message, _ = self.raw("Error_Message", error=error)
            text = ctypes.string_at(message.message, message.message_size).decode()
            code, _ = self.raw("Error_GetCode", error=error)
            self.raw("Error_Destroy", error=error)
            raise RuntimeError(f"{api.ErrorCode(code.code).name}: {text}")
        return args


@pytest.fixture(scope="module")
def call():
    return Caller()


@pytest.fixture(scope="module")
def device(call):
    call("Client_Create")
    return call("Client_LookupDevice", client=64, id=0).device


def put(call, device, array, semantics="ONLY_DURING_CALL", strides=None):
    dims = (ctypes.c_int64 * array.ndim)(*array.shape)
    steps = None if strides is None else (ctypes.c_int64 * array.ndim)(*strides)
    return call(
        "Client_BufferFromHostBuffer",
        client=64,
        data=array.ctypes.data,
        type=api.TYPE_OF[_dtype(array)],
        dims=ctypes.addressof(dims),
        num_dims=array.ndim,
        byte_strides=None if steps is None else ctypes.addressof(steps),
        num_byte_strides=0 if steps is None else array.ndim,
        host_buffer_semantics=int(api.HostBufferSemantics[semantics]),
        device=device,
    )


def _dtype(array):
    from ...hlo.dtypes import from_numpy

    return from_numpy()[array.dtype]


def get(call, buffer, dtype, shape):
    out = np.empty(shape, dtype)
    call("Buffer_ToHostBuffer", src=buffer, dst=out.ctypes.data, dst_size=out.nbytes)
    return out


def aligned(count, offset=0):
    memory = np.zeros(count + 64, np.float32)
    start = (-memory.ctypes.data // 4) % 16 + offset
    return memory[start : start + count]


def test_every_function_of_the_table_is_there(call):
    assert len(call.words) == FIRST + len(api.functions()) == 140
    absent = [n for n, w in zip(api.functions(), call.words[FIRST:], strict=True) if not w]
    assert tuple(absent) == plugin.ABSENT
    assert all(call.table.layouts[3:])
    version = call.words[4]
    assert (int(version) & 0xFFFFFFFF, int(version) >> 32) == (0, 104)


def test_what_is_not_supported_is_an_error(call):
    with pytest.raises(RuntimeError, match="UNIMPLEMENTED: PJRT_Client_Load is not supported"):
        call("Client_Load")
    with pytest.raises(RuntimeError, match="INVALID_ARGUMENT: no device 99"):
        call("Client_LookupDevice", client=64, id=99)
    _, error = call.raw("Executable_Name", executable=12345)
    assert error, "an unknown handle is an error, no crash"
    call.raw("Error_Destroy", error=error)
    call.raw("Error_Destroy", error=error)
    call.raw("Error_Destroy", error=None)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 4), (4, 0), (300, 300)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex128])
def test_host_arrays_in_any_order(call, device, shape, dtype):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    for view in (array, array.T, array[..., ::-1] if shape else array, array[::2] if shape else array):
        made = put(call, device, view, strides=view.strides)
        assert get(call, made.buffer, dtype, view.shape).tolist() == view.tolist()
        ready = call("Event_IsReady", event=made.done_with_host_buffer)
        assert ready.is_ready
        call("Event_Destroy", event=made.done_with_host_buffer)
        call("Buffer_Destroy", buffer=made.buffer)


def test_zero_copy_ends_when_nothing_reads_the_memory(call, device):
    array, ended = aligned(64), []
    callback = ON_READY(lambda error, argument: ended.append((error, argument)))
    made = put(call, device, array, "IMMUTABLE_ZERO_COPY")
    event = made.done_with_host_buffer
    call("Event_OnReady", event=event, callback=ctypes.cast(callback, ctypes.c_void_p), user_arg=7)
    call("Event_OnReady", event=event, callback=ctypes.cast(callback, ctypes.c_void_p), user_arg=8)
    assert not call("Event_IsReady", event=event).is_ready
    assert call("Buffer_UnsafePointer", buffer=made.buffer).buffer_pointer == array.ctypes.data
    call("Buffer_IncreaseExternalReferenceCount", buffer=made.buffer)
    call("Buffer_Delete", buffer=made.buffer)
    assert call("Buffer_IsDeleted", buffer=made.buffer).is_deleted and not ended
    call("Buffer_DecreaseExternalReferenceCount", buffer=made.buffer)
    assert ended == [(None, 8), (None, 7)]
    assert call("Event_IsReady", event=event).is_ready
    call("Event_Await", event=event)
    call("Event_OnReady", event=event, callback=ctypes.cast(callback, ctypes.c_void_p), user_arg=9)
    assert ended[-1] == (None, 9)
    call("Event_Destroy", event=event)
    call("Buffer_Destroy", buffer=made.buffer)


def test_event_may_be_destroyed_before_it_is_ready(call, device):
    array, ended = aligned(64), []
    callback = ON_READY(lambda error, argument: ended.append(argument))
    made = put(call, device, array, "IMMUTABLE_ZERO_COPY")
    event = made.done_with_host_buffer
    call("Event_OnReady", event=event, callback=ctypes.cast(callback, ctypes.c_void_p), user_arg=1)
    call("Event_Destroy", event=event)
    call("Buffer_Destroy", buffer=made.buffer)
    assert ended == [1]


def test_misaligned_memory_is_copied(call, device):
    array = aligned(64, offset=1)
    array[:] = 3
    made = put(call, device, array, "IMMUTABLE_ZERO_COPY")
    array[:] = 4
    assert call("Event_IsReady", event=made.done_with_host_buffer).is_ready
    assert (get(call, made.buffer, np.float32, 64) == 3).all()
    call("Buffer_Destroy", buffer=made.buffer)


def test_large_copies_take_memory_of_the_pool(call, device):
    from ...backends.host.memory import memory_stats

    array = np.ones(native_code.COPIED_NATIVELY // 4 + 1, np.float32)
    before = memory_stats().bytes_in_use
    made = put(call, device, array)
    assert memory_stats().bytes_in_use - before >= array.nbytes
    call("Buffer_Destroy", buffer=made.buffer)
    assert memory_stats().bytes_in_use == before


def test_views_tell_their_owner(call, device):
    array, ended = aligned(6), []
    array[:] = range(6)
    callback = ON_DELETE(lambda data, argument: ended.append((data, argument)))
    dims = (ctypes.c_int64 * 2)(2, 3)
    view = call(
        "Client_CreateViewOfDeviceBuffer",
        client=64,
        device_buffer_ptr=array.ctypes.data,
        dims=ctypes.addressof(dims),
        num_dims=2,
        element_type=api.TYPE_OF[_dtype(array)],
        device=device,
        on_delete_callback=ctypes.cast(callback, ctypes.c_void_p),
        on_delete_callback_arg=5,
    ).buffer
    assert get(call, view, np.float32, (2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    copy = call("Buffer_CopyToDevice", buffer=view, dst_device=device).dst_buffer
    call("Buffer_Destroy", buffer=view)
    assert ended == [(array.ctypes.data, 5)]
    array[:] = 0
    assert get(call, copy, np.float32, (2, 3))[1, 2] == 5
    call("Buffer_Destroy", buffer=copy)


def test_deleted_buffers_are_refused(call, device):
    made = put(call, device, np.ones(3, np.float32))
    call("Buffer_Delete", buffer=made.buffer)
    call("Buffer_Delete", buffer=made.buffer)
    with pytest.raises(RuntimeError, match="INVALID_ARGUMENT: Buffer has been deleted or donated"):
        get(call, made.buffer, np.float32, 3)
    call("Buffer_Destroy", buffer=made.buffer)
    call("Buffer_Destroy", buffer=None)


def test_sizes_are_checked(call, device):
    made = put(call, device, np.ones(3, np.float32))
    out = np.empty(3, np.float32)
    assert call("Buffer_ToHostBuffer", src=made.buffer).dst_size == 12
    with pytest.raises(RuntimeError, match="12 bytes do not fit into 8"):
        call("Buffer_ToHostBuffer", src=made.buffer, dst=out.ctypes.data, dst_size=8)
    with pytest.raises(RuntimeError, match="8 bytes from 8 on are not in a buffer of 12 bytes"):
        call("Buffer_CopyRawToHost", buffer=made.buffer, dst=out.ctypes.data, offset=8, transfer_size=8)
    call("Buffer_CopyRawToHost", buffer=made.buffer, dst=out.ctypes.data, offset=4, transfer_size=8)
    assert out[:2].tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="type 23 are not supported"):
        dims = (ctypes.c_int64 * 1)(1)
        call("Client_CreateUninitializedBuffer", shape_dims=ctypes.addressof(dims), shape_num_dims=1,
             shape_element_type=23, device=device)  # fmt: skip
    call("Buffer_Destroy", buffer=made.buffer)


def test_memory_statistics_fit_the_caller(call, device):
    stats = call("Device_MemoryStats", device=device)
    assert stats.num_allocs_is_set and stats.num_allocs > 0
    assert not stats.largest_alloc_size_is_set
