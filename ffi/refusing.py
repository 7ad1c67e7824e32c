"""The handler of a call that the routine of its target does not take: the run fails at it, with the reason.

XLA checks the signature of a LAPACK call when it runs, and compiles a program that never reaches it.
"""

from __future__ import annotations

from .binding.errors import Error
from .binding.export import bind
from .description import Description
from .registry import HOST, Handler


def refusing(description: Description) -> Handler:
    """A handler that returns the description's refusal as an error."""

    def refuse(_operands: object, _results: object) -> Error:
        return Error.invalid_argument(description.refusal)

    made = bind().remaining_args().remaining_rets().to(refuse)
    return Handler(description.target, HOST, made.ffi_address, keep=(made,))
