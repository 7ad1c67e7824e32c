"""How a version of jaxlib says that it lacks a generation of emitters, and how its process ended."""

import signal

import pytest

from ...backends.xla import versions
from ...backends.xla.errors import XlaRefused
from ...backends.xla.versions import EMITTERS, XlaVersion, require_emitters
from ...hlo.errors import InputError


def process(monkeypatch, code, text):
    class Done:
        returncode, stdout, stderr = code, "", text

    monkeypatch.setattr(versions.subprocess, "run", lambda *_, **__: Done)


@pytest.mark.parametrize(("version", "emitters", "has"), [("0.12.0.1", "old", "new"), ("0.4.31", "new", "old")])
def test_a_generation_that_a_version_lacks_is_refused(version, emitters, has, monkeypatch, tmp_path):
    process(monkeypatch, 1, f"F0101 00:00:00 1 flags.cc:1] Unknown flag in XLA_FLAGS: {EMITTERS[emitters][0]}")
    with pytest.raises(InputError, match=f"jaxlib {version} has the {has} emitters alone"):
        require_emitters(XlaVersion(version, tmp_path, "python"), emitters)


@pytest.mark.parametrize(("version", "emitters"), [("0.12.0.1", "new"), ("0.4.31", "old")])
def test_the_only_generation_needs_no_flag(version, emitters, monkeypatch, tmp_path):
    """The flag is left out, and what comes then is the next error of this process."""
    process(monkeypatch, 1, f"F0101 00:00:00 1 flags.cc:1] Unknown flag in XLA_FLAGS: {EMITTERS[emitters][0]}")
    with pytest.raises(XlaRefused):
        require_emitters(XlaVersion(version, tmp_path, "python"), emitters)


def test_a_crash_names_the_signal(monkeypatch, tmp_path):
    process(monkeypatch, -signal.SIGSEGV, "")
    with pytest.raises(XlaRefused, match="SIGSEGV"):
        require_emitters(XlaVersion("0.10.2", tmp_path, "python"), "old")
