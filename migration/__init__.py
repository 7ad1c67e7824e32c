"""The emitters flags as a value. This is the only room that chooses a stack."""

from .choose import choose, emit_for
from .compile import compile_module
from .flags import Flags

__all__ = ["Flags", "choose", "compile_module", "emit_for"]
