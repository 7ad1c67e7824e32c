"""Times of a device's steps: by the events of its queue, of each command; on OpenCL, and on the recording driver."""

import json

import numpy as np
import pytest

from ...backends.accelerator.notes import events_of
from ...backends.accelerator.profiled import profiled
from ...backends.cuda.dialect import CUDA
from ...backends.opencl.library import devices
from ...backends.registry import platform
from ...benchmarks.profiles import measure, report
from ...cli.main import main
from ...profiling.totals import totals
from ...profiling.trace import trace_of
from ...thunks.marked import numbered_steps
from ..support.device_programs import PROGRAM, compiled, inputs, targets
from ..support.host_items import host_items
from ..support.recorded import Recorded

needs_opencl = pytest.mark.skipif(not devices()[0], reason=f"platform opencl: {devices()[1]}")


class Span:
    def __init__(self, begin, end):
        self._times = begin, end

    def span(self):
        return self._times


def test_marks_are_at_the_ends_of_commands():
    """0: the run; 1: a kernel; 2: one without work; 3: a loop with a copy and a launch."""
    notes = [0, 2, Span(10, 20), 3, 4, 5, 6, Span(25, 30), Span(40, 70), 7, 1]
    marks, times = events_of(notes)
    assert marks.tolist() == [0, 2, 3, 4, 5, 6, 7, 1]
    assert times.tolist() == [10, 10, 20, 20, 20, 25, 70, 70]
    assert [a.size for a in events_of([])] == [0, 0]
    assert events_of([0, 1])[1].tolist() == [0, 0]


@pytest.mark.parametrize("made", [*targets()])
def test_the_steps_of_a_run_lie_in_it_and_loops_count(made):
    executable = compiled(made(), PROGRAM)
    forms, (x, q) = profiled(executable), inputs()
    wanted = executable.execute([x, q])
    found = forms.steps.execute([x, q])
    assert [a.tobytes() for a in found] == [b.tobytes() for b in wanted]
    (recording,) = forms.steps.take_events()
    steps = numbered_steps(executable.thunks)
    sums = totals(recording.marks, recording.times, len(steps) + 1)
    assert sums.runs == 1 and (np.diff(recording.times.astype(np.int64)) >= 0).all()
    (loop,) = [n for n, (_, thunk) in enumerate(steps) if type(thunk).__name__ == "WhileThunk"]
    inside = [sums.calls[n + 1] for n, (depth, _) in enumerate(steps) if depth and n > loop]
    assert sums.calls[loop + 1] == 1 and set(inside) <= {100, 101}
    assert sums.times[0] >= sums.times[loop + 1] > 0
    flat = [sums.times[n + 1] for n, (depth, _) in enumerate(steps) if not depth]
    assert sum(flat) <= sums.times[0]
    assert not executable.is_recording and not forms.empty.is_recording


def test_the_report_has_what_is_known_of_each_step_and_the_trace_its_times():
    forms = profiled(compiled(Recorded(CUDA, host_items()), PROGRAM))
    measured = measure(forms, inputs(), 5)
    made = report("mixed", "legacy@cuda", forms, measured)
    assert made.event == made.marginal == 0 and made.host_program == "interpreted"
    assert {s.opcode for s in made.steps} >= {"while", "fft"}
    assert made.entry + made.run == pytest.approx(max(made.wall, made.run))
    rows = [row for row in trace_of(made, measured.recordings)["traceEvents"] if row["ph"] == "X"]
    assert {row["name"] for row in rows} >= {s.name for s in made.steps if s.calls}
    assert all(row["ts"] >= 0 and row["dur"] >= 0 for row in rows)


@needs_opencl
def test_a_kernels_time_is_that_of_its_event():
    """A launch and a copy in a watched queue, next to the times of the queue's own markers."""
    executor = platform("opencl").executor(0)
    stream, first, second = executor.create_stream(), executor.allocate(1 << 20), executor.allocate(1 << 20)
    before = stream.marker()
    stream.watch()
    stream.memset(first, 1)
    stream.mark(0)
    stream.memcpy(second, first, 1 << 20)
    stream.mark(1)
    notes, after = stream.watched(), stream.marker()
    stream.synchronize()
    fill, mark, copy, end = notes
    assert (mark, end) == (0, 1)
    (a, b), (c, d) = fill.span(), copy.span()
    assert before.time(0x1283) <= a < b <= c < d <= after.time(0x1283)
    stream.memcpy(second, first, 1 << 20)
    assert stream.watched() == []
    stream.synchronize()


@needs_opencl
def test_profile_runs_on_the_platform(tmp_path, capsys):
    module, trace, profile = (str(tmp_path / name) for name in ("m.hlo", "t.json", "p.json"))
    (tmp_path / "m.hlo").write_text(PROGRAM)
    given = ["--platform", "opencl", "--iterations", "3", "--trace", trace, "--json", profile]
    assert main(["profile", module, *given]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "legacy@opencl" in output or "library@opencl" in output
    assert "timed by the device's queue" in output
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert {"kernel", "while", "run"} <= {e["cat"] for e in events if e["ph"] == "X"}
    (saved,) = json.loads((tmp_path / "p.json").read_text())["profiles"]
    assert saved["emitters"].endswith("@opencl") and all(s["total"] >= 0 for s in saved["steps"])


@pytest.mark.parametrize(
    "given, words",
    [
        (["opencl", "--counters"], "leave out --platform"),
        (["interpreter"], "platform interpreter notes no times of kernels"),
        (["nowhere"], "nowhere"),
    ],
)
def test_profile_says_what_it_cannot(given, words, tmp_path, capsys):
    (tmp_path / "m.hlo").write_text(PROGRAM)
    assert main(["profile", str(tmp_path / "m.hlo"), "--platform", *given]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
