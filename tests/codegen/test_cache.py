"""The object cache: keys, detection of damage, atomic entries, and a folder that stays within its limit."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from ...codegen import private
from ...codegen.cache import HEADER, ObjectCache, cache_key
from ...codegen.optimize import build_object
from ...codegen.options import EmitOptions
from ...codegen.private import UntrustedCache

IR = "define void @f(ptr %x) {\n  store i32 7, ptr %x\n  ret void\n}\n"
HOST = EmitOptions.host()


@pytest.fixture
def cache(tmp_path):
    return ObjectCache(tmp_path / "cache")


def entries(cache):
    return sorted(p for p in cache.directory.rglob("*") if p.is_file())


def test_the_second_compilation_is_read_from_disk(cache):
    first, second = build_object(IR, HOST, cache), build_object(IR, HOST, ObjectCache(cache.directory))
    assert (first.cached, second.cached) == (False, True) and first.data == second.data


def test_everything_that_matters_is_in_the_key(cache):
    for ir, options in [(IR, HOST), (IR.replace("7", "8"), HOST), (IR, EmitOptions.host(strict=True))]:
        assert not build_object(ir, options, cache).cached
    assert len(entries(cache)) == 3
    assert build_object(IR, replace(HOST, keep_stages=True), cache).cached  # changes no code
    assert cache_key("ab", "c") != cache_key("a", "bc")


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d[:-1],
        lambda d: d[: HEADER - 5],
        lambda d: b"",
        lambda d: d + b"x",
        lambda d: b"TBOBJ000" + d[8:],
        lambda d: d[:-9] + bytes([d[-9] ^ 1]) + d[-8:],
    ],
    ids=["cut", "header cut", "empty", "longer", "old format", "flipped bit"],
)
def test_a_damaged_entry_is_compiled_again_and_mended(cache, damage):
    good = build_object(IR, HOST, cache)
    (path,) = entries(cache)
    path.write_bytes(damage(path.read_bytes()))
    again = build_object(IR, HOST, cache)
    assert not again.cached and again.data == good.data
    assert build_object(IR, HOST, cache).cached


def test_the_folder_stays_within_its_limit_and_the_oldest_goes_first(tmp_path):
    cache = ObjectCache(tmp_path, limit_bytes=10_000)
    keys = [cache_key(str(i)) for i in range(30)]
    for age, key in enumerate(keys):
        cache.write(key, b"x" * 900)
        os.utime(cache.path(key), (1e9 + age, 1e9 + age))
        if age == 20:
            cache.read(keys[15])  # used again: now the newest
    cache.shrink()
    assert sum(p.stat().st_size for p in entries(cache)) <= 10_000
    assert cache.read(keys[-1]) and cache.read(keys[15]) and cache.read(keys[0]) is None


def test_left_over_temporary_files_go_when_stale(tmp_path):
    cache = ObjectCache(tmp_path, limit_bytes=10_000)
    cache.write(cache_key("a"), b"x")
    stale, fresh = (cache.path(cache_key("a")).with_name(name) for name in ("old.tmp", "new.tmp"))
    stale.write_bytes(b"")
    fresh.write_bytes(b"")
    os.utime(stale, (1e9, 1e9))
    cache.shrink()
    assert not stale.exists() and fresh.exists()


def test_a_folder_that_cannot_be_written_is_no_cache_and_no_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    cache = ObjectCache(blocked)
    assert build_object(IR, HOST, cache).data == build_object(IR, HOST, cache).data


def test_readers_and_writers_at_once_see_whole_entries(cache):
    key, payloads = cache_key("k"), [bytes([n]) * 50_000 for n in range(4)]
    seen, stop = set(), threading.Event()

    def read():
        while not stop.is_set():
            seen.add(cache.read(key))

    reader = threading.Thread(target=read)
    reader.start()
    writers = [threading.Thread(target=lambda p=p: [cache.write(key, p) for _ in range(20)]) for p in payloads]
    for t in writers:
        t.start()
    for t in writers:
        t.join()
    stop.set()
    reader.join()
    assert seen <= {None, *payloads} and cache.read(key) in payloads


WRITER = """
import sys
from pathlib import Path
from testbed.codegen.cache import ObjectCache, cache_key
cache = ObjectCache(Path(sys.argv[1]), limit_bytes=int(sys.argv[2]))
print("begun", flush=True)
n = 0
while True:
    key = cache_key(str(n % 7))
    payload = cache.read(key)
    if payload is not None and payload != bytes([n % 7]) * 200_000:
        print("broken", flush=True)
    cache.write(key, bytes([n % 7]) * 200_000)
    n += 1
