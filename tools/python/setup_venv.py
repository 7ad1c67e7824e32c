"""Makes or completes `.venv` from the lock with hashes. Needs only the system's Python and its standard library.

The launcher calls it. It may be interrupted at any time: the stamps that mean "ready" are written last, by rename, and
a package that is only partly written is detected and installed again.
"""

import _signal
import os

if __name__ == "__main__" and _signal.getsignal(_signal.SIGINT) != _signal.SIG_IGN:

    def _leave(number: int, frame: object) -> None:
        """While this program loads: nothing has been begun. `main` handles Ctrl-C from then on."""
        os.write(2, b"testbed: set-up interrupted; nothing is broken, the next call resumes\n")
        os._exit(130)

    _signal.signal(_signal.SIGINT, _leave)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, {_signal.SIGINT})  # the launcher blocks it

import argparse
import fcntl
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).absolute().parents[2]
LOCKS, LOCK = ROOT / "locks", "requirements.txt"
EXTRAS = {
    "xla": ("jaxlib and JAX", "for the stack xla and examples/make.py"),
    "dev": ("the test tools", "for tests, lint and types"),
    "plot": ("matplotlib and Jinja2", "for plots and the board"),
    "handlers": ("libraries with FFI handlers", "for tests of custom calls; it takes JAX, too"),
    "gpu": ("an assembler of PTX and LLVM's linker", "for tests of code for GPUs"),
    "opencl": ("Intel's OpenCL runtime for CPUs (276 MB)", "for the platform opencl"),
}
"""Extra → what it installs, and what for. Its lock is locks/requirements-EXTRA.txt."""
STARTED_WITH = (
    "click numpy ml_dtypes scipy.linalg scipy.special scipy.fft llvmlite.binding mlir.ir mlir.passmanager "
    "mlir.dialects.irdl pebble rich.console rich.table "
    "google.protobuf.message_factory jax matplotlib.figure jinja2 pytest hypothesis mypy.main importlinter"
)
"""What commands import. Each is compiled by the set-up, where it is installed."""
PROGRAMS, USED = "llvm/bin", "FileCheck"
"""Where the wheel that brings libLLVM.so has 115 MB of programs, and the only one that is used (by tests)."""
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
    return all((venv / lock).is_file() and (venv / lock).read_bytes() == (LOCKS / lock).read_bytes() for lock in locks)


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


class Progress:
    """One line on a terminal that says how far pip is; nothing elsewhere. Reads pip's output as it comes."""

    def __init__(self, packages: int, folder: Path) -> None:
        self.packages, self.folder = packages, folder
        self.found, self.name, self.before = 0, "", 0
        self.installing = False

    def read(self, line: str) -> None:
        if found := re.match(r"(?:Collecting|Requirement already satisfied:|Ignoring) ([\w.-]+)", line):
            self.found, self.name = self.found + 1, found[1]
        elif line.startswith("Installing collected packages"):
            self.installing, self.before = True, self.installed()

    def installed(self) -> int:
        return len([*self.folder.glob("*.dist-info")])

    def show(self, seconds: float) -> None:
        if not sys.stderr.isatty():
            return
        done = f"downloading {min(self.found, self.packages)} of {self.packages}: {self.name}"
        if self.installing:
            done = f"installing, {self.installed() - self.before} packages written"
        print(f"\r\x1b[Ktestbed: {done} ({seconds:.0f} s)", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def run_logged(command: Command, log: Path, progress: Progress) -> int:
    """Run a command with its output in a log, and show its progress."""
    start = time.monotonic()
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=ROOT,
        env=environment(PYTHONUNBUFFERED="1"),
    )
    assert child.stdout is not None
    lines = child.stdout

    def read() -> None:
        with open(log, "wb") as file:
            for line in lines:
                file.write(line)
                file.flush()
                progress.read(line.decode("utf-8", "replace"))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        while reader.is_alive():
            progress.show(time.monotonic() - start)
            reader.join(0.2)
        return child.wait()
    except KeyboardInterrupt:
        child.wait()  # the child got the same Ctrl-C and undoes what it was writing
        raise
    finally:
        reader.join()
        progress.clear()


