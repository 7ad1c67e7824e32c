"""The benchmark of handlers in Python: both loops call what they say, and its exit status follows the bounds."""

import pytest

from ...benchmarks import python_handlers as benchmark
from ...benchmarks.paired import Timing
from ...ffi.binding.trampoline import Trampoline


@pytest.mark.xla
def test_all_calls_but_the_first_are_native(monkeypatch):
    calls, known = [], []
    monkeypatch.setattr(benchmark.nothing, "function", lambda *arrays: calls.append(len(arrays)))
    remember = Trampoline.remember
    monkeypatch.setattr(Trampoline, "remember", lambda self, *a: known.append(self) or remember(self, *a))
    loops = benchmark.contestants()
    for pair in loops.values():
        before = len(calls)
        pair[benchmark.EMPTY_NAME]()
        assert len(calls) == before
        decoded = len(known)
        pair[benchmark.HANDLER_NAME]()
        assert calls[before:] == [4] * benchmark.CALLS
        assert len(known) - decoded <= 1
    assert 1 <= len(known) <= 4 * len(loops)


@pytest.mark.parametrize("beyond, status", [(0.9, 0), (1.2, 1)])
def test_a_difference_above_its_bound_is_status_1(monkeypatch, capsys, beyond, status):
    times = {benchmark.EMPTY_NAME: 2e-4, benchmark.HANDLER_NAME: 2e-4 + beyond * 1e-3}
    monkeypatch.setattr(benchmark, "contestants", lambda: {benchmark.OURS: dict.fromkeys(times, int)})
    monkeypatch.setattr(benchmark, "race", lambda loops, **_: {n: Timing((times[n.split()[1]],) * 3) for n in loops})
    assert benchmark.main([]) == status
    out = capsys.readouterr().out
    assert f"+{beyond:.3f}" in out and ("called by ours: above its bound of 1 µs" in out) == bool(status)
