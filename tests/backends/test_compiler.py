"""backends/host: kernels in modules, their order and names, failures, and what an observer sees."""

import shutil
import threading
from dataclasses import replace

import numpy as np
import pytest

from ...backends.base import CompileOptions, Emitter
from ...backends.host import compiler
from ...backends.host.compiler import BATCH, batches_of
from ...codegen.cache import ObjectCache
from ...hlo.errors import UnsupportedError
from ...hlo.opcodes import Op
from ...planning.plan import AllocationKind
from ..support.hand_built import F32, FAKE, OPTIONS, Programs, X, Y, add_program, compiled, emit


def test_kernels_name_their_stack_and_the_order_of_work_is_timed():
    p = Programs(F32, [F32, F32])
    t, out = p.add(AllocationKind.TEMPORARY), p.add(AllocationKind.RESULT, 0, F32)
    steps = [p.kernel("first", Op.ADD, [0, 1], [t]), p.kernel("second", Op.MULTIPLY, [t, 1], [out])]
    other = replace(FAKE, name="other")
    executable = compiled(
        p.plan(steps, 1),
        lambda r: other if r.instruction.opcode is Op.MULTIPLY else FAKE,
        replace(OPTIONS, keep_stages=True),
    )
    np.testing.assert_array_equal(executable.execute([X, Y])[0], (X + Y) * Y)
    assert executable.kernels == (("first", "fake"), ("second", "other"))
    assert list(executable.timings) == ["emit", "optimize", "codegen", "load"] and min(executable.timings.values()) > 0
    names = [name for name, _ in executable.stages]
    assert names == ["thunks.txt", *(f"{stack}.{n}" for stack in ("fake", "other")
                                     for n in ("1.fake.txt", "2.ll", "3.optimized.ll", "4.s"))]  # fmt: skip


@pytest.mark.parametrize(
    "count, modules",
    [(0, 0), (1, 1), (4, 1), (5, 2), (BATCH, 2), (2 * BATCH, 2), (2 * BATCH + 1, 3), (5 * BATCH - 1, 5)],
)
def test_batches_hold_all_kernels_in_order_and_evenly(count, modules):
    batches = batches_of(tuple(range(count)))
    assert len(batches) == modules
    assert [k for batch in batches for k in batch] == list(range(count))
    assert all(0 < len(b) <= BATCH for b in batches) and max(map(len, batches), default=0) - 1 <= min(
        map(len, batches), default=0
    )


def test_the_options_say_which_kernels_share_a_module_and_on_how_many_threads_they_compile():
    program, calls, names = many_kernels(5), [], set()

    def counting(requests, options):
        calls.append([r.name for r in requests])
        return emit(requests, options)

    def watched(requests):
        return [[r for r in requests if int(r.name[1:]) % 2 == odd] for odd in (1, 0)]

    build = compiler.build_object

    def named(*given):
        names.add(threading.current_thread().name)
        return build(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "build_object", named)
        stack = replace(FAKE, emit=counting)
        executable = compiled(program, lambda request: stack, replace(OPTIONS, batches=watched, threads=1))
        assert calls == [["k1", "k3"], ["k0", "k2", "k4"]] and names == {threading.current_thread().name}
        names.clear()
        compiled(program, lambda request: stack, replace(OPTIONS, batches=watched, threads=2))
        assert names and threading.current_thread().name not in names
    usual = compiled(program).execute([X, Y])[0]
    assert executable.execute([X, Y])[0].tobytes() == usual.tobytes()


def many_kernels(count):
    p = Programs(F32, [F32, F32])
    a, b, out = p.add(AllocationKind.TEMPORARY), p.add(AllocationKind.TEMPORARY), p.add(AllocationKind.RESULT, 0, F32)
    steps = [p.kernel("k0", Op.ADD, [0, 1], [a])]
    for i in range(1, count - 1):
        steps.append(p.kernel(f"k{i}", Op.ADD, [(a, b)[i % 2 == 0], 1], [(b, a)[i % 2 == 0]]))
    return p.plan([*steps, p.kernel(f"k{count - 1}", Op.ADD, [(a, b)[count % 2 == 1], 1], [out])], 1)


def test_many_kernels_are_compiled_in_modules_that_the_cache_knows_one_by_one(tmp_path):
    program, calls = many_kernels(3 * BATCH), []

    def counting(requests, options):
        calls.append([r.name for r in requests])
        return emit(requests, options)

    emitter = replace(FAKE, emit=counting)
    options = CompileOptions(cache=ObjectCache(tmp_path))
    executable = compiled(program, lambda r: emitter, options)
    np.testing.assert_allclose(executable.execute([X, Y])[0], X + 3 * BATCH * Y, rtol=1e-6)
    assert calls == [[f"k{i}" for i in range(n, n + BATCH)] for n in range(0, 3 * BATCH, BATCH)]
    files = {path.name: path.read_bytes() for path in tmp_path.rglob("*.o")}
    shutil.rmtree(tmp_path)
    compiled(program, lambda r: emitter, options)
    assert {path.name: path.read_bytes() for path in tmp_path.rglob("*.o")} == files
    assert compiled(program, lambda r: emitter, options).timings["codegen"] == 0


def test_a_failure_in_a_later_module_is_raised_and_leaves_nothing_running():
    def fails(requests, options):
        if requests[0].name != "k0":
            raise ZeroDivisionError("emitter")
        return emit(requests, options)

    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        compiled(many_kernels(3 * BATCH), lambda r: replace(FAKE, emit=fails))
    assert threading.active_count() == before


def test_what_a_stack_does_not_support_is_listed_before_it_emits():
    missing = [UnsupportedError("fake", w, remedy=f"add {w}") for w in ("add(f32)", "tan(f32)", "add(f32)")]
    emitter = Emitter("fake", lambda *_: pytest.fail("emitted"), lambda requests: missing)
    with pytest.raises(UnsupportedError, match=r"also missing: fake has no emitter for tan\(f32\)") as caught:
        compiled(add_program(F32), lambda r: emitter)
    assert caught.value.what == "add(f32)"


def test_an_observer_sees_the_thunks_of_a_run():
    add = compiled(add_program(F32))
    seen = []
    (z,) = add.execute([X, Y], observer=lambda thunk, run: (seen.append(thunk.name), run())[0])
    assert seen == ["add"]
    np.testing.assert_array_equal(z, X + Y)
