"""Ctrl-C ends an infinite loop, whether the native runner or Python executes it, and has no other effect."""

import gc
import os
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

from ...backends.host import executable as host
from ...backends.host.estimate import estimated_seconds
from ...backends.host.interruptible import LONG as LONG_SECONDS
from ...backends.host.interruptible import run_aside
from ...formats.text.parser import parse_module
from ...migration import compile_module
from ...planning.plan import ConditionalStep, WhileStep
from ...planning.planner import plan

PROGRAM = """HloModule forever
condition {
  t = (pred[], s32[]) parameter(0)
  ROOT go = pred[] get-tuple-element(t), index=0
}
less { p = s32[] parameter(0)
  q = s32[] parameter(1)
  ROOT r = pred[] compare(p, q), direction=LT }
yes { y = s32[] parameter(0)
  many = s32[64] iota(), iota_dimension=0
  wide = s32[64] broadcast(y), dimensions={}
  mixed = s32[64] xor(many, wide)
  sorted = s32[64] sort(mixed), dimensions={0}, to_apply=less
  last = s32[1] slice(sorted), slice={[63:64]}
  one = s32[] constant(1)
  r0 = s32[] reshape(last)
  ROOT r = s32[] add(r0, one) }
no { n = s32[] parameter(0)
  ROOT r = s32[] negate(n) }
body {
  t = (pred[], s32[]) parameter(0)
  go = pred[] get-tuple-element(t), index=0
  i = s32[] get-tuple-element(t), index=1
  NEXT
  ROOT r = (pred[], s32[]) tuple(go, j)
}
ENTRY e {
  go = pred[] parameter(0)
  i = s32[] parameter(1)
  t = (pred[], s32[]) tuple(go, i)
  ROOT w = (pred[], s32[]) while(t), condition=condition, body=body
}
"""

BODIES = {
    "native": "one = s32[] constant(1)\n  j = s32[] add(i, one)",
    "interpreted": "j = s32[] conditional(go, i, i), true_computation=yes, false_computation=no",
}

KERNEL = """HloModule kernel
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e {
  s = f32[] parameter(0)
  i = f32[1048576,262144] iota(), iota_dimension=1
  w = f32[1048576,262144] broadcast(s), dimensions={}
  m = f32[1048576,262144] multiply(i, w)
  t = f32[1048576,262144] sine(m)
  ROOT r = f32[1048576] reduce(t, s), dimensions={1}, to_apply=add
}
"""
"""One kernel of 2^38 sines, without an array that large."""

SCRIPT = """
import pathlib, sys
root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root / "tools/python"))
from pytest_names import import_root
import_root(root)
import numpy as np
import testbed
executable = testbed.compile(sys.argv[2], options=testbed.CompileOptions(cache=None))
print("runs", flush=True)
try:
    executable.execute([np.bool_(True), np.int32(0)])
except KeyboardInterrupt:
    again = executable.execute([np.bool_(False), np.int32(5)])
    print("interrupted", [x.item() for x in again], len(executable._contexts), flush=True)
"""


def test_one_loop_is_the_runners_and_one_is_not():
    kinds = {
        kind: {type(s) for s in plan(parse_module(PROGRAM.replace("NEXT", b))).walk()} for kind, b in BODIES.items()
    }
    assert ConditionalStep in kinds["interpreted"] and ConditionalStep not in kinds["native"]
    assert all(WhileStep in found for found in kinds.values())


@pytest.mark.parametrize("kind", BODIES)
def test_an_endless_loop_is_interrupted_and_the_program_runs_again(kind):
    text = PROGRAM.replace("NEXT", BODIES[kind])
    command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parents[2]), text]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None and child.stdout.readline() == "runs\n"
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(timeout=0.7)  # it does not end by itself
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=20)
        finally:
            child.kill()
    assert (out, err, child.returncode) == ("interrupted [False, 5] 1\n", "", 0)


LONG = """
import pathlib, sys
root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root / "tools/python"))
from pytest_names import import_root
import_root(root)
import numpy as np
import testbed
options = testbed.CompileOptions(cache=None)
executable = testbed.compile(sys.argv[2], sys.argv[3], options)
text = "HloModule s\\nENTRY e {\\n p = f32[4] parameter(0)\\n ROOT n = f32[4] negate(p)\\n}"
short = testbed.compile(text, options=options)
print("runs", flush=True)
try:
    executable.execute([np.float32(0.5)])
except KeyboardInterrupt:
    print("interrupted", short.execute([np.arange(4, dtype=np.float32)])[0].tolist(), len(executable._contexts))
"""


SPLIT = """HloModule split
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY e { x = f32[128] parameter(0)
  b = f32[128,134217728] broadcast(x), dimensions={0}
  i = f32[128,134217728] iota(), iota_dimension=1
  m = f32[128,134217728] multiply(b, i)
  c = f32[128,134217728] cosine(m)
  z = f32[] constant(0)
  ROOT r = f32[128] reduce(c, z), dimensions={1}, to_apply=sum }
"""
"""One kernel whose rows are shared by threads; all of them take a minute or so."""

