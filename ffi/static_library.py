"""A shared library with the symbols that handlers expect of XLA's process, for libraries that register themselves.

`XLA_FFI_REGISTER_HANDLER(GetXlaFfiApi(), …)` runs while a library is loaded, and jaxlib does not export the function.
So a library of our own does: an ELF file of some hundred bytes, written here, whose functions read words that we fill.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import tempfile
from pathlib import Path

from ..codegen.errors import CodegenError
from ..hlo.errors import InputError
from ..hlo.library.calls import is_routine
from .api import native
from .registry import CallVersion, register, registered

_DISTANCE = bytes(4)
_RETURNED, _JUMPED = b"\x48\x8b\x05" + _DISTANCE + b"\xc3", b"\xff\x25" + _DISTANCE
"""mov rax, [rip + …]; ret, and jmp [rip + …]."""

EXPORTS = {
    "_ZN3xla3ffi12GetXlaFfiApiEv": _RETURNED,
    "XLA_FFI_GetApi": _RETURNED,
    "XlaCustomCallStatusSetFailure": _JUMPED,
    "XlaCustomCallStatusSetSuccess": _JUMPED,
}
"""Symbol → code, with the place of the distance of its word."""

_WORDS = "testbed_ffi_words"
_PAGE = 4096
_X86_64 = 62


def load_library(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Load a shared library of handlers that registers them itself. Returns their names, sorted.

    It does so once a process: a library that is loaded already registers nothing again.

    Raises InputError if it cannot be loaded, with the loader's reason.
    """
    provide()
    before = set(registered())
    try:
        _LOADED.append(_opened(path))
    except OSError as error:
        raise InputError(f"{path}: {error}", remedy="give a shared library of handlers") from None
    return tuple(sorted({name for name, _ in set(registered()) - before}))


def register_symbols(path: str | os.PathLike[str], names: dict[str, str] | list[str], platform: str = "Host") -> None:
    """Register functions that a shared library exports. names: symbols, or target → symbol. Raises InputError."""
    provide()
    try:
        library = _opened(path)
    except OSError as error:
        raise InputError(f"{path}: {error}", remedy="give a shared library of handlers") from None
    for target, symbol in (names if isinstance(names, dict) else dict(zip(names, names))).items():
        if not hasattr(library, symbol):
            raise InputError(f"{path} has no symbol {symbol!r}", remedy="nm -D lists those that it has")
        register(target, getattr(library, symbol), platform)
    _LOADED.append(library)


def _opened(path: str | os.PathLike[str]) -> ctypes.CDLL:
    """A file that is there is loaded by its absolute path: the loader looks for a name without a slash in the system's
    folders only, and takes `./add.so` of another folder for the one that it has loaded under this name.
    """
    name = os.fspath(path)
    if os.path.exists(name):
        name = os.path.abspath(name)
    return ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_LOCAL)


def register_jaxlib(prefix: str = "jaxlib.") -> tuple[str, ...]:
    """Register jaxlib's own handlers under their names behind a prefix. Without one, those alone that no library here
    serves. Returns the names. Raises InputError where jaxlib is absent.
    """
    try:
        from jaxlib.cpu import _lapack
    except ImportError:
        raise InputError("jaxlib is not installed", remedy="./testbed setup --xla") from None
    _lapack.initialize()  # handlers crash before this call
    found = {prefix + n: c for n, c in _lapack.registrations().items() if prefix or not is_routine(n)}
    for name, capsule in found.items():
        register(name, capsule, version=CallVersion.API_VERSION_TYPED_FFI, replace=True)
    return tuple(sorted(found))


def register_jax() -> tuple[str, ...]:
    """Register what libraries have registered with JAX for its CPU, under the same names: import them before.

    Targets that work in JAX's own process only are left out: its callbacks, and those of jaxlib itself, which our own
    library serves. Returns the names, sorted. Raises InputError where jaxlib is absent, and for a name that is taken.
    """
    try:
        import jax
        from jaxlib import xla_client
    except ImportError:
        raise InputError("jaxlib is not installed", remedy="./testbed setup --xla") from None
    jax.devices("cpu")  # JAX passes targets on when its back end starts
    found = {n: h for n, h in xla_client.custom_call_targets("cpu").items() if not n.startswith(OF_JAX)}
    for name, handler in found.items():
        register(name, handler)
    return tuple(sorted(found))


OF_JAX = ("xla_", "dce_sink", "lapack_", "blas_", "tridiagonal_solve_")
"""How the names of targets begin that belong to JAX and jaxlib."""

_LOADED: list[ctypes.CDLL] = []


@functools.cache
def provide() -> None:
    """Make the symbols known to all libraries that are loaded from now on."""
    if os.uname().machine != "x86_64":
        raise CodegenError("libraries that register themselves are supported on x86-64 only")
    host = native()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "libtestbed_xla_ffi.so")
        path.write_bytes(elf_library())
        library = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_GLOBAL)
    words = (ctypes.c_uint64 * len(EXPORTS)).in_dll(library, _WORDS)
    for number, (name, code) in enumerate(EXPORTS.items()):
        words[number] = host.api if code is _RETURNED else host.addresses[name]
    _LOADED.append(library)


def elf_library() -> bytes:
    """The shared library: one segment to read and execute, one to write."""
    names = ["", *EXPORTS, _WORDS]
    strings, places = b"", {}
    for name in [*names, "libtestbed_xla_ffi.so"]:
        places[name] = len(strings)
        strings += name.encode() + b"\0"
    table = 64 + 3 * 56
    hashes = struct.pack(f"<{3 + len(names)}I", 1, len(names), 1, 0, *range(2, len(names)), 0)
    symbols_at = -(-(table + len(hashes)) // 8) * 8
    strings_at = symbols_at + 24 * len(names)
    text_at = -(-(strings_at + len(strings)) // 16) * 16
    tags = {4: table, 6: symbols_at, 5: strings_at, 10: len(strings), 11: 24, 14: places["libtestbed_xla_ffi.so"], 0: 0}
    dynamic = b"".join(struct.pack("<QQ", tag, value) for tag, value in tags.items())
    words_at, code, symbols = _PAGE + len(dynamic), b"", bytes(24)
    for number, (name, form) in enumerate(EXPORTS.items()):
        start = text_at + len(code)
        after = start + form.index(_DISTANCE) + 4
        code += form.replace(_DISTANCE, struct.pack("<i", words_at + 8 * number - after)).ljust(16, b"\xcc")
        symbols += struct.pack("<IBBHQQ", places[name], 0x12, 0, 1, start, 16)
    symbols += struct.pack("<IBBHQQ", places[_WORDS], 0x11, 0, 2, words_at, 8 * len(EXPORTS))
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, _X86_64, 1, 0, 64, 0, 0, 64, 56, 3, 0, 0, 0)
    end = text_at + len(code)
    size = len(dynamic) + 8 * len(EXPORTS)
    for kind, flags, at, length, align in (
        (1, 5, 0, end, _PAGE),
        (1, 6, _PAGE, size, _PAGE),
        (2, 6, _PAGE, len(dynamic), 8),
    ):
        head += struct.pack("<IIQQQQQQ", kind, flags, at, at, at, length, length, align)
    image = (head + hashes).ljust(symbols_at, b"\0") + symbols + strings
    image = (image.ljust(text_at, b"\0") + code).ljust(_PAGE, b"\0")
    return image + dynamic + bytes(8 * len(EXPORTS))
