"""Which flags a version of XLA may leave out when it writes a dump, and which it may not."""

import pytest

from ...backends.xla import dump as module
from ...hlo.errors import InputError


class Version:
    """In place of the process with jaxlib: knows no flag of `unknown`, as XLA it names one at a time."""

    def __init__(self, *unknown):
        self.unknown, self.asked = unknown, []

    def request(self, kind, text, flags):
        self.asked.append([name for name, _ in flags])
        for name, _ in flags:
            if name in self.unknown:
                raise InputError(f"No such compile option: '{name}'")


@pytest.fixture
def dumped(monkeypatch, tmp_path):
    def dumped(generation, *unknown):
        version = Version(*unknown)
        monkeypatch.setattr(module, "_dumper", version)
        monkeypatch.setattr(module, "require_installed", lambda: None)
        module.dump("HloModule m", generation, tmp_path / "dump")
        return version.asked

    return dumped


CHOICE, YNN, WHAT = "xla_cpu_use_fusion_emitters", "xla_cpu_experimental_ynn_fusion_type", "xla_dump_emitter_re"


def test_flags_that_a_version_does_not_know_are_left_out_one_by_one(dumped):
    asked = dumped("new", CHOICE, YNN, WHAT)
    assert len(asked) == 4 and {CHOICE, YNN, WHAT} <= set(asked[0])
    assert not {CHOICE, YNN, WHAT} & set(asked[-1])


def test_old_emitters_need_the_flag_that_chooses_them(dumped):
    assert len(dumped("old", YNN, WHAT)) == 3
    with pytest.raises(InputError, match="has the new emitters alone"):
        dumped("old", YNN, CHOICE)


def test_any_other_flag_is_an_error(dumped):
    with pytest.raises(InputError, match="xla_dump_hlo_as_text"):
        dumped("new", "xla_dump_hlo_as_text")
