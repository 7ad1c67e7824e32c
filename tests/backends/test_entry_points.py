"""Back ends of other packages: found by their entry points, loaded on first use, and listed where they are broken."""

import sys

import pytest

from ...backends.base import BackendError
from ...backends.registry import platform, platforms, register_platform, status, unregister_platform
from ...cli.main import main

PLATFORM = """
from testbed.backends.interpreter.platform import InterpreterPlatform

class Slow(InterpreterPlatform):
    name = "slow"

class Absent(InterpreterPlatform):
    name = "absent"
    def unavailable(self):
        return "no driver\\nhere"
    def visible_device_count(self):
        return 0
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A distribution with three entry points; one of them names what is not there."""
    (tmp_path / "slow_devices.py").write_text(PLATFORM)
    info = tmp_path / "slow_devices-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-devices\nVersion: 1.0\n")
    points = {"slow": "slow_devices:Slow", "absent": "slow_devices:Absent", "lost": "slow_devices:Gone", "host": "x:y"}
    lines = "".join(f"{name} = {value}\n" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[testbed.backends]\n{lines}")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    from ...backends import registry

    for name in points.keys() - {"host"}:
        registry._PLATFORMS.pop(name, None)
    sys.modules.pop("slow_devices", None)


def test_an_entry_point_is_a_platform(installed):
    assert {"slow", "absent", "lost", "host", "interpreter"} <= set(platforms())
    assert "slow_devices" not in sys.modules
    assert platform("slow").name == "slow" and platform("slow") is platform("slow")
    assert status("slow").origin == "slow-devices" and status("slow").devices == ("evaluator",) * 4
    assert platform("host").name == "host" and status("host").origin == "built in"


def test_one_that_cannot_be_loaded_is_a_line(installed):
    with pytest.raises(BackendError, match=r"'lost' cannot be loaded from slow_devices:Gone: AttributeError.*") as lost:
        platform("lost")
    assert "\n" not in str(lost.value)
    assert "Gone" in status("lost").why and status("lost").devices == ()
    assert status("absent").why == "no driver here" and status("absent").capabilities


def test_a_call_may_take_the_name_of_an_entry_point(installed):
    from ...backends.interpreter.platform import InterpreterPlatform

    register_platform("slow", InterpreterPlatform)
    try:
        assert status("slow").origin == "registered" and platform("slow").name == "interpreter"
    finally:
        unregister_platform("slow")
    assert platform("slow").name == "slow"


def test_the_command_lists_all_of_them(installed, capsys):
    assert main(["platforms"]) == 0
    text = capsys.readouterr().out
    for line in (
        "absent: not here: no driver here",
        "lost: not here: platform 'lost' cannot be loaded",
        "interpreter: lacks ahead-of-time compilation",
        "host: lacks copies between devices",
    ):
        assert line in " ".join(text.split()), text
    assert all(len(line) <= 80 for line in text.splitlines())
