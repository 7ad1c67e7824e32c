"""Inputs that share memory with a result (input_output_alias): donated by the caller, or copied."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Sequence

from ...hlo.errors import InputError
from ...hlo.later import np
from .addresses import address_of
from .signature import Signature


def place_aliased(
    signature: Signature,
    inputs: Sequence[object],
    donated: Collection[int],
    addresses: list[int],
    kept: list[np.ndarray],
    places: list[int],
    results: list[np.ndarray],
    outputs: Sequence[np.ndarray | None] | None,
) -> None:
    """Give each aliased pair of input and output the same memory. Changes the lists of addresses and arrays in place.

    A donated array becomes the result, unless it does not fit, is shared with another input, or the caller passed an
    array for the result. Any other aliased input is copied to the memory of its result.
    """
    for number in donated:
        if not 0 <= number < len(signature.inputs):
            raise InputError(
                f"input {number} is donated, but there are {len(signature.inputs)}", remedy="give numbers of inputs"
            )
    before = tuple(zip(addresses, kept))
    for source, target in signature.aliased:
        address, array = before[source]
        wanted = outputs is not None and outputs[target] is not None
        if source in donated and not wanted and array is inputs[source] and _owned(source, array, before):
            results[target], places[target] = array, address
            continue
        leaf = signature.outputs[target]
        ctypes.memmove(places[target], address, leaf.bytes)
        addresses[source], kept[source] = places[target], results[target]


def _owned(number: int, array: np.ndarray, placed: Sequence[tuple[int, np.ndarray]]) -> bool:
    """Whether the array may be overwritten: it is writeable, and no other input overlaps it."""
    if not array.flags.writeable:
        return False
    begin, end = address_of(array), address_of(array) + array.nbytes
    return not any(
        n != number and begin < other + held.nbytes and other < end for n, (other, held) in enumerate(placed)
    )
