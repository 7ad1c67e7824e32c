"""XLA as a stack: modules that its optimiser wrote, a child process that may end, flags, one-line reasons."""

import gc
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from ...backends.xla import IsolatedXla, XlaCrashed, XlaRefused, child, installed, parse_xla_flags
from ...backends.xla.child import Child
from ...backends.xla.errors import reason_of, reason_of_death
from ...hlo.errors import InputError

needs_xla = pytest.mark.skipif(not installed(), reason="needs jaxlib (./testbed setup --xla)")

# Answers like worker.py, without jaxlib: `die` ends it as XLA's failed checks do, `sleep` takes its time.
WORKER = """
import os, sys, time
from multiprocessing.connection import Connection

def serve(descriptor):
    connection = Connection(descriptor)
    while True:
        try:
            forgotten, kind, *arguments = connection.recv()
        except EOFError:
            return
        if kind == "die":
            print("F1122 06:07:20.413090   17001 partitioner.cc:269] Check failed: a == b (0 vs. 1) ", file=sys.stderr)
            print("*** Check failure stack trace: ***\\n    @     0x7f00  absl::Fail()", file=sys.stderr, flush=True)
            os.abort()
        if kind == "exit":
            os._exit(3)
        if kind == "sleep":
            time.sleep(60)
        if kind == "refuse":
            connection.send(("refused", "no such thing"))
        connection.send(("done", (os.getpid(), forgotten, arguments)))
"""


@pytest.fixture
def worker(tmp_path, monkeypatch):
    (tmp_path / "worker_of_a_test.py").write_text(WORKER)
    monkeypatch.syspath_prepend(str(tmp_path))
    started = Child("worker_of_a_test")
    yield started
    started.stop()


def test_one_process_answers_every_request(worker):
    first, second = worker.request("echo", 1), worker.request("echo", np.arange(3))
    assert first[0] == second[0] and worker.starts == 1
    assert first[2] == [1] and list(second[2][0]) == [0, 1, 2]


def test_a_death_is_one_line_with_the_failed_check_and_the_next_request_is_answered(worker):
    with pytest.raises(XlaCrashed) as error:
        worker.request("die")
    assert str(error.value) == (
        "XLA crashed on this module: killed by SIGABRT: partitioner.cc:269: Check failed: a == b (0 vs. 1)"
    )
    assert worker.request("echo", 2)[2] == [2] and worker.starts == 2
    with pytest.raises(XlaCrashed, match=r"exited with status 3$"):
        worker.request("exit")


def test_a_process_that_gives_no_answer_is_ended(worker):
    (number, *_) = worker.request("echo")
    with pytest.raises(XlaCrashed, match=r"no answer within 0\.2 s"):
        worker.request("sleep", limit=0.2)
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
    assert worker.request("echo", 3)[2] == [3]


def test_a_process_that_was_killed_between_requests_is_started_again(worker):
    os.kill(worker.request("echo")[0], signal.SIGKILL)
    worker._process.wait()
    assert worker.request("echo", 4)[2] == [4]


def test_a_refusal_leaves_the_process_alone_and_what_is_forgotten_is_told(worker):
    number = worker.request("echo")[0]
    with pytest.raises(XlaRefused, match="XLA refuses this module: no such thing"):
        worker.request("refuse")
    worker._connection.recv()  # what this worker also sends
    worker.forget(7)
    assert worker.request("echo") == (number, [7], []) and worker.request("echo") == (number, [], [])


