"""The launcher and the set-up behind it: errors with a remedy, resuming, two at once, a moved checkout."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# The real checkout, also from inside Bazel's sandbox.
ROOT = Path(__file__).resolve().parents[1]

# Stands in for the pinned pip: notes each run, and waits while a file named `hold` is there.
FAKE_PIP = """
import pathlib, sys, time
root = pathlib.Path({root!r})
with open(root / "pip.log", "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
while (root / "hold").exists():
    time.sleep(0.02)
sys.exit((root / "fail").exists())
"""

CLI = """
import sys
def main():
    print("cli got", sys.argv)
    return 7
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small checkout: the real launcher and set-up, a fake pip and a fake command line."""
    root = tmp_path / "a check-out.d"
    (root / "tools/python").mkdir(parents=True)
    (root / "cli").mkdir()
    for name in ("testbed", "tools/python/setup_venv.py", "tools/python/link_package.py"):
        shutil.copy(ROOT / name, root / name)
    pip = root / next((ROOT / "tools/python").glob("pip-*.whl")).relative_to(ROOT) / "pip"
    pip.mkdir(parents=True)
    (pip / "__main__.py").write_text(FAKE_PIP.format(root=str(root)))
    (root / "requirements.txt").write_text("lock 1\n")
    (root / "requirements-xla.txt").write_text("xla lock 1\n")
    (root / "__init__.py").touch()
    (root / "cli/__init__.py").touch()
    (root / "cli/main.py").write_text(CLI)
    return root


def environment(**extra: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TESTBED_", "PYTHON"))}
    return {**kept, "TESTBED_PYTHON": sys.executable, **extra}


def launch(root: Path, *args: str, cwd: Path | None = None, **extra: str) -> subprocess.CompletedProcess[str]:
    command = [str(root / "testbed"), *args]
    return subprocess.run(command, cwd=cwd, env=environment(**extra), capture_output=True, text=True, timeout=120)


def pip_runs(root: Path) -> list[str]:
    log = root / "pip.log"
    return log.read_text().splitlines() if log.exists() else []


def wait_for(condition, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.02)


def test_first_use_sets_up_then_runs_the_command_from_any_folder(checkout, tmp_path):
    done = launch(checkout, "run", "a b", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (7, "cli got ['testbed', 'run', 'a b']\n"), done.stderr
    assert "--require-hashes" in pip_runs(checkout)[0]
    assert "ready" in done.stderr
    again = launch(checkout, cwd=tmp_path)
    assert again.stderr == "" and len(pip_runs(checkout)) == 1


def test_a_link_to_the_launcher_works(checkout, tmp_path):
    (tmp_path / "link").symlink_to(Path(checkout.name) / "testbed")
    done = subprocess.run([tmp_path / "link"], env=environment(), capture_output=True, text=True)
    assert done.returncode == 7, done.stderr


def test_a_changed_lock_is_installed_again(checkout):
    launch(checkout)
    (checkout / "requirements.txt").write_text("lock 2\n")
    launch(checkout)
    assert len(pip_runs(checkout)) == 2


def test_the_xla_extra_is_chosen_once_and_stays(checkout):
    launch(checkout)
    assert "requirements-xla.txt" not in pip_runs(checkout)[0]
    assert launch(checkout, "setup", "--xla").returncode == 0
    assert "requirements-xla.txt" in pip_runs(checkout)[1]
    (checkout / "requirements.txt").write_text("lock 2\n")
    launch(checkout, TESTBED_XLA="0")
    assert "requirements-xla.txt" in pip_runs(checkout)[2]
    launch(checkout, TESTBED_XLA="1")
    assert len(pip_runs(checkout)) == 3


def test_a_moved_checkout_still_runs(checkout):
    launch(checkout)
    moved = checkout.rename(checkout.parent / "moved")
    done = launch(moved)
    assert done.returncode == 7, done.stderr
    assert len(pip_runs(moved)) == 1


def test_an_environment_whose_python_is_gone_is_made_again(checkout):
    launch(checkout)
    (checkout / ".venv/bin/python3").unlink()
    (checkout / ".venv/bin/python3").symlink_to("/nonexistent/python3.11")
    assert launch(checkout).returncode == 7
    assert len(pip_runs(checkout)) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_set_up_resumes(checkout, number):
    (checkout / "hold").touch()
    child = subprocess.Popen(
        [checkout / "testbed", "run"], env=environment(), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_for(lambda: pip_runs(checkout))
    os.killpg(child.pid, number)
    errors = child.communicate(timeout=60)[1]
    if number == signal.SIGINT:
        assert child.returncode == 130
        assert "the next call resumes" in errors
    (checkout / "hold").unlink()
    assert launch(checkout).returncode == 7


def test_two_set_ups_at_once_install_once(checkout):
    (checkout / "hold").touch()
    children = [
        subprocess.Popen([checkout / "testbed"], env=environment(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        for _ in range(2)
    ]
    wait_for(lambda: pip_runs(checkout))
    time.sleep(0.3)
    (checkout / "hold").unlink()
    errors = [child.communicate(timeout=60)[1] for child in children]
    assert [child.returncode for child in children] == [7, 7], errors
    assert len(pip_runs(checkout)) == 1
    assert any(b"another set-up of this checkout is running" in text for text in errors)


def test_a_failed_installation_says_what_to_do(checkout):
    (checkout / "fail").touch()
    done = launch(checkout)
    assert done.returncode == 1
    assert "Check the network" in done.stderr and "it resumes" in done.stderr and "Traceback" not in done.stderr


def test_a_missing_pip_wheel_says_how_to_restore_it(checkout):
    shutil.rmtree(next((checkout / "tools/python").glob("pip-*.whl")))
    done = launch(checkout)
    assert done.returncode == 1 and "git checkout tools/python/pip-" in done.stderr


def test_a_wrong_testbed_python_is_named(checkout):
    done = launch(checkout, TESTBED_PYTHON="/nonexistent/python3")
    assert done.returncode == 2
    assert done.stderr == (
        "testbed: TESTBED_PYTHON=/nonexistent/python3 is not a working Python >= 3.11; correct it or unset it\n"
    )


def test_no_recent_python_is_one_line_with_a_remedy(checkout, tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("python3", "python3.11", "python3.12", "python3.13", "python3.14", "python"):
        (folder / name).write_text("#!/bin/sh\nexit 1\n")
        (folder / name).chmod(0o755)
    done = launch(checkout, TESTBED_PYTHON="", PATH=f"{folder}:/bin")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and "apt-get install python3" in done.stderr


def test_half_written_packages_are_found_and_dropped(tmp_path):
    from ..tools.python.setup_venv import drop_half_installed

    complete, cut, empty = (tmp_path / f"{name}-1.0.dist-info" for name in ("complete", "cut", "empty"))
    for folder in (complete, cut, empty):
        folder.mkdir()
    (complete / "RECORD").write_text("complete/__init__.py,,\ncomplete-1.0.dist-info/INSTALLER,,\n")
    (cut / "RECORD").write_text("cut/__init__.py,,\n")
    assert sorted(drop_half_installed(tmp_path)) == ["cut", "empty"]
    assert [folder.name for folder in tmp_path.iterdir()] == [complete.name]