def useful_end(log: Path) -> str:
    """What a log says about a failure: pip's errors, or its last lines where it names none."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return "\n".join(f"  {line[:300]}" for line in (errors or lines)[-5:])


def run_pip(pip: Command, venv: Path, locks: list[str]) -> None:
    # Compiling every module takes a third of the time and 60 MB; `compile_modules` does those that are imported.
    command = [*pip, "install", "--require-hashes", "--only-binary", ":all:", "--no-deps", "--no-compile"]
    command += ["--disable-pip-version-check", "--no-warn-script-location", "--root-user-action", "ignore"]
    command += ["--progress-bar", "off"]
    for lock in locks:
        command += ["-r", LOCKS / lock]
    packages = sum(len(re.findall(r"^[a-z0-9]", (LOCKS / lock).read_text(), re.M)) for lock in locks)
    log = venv / "setup.log"
    if run_logged(command, log, Progress(packages, site_packages(venv))):
        raise SetupError(
            f"pip could not install {' and '.join(locks)}. Check the network, or the index that pip is "
            f"configured with; wheels exist for CPython 3.11 to 3.14 on Linux and macOS, and this is Python "
            f"{sys.version.split()[0]} on {sysconfig.get_platform()}. Then run the same command again: it resumes. "
            f"pip's end (all of it: {log}):\n{useful_end(log)}"
        )


def drop_unused(site_packages: Path) -> None:
    """Delete the programs that nobody uses."""
    for file in (site_packages / PROGRAMS).glob("*"):
        if file.name != USED:
            file.unlink()


COMPILE = """
import importlib, importlib.util, sys
for name in sys.argv[1].split():
    if importlib.util.find_spec(name.split(".")[0]):
        importlib.import_module(name)
"""


def compile_modules(venv: Path) -> None:
    """Import what commands import, so that Python writes its bytecode. Raises SetupError if something does not load."""
    kept = {name: value for name, value in environment().items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run([venv / "bin/python3", "-c", COMPILE, STARTED_WITH], capture_output=True, text=True, env=kept)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise SetupError(f"what was installed does not load: {reason}. Remove {venv} and run the same command again")


def write_stamps(venv: Path, locks: list[str]) -> None:
    for lock in locks:
        temporary = venv / (lock + ".tmp")
        shutil.copyfile(LOCKS / lock, temporary)
        os.replace(temporary, venv / lock)


def chosen_locks(venv: Path, extras: Sequence[str]) -> list[str]:
    """The locks to install. Once an extra is installed, it stays installed."""
    locks = {name: f"requirements-{name}.txt" for name in EXTRAS}
    return [LOCK, *(lock for name, lock in locks.items() if name in extras or (venv / lock).exists())]


def set_up(venv: Path, extras: Sequence[str]) -> None:
    locks = chosen_locks(venv, extras)
    if works(venv) and is_ready(venv, locks):
        return
    start = time.monotonic()
    if works(venv) and is_ready(venv, [LOCK]):
        locks = [lock for lock in locks if not is_ready(venv, [lock])]
        what = [" ".join(EXTRAS[name]) for name in EXTRAS if f"requirements-{name}.txt" in locks]
        say(f"adding {' and '.join(what)} to {venv} (once)")
    else:
        say(f"making {venv} from {' and '.join(locks)} (once; half a minute, 290 MB to download, more with extras)")
    resumed = drop_half_installed(site_packages(venv))
    if resumed:
        say(f"an earlier set-up was cut off; writing again: {', '.join(sorted(resumed))}")
    run_pip(provide_pip(venv), venv, locks)
    drop_unused(site_packages(venv))
    compile_modules(venv)
    subprocess.run([venv / "bin/python3", ROOT / "tools/python/link_package.py"], check=True, env=environment())
    write_stamps(venv, locks)
    say(f"ready after {time.monotonic() - start:.0f} s")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="testbed setup", description="Make .venv from the lock, or complete it.")
    for name, (what, purpose) in EXTRAS.items():
        parser.add_argument(f"--{name}", action="store_true", help=f"also install {what}, {purpose}")
    options = parser.parse_args(argv)
    extras = [name for name in EXTRAS if getattr(options, name)]
    if os.environ.get("TESTBED_XLA", "") not in ("", "0"):
        extras.append("xla")
    # Treat SIGTERM as Ctrl-C. A process that a shell started in the background ignores SIGINT.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with open(ROOT / ".venv.lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("another set-up of this checkout is running; waiting for it")
                fcntl.flock(lock, fcntl.LOCK_EX)
            set_up(ROOT / ".venv", extras)
    except KeyboardInterrupt:
        say("set-up interrupted; nothing is broken, the next call resumes")
        return 130
    except SetupError as error:
        say(f"set-up failed: {error}")
        return error.status
    except OSError as error:
        say(f"set-up failed: {error.strerror}: {error.filename}. The checkout must be writable, with 1 GB free")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
