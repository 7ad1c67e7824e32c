"""`--cache-limit` and TESTBED_CACHE_LIMIT: how much compiled code stays on disk."""

import pytest

from ...cli.cache_limit import bytes_of
from ...cli.main import main
from ...codegen.cache import DEFAULT_CACHE, LIMIT_BYTES
from ...differential import conformance
from ...hlo.errors import InputError
from ..cases.modules import ADD


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.setattr(DEFAULT_CACHE, "directory", tmp_path / "objects")
    (tmp_path / "m.hlo").write_text(ADD)
    return tmp_path / "m.hlo"


def entries(module):
    return list((module.parent / "objects").glob("??/*.o"))


@pytest.mark.parametrize(
    "text, size",
    [("0", 0), ("4096", 4096), ("512M", 512 << 20), ("2GiB", 2 << 30), ("1.5g", 3 << 29), (" 8 kb ", 8192)],
)
def test_sizes(text, size):
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "M", "-1", "12 parsecs", "1e9", "0x10"])
def test_other_texts_are_refused(text):
    with pytest.raises(InputError, match="give bytes, as in 4096, 512M or 2G"):
        bytes_of(text)


def test_the_limit_holds_for_the_command(module, monkeypatch):
    assert main(["run", str(module)]) == 0
    assert entries(module)
    monkeypatch.setattr(DEFAULT_CACHE, "_unmeasured", None)
    for path in entries(module):
        path.unlink()
    assert main(["run", str(module), "--cache-limit", "0"]) == 0
    assert not entries(module) and DEFAULT_CACHE.limit_bytes == LIMIT_BYTES
    monkeypatch.setenv("TESTBED_CACHE_LIMIT", "1G")
    assert main(["run", str(module)]) == 0
    assert entries(module) and DEFAULT_CACHE.limit_bytes == LIMIT_BYTES


def test_a_wrong_limit_is_one_line(module, monkeypatch, capsys):
    monkeypatch.setenv("TESTBED_CACHE_LIMIT", "lots")
    assert main(["run", str(module)]) == 2
    error = capsys.readouterr().err
    assert error == "testbed: error: the limit of the cache is 'lots' (give bytes, as in 4096, 512M or 2G)\n"


def test_workers_of_a_corpus_have_the_limit(monkeypatch):
    seen = []

    class Pool:
        def __init__(self, *_, initargs, **__):
            seen.append(initargs)
            raise KeyboardInterrupt

    monkeypatch.setattr(conformance, "ProcessPool", Pool)
    monkeypatch.setattr(DEFAULT_CACHE, "limit_bytes", 12_345)
    with pytest.raises(KeyboardInterrupt):
        conformance.run_cases([], ["legacy"], jobs=1, limit=1.0)
    assert seen[0][1] == 12_345
