"""The options of a call: arrays for its results (`out=`), and arguments that may be overwritten (`donate=`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..hlo.errors import InputError
from ..hlo.later import np
from ..hlo.records import dataclass
from ..hlo.shapes import Shape
from ..hlo.trees import Trees

OUT, DONATE = "out", "donate"


@dataclass(frozen=True, slots=True)
class CallOptions:
    """outputs: for each array of the result one that receives it, or None; None: all are new.

    donated: numbers of inputs that may be overwritten.
    """

    outputs: Sequence[np.ndarray | None] | None = None
    donated: frozenset[int] = frozenset()


NO_OPTIONS = CallOptions()


def outputs_of(out: Any, shape: Shape, trees: Trees | None) -> list[Any] | None:
    """The arrays of `out=`, flattened: it is as the result is, with None for a new array. Raises InputError."""
    if out is None:
        return None
    wanted = str(shape.without_layout())
    if trees is not None and trees.results is not None:
        try:
            return list(trees.results.flatten_up_to(out))
        except (ValueError, TypeError) as error:
            raise InputError(
                f"out: {str(error).splitlines()[0]}", remedy=f"give what a call returns: {wanted}"
            ) from None
    return list(_placed(out, shape, "out"))


def _placed(out: Any, shape: Shape, path: str) -> Iterator[Any]:
    if shape.is_array:
        yield out
    elif shape.is_tuple and out is None:
        yield from (None for _, leaf in shape.leaves() if leaf.is_array)
    elif shape.is_tuple:
        if not isinstance(out, (tuple, list)) or len(out) != len(shape.elements):
            given = f"{len(out)} elements" if isinstance(out, (tuple, list)) else type(out).__name__
            raise InputError(
                f"{path}: expected a tuple of {len(shape.elements)}, given {given}",
                remedy="give an array, or None for a new one, for each result",
            )
        for n, (value, element) in enumerate(zip(out, shape.elements)):
            yield from _placed(value, element, f"{path}[{n}]")
    elif out is not None:
        raise InputError(f"{path} is a token, which has no array", remedy="give None in its place")


def donated_of(
    donate: Any, positional: Sequence[str], leaves: Sequence[Sequence[int]], keywords: Sequence[str] = ()
) -> frozenset[int]:
    """The numbers of the inputs of arguments. donate: a name or position, or several. leaves: the inputs of each
    positional argument, then of each keyword. Raises InputError.
    """
    names = [*positional, *keywords]
    chosen: set[int] = set()
    for wanted in [donate] if isinstance(donate, (str, int)) else donate:
        known = wanted in names if isinstance(wanted, str) else 0 <= wanted < len(positional)
        if not known:
            raise InputError(
                f"donate: the program has no argument {wanted!r}", remedy=f"its arguments: {', '.join(names) or 'none'}"
            )
        chosen.update(leaves[names.index(wanted) if isinstance(wanted, str) else wanted])
    return frozenset(chosen)


def is_leaf(tree: Any) -> bool:
    """Whether a PyTreeDef of JAX is one leaf."""
    return tree.num_leaves == 1 and tree.num_nodes == 1


def takes_inputs(trees: Trees | None) -> bool:
    """Whether positional arguments are the inputs themselves."""
    if trees is None:
        return True
    positional, keyword = trees.arguments.children()
    plain = all(is_leaf(tree) for tree in positional.children())
    return plain and not keyword.num_leaves and trees.kept == tuple(range(positional.num_leaves))


def result_form(shape: Shape, trees: Trees | None) -> str:
    """Whether a result is one 'array', a 'tuple' of arrays, or another 'tree'."""
    if trees is not None and trees.results is not None:
        tree = trees.results
        if is_leaf(tree):
            return "array"
        flat = tree.node_data() == (tuple, None) and all(map(is_leaf, tree.children()))
        return "tuple" if flat else "tree"
    if shape.is_array:
        return "array"
    return "tuple" if shape.is_tuple and all(element.is_array for element in shape.elements) else "tree"
