"""Attributes of HLO from Python values or from their text."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...hlo.errors import InputError, ParseError
from ..text.parse_attributes import ATTRIBUTES
from ..text.parser import Parser
from ..text.printer import QUOTED
from .literals import literal_of


def attribute_of(key: str, value: Any) -> Any:
    """The frozen value of an attribute. Text of an attribute that is not quoted in HLO is read as in HLO.

    Raises InputError or ParseError if it is malformed.
    """
    if key == "literal":
        return literal_of(value)
    if isinstance(value, str) and key not in QUOTED:
        parser = Parser(value, f"<{key}>")
        try:
            read = ATTRIBUTES[key](parser, key)
            if not parser.lexer.ended:
                parser.lexer.fail(f"unexpected text after '{key}': {parser.lexer.found()}")
        except ParseError as error:
            raise InputError(f"{key}={value}: {error.message}", remedy=error.remedy) from None
        return read
    return _frozen(value)


def _frozen(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    if isinstance(value, np.ndarray):
        return _frozen(value.tolist())
    return value.item() if isinstance(value, np.generic) else value
