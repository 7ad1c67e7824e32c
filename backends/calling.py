"""Calling an executable like a function: arguments in, in JAX's order; results out, in the program's tree.

Arguments may be numpy arrays, Python numbers, buffers, DLPack objects (torch, JAX, cupy on the host) and pytrees of
them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from keyword import iskeyword
from typing import Any

from ..hlo.errors import InputError
from ..hlo.ir import Instruction, Module
from ..hlo.later import np
from ..hlo.shapes import Shape
from ..hlo.trees import Trees, children_of, leaves_of
from .arguments import Argument, array_of
from .call_options import DONATE, NO_OPTIONS, OUT, CallOptions, donated_of, outputs_of, result_form, takes_inputs

_PATH = re.compile(r"([A-Za-z_]\w*)((?:\[(?:'[^']*'|\"[^\"]*\"|-?\d+)\]|\.[A-Za-z_]\w*)*)")


class Calling:
    """How a program is called: its arguments, its results and their trees.

    Without JAX's trees, an argument stands for each parameter, a container for a tuple; any other nesting with the
    same leaves is taken, too. A result tuple is a tuple; a token is None. A token parameter takes no argument.
    """

    def __init__(self, module: Module, trees: Trees | None = None):
        self.name, self.trees = module.name, trees or module.trees
        taken = [p for p in module.entry.parameters if p.shape.is_array or p.shape.is_tuple]
        self.parameters = tuple(tuple(_arguments_of(p)) for p in taken)
        self.arguments = tuple(a for arguments in self.parameters for a in arguments)
        self.shapes, self.result_shape = tuple(p.shape for p in taken), module.result_shape
        self._forms = tuple((a.shape.dtype.numpy, a.shape.dims) for a in self.arguments)

    # -- arguments -----------------------------------------------------------------------------------------------------
    def leaves(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> list[np.ndarray]:
        """One array for each argument. Raises InputError that names the argument, what is expected and what is given.

        An array of the expected dtype and shape is passed on as it is.
        """
        if self.trees is None and not named and self._fits(given):
            return list(given)
        if self.trees is not None:
            values = self._from_jax_trees(self.trees, given, named)
        else:
            values = self._from_parameters(given, named)
        return [array_of(value, argument) for value, argument in zip(values, self.arguments, strict=True)]

    def _fits(self, given: Sequence[Any]) -> bool:
        """Whether these are the arrays that the program takes: the usual case, which must be fast."""
        if len(given) != len(self._forms):
            return False
        for value, (dtype, dims) in zip(given, self._forms):
            if type(value) is not np.ndarray or value.shape != dims or value.dtype != dtype:
                return False
        return True

    def _from_jax_trees(self, trees: Trees, given: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        from jax.dtypes import issubdtype, prng_key
        from jax.random import key_data
        from jax.tree_util import tree_flatten

        leaves, tree = tree_flatten((given, dict(named)))
        if tree != trees.arguments:
            raise self._wrong_tree(trees.arguments, given, named)
        kept = [leaves[n] for n in trees.kept]
        return [key_data(x) if issubdtype(getattr(x, "dtype", None), prng_key) else x for x in kept]

    def _wrong_tree(self, expected: Any, given: tuple[Any, ...], named: Mapping[str, Any]) -> InputError:
        """The error for arguments whose tree is not JAX's."""
        positional, keyword = expected.children()
        names, keys = self.argument_names, expected.children()[1].node_data()[1]
        takes = f"the program takes {self._wanted()}"
        if len(given) != len(names):
            return InputError(f"{takes}, given {_counted(len(given), 'positional one')}", remedy=self._call_text())
        if sorted(named) != list(keys):
            wrong = sorted(set(named) ^ set(keys))
            return InputError(f"{takes}; {', '.join(wrong)} is missing or not among them", remedy=self._call_text())
        pairs = [
            *zip(names, positional.children(), given),
            *((k, t, named[k]) for k, t in zip(keys, keyword.children())),
        ]
        for name, tree, value in pairs:
            found = _difference(tree, value, name)
            if found is not None:
                path, want, got = found
                return InputError(
                    f"argument {path}: expected {want}, given {got}",
                    remedy=f"give {name} the tree that it was lowered with",
                )
        return InputError(f"{takes}, in another tree", remedy=self._call_text())

    def _from_parameters(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        names = self.argument_names
        if named:
            given = self._in_order(given, named)
        labels = names if len(given) == len(names) else [f"argument {n}" for n in range(len(given))]
        found = [leaf for label, value in zip(labels, given) for leaf in leaves_of(value, label)]
        if len(found) == len(self.arguments):
            return [value for _, value in found]
        if len(given) != len(names):
            raise InputError(
                f"the program takes {self._wanted()}, given {_counted(len(given), 'argument')}",
                remedy=self._call_text(),
            )
        for label, value, wanted in zip(labels, given, self.parameters):
            count = sum(1 for _ in leaves_of(value, label))
            if count != len(wanted):
                shapes = ", ".join(str(a.shape.without_layout()) for a in wanted) or "no array"
                raise InputError(
                    f"argument {label}: expected {_counted(len(wanted), 'array')} ({shapes}), given {count}",
                    remedy="give an array for each leaf",
                )
        raise InputError(f"the program takes {self._wanted()}", remedy=self._call_text())

    def _in_order(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """Positional and named arguments in the order of the parameters."""
        names = self.argument_names
        rest = names[len(given) :]
        unknown = [name for name in named if name not in rest]
        missing = [name for name in rest if name not in named]
        if unknown or missing:
            wrong = f"no argument {unknown[0]!r} is left" if unknown else f"{missing[0]!r} is missing"
            raise InputError(f"the program takes {self._wanted()}: {wrong}", remedy=self._call_text())
        return (*given, *(named[name] for name in rest))

    # -- options -------------------------------------------------------------------------------------------------------
    def options(self, named: dict[str, Any]) -> CallOptions:
        """Take the options of a call out of its named arguments. An argument of the program of that name is no option.

        Raises InputError.
        """
        if OUT not in named and DONATE not in named:
            return NO_OPTIONS
        out = named.pop(OUT, None) if self.has_option(OUT) else None
        donate = named.pop(DONATE, ()) if self.has_option(DONATE) else ()
        outputs = outputs_of(out, self.result_shape, self.trees)
        return CallOptions(
            outputs, donated_of(donate, self.argument_names, self._leaves_of_arguments(), self._keywords)
        )

    def has_option(self, name: str) -> bool:
        return name not in self.argument_names and name not in self._keywords

    @cached_property
    def _keywords(self) -> list[str]:
        """Names of the keyword-only arguments."""
        return [name for name, _, is_named in self._rows() if is_named]

    def _leaves_of_arguments(self) -> list[list[int]]:
        """The numbers of the inputs of each argument, in the order of `_rows`."""
        if self.trees is None:
            counts, kept = [len(arguments) for arguments in self.parameters], tuple(range(len(self.arguments)))
        else:
            trees = [tree for group in self.trees.arguments.children() for tree in group.children()]
            counts, kept = [tree.num_leaves for tree in trees], self.trees.kept
        number = {leaf: n for n, leaf in enumerate(kept)}
        begins = [sum(counts[:n]) for n in range(len(counts))]
        return [[number[k] for k in range(b, b + c) if k in number] for b, c in zip(begins, counts)]

    @cached_property
    def takes_inputs(self) -> bool:
        """Whether positional arguments are the inputs themselves."""
        return takes_inputs(self.trees)

    @cached_property
    def result_form(self) -> str:
        """Whether the result is one 'array', a 'tuple' of arrays, or another 'tree'."""
        return result_form(self.result_shape, self.trees)

    # -- results -------------------------------------------------------------------------------------------------------
    def result(self, arrays: Sequence[np.ndarray]) -> Any:
        """The results in the program's tree: JAX's, or nested tuples."""
        if self.trees is not None and self.trees.results is not None:
            return self.trees.results.unflatten(arrays)
        if self.result_shape.is_array:
            return arrays[0]
        return _nested(self.result_shape, iter(arrays))

    # -- signature -----------------------------------------------------------------------------------------------------
    @cached_property
    def argument_names(self) -> list[str]:
        """Names of the positional arguments."""
        return [name for name, _, is_named in self._rows() if not is_named]

    def _rows(self) -> Iterator[tuple[str, str, bool]]:
        """(name, type, whether it is keyword-only) of each argument."""
        if self.trees is None:
            for name, shape in zip(self._parameter_names(), self.shapes, strict=True):
                yield name, str(shape.without_layout()), False
            return
        positional, keyword = self.trees.arguments.children()
        by_leaf = dict(zip(self.trees.kept, self.arguments, strict=True))
        begin = 0
        used: set[str] = set()
        for n, tree in enumerate(positional.children()):
            inside = [by_leaf.get(k) for k in range(begin, begin + tree.num_leaves)]
            begin += tree.num_leaves
            name = next((a.name for a in inside if a is not None), f"arg{n}")
            name = name if name.isidentifier() and name not in used else f"arg{n}"
            used.add(name)
            yield name, _tree_text(tree, inside), False
        for key, tree in zip(keyword.node_data()[1], keyword.children()):
            inside = [by_leaf.get(k) for k in range(begin, begin + tree.num_leaves)]
            begin += tree.num_leaves
            yield key, _tree_text(tree, inside), True

    def _parameter_names(self) -> list[str]:
        """A distinct identifier for each parameter."""
        names: list[str] = []
        for number, arguments in enumerate(self.parameters):
            name = arguments[0].name if arguments else ""
            good = name.isidentifier() and not iskeyword(name) and name not in names
            names.append(name if good else f"arg{number}")
        return names

    def signature(self) -> inspect.Signature:
        """Names of the arguments, annotated with shapes."""
        kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        rows = [inspect.Parameter(name, kinds[named], annotation=text) for name, text, named in self._rows()]
        return inspect.Signature(rows, return_annotation=self.result_text())

    def result_text(self) -> str:
        leaves = [s for _, s in self.result_shape.leaves() if s.is_array]
        if self.trees is not None and self.trees.results is not None:
            return _tree_text(self.trees.results, [Argument("", s) for s in leaves])
        return str(self.result_shape.without_layout())

    def text(self) -> str:
        """`name(x: f32[2], y: s32[]) -> f32[2]`, for messages and repr."""
        rows = []
        for name, kind, named in self._rows():
            rows += ["*"] * (named and "*" not in rows) + [f"{name}: {kind}"]
        return f"{self.name}({', '.join(rows)}) -> {self.result_text()}"

    def document(self) -> str:
        """A docstring: the signature, then a line for each array."""
        lines = [self.text(), "", "Arguments:"]
        lines += [f"    {a.path}: {_described(a.shape)}" for a in self.arguments] or ["    none"]
        lines += ["", "Returns:"]
        lines += [f"    {_described(s)}" for _, s in self.result_shape.leaves() if s.is_array] or ["    nothing"]
        lines += ["", "Takes numpy arrays, Python numbers, buffers, DLPack objects and pytrees of them.",
                  "Returns numpy arrays.",
                  "out=: arrays for the results; donate=: arguments that may be overwritten.",
                  "Raises InputError for an argument of another shape or type."]  # fmt: skip
        return "\n".join(lines)

    def _wanted(self) -> str:
        rows = [f"{name}: {kind}" for name, kind, _ in self._rows()]
        return f"{_counted(len(rows), 'argument')} ({', '.join(rows)})" if rows else "no arguments"

    def _call_text(self) -> str:
        rows = [f"{name}={name}" if named else name for name, _, named in self._rows()]
        return f"call it as executable({', '.join(rows)})"


def _arguments_of(parameter: Instruction) -> Iterator[Argument]:
    """An argument for each array of a parameter, called as in JAX if the metadata says how."""
    name = label_of(parameter)
    for index, leaf in parameter.shape.leaves():
        if leaf.is_array:
            yield Argument(name + "".join(f"[{n}]" for n in index), leaf)


def label_of(parameter: Instruction) -> str:
    """`params['w']` from the metadata that JAX writes, else the parameter's name."""
    if "metadata" not in parameter.attributes:
        return parameter.name
    from ..hlo.metadata import metadata_of

    label = metadata_of(parameter).get("op_name", "")
    return label if _PATH.fullmatch(label) else parameter.name


def _nested(shape: Shape, arrays: Iterator[np.ndarray]) -> Any:
    if shape.is_tuple:
        return tuple(_nested(element, arrays) for element in shape.elements)
    return next(arrays) if shape.is_array else None


class _Shown:
    """A leaf that prints as its shape."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _tree_text(tree: Any, leaves: Sequence[Argument | None]) -> str:
    """JAX's tree with a shape for each leaf; `unused` for an argument that the program does not read."""
    shown = [_Shown("unused" if a is None else str(a.shape.without_layout())) for a in leaves]
    try:
        return repr(tree.unflatten(shown))
    except Exception:  # a user's class that takes no such leaves
        return _bare(tree)


def _bare(tree: Any) -> str:
    return str(tree).removeprefix("PyTreeDef(").removesuffix(")")


def _difference(tree: Any, value: Any, path: str) -> tuple[str, str, str] | None:
    """Where a value's tree is not the expected one: path, expected, given; None if they are equal."""
    from jax.tree_util import tree_structure

    given = tree_structure(value)
    if given == tree:
        return None
    inside, children = given.children(), tree.children()
    steps = children_of(value, path)
    if steps is not None and given.node_data() == tree.node_data() and len(inside) == len(children) == len(steps):
        for (step, child), wanted in zip(steps, children):
            found = _difference(wanted, child, path + step)
            if found is not None:
                return found
    return path, _in_words(tree), _in_words(given)


def _in_words(tree: Any) -> str:
    text = _bare(tree)
    return {"*": "an array", "None": "None"}.get(text, f"the tree {text}")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _described(shape: Shape) -> str:
    sizes = "×".join(f"≤{n}" if shape.dynamic and shape.dynamic[d] else str(n) for d, n in enumerate(shape.dims))
    return f"{shape.without_layout()}, numpy {shape.dtype.numpy.name}" + (f" of {sizes}" if sizes else ", a scalar")
