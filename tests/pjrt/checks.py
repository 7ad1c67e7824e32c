"""Checks of the plugin that run one behind the other in a process of JAX. Each is a function that asserts."""

import gc
import json
import sys
import tempfile
import threading
import time
import traceback

import numpy as np


def platform():
    import jax

    assert [d.platform for d in jax.devices()] == ["testbed"]
    assert jax.default_backend() == "testbed"
    assert jax.devices()[0].default_memory().kind == "device"
    assert {m.kind for m in jax.devices()[0].addressable_memories()} == {"device", "pinned_host", "unpinned_host"}
    assert jax.devices("cpu")[0].platform == "cpu"


def arrays_go_there_and_back():
    import jax
    import ml_dtypes

    types = [np.bool_, np.int8, np.uint16, np.int32, np.float32, np.complex64, ml_dtypes.bfloat16, ml_dtypes.int4]
    for dtype in [*types, ml_dtypes.float8_e4m3fn, ml_dtypes.uint2]:
        for shape in [(), (3,), (2, 0, 3), (4, 5), (300, 200)]:
            given = (np.arange(int(np.prod(shape))) % 2).reshape(shape).astype(dtype)
            for array in (given, given.T, given[..., ::-1] if shape else given):
                back = np.asarray(jax.device_put(array))
                assert back.dtype == array.dtype and back.shape == array.shape
                assert back.tobytes() == np.ascontiguousarray(array).tobytes(), (dtype, shape)


def zero_copy_keeps_host_memory_alive():
    import jax

    array = np.arange(1 << 16, dtype=np.float32)
    held = sys.getrefcount(array)
    x = jax.device_put(array)
    assert x.unsafe_buffer_pointer() == array.ctypes.data or array.ctypes.data % 16
    assert sys.getrefcount(array) > held
    back = np.asarray(x)
    assert back.ctypes.data == x.unsafe_buffer_pointer()
    x.delete()
    assert back[-1] == (1 << 16) - 1
    del x, back
    gc.collect()
    for _ in range(100):
        if sys.getrefcount(array) == held:
            break
        time.sleep(0.01)
    assert sys.getrefcount(array) == held


def copies_are_copies():
    import jax

    array = np.arange(8, dtype=np.float32)
    x = jax.numpy.array(array)
    y = jax.device_put(jax.device_put(array), may_alias=False)
    array[0] = 100
    assert np.asarray(x)[0] == 0 and np.asarray(y)[0] == 0


def results_do_not_change():
    import jax

    f = jax.jit(lambda x: x + 1)
    x = jax.device_put(np.zeros(1000, np.float32))
    kept = [f(x) for _ in range(50)]
    views = [np.asarray(k) for k in kept[:10]]
    del kept
    for _ in range(200):
        f(f(x))
    assert all((v == 1).all() for v in views)


def donation():
    import jax

    f = jax.jit(lambda x, y: (x * 2, y + 1), donate_argnums=0)
    x, y = jax.device_put(np.ones(1000, np.float32), may_alias=False), jax.device_put(np.ones(3, np.float32))
    place = x.unsafe_buffer_pointer()
    a, _ = f(x, y)
    assert x.is_deleted() and not y.is_deleted() and np.asarray(a)[0] == 2
    for _ in range(3):
        place = a.unsafe_buffer_pointer()
        a, _ = f(a, y)
        assert a.unsafe_buffer_pointer() == place
    view = np.asarray(a)
    value = view[0]
    b, _ = f(a, y)  # somebody reads the memory: it must not be overwritten
    assert view[0] == value and np.asarray(b)[0] == 2 * value
    host = np.ones(1 << 12, np.float32)
    f(jax.device_put(host), y)
    assert (host == 1).all()


def donation_twice_is_an_error():
    import jax
    import pytest

    f = jax.jit(lambda x, y: (x + y, x - y), donate_argnums=(0, 1))
    x = jax.device_put(np.ones(8, np.float32))
    with pytest.raises(Exception, match=r"donate the same buffer twice"):
        f(x, x)
    with pytest.raises(Exception, match="deleted"):
        y = jax.device_put(np.ones(8, np.float32))
        y.delete()
        f(x, y)


