"""Files appear complete or not at all, and only regular files are replaced."""

import os
import stat
import threading
from pathlib import Path

import pytest

from ...formats.program import read_bytes
from ...formats.whole_files import write_folder, write_text, write_whole
from ...hlo.errors import InputError


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path):
    target = tmp_path / "a"
    write_text(target, "one")
    target.chmod(0o640)
    write_text(target, "two é")
    assert target.read_text("utf-8") == "two é" and stat.S_IMODE(target.stat().st_mode) == 0o640
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_what_was_there_stays_where_writing_fails(tmp_path):
    target = tmp_path / "a"
    target.write_text("old")

    def fail(file):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match="a: cannot write: No space left on device"):
        write_whole(target, fail)
    with pytest.raises(KeyboardInterrupt):
        write_whole(target, lambda file: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(InputError, match="cannot write: No such file or directory"):
        write_text(tmp_path / "no" / "a", "x")
    assert target.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["a"]


def marked(folder):
    return (folder / "mark").exists()


def make(folder):
    (folder / "mark").touch()
    (folder / "new").touch()


def test_a_folder_that_may_be_replaced_is_replaced_as_a_whole(tmp_path):
    target, link = tmp_path / "a", tmp_path / "link"
    target.mkdir()
    (target / "old").touch()
    link.symlink_to("a")
    with pytest.raises(InputError, match="a: exists and is not an empty folder"):
        write_folder(target, make, marked)
    assert [p.name for p in target.iterdir()] == ["old"]
    (target / "mark").touch()
    write_folder(link, make, marked)
    assert sorted(p.name for p in target.iterdir()) == ["mark", "new"] and link.is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "link"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("fails_at", ["fill", "rename"])
def test_a_folder_that_cannot_be_replaced_stays(tmp_path, monkeypatch, error, fails_at):
    target, renamed = tmp_path / "a", Path.rename
    target.mkdir()
    make(target)
    (target / "old").touch()

    def rename(self, other):
        if self.name.startswith(".a."):
            raise error
        return renamed(self, other)

    def fill(folder):
        make(folder)
        if fails_at == "fill":
            raise error

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises((OSError, InputError, KeyboardInterrupt)):
        write_folder(target, fill, marked)
    assert sorted(p.name for p in target.iterdir()) == ["mark", "new", "old"]
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "link").symlink_to("a")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "a").read_text() == "new"


def test_a_pipe_is_written_into(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "text")
    reader.join(10)
    assert read == ["text"] and stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="Is a directory"):
        write_text(tmp_path, "x")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs /dev/zero")
def test_a_device_is_no_module():
    with pytest.raises(InputError, match="/dev/zero: a device, not a file"):
        read_bytes(Path("/dev/zero"))
