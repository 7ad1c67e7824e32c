"""What the tests of suites that the sweep runs against XLA have in common."""

from __future__ import annotations

import re

import pytest

from ...benchmarks.sweep import command
from ...benchmarks.sweep.suites import SUITES


def check_command(suite: str, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The command takes the suite's programs, and its limit of integers, and says what is above the limit of times."""
    seen: list[object] = []
    times = {"xla": 100.0, "legacy": 90.0, "mlir": 210.0}

    def measure(*given: object) -> dict[str, float]:
        seen.append(given[-1])
        return times

    monkeypatch.setattr(command, "measure", measure)
    monkeypatch.setattr(command, "installed", lambda: True)
    assert name in SUITES[suite].programs()
    monkeypatch.setitem(SUITES[suite].programs(), name, lambda: "")  # type: ignore[arg-type]
    assert command.main([suite, "--only", f"^{re.escape(name)}$", "--threads", "1"]) == 1
    assert "1 programs, 1 above 2 times XLA's time" in capsys.readouterr().out
    assert seen == [SUITES[suite].integers]