def test_reasons_are_the_useful_lines():
    syntax = (
        "INVALID_ARGUMENT: Syntax error when trying to parse the text as a HloModule:\nwas parsing 2:11: error: x\nE\n^"
    )
    assert reason_of(syntax) == syntax.split("\nE")[0].replace("\n", " ")
    mlir = 'UNKNOWN: <unknown>:0: error: loc("b"): no\n<unknown>:0: note: loc("b"): see current operation: %0 = 1'
    assert reason_of(mlir) == 'UNKNOWN: <unknown>:0: error: loc("b"): no'
    assert reason_of("") == "no reason given" and len(reason_of("x" * 9999)) <= 300
    assert reason_of_death("") == ""
    assert reason_of_death("LLVM ERROR: out of registers\n#0 0x0 f\n") == "LLVM ERROR: out of registers"
    assert reason_of_death("a warning\nterminate called\n    @  0x7f g()\n") == "terminate called"


def test_flags_are_parsed_as_xla_flags_are():
    text = "--xla_a=true xla_b=3 --xla_c '--xla_d=two words' --xla_e=False"
    flags = ("xla_a", True), ("xla_b", "3"), ("xla_c", True), ("xla_d", "two words"), ("xla_e", False)
    assert parse_xla_flags(text) == flags
    assert parse_xla_flags(None) == parse_xla_flags("") == ()
    for wrong in ("-x", "--nothing=1", "'--xla_a=1"):
        with pytest.raises(InputError):
            parse_xla_flags(wrong)


IDENTITY = "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] exponential(x)\n}\n"


@needs_xla
def test_an_unknown_flag_and_a_wrong_value_are_one_line():
    with pytest.raises(InputError, match=r"^XLA's flags: No such compile option: 'xla_nope' \(correct --xla-flags\)$"):
        IsolatedXla(IDENTITY, parse_xla_flags("--xla_nope=1"))
    with pytest.raises(InputError, match="'maybe' is not a valid bool value"):
        IsolatedXla(IDENTITY, parse_xla_flags("--xla_cpu_enable_fast_math=maybe"))


@needs_xla
def test_flags_reach_xla(tmp_path):
    IsolatedXla(IDENTITY, parse_xla_flags(f"--xla_dump_to={tmp_path}"))
    assert [*tmp_path.glob("*before_optimizations*")]


@needs_xla
def test_a_module_is_compiled_again_after_another_ended_the_process():
    mine = IsolatedXla(IDENTITY)
    x = np.arange(4, dtype=np.float32)
    before = mine.execute([x])[0]
    assert mine.run_seconds > 0
    child._shared().stop()
    np.testing.assert_array_equal(before, mine.execute([x])[0])
    del mine
    gc.collect()


@needs_xla
def test_a_refusal_of_xla_says_what_and_where():
    with pytest.raises(XlaRefused, match=r"was parsing 1:\d+: error: "):
        IsolatedXla("HloModule")


