"""Reading: the part of the parser that readers of attribute values use.

The parser imports these readers, so they must not import the parser.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

from ...hlo.ir import Computation, Instruction
from .lexer import Lexer


class Reading(Protocol):
    """A parse in progress: the lexer and the names defined so far."""

    lexer: Lexer

    @abstractmethod
    def find_instruction(self, name: str, at: int) -> Instruction:
        """The instruction `name` of the current computation. Raises ParseError at offset `at` if there is none."""

    @abstractmethod
    def find_computation(self, name: str, at: int) -> Computation:
        """The computation `name`. Raises ParseError at offset `at` if none of this name is defined so far."""

    @abstractmethod
    def inline_computation(self) -> Computation:
        """Read `{ … }`, a computation without a name, at the lexer's position."""
