"""Makes or completes `.venv` from the lock with hashes. Needs only the system's Python and its standard library.

The launcher calls it. It may be interrupted at any time: the stamps that mean "ready" are written last, by rename, and
a package that is only partly written is detected and installed again.
"""

import argparse
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).absolute().parents[2]
LOCK, XLA_LOCK = "requirements.txt", "requirements-xla.txt"
# The first pip that can install for another interpreter (`--python`).
SYSTEM_PIP = (22, 3)
REMEDY = "sudo apt-get install python3-venv"

Command = Sequence[str | Path]


class SetupError(Exception):
    """An error message with a remedy. status: the exit status."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


def say(text: str) -> None:
    print(f"testbed: {text}", file=sys.stderr, flush=True)


def is_ready(venv: Path, locks: list[str]) -> bool:
    """Whether the stamps (copies of the locks) equal the locks."""
    return all((venv / lock).is_file() and (venv / lock).read_bytes() == (ROOT / lock).read_bytes() for lock in locks)


def environment(**extra: str) -> dict[str, str]:
    """The process's environment without what lets Python import from elsewhere. pip's settings are kept."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return {**kept, "PYTHONSAFEPATH": "1", **extra}


def output(command: Command) -> str:
    """The standard output of a command; empty if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment())
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def run(command: Command, **extra: str) -> int:
    """Run a command with its output on stderr, because stdout belongs to the command that triggered the set-up."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, cwd=ROOT, env=environment(**extra))
    try:
        return child.wait()
    except KeyboardInterrupt:
        child.wait()  # the child got the same Ctrl-C and undoes what it was writing
        raise


def base_python() -> str:
    """The path of the versioned binary, not of the link `python3`: a system upgrade must make the environment stale."""
    return os.path.realpath(sys.executable)


def works(venv: Path) -> bool:
    """Whether a working environment of this Python version exists."""
    probe = "import sys; print(*sys.version_info[:2], sys.prefix != sys.base_prefix)"
    return output([venv / "bin/python3", "-c", probe]).split() == [*map(str, sys.version_info[:2]), "True"]


def site_packages(venv: Path) -> Path:
    return venv / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"


def drop_half_installed(folder: Path) -> list[str]:
    """Forget packages whose installation was interrupted, so that pip installs them again. Returns their names.

    pip rewrites RECORD as its last step, and only that version of RECORD lists the INSTALLER file.
    """
    dropped = []
    for info in folder.glob("*.dist-info"):
        record = info / "RECORD"
        if not record.is_file() or f"{info.name}/INSTALLER" not in record.read_text(encoding="utf-8"):
            shutil.rmtree(info)
            dropped.append(info.name.split("-")[0])
    return dropped


def has_ensurepip() -> bool:
    """Whether ensurepip is installed. Checked in a new process, because apt-get may install it while this one runs."""
    return output([base_python(), "-c", "import ensurepip, venv; print(True)"]) != ""


def has_system_pip() -> bool:
    version = re.match(r"pip (\d+)\.(\d+)", output([base_python(), "-m", "pip", "--version"]))
    return version is not None and tuple(map(int, version.groups())) >= SYSTEM_PIP


def make_venv(venv: Path, *options: str) -> None:
    """Make an environment, or complete an existing one."""
    command: Command = [base_python(), "-m", "venv", *options, venv]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment())
    except OSError as error:
        raise SetupError(f"cannot run {base_python()}: {error}") from None
    if done.returncode:
        reason = (done.stderr or done.stdout).strip().splitlines()
        raise SetupError(
            f"`{base_python()} -m venv` failed: {reason[-1] if reason else 'no message'}. "
            f"On Debian and Ubuntu: {REMEDY}; or set TESTBED_PYTHON to another Python >= 3.11"
        )