@needs_xla
def test_the_child_ends_with_its_parent_whatever_ends_that(tmp_path):
    script = (
        f"import sys, time; sys.path[:] = {sys.path!r}\n"
        f"from {child.__package__} import IsolatedXla, child\n"
        f"mine = IsolatedXla({IDENTITY!r})\n"
        "print(child._shared()._process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    number = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    end = time.monotonic() + 60
    while _runs(number):
        assert time.monotonic() < end, "the child is still there"
        time.sleep(0.02)


def _runs(number: int) -> bool:
    try:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

# Text as XLA's optimiser writes it, and the result in NumPy on X.
OPTIMISED = {
    "a fusion is what its computation computes": (
        """
f { p = f32[2,3,4]{2,1,0} parameter(0)
  ROOT n = f32[2,3,4]{2,1,0} negate(p) }
ENTRY e { x = f32[2,3,4]{2,1,0} parameter(0)
  ROOT y = f32[2,3,4]{2,1,0} fusion(x), kind=kLoop, calls=f, backend_config={"outer_dimension_partitions":["2"]} }""",
        -X,
    ),
    "a custom fusion, nested": (
        """
g { p = f32[2,3,4]{2,1,0} parameter(0)
  ROOT n = f32[2,3,4]{2,1,0} negate(p) }
f { p = f32[2,3,4]{2,1,0} parameter(0)
  a = f32[2,3,4]{2,1,0} fusion(p), kind=kLoop, calls=g
  ROOT t = (f32[2,3,4]{2,1,0}, f32[2,3,4]{2,1,0}) tuple(a, p) }
ENTRY e { x = f32[2,3,4]{2,1,0} parameter(0)
  y = (f32[2,3,4]{2,1,0}, f32[2,3,4]{2,1,0}) fusion(x), kind=kCustom, calls=f, backend_config={"kind":"__ynn_fusion"}
  u = f32[2,3,4]{2,1,0} get-tuple-element(y), index=0
  v = f32[2,3,4]{2,1,0} get-tuple-element(y), index=1
  ROOT z = f32[2,3,4]{2,1,0} multiply(u, v) }""",
        -X * X,
    ),
    "a bitcast between default layouts is a reshape": (
        "ENTRY e { x = f32[2,3,4]{2,1,0} parameter(0)\n  ROOT y = f32[6,4]{1,0} bitcast(x) }",
        X.reshape(6, 4),
    ),
    "a bitcast to another layout is a transpose": (
        "ENTRY e { x = f32[2,3,4]{2,1,0} parameter(0)\n  ROOT y = f32[4,2,3]{0,2,1} bitcast(x) }",
        X.transpose(2, 0, 1),
    ),
    "a bitcast from a layout to another one": (
        """ENTRY e { x = f32[2,3,4]{2,1,0} parameter(0)
  c = f32[2,3,4]{0,2,1} copy(x)
  ROOT y = f32[12,2]{0,1} bitcast(c) }""",
        X.transpose(1, 2, 0).reshape(2, 12).T,
    ),
    "a bitcast to another type of the same size": (
        "ENTRY e { x = f32[2,3,4]{2,1,0} parameter(0)\n  ROOT y = s32[24]{0} bitcast(x) }",
        X.reshape(24).view(np.int32),
    ),
    "a constant with a layout keeps its elements": (
        """ENTRY e { x = f32[2,3,4]{2,1,0} parameter(0)
  c = f32[2,3]{0,1} constant({{1,2,3},{4,5,6}})
  d = f32[2,3]{1,0} copy(c)
  b = f32[2,3,4]{2,1,0} broadcast(d), dimensions={0,1}
  ROOT y = f32[2,3,4]{2,1,0} add(x, b) }""",
        X + np.arange(1, 7, dtype=np.float32).reshape(2, 3, 1),
    ),
    "layouts inside and at the border are dropped": (
        """ENTRY e { x = f32[2,3,4]{2,1,0} parameter(0)
  c = f32[2,3,4]{0,1,2} copy(x)
  t = f32[4,2]{0,1} constant({{1,2},{3,4},{5,6},{7,8}})
  r = f32[3,2]{0,1} slice(t), slice={[0:3], [0:2]}
  ROOT y = (f32[2,3,4]{0,1,2}, f32[3,2]{0,1}) tuple(c, r) }""",
        (X, np.arange(1, 7, dtype=np.float32).reshape(3, 2)),
    ),
}


@needs_xla
@pytest.mark.parametrize("name", OPTIMISED)
def test_what_its_optimiser_wrote_xla_takes_again(name):
    text, expected = OPTIMISED[name]
    results = IsolatedXla(f"HloModule m, is_scheduled=true\n{text}\n").execute([X])
    wanted = expected if isinstance(expected, tuple) else (expected,)
    assert len(results) == len(wanted)
    for result, value in zip(results, wanted):
        assert result.dtype == value.dtype
        np.testing.assert_array_equal(result, value)


@needs_xla
def test_a_module_that_nobody_optimised_is_given_to_xla_as_it_is():
    from jaxlib import _hlo

    from ...backends.xla.unoptimize import unoptimised

    proto = _hlo.hlo_module_from_text(IDENTITY).as_serialized_hlo_module_proto()
    assert unoptimised(proto) is proto
