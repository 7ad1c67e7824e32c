"""Native code of the runtime itself (runner, pools), which all programs share: an object that is made once a machine.

A process that runs a program from a file needs this code and no compiler: so it is found in the cache without LLVM in
the process. It is made for every processor of the architecture.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from importlib.util import find_spec

from .cache import DEFAULT_CACHE, ObjectCache, cache_key
from .options import SETTINGS, EmitOptions, Target

BASELINES = {"x86_64": Target("x86_64-unknown-linux-gnu", "x86-64", "", 128)}
"""What the machine is called (uname) → the target of all its processors. Elsewhere it is the processor itself."""


def runtime_target() -> Target:
    """The target of the runtime's code."""
    return BASELINES.get(os.uname().machine) or Target.host()


def runtime_object(key: str, text: Callable[[], str], cache: ObjectCache | None = DEFAULT_CACHE) -> bytes:
    """The object of the runtime's LLVM IR. key: the text itself, or what changes with it; cache: None disables it."""
    options = EmitOptions(runtime_target())
    name = cache_key(key, "runtime", repr(options), SETTINGS, _llvm()) if cache is not None else ""
    found = cache.read(name) if cache is not None else None
    if found is None:
        from .optimize import compile_object

        found = compile_object(text(), options, cache=None)
        if cache is not None:
            cache.write(name, found)
    return found


@functools.cache
def _llvm() -> str:
    """Which LLVM there is, without loading it: size and time of its library; its version would import llvmlite."""
    spec = find_spec("llvmlite")
    if spec is None or not spec.origin:
        return ""
    with os.scandir(os.path.join(os.path.dirname(spec.origin), "binding")) as entries:
        found = sorted((e.name, e.stat().st_size, e.stat().st_mtime_ns) for e in entries if "libllvmlite" in e.name)
    return str(found)
