"""Makes or completes `.venv` from the hashed lock. Runs on the system's Python with nothing but the standard library.

Called by the launcher. Safe to interrupt at any point: the stamps that say "ready" are written last, by rename, and a
package that was half written is found and written again.
"""

import argparse
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).absolute().parents[2]
LOCK, XLA_LOCK = "requirements.txt", "requirements-xla.txt"
# The pinned pip, run from its wheel: Debian's python3 has neither pip nor ensurepip.
PIP_WHEEL = "tools/python/pip-26.3-py3-none-any.whl"


class SetupError(Exception):
    """What went wrong, and what to do about it."""


def say(text: str) -> None:
    print(f"testbed: {text}", file=sys.stderr, flush=True)


def is_ready(venv: Path, locks: list[str]) -> bool:
    """Whether the stamps (copies of the locks) match the locks."""
    return all((venv / lock).is_file() and (venv / lock).read_bytes() == (ROOT / lock).read_bytes() for lock in locks)


def works(venv: Path) -> bool:
    """Whether an environment of this Python version stands there and runs."""
    probe = "import sys; print(*sys.version_info[:2], sys.prefix != sys.base_prefix)"
    try:
        answer = subprocess.run([venv / "bin/python3", "-c", probe], capture_output=True, text=True).stdout
    except OSError:
        answer = ""
    return answer.split() == [*map(str, sys.version_info[:2]), "True"]


def make_venv(venv: Path) -> None:
    if venv.exists():
        shutil.rmtree(venv)
    # The versioned binary, not the `python3` link: after a system upgrade the environment then is seen to be stale.
    base = os.path.realpath(sys.executable)
    try:
        done = subprocess.run([base, "-m", "venv", "--without-pip", venv], capture_output=True, text=True)
    except OSError as error:
        raise SetupError(f"cannot run {base}: {error}") from None
    if done.returncode:
        reason = (done.stderr or done.stdout).strip().splitlines()
        raise SetupError(
            f"`{base} -m venv` failed: {reason[-1] if reason else 'no message'}. "
            "On Debian and Ubuntu: apt-get install python3 (python3-minimal is not enough); "
            "or set TESTBED_PYTHON to another Python >= 3.11"
        )


def drop_half_installed(site_packages: Path) -> list[str]:
    """Forget packages whose installation was cut off, so that pip writes them again; return their names.

    pip rewrites RECORD as its last step, and only that version of it names the INSTALLER file.
    """
    dropped = []
    for info in site_packages.glob("*.dist-info"):
        record = info / "RECORD"
        if not record.is_file() or f"{info.name}/INSTALLER" not in record.read_text(encoding="utf-8"):
            shutil.rmtree(info)
            dropped.append(info.name.split("-")[0])
    return dropped


def run_pip(venv: Path, locks: list[str]) -> None:
    command: list[str | Path] = [venv / "bin/python3", ROOT / PIP_WHEEL / "pip", "install", "--require-hashes", "--only-binary", ":all:"]
    command += ["--no-deps", "--disable-pip-version-check", "--no-warn-script-location", "--root-user-action", "ignore"]
    for lock in locks:
        command += ["-r", ROOT / lock]
    # Progress goes to stderr: stdout belongs to the command that triggered the set-up.
    child = subprocess.Popen(command, stdout=sys.stderr, cwd=ROOT)
    try:
        code = child.wait()
    except KeyboardInterrupt:
        child.wait()  # pip got the same Ctrl-C and rolls back what it was writing
        raise
    if code:
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
    if not (ROOT / PIP_WHEEL).exists():
        raise SetupError(f"{PIP_WHEEL} is missing: restore it with `git checkout {PIP_WHEEL}`")
    # An extra that was chosen once stays.
    locks = [LOCK, XLA_LOCK] if xla or (venv / XLA_LOCK).exists() else [LOCK]
    usable = works(venv)
    if usable and is_ready(venv, locks):
        return
    names = " and ".join(locks)
    say(f"making {venv} from {names} (once; up to 300 MB to download, a minute or two)")
    if not usable:
        make_venv(venv)
    site_packages = venv / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    resumed = drop_half_installed(site_packages)
    if resumed:
        say(f"an earlier set-up was cut off; writing again: {', '.join(sorted(resumed))}")
    run_pip(venv, locks)
    subprocess.run([venv / "bin/python3", ROOT / "tools/python/link_package.py"], check=True)
    write_stamps(venv, locks)
    say("ready")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="testbed setup", description="Make .venv from the lock, or complete it.")
    parser.add_argument("--xla", action="store_true", help="also JAX: the oracle from outside; for examples/make.py")
    xla = parser.parse_args(argv).xla or os.environ.get("TESTBED_XLA", "") not in ("", "0")
    # Ctrl-C must reach us even where the shell started us in the background.
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
        return 1
    except OSError as error:
        say(f"set-up failed: {error.strerror}: {error.filename}. The checkout must be writable, with 2 GB free")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
