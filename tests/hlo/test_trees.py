"""Pytrees are flattened in JAX's order."""

import importlib.util
from collections import OrderedDict, defaultdict, namedtuple

import pytest

from ...hlo.errors import InputError
from ...hlo.trees import leaves_of

Params = namedtuple("Params", "w b")


class Own(tuple):
    """A class that JAX does not know: a leaf."""


TREES = {
    "leaf": 1,
    "nothing": None,
    "dict": {"b": 1, "a": {"z": 2, "y": [3, (), 4]}, "c": None},
    "numbers as keys": {3: "x", 1: "y", 2: {}},
    "ordered": OrderedDict(b=1, a=2),
    "default": defaultdict(int, b=1, a=2),
    "named": Params(b=(1, 2), w={"k": Params(3, None)}),
    "own": [Own((1, 2)), 3],
}


@pytest.mark.xla
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs ./testbed setup --xla")
@pytest.mark.parametrize("name", TREES)
def test_leaves_and_paths_are_those_of_jax(name):
    from jax.tree_util import keystr, tree_flatten_with_path

    wanted = [(keystr(path), leaf) for path, leaf in tree_flatten_with_path(TREES[name])[0]]
    assert list(leaves_of(TREES[name])) == wanted


def test_a_dict_is_sorted_and_none_is_empty():
    found = list(leaves_of({"b": 1, "a": [2, None, Params(3, 4)]}, "x"))
    assert found == [("x['a'][0]", 2), ("x['a'][2].w", 3), ("x['a'][2].b", 4), ("x['b']", 1)]


def test_keys_without_an_order_are_refused():
    with pytest.raises(InputError, match=r"the keys of the dict at x\[0\] have no order: int, str"):
        list(leaves_of([{1: 2, "a": 3}], "x"))
