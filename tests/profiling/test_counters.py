"""Counters: what the system offers is counted; what it does not offer is said with the reason."""

import errno
import os
import struct

import pytest

from ...profiling import counters as counters_module
from ...profiling.counters import EVENTS, Counters, open_counters, reason


def test_what_may_be_counted_grows_and_the_rest_has_a_reason():
    with open_counters() as counters:
        first = counters.read()
        held = [bytearray(1 << 16) for _ in range(200)]
        second = counters.read()
    assert len(held) == 200
    assert set(first) == set(counters.descriptors) <= set(EVENTS)
    assert all(second[name] >= first[name] for name in first)
    missing = [name for name in EVENTS if name not in first]
    assert all(any(name in note for note in counters.notes) for name in missing)
    assert bool(missing) == bool(counters.notes)


@pytest.mark.parametrize(
    "code, words",
    [
        (errno.EACCES, ["not permitted", "kernel.perf_event_paranoid", "CAP_PERFMON", "seccomp"]),
        (errno.EPERM, ["not permitted", "sysctl kernel.perf_event_paranoid=2"]),
        (errno.ENOENT, ["this machine does not offer them"]),
        (errno.EOPNOTSUPP, ["this machine does not offer them"]),
        (errno.ENOSYS, ["a system call of Linux"]),
        (errno.EMFILE, [os.strerror(errno.EMFILE)]),
    ],
)
def test_one_line_for_each_reason(code, words):
    def refuse(kind, config, thread):
        raise OSError(code, os.strerror(code))

    counters = open_counters(refuse)
    assert not counters.descriptors and counters.read() == {}
    (note,) = counters.notes
    assert note.startswith(f"no {', '.join(EVENTS)}: ") and "\n" not in note
    assert all(word in note for word in words)


def test_the_level_of_the_sysctl_is_in_the_reason(tmp_path, monkeypatch):
    (tmp_path / "paranoid").write_text("4\n")
    monkeypatch.setattr(counters_module, "PARANOID", tmp_path / "paranoid")
    assert "kernel.perf_event_paranoid is 4" in reason(errno.EACCES)
    monkeypatch.setattr(counters_module, "PARANOID", tmp_path / "none")
    assert "kernel.perf_event_paranoid is unknown" in reason(errno.EACCES)


def test_some_counters_may_be_refused_and_leave_nothing_open():
    opened = []

    def some(kind, config, thread):
        if config == 3:
            raise OSError(errno.EACCES, "")
        if config == 5:
            raise OSError(errno.ENOENT, "")
        opened.append(os.open(os.devnull, os.O_RDONLY))
        return opened[-1]

    with open_counters(some) as counters:
        assert set(counters.descriptors) == {"cycles", "instructions", "page faults"}
        assert len(counters.notes) == 2 and counters.notes[0].startswith("no cache misses: not permitted")
    for descriptor in opened:
        with pytest.raises(OSError):
            os.fstat(descriptor)


@pytest.mark.parametrize("enabled, running, value", [(100, 100, 40.0), (100, 50, 80.0), (100, 0, 40.0)])
def test_counters_that_took_turns_are_scaled(tmp_path, enabled, running, value):
    (tmp_path / "counter").write_bytes(struct.pack("=QQQ", 40, enabled, running))
    descriptors = tuple(os.open(tmp_path / "counter", os.O_RDONLY) for _ in range(2))
    with Counters({"cycles": descriptors}, ()) as counters:
        assert counters.read() == {"cycles": 2 * value}


def test_other_systems_have_none(monkeypatch):
    monkeypatch.setattr(counters_module.platform, "machine", lambda: "riscv64")
    assert "a system call of Linux" in open_counters().notes[0]
