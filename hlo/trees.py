"""Pytrees: nested containers flattened in JAX's order, without JAX; and the trees of a program that came from JAX.

A tuple, list, namedtuple or OrderedDict keeps its order, a dict is sorted by its keys, None has no leaves. Anything
else is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from typing import Any

from .errors import InputError
from .records import dataclass


@dataclass(frozen=True, eq=False)
class Trees:
    """How callers of a program pass its arguments, as JAX's PyTreeDefs.

    arguments: the tree of (positional arguments, keyword arguments); results: that of the results, or None if unknown.
    kept: which leaves of the arguments are parameters, in order; JAX drops those that the program does not use.
    """

    arguments: Any
    results: Any
    kept: tuple[int, ...]


def leaves_of(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, leaf) for each leaf. A path is what a user writes after the value's name: `['w'][0].bias`.

    Raises InputError for a dict whose keys have no order.
    """
    children = children_of(value, path)
    if children is None:
        yield path, value
        return
    for step, child in children:
        yield from leaves_of(child, path + step)


def children_of(value: Any, path: str = "") -> list[tuple[str, Any]] | None:
    """(step, child) for each child of a container, in order; None for a leaf."""
    kind = type(value)
    if value is None:
        return []
    if kind is tuple or kind is list:
        return [(f"[{n}]", child) for n, child in enumerate(value)]
    if kind is dict or kind is defaultdict:
        return [(f"[{key!r}]", value[key]) for key in _sorted_keys(value, path)]
    if kind is OrderedDict:
        return [(f"[{key!r}]", child) for key, child in value.items()]
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return [(f".{name}", child) for name, child in zip(kind._fields, value, strict=True)]
    return None


def _sorted_keys(value: dict[Any, Any], path: str) -> list[Any]:
    try:
        return sorted(value)
    except TypeError:
        kinds = ", ".join(sorted({type(key).__name__ for key in value}))
        raise InputError(
            f"the keys of the dict{' at ' + path if path else ''} have no order: {kinds}",
            remedy="give keys of one type",
        ) from None
