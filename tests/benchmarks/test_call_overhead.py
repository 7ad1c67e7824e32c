"""The benchmark of calls: its contestants compute the same, and its exit status follows the bounds."""

import numpy as np
import pytest

from ...benchmarks import call_overhead
from ...benchmarks.paired import Timing


@pytest.mark.parametrize("emitters", ["legacy", "mlir"])
def test_each_contestant_adds_one(emitters):
    calls = call_overhead.contestants(8, emitters)
    assert {call_overhead.RECYCLED, call_overhead.FRESH} < set(calls)
    for call in calls.values():
        np.testing.assert_array_equal(np.asarray(call()).reshape(8), np.arange(1, 9, dtype=np.float32))
    assert calls[call_overhead.RECYCLED]() is calls[call_overhead.RECYCLED]()
    assert calls[call_overhead.FRESH]() is not calls[call_overhead.FRESH]()


@pytest.mark.parametrize("recycled, status", [(0.05, 0), (0.3, 1)])
def test_a_ratio_above_its_bound_is_status_1(monkeypatch, capsys, recycled, status):
    times = {call_overhead.JAX: 1e-6, call_overhead.RECYCLED: recycled * 1e-6, call_overhead.FRESH: 0.15e-6}
    monkeypatch.setattr(call_overhead, "contestants", lambda *_: dict.fromkeys(times, int))
    monkeypatch.setattr(call_overhead, "race", lambda *_, **__: {n: Timing((t, t, t)) for n, t in times.items()})
    assert call_overhead.main([]) == status
    out = capsys.readouterr().out
    assert f"{recycled:.3f} [{recycled:.3f}, {recycled:.3f}]" in out
    assert ("recycled: above its bound of 0.1" in out) == bool(status)
