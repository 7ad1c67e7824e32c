"""What is made of reports: groups, flame views, traces, comparisons."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from ...profiling.compare import compare
from ...profiling.facts import Facts, Part
from ...profiling.flame import boxes_of, folded, svg
from ...profiling.groups import BETWEEN, ENTRY, NO_SOURCE, WAYS, groups
from ...profiling.recorder import Recorder, Recording
from ...profiling.trace import trace_of, trace_text
from .reports import loop, made, step

PARTS = (
    Part(Facts("t", "tanh", "unary", "jit/tanh", "f.py:1"), 0.75),
    Part(Facts("a", "add", "binary", "jit/add", "f.py:2"), 0.25),
)
FUSION = {"name": "fusion.1", "opcode": "fusion", "family": "control", "source": "", "op_name": "", "parts": PARTS}


def report(**changes):
    """A kernel, a loop with a fusion and a copy in it, a kernel of a library."""
    return made(
        step(own=100.0, total=100.0),
        loop(own=60.0, total=500.0),
        step(**FUSION, depth=1, calls=10.0, own=400.0, total=400.0),
        step(name="copy.1", kind="copy", opcode="copy", stack="", depth=1, own=40.0, total=40.0, source="", op_name=""),
        step(name="lu.1", opcode="custom-call getrf", stack="library", own=340.0, total=340.0),
        **changes,
    )


def by(way):
    return {g.name: (g.own, g.estimated, g.calls) for g in groups(report(), way)}


@pytest.mark.parametrize("way", WAYS)
def test_groups_add_up_to_the_report(way):
    found = groups(report(), way)
    assert sum(g.own for g in found) == pytest.approx(report().sum)
    assert [g.name for g in found[-2:]] == [BETWEEN, ENTRY]
    steps = [g.own for g in found[:-2]]
    assert steps == sorted(steps, reverse=True)


def test_groups():
    assert by("opcode")["tanh"] == (300, 300, 10) and by("opcode")["while"] == (60, 0, 2)
    assert by("opcode")["add"] == (200, 100, 11)  # a kernel, and a part of a fusion
    assert by("family")["unary"] == (300, 300, 10)
    assert by("stack") == {
        "legacy": (500, 0, 11),
        "library": (340, 0, 1),
        "host program": (100, 0, 3),
        BETWEEN: (10, 0, 1),
        ENTRY: (50, 0, 1),
    }
    assert by("source")["f.py:1"] == (300, 300, 10) and by("source")[NO_SOURCE] == (100, 0, 3)
    assert by("instruction")["t"] == (300, 300, 10) and "fusion.1" not in by("instruction")


def test_parts_of_one_group_are_no_estimate():
    same = tuple(Part(Facts(name, "add", "binary", "", "f.py:9"), 0.5) for name in "ab")
    (group, *_) = groups(made(step(**{**FUSION, "parts": same})), "source")
    assert (group.name, group.own, group.estimated) == ("f.py:9", 100, 0)


def test_what_is_unknown_has_a_name():
    found = groups(made(step(opcode="", family="", source="", op_name="")), "opcode")
    assert found[0].name == "unknown"


# -- flame ------------------------------------------------------------------------------------------------------------
def test_boxes_nest_as_the_steps():
    root = boxes_of(report())
    assert [box.name for box in root.children] == [ENTRY, "add.1", "while.1", "lu.1", BETWEEN]
    inside = root.children[2]
    assert [(box.name, box.time) for box in inside.children] == [("fusion.1", 400), ("copy.1", 40)]
    assert [(box.name, box.time, box.what) for box in inside.children[0].children] == [
        ("t", 300, "part"),
        ("a", 100, "part"),
    ]
    assert root.time == pytest.approx(report().sum)
    assert "5 iterations of 0.050 us" in inside.tip


def test_folded_stacks_add_up():
    lines = [line.rpartition(" ") for line in folded(report()).splitlines()]
    assert sum(int(number) for _, _, number in lines) == round(report().sum)
    paths = {path: int(number) for path, _, number in lines}
    assert paths["p;while.1;fusion.1;t [estimate]"] == 300 and paths["p;while.1"] == 60
    assert folded(made(step(name="a;b\nc"))).splitlines()[1] == "p;a,b c 100"


@pytest.mark.parametrize("theme, rules", [("light", 1), ("dark", 1), ("auto", 2)])
def test_the_picture_stands_alone(theme, rules):
    text = svg(report(program='<p> & \x00"q"'), theme)
    root = ET.fromstring(text)
    spaces = {"s": "http://www.w3.org/2000/svg"}
    tips = [tip.text for tip in root.iterfind(".//s:g/s:title", spaces)]
    assert len(tips) == 10 and tips[0].startswith('<p> & ?"q": 1.000 us a run, 100.0%')
    assert any("about 75.0% of fusion.1 by its cost, an estimate" in tip for tip in tips)
    assert not list(root.iterfind(".//s:script", spaces)) and "http" not in text.replace(spaces["s"], "")
    assert text.count(".page{") == rules and ("prefers-color-scheme" in text) == (theme == "auto")
    left, right = 10, 1190
    for box in root.iterfind(".//s:g/s:rect", spaces):
        x, width = float(box.get("x")), float(box.get("width"))
        assert left - 0.01 <= x and x + width <= right + 0.5


def test_a_picture_of_nothing():
    root = ET.fromstring(svg(made(entry=0.0, between=0.0)))
    assert root.get("aria-label") == "p, legacy: 0.00 us a call"


# -- traces -----------------------------------------------------------------------------------------------------------
def recording(*pairs, thread=7):
    marks, times = zip(*pairs)
    return Recording(np.array(marks, np.uint64), np.array(times, np.uint64), 0, thread)


RUN = recording((0, 5000), (2, 5100), (3, 5200), (4, 5250), (6, 5300), (7, 5400), (8, 5410), (9, 5420), (5, 5500),
                (10, 5510), (11, 5600), (1, 5700))  # fmt: skip


def test_a_trace_keeps_the_rules_of_the_format():
    found = json.loads(trace_text(report(), [RUN, recording((0, 6000), (1, 6100), thread=8)]))
    assert found["displayTimeUnit"] == "ns" and found["otherData"]["intervals left out"] == 0
    events = found["traceEvents"]
    for event in events:
        assert event["ph"] in "XM" and isinstance(event["name"], str) and event["name"]
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int) and isinstance(event["args"], dict)
    named = {e["tid"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    complete = [e for e in events if e["ph"] == "X"]
    assert {e["tid"] for e in complete} == named == {7, 8}
    for event in complete:
        assert event["ts"] >= 0 and event["dur"] >= 0 and isinstance(event["cat"], str)
    for thread in named:  # complete events of a thread nest or follow each other
        open_until = []
        for event in (e for e in complete if e["tid"] == thread):
            while open_until and open_until[-1] <= event["ts"]:
                open_until.pop()
            end = event["ts"] + event["dur"]
            assert not open_until or end <= open_until[-1] + 1e-9
            open_until.append(end)


def test_events_say_what_they_are_of():
    events = [e for e in trace_of(report(), [RUN])["traceEvents"] if e["ph"] == "X"]
    assert [(e["name"], e["cat"], e["ts"], e["dur"]) for e in events] == [
        ("p", "run", 0.0, 0.7),
        ("add.1", "kernel", 0.1, 0.1),
        ("while.1", "while", 0.25, 0.25),
        ("fusion.1", "kernel", 0.3, 0.1),
        ("copy.1", "copy", 0.41, 0.01),
        ("lu.1", "kernel", 0.51, 0.09),
    ]
    arguments = events[1]["args"]
    assert arguments == {
        "hlo": "add.1",
        "opcode": "add",
        "shape": "f32[8]",
        "op_name": "jit(f)/add",
        "source": "f.py:3",
        "stack": "legacy",
        "bytes": 96.0,
        "FLOPs": 8.0,
        "transcendentals": 0.0,
    }


def test_what_does_not_end_or_does_not_fit_is_left_out(monkeypatch):
    cut = Recording(RUN.marks[:7], RUN.times[:7], 5, 7)
    assert [e["name"] for e in trace_of(report(), [cut])["traceEvents"] if e["ph"] == "X"] == ["add.1", "fusion.1"]
    monkeypatch.setattr("testbed.profiling.trace.MOST_EVENTS", 4)
    found = trace_of(report(), [RUN])
    assert len(found["traceEvents"]) == 4 and found["otherData"]["intervals left out"] == 4
    assert trace_of(report(), [])["traceEvents"][0]["args"] == {"name": "p, legacy"}


def test_a_recorder_forgets_what_it_gave():
    recorder = Recorder()
    recorder.add(RUN.marks, RUN.times, 3)
    (kept,) = recorder.take()
    assert kept.lost == 3 and kept.thread > 0 and recorder.take() == []


# -- comparisons ------------------------------------------------------------------------------------------------------
def test_changes_are_those_of_the_same_names_and_the_largest_first():
    new = made(step(own=90.0), loop(own=260.0), step(name="new.1", shape="f32[1]", own=5.0), entry=51.0)
    old = made(step(own=100.0), loop(own=60.0), step(name="old.1", shape="f32[2]", own=7.0))
    found = [(c.before, c.after, c.difference) for c in compare(old, new)]
    assert found == [
        ("while.1", "while.1", 200),
        ("add.1", "add.1", -10),
        ("old.1", "", -7),
        ("", "new.1", 5),
        (ENTRY, ENTRY, 1),
        (BETWEEN, BETWEEN, 0),
    ]
    assert sum(c.difference for c in compare(old, new)) == pytest.approx(new.sum - old.sum)
    assert [c.ratio for c in compare(old, new)][:3] == [pytest.approx(260 / 60), 0.9, None]


def test_steps_with_other_names_match_by_opcode_and_shape_in_order():
    old = made(step(name="a.1", own=1.0), step(name="a.2", own=2.0), step(name="same", own=3.0))
    new = made(step(name="same", own=4.0), step(name="b.1", own=10.0), step(name="b.2", own=20.0), step(name="b.3"))
    pairs = {(c.before, c.after) for c in compare(old, new)}
    assert {("a.1", "b.1"), ("a.2", "b.2"), ("same", "same"), ("", "b.3")} <= pairs


def test_steps_of_which_only_the_name_is_known_match_by_name_only():
    old = made(step(name="a", shape="", opcode=""), step(name="b", shape="", opcode=""))
    new = made(step(name="c", shape="", opcode=""), step(name="b", shape="", opcode=""))
    pairs = {(c.before, c.after) for c in compare(old, new)}
    assert {("a", ""), ("", "c"), ("b", "b")} <= pairs


def test_equal_reports_change_nothing():
    assert {c.difference for c in compare(report(), report())} == {0}
