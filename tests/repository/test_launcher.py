"""The launcher and its set-up: errors with a remedy, resumption, two at the same time, a moved checkout."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# The real checkout, also from inside Bazel's sandbox.
ROOT = Path(__file__).resolve().parents[2]

# Replaces pip: records each run, and waits while a file named `hold` exists.
FAKE_PIP = """
import pathlib, sys, time
root = pathlib.Path({root!r})
if "--version" in sys.argv:
    print("pip", (root / "pip_version").read_text(), "from a test")
    sys.exit()
with open(root / "pip.log", "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
print("Collecting a-package")
while (root / "hold").exists():
    time.sleep(0.02)
if (root / "fail").exists():
    print("pages of text\\n" * 50 + "ERROR: No matching distribution found for a-package")
sys.exit((root / "fail").exists())
"""

# Replaces the system's Python: the real one, except that files decide whether it has ensurepip and pip, and that
# `-m venv` installs the fake pip in the environment.
FAKE_PYTHON = """#!{python}
import os, pathlib, runpy, shutil, subprocess, sys
root, python, args = pathlib.Path({root!r}), {python!r}, sys.argv[1:]
if args[:1] == ["-B"]:
    sys.executable, sys.argv = __file__, args[1:]
    os.geteuid = lambda: int(os.environ.get("FAKE_UID", 1000))
    runpy.run_path(args[1], run_name="__main__")
elif args[:1] == ["-c"] and "ensurepip" in args[1]:
    sys.exit(print(True) if (root / "ensurepip").exists() else 1)
elif args[:2] == ["-m", "pip"]:
    if not (root / "system_pip").exists():
        sys.exit("No module named pip")
    os.execv(python, [python, root / "pip.py", *args[2:]])
elif args[:2] == ["-m", "venv"] and "--without-pip" not in args:
    if not (root / "ensurepip").exists():
        sys.exit("ensurepip is not available")
    folder = pathlib.Path(args[-1])
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    packages = next(folder.glob("lib/python3*/site-packages"))
    (packages / "pip-99.dist-info").mkdir(exist_ok=True)
    (packages / "pip-99.dist-info/RECORD").write_text("pip-99.dist-info/INSTALLER,,")
    shutil.copy(root / "pip.py", packages / "pip.py")
else:
    os.execv(python, [python, *args])
"""

# Replaces apt-get: installs ensurepip after its lists are updated, unless a file named `offline` exists.
FAKE_APT = """#!/bin/sh
cd '{root}' && echo "$@" >> apt.log
[ ! -e offline ] || exit 100
case $1 in
    update) true > lists ;;
    install) [ -e lists ] && true > ensurepip ;;
esac
"""

CLI = """
import sys
def run():
    print("cli got", sys.argv)
    sys.exit(7)
