"""Lets XLA:CPU write what it makes of a module: the scheduled HLO, buffer assignment, and each kernel's IR and object.

In a child process of its own: some flags are read once a process, and kernels are to be made for one processor.
"""

from __future__ import annotations

import atexit
import os
import shutil
from pathlib import Path

from ...hlo.errors import InputError
from .child import Child
from .flags import XlaFlags
from .installed import require_installed

GENERATIONS = ("old", "new")
"""XLA:CPU's elemental emitters, and its MLIR fusion emitters."""

ONCE = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=0"
"""Flags of the whole process. This one keeps small loops from becoming one kernel, whose parts have no code."""

_CHOICE = "xla_cpu_use_fusion_emitters"
_OPTIONAL = "xla_cpu_experimental_ynn_fusion_type"
"""Unknown to versions that do not have the library which it turns off. _CHOICE: unknown to jaxlib 0.12 and later, which
have the new emitters alone."""

_WHAT = "xla_dump_emitter_re"
"""What is written beside objects. Newer versions write LLVM IR by this flag only; older ones do not know it."""

_dumper = Child(f"{__package__}.dump_worker")
_owner = os.getpid()


@atexit.register
def _stop() -> None:
    if _owner == os.getpid():
        _dumper.stop()


def dump_flags(generation: str, folder: Path, mlir: bool = False) -> XlaFlags:
    """The flags of one compilation. mlir: write the MLIR of the new emitters, too."""
    return (
        ("xla_dump_to", str(folder)),
        ("xla_dump_hlo_as_text", True),
        ("xla_dump_hlo_as_proto", True),
        ("xla_cpu_multi_thread_eigen", False),
        (_CHOICE, generation == "new"),
        (_OPTIONAL, ""),
        (_WHAT, ".*" if mlir else "llvm"),
    )


def dump(text: str, generation: str, folder: Path, mlir: bool = False) -> None:
    """Let XLA compile HLO text and fill a folder. Raises InputError if jaxlib is absent or lacks the generation,
    XlaRefused if XLA refuses the module.
    """
    global _dumper, _owner
    require_installed()
    if _owner != os.getpid():
        _dumper, _owner = Child(f"{__package__}.dump_worker"), os.getpid()
    flags = dump_flags(generation, folder, mlir)
    optional = {_OPTIONAL, _WHAT} | ({_CHOICE} if generation == "new" else set())
    while True:
        try:
            return _dumper.request("dump", text, flags)
        except InputError as error:
            named = (name for name, _ in flags if name in error.message)
            unknown = next((name for name in named if name in (_CHOICE, _OPTIONAL, _WHAT)), None)
            if unknown is None:
                raise
            if unknown not in optional:
                raise InputError(
                    f"jaxlib {version()} has the new emitters alone: it does not know --{_CHOICE}",
                    remedy="use jaxlib 0.10.2, the last with both; testbed history compares versions",
                ) from None
        shutil.rmtree(folder, ignore_errors=True)
        flags = tuple(flag for flag in flags if flag[0] != unknown)


def version() -> str:
    """The version of the jaxlib that is installed; '' if there is none."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed_version

    try:
        return installed_version("jaxlib")
    except PackageNotFoundError:
        return ""
