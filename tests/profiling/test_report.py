"""Reports in files: what is written is read; what is no profile is refused with a reason."""

import json

import pytest

from ...hlo.errors import InputError
from ...profiling.facts import Facts, Part
from ...profiling.report import KIND, Report, Step, from_json, to_json
from .reports import KERNEL, LOOP, made


def text_of(*reports):
    return to_json(reports, "1.0")


def test_what_is_written_is_read():
    step = Step(**{**KERNEL, "parts": (Part(Facts("a", "add", "binary", "jit/add", "f.py:1"), 0.25),)})
    counted = made(step, Step(**LOOP), counters={"cycles": 10.0}, notes=("a note",))
    assert from_json(text_of(counted, made()), "f.json") == [counted, made()]


@pytest.mark.parametrize(
    "change, reason",
    [
        (lambda d: d.pop("kind"), "JSON, but no profile"),
        (lambda d: d.update(kind="trace"), "JSON, but no profile"),
        (lambda d: d.update(schema=99), "a profile of schema 99; this testbed reads 1"),
        (lambda d: d.pop("profiles"), "profiles is missing"),
        (lambda d: d.update(profiles={}), "profiles is '{}', of another type"),
        (lambda d: d.update(profiles=[3]), "a row is no object"),
        (lambda d: d["profiles"][0].pop("wall"), "wall is missing"),
        (lambda d: d["profiles"][0].update(wall="fast"), "wall is 'fast', of another type"),
        (lambda d: d["profiles"][0].update(wall=True), "wall is 'True', of another type"),
        (lambda d: d["profiles"][0].update(counters=[1]), "counters holds other values than numbers"),
        (lambda d: d["profiles"][0]["steps"][0].pop("own"), "own is missing"),
        (lambda d: d["profiles"][0]["steps"][0].update(iterations="5"), "iterations of a step is no number"),
        (lambda d: d["profiles"][0]["steps"][0].update(parts=[{"share": 1}]), "facts is missing"),
        (lambda d: d["profiles"][0]["steps"][0].update(parts=7), "parts is '7', of another type"),
        (lambda d: d["profiles"][0].update(notes=7), "notes is '7', of another type"),
    ],
)
def test_what_is_no_profile_is_refused(change, reason):
    document = json.loads(text_of(made(Step(**KERNEL))))
    change(document)
    with pytest.raises(InputError) as caught:
        from_json(json.dumps(document), "f.json")
    assert caught.value.message == f"f.json: {reason}" and caught.value.remedy


def test_a_file_that_is_cut_off_is_refused_wherever_it_ends():
    text = text_of(made(Step(**KERNEL)))
    for length in range(0, len(text) - 2, 97):
        with pytest.raises(InputError, match=r"f.json: not JSON at line \d+, column \d+; the file may be cut off"):
            from_json(text[:length], "f.json")


@pytest.mark.parametrize("text", ["[" * 100_000, "NaN", "3", '"' + KIND + '"', "\ud800"])
def test_other_texts_are_refused(text):
    with pytest.raises(InputError, match=r"f\.json: "):
        from_json(text, "f.json")


def test_sums():
    report = made(Step(**KERNEL), Step(**LOOP), entry=1.0, between=2.0)
    assert isinstance(report, Report)
    assert report.sum == 1.0 + 2.0 + KERNEL["own"] + LOOP["own"]
    assert Step(**LOOP).mean == LOOP["total"] / LOOP["calls"]
    assert Step(**{**LOOP, "calls": 0.0}).mean == 0.0
