"""The inputs that a command runs on: from --inputs, --input, --init and --seed, else the program's own, else seed 0."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from .params import FILE

if TYPE_CHECKING:
    import numpy as np

    from ..hlo.ir import Instruction, Module

KINDS = ("ones", "iota", "random", "nan", "zeros")
"""differential/filled_inputs.py makes them; its own list is not imported, so that --help stays fast."""

SEEDED = ("random", "nan")
"""Kinds that draw numbers."""


class HasInputs(Protocol):
    """A program with the inputs and the expected results that came with it."""

    @property
    def name(self) -> str: ...
    @property
    def module(self) -> Module: ...
    @property
    def inputs(self) -> tuple[np.ndarray, ...] | None: ...
    @property
    def expected(self) -> tuple[np.ndarray, ...] | None: ...


@dataclass(frozen=True)
class Values:
    """Input leaves, the results that came with them (None if none did), and where they are from, in words."""

    inputs: list[np.ndarray]
    expected: list[np.ndarray] | None
    origin: str


@dataclass(frozen=True)
class Inputs:
    """What a command line says of inputs. file: --inputs. literals: --input. init: --init."""

    file: str | None = None
    seed: int | None = None
    literals: tuple[str, ...] = ()
    init: str | None = None

    @property
    def options(self) -> list[str]:
        """The options that were given."""
        given = (("--inputs", self.file), ("--input", self.literals), ("--init", self.init))
        return [name for name, value in given if value] + (["--seed"] if self.seed is not None else [])

    @property
    def are_drawn(self) -> bool:
        """Whether another iteration can draw other values."""
        return self.file is None and self.init in (None, *SEEDED)

    def check(self) -> None:
        """Raises UsageError for options that exclude each other."""
        given = self.options
        if self.file is not None and len(given) > 1:
            raise click.UsageError(f"--inputs and {given[1]} exclude each other")
        if self.seed is not None and self.init is not None and self.init not in SEEDED:
            raise click.UsageError(f"--init {self.init} and --seed exclude each other")

    def values(self, program: HasInputs, iteration: int = 0, *, expected: bool = True) -> Values:
        """The values of an iteration, counted from 0: what is drawn comes from the seed + iteration.

        expected: read the results in the file or folder, too.
        """
        if self.file is not None:
            return _from_file(program, self.file, expected)
        if not self.options and iteration == 0 and program.inputs is not None:
            results = None if program.expected is None else list(program.expected)
            return Values(list(program.inputs), results, "the module's own")
        seed = (self.seed or 0) + iteration
        arrays, origin = self._made(program, seed)
        if self.literals:
            arrays = _with_literals(program, self.literals, arrays, self.init is not None or self.seed is not None)
            origin = "--input" if self.init is None and self.seed is None else f"--input and {origin}"
        return Values(arrays, None, origin)

    def _made(self, program: HasInputs, seed: int) -> tuple[list[np.ndarray], str]:
        from ..differential.filled_inputs import filled_inputs

        drawn = f"seed {seed}"
        kind = self.init or "random"
        words = drawn if kind == "random" else f"--init {kind}" + (f", {drawn}" if kind in SEEDED else "")
        return filled_inputs(program.module, kind, seed), words


def _from_file(program: HasInputs, file: str, expected: bool) -> Values:
    from ..formats.arrays import load_io

    module = program.module
    parameters = [leaf for shape in module.parameter_shapes for _, leaf in shape.leaves() if leaf.is_array]
    leaves = [leaf for _, leaf in module.result_shape.leaves() if leaf.is_array] if expected else None
    arrays, results = load_io(Path(file), parameters, leaves)
    return Values(list(arrays), None if results is None else list(results), file)


_NAMED = re.compile(r"\s*%?([A-Za-z_][\w.\-]*)\s*=")


def _with_literals(
    program: HasInputs, literals: tuple[str, ...], made: list[np.ndarray], rest_is_made: bool
) -> list[np.ndarray]:
    """`made` with the values of --input: by name where the text begins with NAME=, the others in order."""
    from ..formats.text.parse_value import array_leaves, parse_value
    from ..hlo.errors import InputError

    parameters = program.module.entry.parameters
    given: dict[Instruction, list[np.ndarray]] = {}
    unnamed: list[tuple[int, str]] = []
    for number, text in enumerate(literals, 1):
        if (named := _NAMED.match(text)) is None:
            unnamed.append((number, text))
            continue
        parameter = _by_name(program, named[1], f"--input {number}")
        if parameter in given:
            raise InputError(f"--input {number}: a second value for {named[1]}", remedy="give one")
        blank = " " * named.end()  # so that columns in errors count from the beginning
        literal = parse_value(blank + text[named.end() :], parameter.shape, f"--input {number}")
        given[parameter] = [leaf.array for leaf in array_leaves(literal)]
    free = [p for p in parameters if p not in given]
    if len(unnamed) > len(free):
        raise InputError(
            f"--input {unnamed[len(free)][0]}: a value too many; {program.name} has {len(parameters)} parameters",
            remedy=", ".join(f"{p.name}: {p.shape.without_layout()}" for p in parameters) or "leave it out",
        )
    for parameter, (number, text) in zip(free, unnamed):
        literal = parse_value(text, parameter.shape, f"--input {number}")
        given[parameter] = [leaf.array for leaf in array_leaves(literal)]
    if not rest_is_made and (missing := [p for p in parameters if p not in given]):
        first = missing[0]
        raise InputError(
            f"no value for parameter {first.name} of shape {first.shape.without_layout()}",
            remedy=f"add --input '{first.name}=…', or --init or --seed for the rest",
        )
    queue, result = iter(made), []
    for parameter in parameters:
        own = [next(queue) for _, leaf in parameter.shape.leaves() if leaf.is_array]
        result += given.get(parameter, own)
    return result


def _by_name(program: HasInputs, name: str, where: str) -> Instruction:
    from ..formats.text.lexer import near
    from ..hlo.errors import InputError

    names = {p.name: p for p in program.module.entry.parameters}
    if name not in names:
        known = f"the parameters are {', '.join(names)}" if names else "the module has no parameters"
        raise InputError(f"{where}: no parameter named {name}", remedy=near(name, names) or known)
    return names[name]


def input_options(use: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the options to a command, which gets them as one argument, `inputs: Inputs`. use: what they are for."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def wrapper(*arguments: Any, **options: Any) -> Any:
            inputs = Inputs(options.pop("inputs"), options.pop("seed"), options.pop("literals"), options.pop("init"))
            inputs.check()
            return command(*arguments, inputs=inputs, **options)

        for option in reversed(_OPTIONS):
            name, settings = option
            wrapper = click.option(*name, **{**settings, "help": settings["help"] + use})(wrapper)
        return wrapper

    return decorate


_OPTIONS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("--inputs",), {"metavar": "IO.NPZ", "type": FILE, "help": "Inputs: in0, in1, …, one per parameter leaf."}),
    (
        ("--input", "literals"),
        {
            "multiple": True,
            "metavar": "[NAME=]LITERAL",
            "help": "The value of a parameter as HLO writes it, such as 'f32[2] {1,2}', or 'p = {1,2}'. Repeatable.",
        },
    ),
    (("--init",), {"type": click.Choice(KINDS), "help": "Fill the parameters with values of one kind instead."}),
    (
        ("--seed",),
        {
            "type": click.IntRange(0),
            "metavar": "N",
            "help": "Draw inputs from a seed, constrained as XLA's fake arguments.",
        },
    ),
)
