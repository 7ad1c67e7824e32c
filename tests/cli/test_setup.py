"""An extra is installed when it is first used, in the checkout's own environment only."""

import sys
from pathlib import Path

import pytest

from ...cli import setup
from ...hlo.errors import InputError

INSTALLS = """
import pathlib, sys
root = pathlib.Path(__file__).parent
(root / "asked").write_text(" ".join(sys.argv[1:]))
if "--plot" in sys.argv:
    (root / "package_of_the_extra.py").touch()
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose environment runs this process, with a set-up that installs one module for --plot."""
    (tmp_path / "set_up.py").write_text(INSTALLS)
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    monkeypatch.setattr(setup, "SCRIPT", tmp_path / "set_up.py")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_what_is_missing_is_installed_once(own):
    setup.provide("plot", "package_of_the_extra")
    assert (own / "asked").read_text() == "--plot"
    (own / "asked").unlink()
    setup.provide("plot", "package_of_the_extra")
    assert not (own / "asked").exists()


def test_a_failed_installation_names_the_command(own):
    with pytest.raises(InputError, match=r"could not be installed \(run \./testbed setup --dev\)"):
        setup.provide("dev", "package_of_nobody")


def test_another_environment_is_left_alone(own, monkeypatch):
    monkeypatch.setattr(sys, "prefix", "/usr")
    with pytest.raises(InputError, match=r"pip install 'xla-testbed\[plot\]'"):
        setup.provide("plot", "package_of_the_extra")
    assert not (own / "asked").exists()