SHARED = """
import pathlib, sys, time
root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root / "tools/python"))
from pytest_names import import_root
import_root(root)
import numpy as np
import testbed
from testbed.codegen.threads import set_threads
set_threads(2)
executable = testbed.compile(sys.argv[2], sys.argv[3], testbed.CompileOptions(cache=None))
(kernel,) = executable.image.kernels
block = np.full(128 + 16, np.nan, np.float32)
first = -block.ctypes.data // 4 % 16
out = block[first : first + 128]  # at a 64-byte boundary
print("runs", kernel.split is not None, flush=True)
try:
    executable.execute([np.ones(128, np.float32)], [out])
except KeyboardInterrupt:
    while not len(executable._contexts):  # its memory is given back when the last thread has left the kernel
        time.sleep(0.01)
    print("interrupted", bool(np.isnan(out).any()), flush=True)
"""


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_threads_that_share_a_kernel_leave_it_behind_their_chunks(stack):
    """They begin no further ones: rows stay as they were."""
    command = [sys.executable, "-c", SHARED, str(Path(__file__).parents[2]), SPLIT, stack]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None and child.stdout.readline() == "runs True\n"
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(timeout=0.7)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=120)
        finally:
            child.kill()
    assert (out, err, child.returncode) == ("interrupted True\n", "", 0)


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_a_long_kernel_is_interrupted_and_the_process_goes_on(stack):
    """The kernel itself goes on in its thread, with its memory; the process can end meanwhile."""
    command = [sys.executable, "-c", LONG, str(Path(__file__).parents[2]), KERNEL, stack]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None and child.stdout.readline() == "runs\n"
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(timeout=0.7)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=20)
        finally:
            child.kill()
    assert (out, err, child.returncode) == ("interrupted [-0.0, -1.0, -2.0, -3.0] 0\n", "", 0)


def test_only_what_may_take_long_counts_as_long():
    assert estimated_seconds(plan(parse_module(KERNEL))) > 100 * LONG_SECONDS
    assert estimated_seconds(plan(parse_module(PROGRAM.replace("NEXT", BODIES["native"])))) < LONG_SECONDS
    small = KERNEL.replace("1048576", "64").replace("262144", "64")
    assert estimated_seconds(plan(parse_module(small))) < LONG_SECONDS


STRAIGHT = "HloModule s\nENTRY e { p = f32[4] parameter(0)\n ROOT n = f32[4] negate(p) }"

BRANCHES = """HloModule b
same { x = f32[4] parameter(0)
  ROOT y = f32[4] negate(x) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT }
ordered { x = f32[4] parameter(0)
  ROOT y = f32[4] sort(x), dimensions={0}, to_apply=less }
ENTRY e { p = f32[4] parameter(0)
  s = f32[] constant(0)
  h = f32[1] slice(p), slice={[0:1]}
  f = f32[] reshape(h)
  c = pred[] compare(f, s), direction=EQ
  ROOT r = f32[4] conditional(c, p, p), true_computation=same, false_computation=ordered }
"""


LOOPS = """HloModule l
next { t = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[4] get-tuple-element(t), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[4] negate(x)
  ROOT u = (s32[], f32[4]) tuple(j, y) }
goes { t = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(COUNT)
  ROOT r = pred[] compare(i, n), direction=LT }
ENTRY e { p = f32[4] parameter(0)
  s = s32[] START
  t = (s32[], f32[4]) tuple(s, p)
  w = (s32[], f32[4]) while(t), condition=goes, body=next
  ROOT r = f32[4] get-tuple-element(w), index=1 }
"""
FIXED = LOOPS.replace("COUNT", "4097").replace("START", "constant(0)")
BY_DATA = (
    LOOPS.replace("COUNT", "1")
    .replace("START", "convert(f)")
    .replace("  s = s32[]", "  h = f32[1] slice(p), slice={[0:1]}\n  f = f32[] reshape(h)\n  s = s32[]")
)


@pytest.mark.parametrize(
    "text, quick, aside",
    [
        (STRAIGHT, 60.0, 1),
        (STRAIGHT, 0.0, 4),
        (BRANCHES, 60.0, 4),
        (FIXED, 60.0, 1),  # each run has as many iterations
        (BY_DATA, 60.0, 4),
    ],
)
def test_a_program_that_was_quick_needs_no_thread_any_more(monkeypatch, text, quick, aside):
    """Another branch may take longer. A thread that begins is often put behind one of the pool's for milliseconds."""
    seen = []
    monkeypatch.setattr(host, "LONG", 0.0)
    monkeypatch.setattr(host, "QUICK", quick)
    monkeypatch.setattr(
        host, "run_aside", lambda work, *rest, **named: seen.append(0) or run_aside(work, *rest, **named)
    )
    executable = compile_module(parse_module(text))
    x = np.arange(4, dtype=np.float32)
    for _ in range(4):
        assert executable.execute([x])[0].tolist() == [0, -1, -2, -3]
    assert len(seen) == aside and (executable._contexts.native is not None) == (aside == 1)


def test_a_run_aside_raises_what_it_raises_and_ends_once():
    ended = []
    with pytest.raises(ZeroDivisionError):
        run_aside(lambda: 1 // 0, ended.clear, lambda: ended.append(1), keep=None)
    assert ended == [1]


def test_an_interrupted_run_is_stopped_and_gives_its_memory_back_when_it_ends():
    released, calls, kept = threading.Event(), [], np.zeros(3)
    alive = weakref.ref(kept)

    def work():
        os.kill(os.getpid(), signal.SIGINT)
        released.wait()

    with pytest.raises(KeyboardInterrupt):
        run_aside(work, lambda: calls.append("stop"), lambda: calls.append("end"), keep=kept)
    del kept
    gc.collect()
    assert calls == ["stop"] and alive() is not None
    released.set()
    for thread in threading.enumerate():
        if thread.name == "run":
            thread.join()
    assert calls == ["stop", "end"] and alive() is None