def install_ensurepip() -> None:
    """Install ensurepip with apt-get, if we are root: Debian has it in a separate package."""
    if not (os.geteuid() == 0 and shutil.which("apt-get")):
        raise SetupError(
            f"{base_python()} has neither ensurepip nor pip >= {SYSTEM_PIP[0]}.{SYSTEM_PIP[1]}. "
            f"On Debian and Ubuntu: {REMEDY}; or set TESTBED_PYTHON to another Python >= 3.11",
            status=2,
        )
    say(f"{base_python()} has neither ensurepip nor pip; installing Debian's python3-venv with apt-get")
    install = ["apt-get", "install", "-q", "-y", "--no-install-recommends", "python3-venv"]
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    if run(install, **quiet):  # the package lists are missing or out of date
        run(["apt-get", "update", "-q"], **quiet)
        run(install, **quiet)
    if not has_ensurepip():
        raise SetupError(
            f"apt-get did not give {base_python()} its ensurepip (its messages are above). Try {REMEDY}; "
            "or set TESTBED_PYTHON to another Python >= 3.11",
            status=2,
        )


def provide_pip(venv: Path) -> Command:
    """Make or complete the environment and return the command of its pip."""
    own: Command = [venv / "bin/python3", "-m", "pip"]
    if works(venv):
        # A pip whose own installation was interrupted has lost its dist-info (`drop_half_installed`).
        if [*site_packages(venv).glob("pip-*.dist-info")] and output([*own, "--version"]):
            return own
    elif venv.exists():
        shutil.rmtree(venv)
    if not has_ensurepip():
        if has_system_pip():
            make_venv(venv, "--without-pip")
            return [base_python(), "-m", "pip", "--python", venv / "bin/python3"]
        install_ensurepip()
    make_venv(venv)
    return own


def run_pip(pip: Command, locks: list[str]) -> None:
    command = [*pip, "install", "--require-hashes", "--only-binary", ":all:", "--no-deps"]
    command += ["--disable-pip-version-check", "--no-warn-script-location", "--root-user-action", "ignore"]
    for lock in locks:
        command += ["-r", ROOT / lock]
    if run(command):
        raise SetupError(
            f"pip could not install the lock (its message is above). Check the network, or the index that pip is "
            f"configured with; wheels exist for CPython 3.11 to 3.14 on Linux and macOS, and this is Python "
            f"{sys.version.split()[0]} on {sysconfig.get_platform()}. Then run the same command again: it resumes"
        )


def write_stamps(venv: Path, locks: list[str]) -> None:
    for lock in locks:
        temporary = venv / (lock + ".tmp")
        shutil.copyfile(ROOT / lock, temporary)
        os.replace(temporary, venv / lock)


def set_up(venv: Path, xla: bool) -> None:
    # Once the extra is installed, it stays installed.
    locks = [LOCK, XLA_LOCK] if xla or (venv / XLA_LOCK).exists() else [LOCK]
    if works(venv) and is_ready(venv, locks):
        return
    say(f"making {venv} from {' and '.join(locks)} (once; up to 300 MB to download, a minute or two)")
    resumed = drop_half_installed(site_packages(venv))
    if resumed:
        say(f"an earlier set-up was cut off; writing again: {', '.join(sorted(resumed))}")
    run_pip(provide_pip(venv), locks)
    subprocess.run([venv / "bin/python3", ROOT / "tools/python/link_package.py"], check=True, env=environment())
    write_stamps(venv, locks)
    say("ready")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="testbed setup", description="Make .venv from the lock, or complete it.")
    parser.add_argument("--xla", action="store_true", help="also install JAX, for the stack xla and examples/make.py")
    xla = parser.parse_args(argv).xla or os.environ.get("TESTBED_XLA", "") not in ("", "0")
    # Treat SIGTERM as Ctrl-C. A process that a shell started in the background ignores SIGINT.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with open(ROOT / ".venv.lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("another set-up of this checkout is running; waiting for it")
                fcntl.flock(lock, fcntl.LOCK_EX)
            set_up(ROOT / ".venv", xla)
    except KeyboardInterrupt:
        say("set-up interrupted; nothing is broken, the next call resumes")
        return 130
    except SetupError as error:
        say(f"set-up failed: {error}")
        return error.status
    except OSError as error:
        say(f"set-up failed: {error.strerror}: {error.filename}. The checkout must be writable, with 2 GB free")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
