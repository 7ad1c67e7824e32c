"""The mode of floats in which kernels run, whatever the caller's is: to nearest, no traps, subnormals as asked for."""

from __future__ import annotations

_MODES = {"x86_64": (0x1F80, 0x9FC0), "aarch64": (0, 1 << 24)}
"""Architecture → its control register (MXCSR, FPCR) that keeps subnormals, and that which flushes operands and results.
"""


def float_mode(architecture: str, flushes: bool) -> int | None:
    """The value of the control register; None where its form is not known, and the caller's mode counts. On these
    architectures subnormals stay, which XLA's float rules allow.
    """
    modes = _MODES.get(architecture)
    return None if modes is None else modes[flushes]