"""


# Naps: a signal that comes just before a long sleep would be seen only after it.
SLEEPING = """
import time
def run():
    print("runs", flush=True)
    for _ in range(1200):
        time.sleep(0.05)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small checkout: the real launcher and set-up, with a fake system Python, pip and command line."""
    root = tmp_path / "a check-out.d"
    (root / "tools/python").mkdir(parents=True)
    (root / "cli").mkdir()
    for name in ("testbed", "tools/python/setup_venv.py", "tools/python/link_package.py"):
        shutil.copy(ROOT / name, root / name)
    (root / "pip.py").write_text(FAKE_PIP.format(root=str(root)))
    (root / "pip_version").write_text("23.0.1")
    (root / "ensurepip").touch()
    (root / "bin").mkdir()
    python = os.path.realpath(sys.executable)
    program(root / "bin/python3", FAKE_PYTHON.format(root=str(root), python=python))
    (root / "locks").mkdir()
    (root / "locks" / "requirements.txt").write_text("lock 1\n")
    for extra in ("xla", "dev", "plot"):
        (root / "locks" / f"requirements-{extra}.txt").write_text(f"{extra} lock 1\n")
    (root / "__init__.py").touch()
    (root / "cli/__init__.py").touch()
    (root / "cli/start.py").write_text(CLI)
    return root


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def environment(root: Path, **extra: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TESTBED_", "PYTHON"))}
    return {**kept, "TESTBED_PYTHON": str(root / "bin/python3"), **extra}


def launch(root: Path, *args: str, cwd: Path | None = None, **extra: str) -> subprocess.CompletedProcess[str]:
    command = [str(root / "testbed"), *args]
    return subprocess.run(command, cwd=cwd, env=environment(root, **extra), capture_output=True, text=True, timeout=120)


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
    done = subprocess.run([tmp_path / "link"], env=environment(checkout), capture_output=True, text=True)
    assert done.returncode == 7, done.stderr


def test_a_changed_lock_is_installed_again(checkout):
    launch(checkout)
    (checkout / "locks" / "requirements.txt").write_text("lock 2\n")
    launch(checkout)
    assert len(pip_runs(checkout)) == 2


def test_the_xla_extra_is_chosen_once_and_stays(checkout):
    launch(checkout)
    assert "requirements-xla.txt" not in pip_runs(checkout)[0]
    assert launch(checkout, "setup", "--xla").returncode == 0
    assert "requirements-xla.txt" in pip_runs(checkout)[1]
    (checkout / "locks" / "requirements.txt").write_text("lock 2\n")
    launch(checkout, TESTBED_XLA="0")
    assert "requirements-xla.txt" in pip_runs(checkout)[2]
    launch(checkout, TESTBED_XLA="1")
    assert len(pip_runs(checkout)) == 3


def test_test_tools_come_with_the_first_test_and_stay(checkout):
    assert "requirements-dev.txt" not in (launch(checkout), pip_runs(checkout)[0])[1]
    done = launch(checkout, "test", "-k", "x")
    assert done.stdout == "cli got ['testbed', 'test', '-k', 'x']\n"
    assert len(done.stderr.splitlines()) == 2 and "adding the test tools for tests" in done.stderr
    assert "requirements-dev.txt" in pip_runs(checkout)[1] and "requirements-plot.txt" in pip_runs(checkout)[1]
    assert "requirements.txt" not in pip_runs(checkout)[1] and "requirements-xla.txt" not in pip_runs(checkout)[1]
    assert launch(checkout, "test").stderr == "" and launch(checkout).stderr == "" and len(pip_runs(checkout)) == 2
    (checkout / "locks" / "requirements-dev.txt").write_text("dev lock 2\n")
    launch(checkout)
    assert "requirements-dev.txt" in pip_runs(checkout)[2]


def test_an_extra_is_added_to_the_python_that_the_environment_has(checkout, tmp_path):
    launch(checkout)
    other = tmp_path / "bin"
    other.mkdir()
    program(other / "python3", "#!/bin/sh\nexit 1\n")
    real = {"TESTBED_PYTHON": "", "PATH": f"{other}:{os.environ['PATH']}"}
    assert launch(checkout, "setup", "--dev", **real).returncode == 0
    assert "requirements-dev.txt" in pip_runs(checkout)[1]


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
        [checkout / "testbed", "run"],
        env=environment(checkout),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for(lambda: pip_runs(checkout))
    os.killpg(child.pid, number)
    errors = child.communicate(timeout=60)[1]
    if number == signal.SIGINT:
        assert child.returncode == 130
        assert "the next call resumes" in errors
    (checkout / "hold").unlink()
    assert launch(checkout).returncode == 7


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.1, None])
def test_an_interrupt_is_no_traceback_however_early(checkout, delay):
    """In the shell and while Python starts; None: when the command runs. `exec` leaves the signal to the system."""
    launch(checkout)
    (checkout / "cli/start.py").write_text(SLEEPING)
    command, pipe = [checkout / "testbed", "run"], subprocess.PIPE
    child = subprocess.Popen(
        command, env=environment(checkout), stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )
    if delay is None:
        assert child.stdout is not None and child.stdout.readline() == "runs\n"
    else:
        time.sleep(delay)
    os.killpg(child.pid, signal.SIGINT)
    errors = child.communicate(timeout=50)[1]
    by_system = [(-signal.SIGINT, "")] if delay is not None else []
    assert (child.returncode, errors) in [(130, "testbed: interrupted\n"), *by_system]


def test_two_set_ups_at_once_install_once(checkout):
    (checkout / "hold").touch()
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    children = [subprocess.Popen([checkout / "testbed"], env=environment(checkout), **pipes) for _ in range(2)]
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
    last = done.stderr.splitlines()[-2:]
    assert last[0].endswith(f"(all of it: {checkout}/.venv/setup.log):")
    assert last[1] == "  ERROR: No matching distribution found for a-package"
    assert "pages of text" in (checkout / ".venv/setup.log").read_text() and "pages of text" not in done.stderr


def test_a_terminal_shows_one_line_of_progress_and_no_page_of_pip(checkout):
    import pty

    (checkout / "hold").touch()
    ours, theirs = pty.openpty()
    child = subprocess.Popen([checkout / "testbed", "setup"], env=environment(checkout), stderr=theirs)
    os.close(theirs)
    text = b""
    try:
        while piece := os.read(ours, 10_000):
            text += piece
            if b"a-package" in text:
                (checkout / "hold").unlink(missing_ok=True)
    except OSError:  # the other end is closed
        assert child.wait(timeout=60) == 0
    os.close(ours)
    assert b"testbed: downloading 1 of 1: a-package (" in text
    assert text.count(b"\n") == 2, "what it makes, and that it is ready"


def test_programs_that_nobody_uses_are_removed(tmp_path):
    from ...tools.python.setup_venv import drop_unused

    (tmp_path / "llvm/bin").mkdir(parents=True)
    for name in ("FileCheck", "llvm-exegesis", "FileTool"):
        (tmp_path / "llvm/bin" / name).touch()
    drop_unused(tmp_path)
    assert [file.name for file in (tmp_path / "llvm/bin").iterdir()] == ["FileCheck"]


def test_an_environment_that_lost_its_pip_gets_it_back(checkout):
    launch(checkout)
    packages = next((checkout / ".venv/lib").glob("python3*/site-packages"))
    (packages / "pip-99.dist-info/RECORD").write_text("")
    (packages / "kept.py").touch()
    (checkout / "locks" / "requirements.txt").write_text("lock 2\n")
    done = launch(checkout)
    assert done.returncode == 7 and "writing again: pip" in done.stderr
    assert (packages / "pip-99.dist-info/RECORD").read_text() and (packages / "kept.py").exists()


def test_packages_on_pythonpath_do_not_count_as_installed(checkout, tmp_path):
    (tmp_path / "pip.py").write_text("import sys; sys.exit('the wrong pip')")
    assert launch(checkout, PYTHONPATH=str(tmp_path)).returncode == 7
    assert len(pip_runs(checkout)) == 1


def test_without_ensurepip_the_systems_pip_installs_into_the_environment(checkout):
    (checkout / "ensurepip").unlink()
    (checkout / "system_pip").touch()
    done = launch(checkout)
    assert done.returncode == 7, done.stderr
    assert pip_runs(checkout)[0].startswith(f"--python {checkout}/.venv/bin/python3 install --require-hashes")


def bare(checkout: Path, programs: Path, with_apt: bool) -> str:
    """A PATH like that of a bare Debian: no ensurepip, no pip, and apt-get only if asked for."""
    (checkout / "ensurepip").unlink()
    programs.mkdir()
    for name in ("cmp", "readlink"):
        (programs / name).symlink_to(shutil.which(name))
    if with_apt:
        program(programs / "apt-get", FAKE_APT.format(root=checkout))
    return str(programs)


@pytest.mark.parametrize("pip", [None, "22.2.9"])
def test_with_neither_ensurepip_nor_a_recent_pip_root_gets_it_from_apt(checkout, tmp_path, pip):
    path = bare(checkout, tmp_path / "bin", with_apt=True)
    if pip:
        (checkout / "system_pip").touch()
        (checkout / "pip_version").write_text(pip)
    done = launch(checkout, PATH=path, FAKE_UID="0")
    assert done.returncode == 7, done.stderr
    assert "installing Debian's python3-venv with apt-get" in done.stderr
    install = "install -q -y --no-install-recommends python3-venv"
    assert (checkout / "apt.log").read_text().splitlines() == [install, "update -q", install]
    assert len(pip_runs(checkout)) == 1


@pytest.mark.parametrize(("uid", "with_apt"), [("1000", True), ("0", False)])
def test_where_nothing_can_be_installed_one_line_says_the_remedy(checkout, tmp_path, uid, with_apt):
    done = launch(checkout, PATH=bare(checkout, tmp_path / "bin", with_apt), FAKE_UID=uid)
    assert done.returncode == 2 and not (checkout / "apt.log").exists()
    assert done.stderr.count("sudo apt-get install python3-venv") == 1
    assert len(done.stderr.splitlines()) == 2 and done.stderr.splitlines()[1].startswith("testbed: set-up failed: ")
    (checkout / "ensurepip").touch()
    assert launch(checkout).returncode == 7


def test_an_apt_get_that_fails_is_said_and_ends_with_status_2(checkout, tmp_path):
    (checkout / "offline").touch()
    done = launch(checkout, PATH=bare(checkout, tmp_path / "bin", with_apt=True), FAKE_UID="0")
    assert done.returncode == 2 and "apt-get did not give" in done.stderr and "Traceback" not in done.stderr
    assert len((checkout / "apt.log").read_text().splitlines()) == 3


def test_the_real_ensurepip_gives_a_working_pip(checkout):
    probe = subprocess.run([os.path.realpath(sys.executable), "-c", "import ensurepip, venv"], capture_output=True)
    if probe.returncode:
        pytest.skip("this Python has no ensurepip")
    done = launch(checkout, "setup", TESTBED_PYTHON=sys.executable)
    # The lock of this checkout is invalid: the error message of the real pip proves that it ran.
    assert done.returncode == 1 and "Invalid requirement: 'lock 1'" in done.stderr and not pip_runs(checkout)


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
        program(folder / name, "#!/bin/sh\nexit 1\n")
    done = launch(checkout, TESTBED_PYTHON="", PATH=f"{folder}:/bin")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and "sudo apt-get install python3-venv" in done.stderr


def test_half_written_packages_are_found_and_dropped(tmp_path):
    from ...tools.python.setup_venv import drop_half_installed

    complete, cut, empty = (tmp_path / f"{name}-1.0.dist-info" for name in ("complete", "cut", "empty"))
    for folder in (complete, cut, empty):
        folder.mkdir()
    (complete / "RECORD").write_text("complete/__init__.py,,\ncomplete-1.0.dist-info/INSTALLER,,\n")
    (cut / "RECORD").write_text("cut/__init__.py,,\n")
    assert sorted(drop_half_installed(tmp_path)) == ["cut", "empty"]
    assert [folder.name for folder in tmp_path.iterdir()] == [complete.name]