"""


def writers(directory, limit, count):
    begun = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(directory), str(limit)], stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    for child in begun:
        assert child.stdout.readline() == "begun\n"
    return begun


@pytest.mark.parametrize("limit", [10 << 20, 700_000], ids=["roomy", "tight"])
def test_entries_are_whole_or_absent_when_writers_are_killed(tmp_path, limit):
    """Four processes write the same keys, over and over, and are killed at any moment."""
    random, keys = np.random.default_rng(0), [cache_key(str(n)) for n in range(7)]
    for _ in range(3):
        children = writers(tmp_path, limit, 4)
        time.sleep(float(random.uniform(0.05, 0.3)))
        for child in children:
            child.kill()
        assert [child.communicate()[0] for child in children] == [""] * 4
        cache = ObjectCache(tmp_path, limit_bytes=limit)
        for n, key in enumerate(keys):
            assert cache.read(key) in (None, bytes([n]) * 200_000)
            assert not cache.path(key).exists() or cache.path(key).stat().st_size == 200_000 + HEADER
    cache.shrink()
    left = [path for path in entries(cache) if path.suffix == ".o"]
    assert sum(path.stat().st_size for path in left) <= limit
    for path in entries(cache):
        if path.suffix == ".tmp":
            os.utime(path, (1e9, 1e9))
    cache.write(keys[0], b"x")
    cache.shrink()
    assert all(path.suffix == ".o" for path in entries(cache)) and cache.read(keys[0]) == b"x"


def test_a_limit_of_nothing_keeps_nothing(tmp_path):
    cache = ObjectCache(tmp_path, limit_bytes=0)
    good = build_object(IR, HOST, cache)
    assert entries(cache) == [] and build_object(IR, HOST, cache).data == good.data


def test_folders_and_entries_are_for_this_user_alone(tmp_path):
    before = os.umask(0)
    try:
        cache = ObjectCache(tmp_path / "testbed" / "objects")
        cache.write("ab12", b"code")
    finally:
        os.umask(before)
    for path in (cache.path("ab12").parent, cache.directory, tmp_path / "testbed"):
        assert path.stat().st_mode & 0o777 == 0o700
    assert cache.path("ab12").stat().st_mode & 0o777 == 0o600
    assert cache.read("ab12") == b"code"


@pytest.mark.parametrize("which", ["entry", "folder", "cache"])
@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_what_others_may_write_is_not_read(cache, which, mode):
    cache.write("ab12", b"code")
    path = cache.path("ab12")
    chosen = {"entry": path, "folder": path.parent, "cache": cache.directory}[which]
    chosen.chmod(chosen.stat().st_mode | mode)
    with pytest.warns(UntrustedCache, match="may be written by others.*remove it") as said:
        assert cache.read("ab12") is None
    assert len(said) == 1 and str(chosen) in str(said[0].message)


def test_an_entry_that_others_may_write_is_written_again(cache):
    cache.write("ab12", b"code")
    cache.path("ab12").chmod(0o666)
    cache.write("ab12", b"code of mine")
    assert cache.read("ab12") == b"code of mine"


@pytest.mark.parametrize("which", ["entry", "folder", "cache"])
def test_what_belongs_to_another_user_is_neither_read_nor_written(cache, which, monkeypatch):
    cache.write("ab12", b"code")
    path = cache.path("ab12")
    chosen = {"entry": path, "folder": path.parent, "cache": cache.directory}[which].stat().st_ino
    whose = private.why_untrusted
    mine = os.geteuid()

    def seen(status):
        changed = list(status)
        changed[4] = mine + 1 if status.st_ino == chosen else mine
        return whose(os.stat_result(changed))

    monkeypatch.setattr(private, "why_untrusted", seen)
    with pytest.warns(UntrustedCache, match=f"belongs to user {mine + 1}"):
        assert cache.read("ab12") is None
    if which != "entry":
        with pytest.warns(UntrustedCache):
            cache.write("ab34", b"more")
        assert not cache.path("ab34").exists()
