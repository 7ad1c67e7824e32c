"""Handlers in Python called by JAX: run as a program in a process of its own, it prints a line of JSON for each case.

A case asserts what it computes; its line has "ok", or the error.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
import traceback
import weakref
from typing import ClassVar

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from testbed import ffi

F32 = ffi.Buffer[ffi.F32]


@ffi.handler
def scale(x: F32, y: ffi.Result[F32], k: ffi.Attr[ffi.float32]):
    np.multiply(x, np.float32(k), out=y)


@ffi.handler
def mix(a: F32, b: F32, c: F32, y: ffi.Result[F32], z: ffi.Result[ffi.BufferR0[ffi.S32]]):
    y[...] = a * b + c
    z[...] = a.size


@ffi.handler
def fails(x: ffi.AnyBuffer, y: ffi.Result[ffi.AnyBuffer], code: ffi.Attr[ffi.int32]):
    if code < 0:
        raise LookupError("raised")
    return ffi.Error(ffi.ErrorCode(code), "returned")


@ffi.handler
def copy(x: ffi.AnyBuffer, y: ffi.Result[ffi.AnyBuffer]):
    y[...] = x


class Count:
    alive: ClassVar[weakref.WeakSet[Count]] = weakref.WeakSet()

    def __init__(self, start: int):
        self.now = start
        self.alive.add(self)


@ffi.handler(stage="instantiate")
def count_start(start: ffi.Attr[ffi.int32]) -> Count:
    return Count(start)


@ffi.handler
def count_next(start: ffi.Attr[ffi.int32], count: ffi.State[Count], y: ffi.Result[ffi.BufferR0[ffi.S32]]):
    count.now += 1
    y[...] = count.now


@ffi.handler
def attributes(d: ffi.Attrs, y: ffi.Result[ffi.BufferR0[ffi.F32]]):
    assert (d.get("i", ffi.int32), d["f"], d["s"], d["b"]) == (3, 0.5, "text", True)
    assert d.get("v", ffi.Span[ffi.int64]).tolist() == [1, 2] and d["d"]["n"] == 7
    y[...] = len(d)


@ffi.handler
def threads(pool: ffi.ThreadPool, device: ffi.DeviceOrdinal, run: ffi.RunId, y: ffi.Result[ffi.BufferR1[ffi.S64]]):
    done = threading.Event()
    pool.schedule(done.set)
    y[...] = [pool.num_threads(), device, run > 0]


@ffi.handler
def later(x: F32, y: ffi.Result[F32]) -> ffi.Future:
    promise = ffi.Promise()

    def compute():
        y[...] = x + 1
        promise.set_available()

    threading.Thread(target=compute).start()
    return ffi.Future(promise)


HANDLERS = {"scale": scale, "mix": mix, "fails": fails, "copy": copy, "attributes": attributes, "threads": threads}
HANDLERS |= {"later": later, "count": {"instantiate": count_start, "execute": count_next}}


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def scaled(x, k=2.0, **more):
    return jax.ffi.ffi_call("py_scale", jax.ShapeDtypeStruct(x.shape, x.dtype), **more)(x, k=np.float32(k))


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def eager_and_jit():
    for function in (scaled, jax.jit(scaled)):
        for n in range(4):
            np.testing.assert_array_equal(function(X + n), 2 * (X + n))
    y, z = jax.jit(jax.ffi.ffi_call("py_mix", (f32(2, 3), jax.ShapeDtypeStruct((), jnp.int32))))(X, X, X)
    np.testing.assert_array_equal(y, X * X + X)
    assert z == 6


def vmap():
    for method in ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all"):
        got = jax.jit(jax.vmap(lambda x, m=method: scaled(x, vmap_method=m)))(X)
        np.testing.assert_array_equal(got, 2 * X)


def loops():
    def body(_, x):
        return scaled(x, 1.5)

    got = jax.jit(lambda x: jax.lax.fori_loop(0, 7, body, x))(X)
    np.testing.assert_allclose(got, X * 1.5**7, rtol=1e-6)
    _, rows = jax.jit(lambda x: jax.lax.scan(lambda c, r: (c, scaled(r)), 0, x))(X)
    np.testing.assert_array_equal(rows, 2 * X)
    got = jax.jit(lambda n, x: jax.lax.cond(n > 0, scaled, lambda x: x, x))(1, X)
    np.testing.assert_array_equal(got, 2 * X)


def gradient():
    @jax.custom_vjp
    def square(x):
        return jax.ffi.ffi_call("py_mix", (f32(2, 3), jax.ShapeDtypeStruct((), jnp.int32)))(x, x, 0 * x)[0]

    square.defvjp(lambda x: (square(x), x), lambda x, g: (scaled(x) * g,))
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: square(x).sum()))(X), 2 * X)


def sharded():
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
    spec = jax.sharding.PartitionSpec("i")
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    mapped = jax.jit(jax.shard_map(scaled, mesh=mesh, in_specs=spec, out_specs=spec))
    for n in range(3):
        np.testing.assert_array_equal(mapped(x + n), 2 * (x + n))


def on_threads():
    function, wrong = jax.jit(scaled), []

    def work(n):
        for i in range(200):
            x = np.full((2, 3), n * 1000 + i, np.float32)
            if (np.asarray(function(x)) != 2 * x).any():
                wrong.append((n, i))

    running = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert not wrong


def errors():
    for code in [*range(1, 17), -1]:
        call = jax.jit(lambda x, c=code: jax.ffi.ffi_call("py_fails", f32(2, 3))(x, code=np.int32(c)))
        name, text = ("INTERNAL", "LookupError: raised") if code < 0 else (ffi.ErrorCode(code).name, "returned")
        for _ in range(3):
            try:
                jax.block_until_ready(call(X))
            except Exception as error:
                said = str(error)
            assert f"{name}: {text}" in said or (code == 1 and "returned" in said), (code, said)
    try:
        jax.block_until_ready(jax.jit(lambda x: jax.ffi.ffi_call("py_scale", f32(2, 3))(x, k=2.0))(X.astype(np.int32)))
    except Exception as error:
        said = str(error)
    assert "(bad operands at: 0, 2)" in said and "expected F32 but got S32Wrong scalar" in said, said


def dtypes():
    names = ["bool_", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "bfloat16", "float32"]
    names += ["complex64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "int4", "uint4"]
    for name in names:
        dtype = np.dtype(getattr(jnp, name))
        for shape in ((), (5,), (2, 0), (2, 3, 2)):
            x = np.array(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 7, dtype)
            call = jax.jit(lambda x: jax.ffi.ffi_call("py_copy", jax.ShapeDtypeStruct(x.shape, x.dtype))(x))
            got = np.asarray(call(jnp.asarray(x)))
            assert got.dtype == dtype and got.tobytes() == x.tobytes(), (name, shape, x, got)


def layouts():
    call = jax.ffi.ffi_call("py_copy", f32(2, 3), input_layouts=[(1, 0)], output_layouts=(1, 0))
    np.testing.assert_array_equal(jax.jit(call)(X), X)  # both sides are transposed in memory: a copy is a copy


def state():
    call = jax.ffi.ffi_call("py_count", jax.ShapeDtypeStruct((), jnp.int32), has_side_effect=True)
    first, second = (jax.jit(lambda s=s: call(start=np.int32(s))).lower().compile() for s in (10, 20))
    assert [int(first()) for _ in range(3)] == [11, 12, 13] and [int(second()) for _ in range(2)] == [21, 22]
    assert int(first()) == 14 and len(Count.alive) == 2
    del first, second
    jax.clear_caches()
    gc.collect()
    deadline = time.monotonic() + 60  # XLA deletes executables on threads of its own
    while len(Count.alive) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not len(Count.alive), "states outlive their executables"


def attribute_values():
    call = jax.ffi.ffi_call("py_attributes", f32())
    attrs = {"i": np.int32(3), "f": np.float32(0.5), "s": "text", "b": True, "v": np.array([1, 2]), "d": {"n": 7}}
    for _ in range(3):
        assert jax.jit(lambda: call(**attrs))() == 6


def context():
    call = jax.ffi.ffi_call("py_threads", jax.ShapeDtypeStruct((3,), np.int64))
    with jax.enable_x64(True):
        assert jax.jit(call)()[0] >= 1


def futures():
    call = jax.jit(jax.ffi.ffi_call("py_later", f32(2, 3)))
    for n in range(5):
        np.testing.assert_array_equal(call(X + n), X + n + 1)


CASES = [eager_and_jit, vmap, loops, gradient, sharded, on_threads, errors, dtypes, layouts, state, attribute_values]
CASES += [context, futures]


def main() -> None:
    for name, given in HANDLERS.items():
        ffi.register_with_jax(f"py_{name}", given)
    kept = jax.jit(lambda: jax.ffi.ffi_call("py_count", jax.ShapeDtypeStruct((), jnp.int32))(start=np.int32(1)))
    for case in CASES:
        try:
            case()
            answer = "ok"
        except Exception as error:
            answer = "".join(traceback.format_exception(error))
        print(json.dumps({"case": case.__name__, "answer": answer}), flush=True)
    kept().block_until_ready()  # its state is alive when the interpreter ends
    print(json.dumps({"case": "version", "answer": jax.__version__, "dtype": str(ml_dtypes.bfloat16)}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
