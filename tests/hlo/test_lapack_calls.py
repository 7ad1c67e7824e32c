"""The notation for calls of LAPACK's routines."""

from __future__ import annotations

import pytest

from ...hlo.library.lapack import Address, Character, Dimension, Fixed, Integer, argument, routine

WORDS = {
    "A": Address("A"),
    "dl+1": Address("dl", 1),
    "ld:A": Dimension("ld", "A"),
    "'uplo": Character("uplo"),
    "=low": Integer("low"),
    "one": Fixed.ONE,
    "null": Fixed.NULL,
}


@pytest.mark.parametrize("word", WORDS)
def test_what_a_word_means(word):
    assert argument(word, ["A", "dl"]) == WORDS[word]


@pytest.mark.parametrize("word", ["B", "A+2", "ld:B", "depth:A", "rows:"])
def test_a_word_without_meaning_is_named(word):
    with pytest.raises(ValueError, match="is no argument of a LAPACK call"):
        routine("xxtrf", "A", "A", f"A {word} info")