def loops_branches_and_gradients():
    import jax
    import jax.numpy as jnp

    def both(function, *given):
        ours = jax.jit(function)(*given)
        with jax.default_device(jax.devices("cpu")[0]):
            wanted = jax.jit(function)(*(np.asarray(g) for g in given))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6), ours, wanted)

    x = np.linspace(-2, 2, 60, dtype=np.float32).reshape(6, 10)
    both(lambda x: jax.lax.fori_loop(0, 5000, lambda i, c: c * 0.999 + 0.01, x), x)
    both(lambda x: jax.lax.scan(lambda c, r: (c + r, c * r), x[0], x), x)
    both(lambda x: jax.lax.cond(x.sum() > 1, jnp.sin, jnp.cos, x), x)
    both(jax.grad(lambda x: jnp.sum(jax.nn.softmax(x @ x.T) ** 2)), x)
    both(lambda x: jnp.sort(x, axis=1), x)
    both(lambda x: jax.random.normal(jax.random.key(0), (7,)) + x[0, 0], x)
    both(lambda x: jax.lax.conv(x[None, None], x[None, None, :3, :3], (1, 1), "SAME"), x)


def linear_algebra():
    import jax
    import jax.numpy as jnp

    a = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    s = a @ a.T + 6 * np.eye(6, dtype=np.float32)
    np.testing.assert_allclose(jnp.linalg.inv(s) @ s, np.eye(6), atol=1e-5)
    w, v = jnp.linalg.eigh(s)
    np.testing.assert_allclose(v @ jnp.diag(w) @ v.T, s, rtol=1e-4, atol=1e-4)
    q, r = jnp.linalg.qr(a)
    np.testing.assert_allclose(q @ r, a, atol=1e-5)
    u, d, vt = jnp.linalg.svd(a)
    np.testing.assert_allclose(u @ jnp.diag(d) @ vt, a, atol=1e-4)
    values = np.sort_complex(np.asarray(jnp.linalg.eig(a)[0]))
    np.testing.assert_allclose(values, np.sort_complex(np.linalg.eigvals(a)), atol=1e-4)
    t, z = jax.scipy.linalg.schur(a)
    np.testing.assert_allclose(z @ t @ z.T, a, atol=1e-4)
    h, q = jax.scipy.linalg.hessenberg(a, calc_q=True)
    np.testing.assert_allclose(q @ h @ q.T, a, atol=1e-4)
    np.testing.assert_allclose(jnp.linalg.cholesky(s) @ jnp.linalg.cholesky(s).T, s, rtol=1e-4)
    np.testing.assert_allclose(jnp.linalg.solve(s, a), np.linalg.solve(s, a), atol=1e-4)


def described_programs():
    import jax

    compiled = jax.jit(lambda x: x @ x).lower(np.ones((8, 8), np.float32)).compile()
    assert compiled.as_text().startswith("HloModule jit__lambda") and "dot(" in compiled.as_text()
    assert compiled.cost_analysis()["flops"] >= 2 * 8**3 - 8**2
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == memory.output_size_in_bytes == 256
    assert memory.generated_code_size_in_bytes > 0


def errors_have_codes():
    import jax
    import jax.numpy as jnp
    import pytest

    with pytest.raises(Exception, match=r"INVALID_ARGUMENT.*No such compile option: 'xla_no_such_option'"):
        jax.jit(jnp.sin).lower(1.0).compile({"xla_no_such_option": True})
    with pytest.raises(Exception, match=r"UNIMPLEMENTED.*no_such_target"):
        jax.jit(lambda x: jax.ffi.ffi_call("no_such_target", x)(x)).lower(
            jax.ShapeDtypeStruct((2,), jnp.float32)
        ).compile()


def deep_programs():
    import jax

    def chain(x):
        for n in range(1500):
            x = x * 1.0001 + n if n % 2 else x - n
        return x

    assert np.isfinite(np.asarray(jax.jit(chain)(np.ones(4, np.float32)))).all()


def threads():
    import jax

    f = jax.jit(lambda x: (x * 2 + 1).sum())
    x = [jax.device_put(np.full(5000, n, np.float32)) for n in range(8)]
    f(x[0])
    wrong = []

    def work(n):
        for _ in range(300):
            if float(f(x[n])) != 5000 * (2 * n + 1):
                wrong.append(n)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def no_growth():
    import jax

    from testbed.backends.host.memory import memory_stats

    f = jax.jit(lambda x: x + 1)
    x = jax.device_put(np.zeros(100_000, np.float32))
    for _ in range(5):
        f(x)
    gc.collect()
    before = memory_stats().bytes_in_use
    for _ in range(2000):
        f(x)
    gc.collect()
    assert memory_stats().bytes_in_use <= before


