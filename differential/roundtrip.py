"""The check of the parse suite: text → module → text → an equal module."""

from __future__ import annotations

from ..formats.text.names import with_legal_names
from ..formats.text.parser import parse_module
from ..formats.text.printer import print_module
from ..hlo.equality import difference
from ..hlo.errors import TestbedError


def roundtrip(text: str, file: str = "<string>") -> str | None:
    """None if `text` parses and its printed forms, short and long, parse to an equal module; otherwise the reason.

    Names that XLA refuses are printed as others, and are no difference.
    """
    try:
        module = parse_module(text, file)
    except TestbedError as error:
        return str(error)
    module = with_legal_names(module)
    for long in (False, True):
        printed = print_module(module, long=long)
        try:
            again = parse_module(printed, "<printed>")
        except TestbedError as error:
            return f"what was printed does not parse: {error}"
        if (found := difference(module, again)) is not None:
            return f"what was printed parses to something else: {found}"
    return None
