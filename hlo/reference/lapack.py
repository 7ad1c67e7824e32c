"""jaxlib's lapack_*_ffi custom calls through SciPy's LAPACK."""

from __future__ import annotations

TARGETS = {}