def persistent_cache():
    import jax

    with tempfile.TemporaryDirectory() as folder:
        options = {
            "jax_compilation_cache_dir": folder,
            "jax_persistent_cache_min_compile_time_secs": 0.0,
            "jax_persistent_cache_min_entry_size_bytes": -1,
        }
        before = {name: getattr(jax.config, name) for name in options}
        from jax._src import compilation_cache

        try:
            for name, value in options.items():
                jax.config.update(name, value)
            compilation_cache.reset_cache()
            found = []
            for _ in range(2):
                f = jax.jit(lambda x: x * 3 + 2)
                found.append(np.asarray(f(np.arange(4, dtype=np.float32))).tolist())
                jax.clear_caches()
            assert found == [[2, 5, 8, 11]] * 2
            from testbed.pjrt import serial

            assert serial.loaded >= 1
        finally:
            for name, value in before.items():
                jax.config.update(name, value)
            compilation_cache.reset_cache()


def dlpack():
    import jax
    import jax.numpy as jnp

    x = jnp.arange(6.0).reshape(2, 3)
    exported = np.from_dlpack(x)
    assert exported.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert exported.ctypes.data == x.unsafe_buffer_pointer()
    del x
    gc.collect()
    jnp.zeros((2, 3)) + 1
    assert exported.tolist() == [[0, 1, 2], [3, 4, 5]]
    array = np.arange(4, dtype=np.float32)
    held = sys.getrefcount(array)
    y = jax.dlpack.from_dlpack(array)
    assert (y + 1).tolist() == [1, 2, 3, 4]
    del y
    gc.collect()
    assert sys.getrefcount(array) == held


def callbacks():
    import jax
    import jax.numpy as jnp
    import pytest
    from jax.experimental import io_callback

    seen = []

    @jax.jit
    def f(x):
        jax.debug.callback(lambda v: seen.append(float(v[0])), x)
        total = io_callback(lambda v: np.float32(v.sum()), jax.ShapeDtypeStruct((), jnp.float32), x, ordered=True)
        return jax.pure_callback(lambda v: np.asarray(v) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x), total

    y, total = f(jnp.arange(3.0) + 1)
    jax.effects_barrier()
    assert (y.tolist(), float(total), seen) == ([2, 4, 6], 6, [1])
    for dtype in (jnp.int4, jnp.uint2, jnp.bfloat16, jnp.bool_):
        given = jnp.array([0, 1], dtype)
        same = jax.jit(lambda x: jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct(x.shape, x.dtype), x))(given)
        assert same.dtype == dtype and same.tolist() == given.tolist()

    def fail(v):
        raise ValueError("no such value")

    with pytest.raises(Exception, match="no such value"):
        jax.jit(lambda x: jax.pure_callback(fail, jax.ShapeDtypeStruct((), jnp.float32), x))(1.0).block_until_ready()


def targets_of_the_user():
    import jax
    import jax.numpy as jnp

    from testbed import ffi

    @ffi.handler
    def twice(x: ffi.Buffer[ffi.F32], y: ffi.Result[ffi.Buffer[ffi.F32]]):
        y[...] = 2 * x

    for platform in ("testbed", "cpu"):
        jax.ffi.register_ffi_target(f"twice_on_{platform}", ffi.capsule(twice), platform=platform)
        call = jax.ffi.ffi_call(f"twice_on_{platform}", jax.ShapeDtypeStruct((3,), jnp.float32))
        assert jax.jit(call)(jnp.arange(3.0)).tolist() == [0, 2, 4]


CHECKS = (
    *(platform, arrays_go_there_and_back, zero_copy_keeps_host_memory_alive, copies_are_copies),
    *(results_do_not_change, donation, donation_twice_is_an_error, loops_branches_and_gradients),
    *(linear_algebra, described_programs, errors_have_codes, deep_programs, threads, no_growth),
    *(persistent_cache, dlpack, callbacks, targets_of_the_user),
)


def run_all(checks=CHECKS) -> None:
    """Print, as JSON, the traceback of each check, or an empty text."""
    found = {}
    for check in checks:
        try:
            check()
            found[check.__name__] = ""
        except BaseException as error:
            found[check.__name__] = "".join(traceback.format_exception(error))
    print("\nRESULTS" + json.dumps(found))
