"""What the commands that sweep programs against XLA have in common."""

from __future__ import annotations

from types import ModuleType

import pytest

from ...benchmarks import op_shapes


def check_command(
    sweep: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command takes the sweep's own programs, and indices up to 256, and says what is above the limit."""
    seen: list[object] = []
    times = {"xla": 100.0, "legacy": 90.0, "mlir": 210.0}

    def measure(*given: object) -> dict[str, float]:
        seen.append(given[-1])
        return times

    monkeypatch.setattr(op_shapes, "measure", measure)
    monkeypatch.setattr(op_shapes, "installed", lambda: True)
    monkeypatch.setitem(sweep.PROGRAMS, name, lambda: "")
    assert sweep.main(["--only", f"^{name}$", "--threads", "1"]) == 1
    assert "1 programs, 1 above 2 times XLA's time" in capsys.readouterr().out
    assert seen == [256]
