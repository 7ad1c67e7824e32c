"""Files appear complete or not at all, and only regular files are replaced."""

import os
import stat
import threading
from pathlib import Path

import pytest

from ...formats.program import read_bytes
from ...formats.whole_files import write_text, write_whole
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
