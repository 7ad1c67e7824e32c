"""Sink: intervals from events, without the cost of events; lost ends; threads; what is printed."""

import json
import threading

import numpy as np
import pytest

from ...planning.allocation import MOST_MARKS
from ...profiling import sink as sink_module
from ...profiling.profile import Row
from ...profiling.sink import Sink, spans

ROWS = (Row(0, "loop", "while", 0), Row(1, "a", "kernel", 1), Row(2, "b", "kernel", 1))


def events(*pairs):
    marks, times = zip(*pairs)
    return np.array(marks, np.uint64), np.array(times, np.uint64)


RUN = events((0, 100), (2, 110), (3, 130), (4, 140), (5, 145), (2, 150), (3, 190), (1, 200))
"""The loop from 100 to 200; in it a twice, 20 and 40 ns, and b once, 5 ns."""


def sink_of(*runs, event=0.0):
    sink = Sink(ROWS, event)
    for marks, times in runs:
        sink.add(marks, times)
    return sink


def test_calls_totals_and_minima():
    rows = sink_of(RUN, RUN).profile().rows
    assert [(r.name, r.calls, r.total, r.least, r.mean) for r in rows] == [
        ("loop", 2, 200, 100, 100),
        ("a", 4, 120, 20, 30),
        ("b", 2, 10, 5, 5),
    ]


def test_the_cost_of_each_event_inside_is_subtracted():
    rows = sink_of(RUN, event=3.0).profile().rows
    assert [r.total for r in rows] == [100 - 7 * 3, 60 - 2 * 3, 5 - 3]
    assert sink_of(RUN, event=1000.0).profile().total == 0


@pytest.mark.parametrize(
    "kept, calls", [(8, [1, 2, 1]), (7, [0, 2, 1]), (6, [0, 1, 1]), (4, [0, 1, 0]), (1, [0, 0, 0])]
)
def test_an_interval_without_its_end_does_not_count(kept, calls):
    sink = Sink(ROWS, 0.0)
    sink.add(RUN[0][:kept], RUN[1][:kept], 8 - kept)
    made = sink.profile()
    assert [r.calls for r in made.rows] == calls
    assert made.lost == 8 - kept
    assert ("did not fit" in str(made)) == (kept < 8)


def test_no_events_at_all():
    ids, lengths = spans(*(np.zeros(0, np.uint64),) * 2, 20.0)
    assert not ids.size and not lengths.size
    assert sink_of().profile().total == 0
    assert [r.least for r in sink_of().profile().rows] == [0, 0, 0]


def test_ids_may_be_far_apart_and_in_any_order():
    far = MOST_MARKS - 1
    sink = Sink([Row(far, "last", "kernel", 0), Row(3, "loop", "while", 0), Row(7, "a", "kernel", 1)], 0.0)
    sink.add(*events((6, 0), (14, 1), (15, 3), (7, 10), (2 * far, 20), (2 * far + 1, 50)))
    assert [(r.name, r.calls, r.total) for r in sink.profile().rows] == [("last", 1, 30), ("loop", 1, 10), ("a", 1, 2)]


def test_clear_forgets():
    sink = sink_of(RUN)
    assert sink.profile(clear=True).runs == 1
    assert sink.profile().runs == 0
    assert sum(r.calls for r in sink.profile().rows) == 0


def test_runs_that_wait_are_added_up_when_they_are_many(monkeypatch):
    monkeypatch.setattr(sink_module, "MOST_WAITING", 20)
    sink = sink_of(*[RUN] * 7)
    assert len(sink._waiting) == 1
    assert [r.calls for r in sink.profile().rows] == [7, 14, 7]
    assert not sink._waiting


def test_threads_add_at_once():
    sink = Sink(ROWS, 0.0)
    threads = [threading.Thread(target=lambda: [sink.add(*RUN) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = sink.profile()
    assert made.runs == 200 and [r.calls for r in made.rows] == [200, 400, 200]


def test_text_and_json_say_the_same():
    made = sink_of(RUN, RUN).profile()
    lines = str(made).splitlines()
    assert lines[0].split() == ["step", "kind", "calls", "total", "us", "share", "mean", "us", "min", "us"]
    assert lines[1].split() == ["loop", "while", "2", "0.20", "100.0%", "0.10", "0.10"]
    assert lines[2].startswith("  a ")
    assert lines[-1].startswith("2 runs, 0.20 us")
    found = json.loads(json.dumps(made.to_json()))
    assert found["runs"] == 2 and found["lost_events"] == 0
    assert [(s["name"], s["depth"], s["calls"], s["total_ns"]) for s in found["steps"]] == [
        ("loop", 0, 2, 200),
        ("a", 1, 4, 120),
        ("b", 1, 2, 10),
    ]
