"""HLO as frozen values: Literal, Instruction, Computation, Module. Rewrites build new values, never change old ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

from .display import Displayed
from .errors import InputError, Location
from .later import np
from .opcodes import Op
from .records import dataclass, field
from .shapes import Shape
from .trees import Trees

NO_ATTRIBUTES: Mapping[str, Any] = MappingProxyType({})

HASHED = 16
"""Elements of a literal that its hash reads, at most."""


@dataclass(frozen=True, eq=False)
class Literal:
    """A constant. `value`: a read-only array in logical (row-major) order, a tuple of Literals, or None for a token."""

    shape: Shape
    value: np.ndarray | tuple[Literal, ...] | None

    @property
    def array(self) -> np.ndarray:
        """The elements of an array literal. Raises InputError if the text elided them (`{...}`)."""
        if self.is_elided:
            raise InputError(
                f"the constant of shape {self.shape} was elided as {{...}} and has no value",
                remedy="dump the module with large constants printed (xla_dump_large_constants)",
            )
        assert isinstance(self.value, np.ndarray), f"{self.shape} is not an array literal"
        return self.value

    @property
    def is_elided(self) -> bool:
        """Whether the text elided the elements (`{...}`)."""
        return self.value is None and self.shape.is_array

    @property
    def is_splat(self) -> bool:
        """Whether the array stores one number for all its elements (all strides are 0)."""
        v = self.value
        return isinstance(v, np.ndarray) and v.ndim > 0 and v.size > 1 and not any(v.strides)

    def _key(self) -> object:
        v = self.value
        if not isinstance(v, np.ndarray):
            return v
        return ("splat", v[(0,) * v.ndim].tobytes()) if self.is_splat else v.tobytes()

    def __eq__(self, other: object) -> bool:
        """Whether shape and bits are equal: NaN payloads and the sign of zero count."""
        if not isinstance(other, Literal) or self.shape != other.shape:
            return False
        if (
            self.is_splat != other.is_splat
            and isinstance(self.value, np.ndarray)
            and isinstance(other.value, np.ndarray)
        ):
            return self.value.tobytes() == other.value.tobytes()
        return self._key() == other._key()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy keeps the array read-only, and one number for all elements stays one."""
        v = self.value
        if not isinstance(v, np.ndarray):
            return Literal, (self.shape, v)
        return _read_only, (self.shape, v[(slice(1),) * v.ndim].reshape(()) if self.is_splat else v, v.shape)

    def __hash__(self) -> int:
        """Hash shape and elements, of a large array on its diagonal: many constants are of few shapes."""
        v = self.value
        if not isinstance(v, np.ndarray) or not v.size:
            return hash(self.shape)
        if v.size <= HASHED:
            return hash((self.shape, v.tobytes()))
        places = (tuple(n * (d - 1) // (HASHED - 1) for d in v.shape) for n in range(HASHED))
        return hash((self.shape, *(v[place].tobytes() for place in places)))


def _read_only(shape: Shape, value: np.ndarray, dims: tuple[int, ...]) -> Literal:
    return Literal(shape, np.broadcast_to(value, dims))


@dataclass(frozen=True, eq=False, slots=True)
class Instruction:
    """One HLO instruction. Instructions compare by identity; equality.py compares the structure of modules.

    `operands` are the instructions themselves. `attributes` maps an attribute's name in HLO text to a frozen
    value (the possible values: attributes.py); called computations are among them (`to_apply`, `calls`, `body`, …).
    Two attributes have no name in text: `literal` (a Literal, on constants) and `parameter_number` (an int, on
    parameters).
    """

    opcode: Op
    name: str
    shape: Shape
    operands: tuple[Instruction, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=lambda: NO_ATTRIBUTES)
    location: Location | None = None

    def __repr__(self) -> str:
        return f"<{self.name} = {self.shape} {self.opcode.value}({', '.join(o.name for o in self.operands)})>"

    @property
    def literal(self) -> Literal:
        return self.attributes["literal"]

    @property
    def parameter_number(self) -> int:
        return self.attributes["parameter_number"]

    @property
    def dimensions(self) -> tuple[int, ...]:
        return self.attributes.get("dimensions", ())

    def called(self) -> tuple[Computation, ...]:
        """Computations that this instruction calls, in a fixed order."""
        if not self.attributes or _CALLING.isdisjoint(self.attributes):
            return ()
        if self.opcode is Op.FUSION and isinstance(body := self.attributes.get("calls"), Computation):
            return (body,)  # a shortcut: most calling instructions are fusions
        keys = _CALLING.intersection(self.attributes)
        found: list[Computation] = []
        for key in keys if len(keys) < 2 else [k for k in CALLING_ATTRIBUTES if k in keys]:
            value = self.attributes[key]
            if isinstance(value, Computation):
                found.append(value)
            elif isinstance(value, tuple):
                found.extend(v for v in value if isinstance(v, Computation))
        return tuple(found)

    def replace(self, **changes: Any) -> Instruction:
        """A copy with some fields changed. Raises TypeError for an unknown field."""
        take = changes.pop
        made = Instruction(
            take("opcode", self.opcode),
            take("name", self.name),
            take("shape", self.shape),
            take("operands", self.operands),
            take("attributes", self.attributes),
            take("location", self.location),
        )
        if changes:
            raise TypeError(f"an instruction has no field {', '.join(changes)}")
        return made


CONTROL_PREDECESSORS = "control-predecessors"

CALLING_ATTRIBUTES = (
    "to_apply",
    "calls",
    "condition",
    "body",
    "true_computation",
    "false_computation",
    "branch_computations",
    "called_computations",
    "select",
    "scatter",
)
_CALLING = frozenset(CALLING_ATTRIBUTES)


@dataclass(frozen=True, eq=False)
class Computation(Displayed):
    """A named list of instructions in a topological order (the schedule, if the module is scheduled)."""

    name: str
    instructions: tuple[Instruction, ...]
    root: Instruction
    attributes: Mapping[str, Any] = field(default_factory=lambda: NO_ATTRIBUTES)  # e.g. execution_thread

    def __repr__(self) -> str:
        return f"<computation {self.name}: {len(self.instructions)} instructions>"

    @cached_property
    def parameters(self) -> tuple[Instruction, ...]:
        """The parameters, sorted by number."""
        return tuple(
            sorted((i for i in self.instructions if i.opcode is Op.PARAMETER), key=lambda i: i.parameter_number)
        )

    @cached_property
    def users(self) -> Mapping[Instruction, tuple[Instruction, ...]]:
        """Each instruction's users in this computation, each once, in the order of instructions."""
        table: dict[Instruction, dict[Instruction, None]] = {i: {} for i in self.instructions}
        for user in self.instructions:
            for operand in user.operands:
                table[operand][user] = None
        return {i: tuple(u) for i, u in table.items()}

    @cached_property
    def by_name(self) -> Mapping[str, Instruction]:
        return {i.name: i for i in self.instructions}

    @cached_property
    def opcodes(self) -> frozenset[Op]:
        """The opcodes that occur. A pass that rewrites none of them can skip the computation."""
        return frozenset([i.opcode for i in self.instructions])

    @cached_property
    def calling(self) -> tuple[Instruction, ...]:
        """The instructions that call computations."""
        return tuple([i for i in self.instructions if i.attributes and i.called()])

    @cached_property
    def pinned(self) -> frozenset[str]:
        """Names of the instructions that are a control predecessor of another."""
        tied = [i.attributes[CONTROL_PREDECESSORS] for i in self.instructions if CONTROL_PREDECESSORS in i.attributes]
        return frozenset(n for names in tied for n in names)

    @cached_property
    def unread(self) -> tuple[Instruction, ...]:
        """The instructions that are not an operand of any other, without the root."""
        read = {self.root}
        for i in self.instructions:
            read.update(i.operands)
        return tuple([i for i in self.instructions if i not in read])


@dataclass(frozen=True, eq=False)
class Module(Displayed):
    """A whole HLO module. `computations` are ordered callees first; `entry` is one of them.

    `attributes` are those of the header, by their names in text: `is_scheduled`, `entry_computation_layout`, ….
    `trees`: how JAX passes arguments and results; None if the module is not from JAX, or a pass made it.
    """

    name: str
    computations: tuple[Computation, ...]
    entry: Computation
    attributes: Mapping[str, Any] = field(default_factory=dict)
    trees: Trees | None = None

    def __repr__(self) -> str:
        return f"<module {self.name}: {len(self.computations)} computations>"

    @property
    def parameter_shapes(self) -> tuple[Shape, ...]:
        return tuple(p.shape for p in self.entry.parameters)

    @property
    def result_shape(self) -> Shape:
        return self.entry.root.shape

    @cached_property
    def opcodes(self) -> frozenset[Op]:
        """The opcodes that occur in any computation."""
        return frozenset().union(*(c.opcodes for c in self.computations))

    def instructions(self) -> Iterator[Instruction]:
        for computation in self.computations:
            yield from computation.instructions

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and deepcopy: lists with numbers in place of references, as a chain of operands can be long."""
        place = {c: n for n, c in enumerate(self.computations)}
        rows = [_computation_row(c, place) for c in self.computations]
        return _rebuilt, (self.name, rows, place[self.entry], dict(self.attributes), self.trees)


@dataclass(frozen=True, slots=True)
class _Callee:
    """Stands for the computation of this number in a copied module."""

    number: int


def _computation_row(computation: Computation, place: Mapping[Computation, int]) -> tuple[Any, ...]:
    number = {i: n for n, i in enumerate(computation.instructions)}

    def flat(value: Any) -> Any:
        if isinstance(value, Computation):
            return _Callee(place[value])
        return tuple(map(flat, value)) if type(value) is tuple else value

    rows = [
        (
            *(i.opcode, i.name, i.shape, [number[o] for o in i.operands]),
            *({k: flat(v) for k, v in i.attributes.items()}, i.location),
        )
        for i in computation.instructions
    ]
    return computation.name, rows, number[computation.root], dict(computation.attributes)


def _rebuilt(name: str, rows: list[Any], entry: int, attributes: dict[str, Any], trees: Trees | None = None) -> Module:
    """The module of the rows that `Module.__reduce__` makes."""
    made: list[Computation] = []

    def whole(value: Any) -> Any:
        if isinstance(value, _Callee):
            return made[value.number]
        return tuple(map(whole, value)) if type(value) is tuple else value

    for title, instructions, root, own in rows:
        body: list[Instruction] = []
        for opcode, label, shape, operands, values, location in instructions:
            kept = MappingProxyType({k: whole(v) for k, v in values.items()}) if values else NO_ATTRIBUTES
            body.append(Instruction(opcode, label, shape, tuple([body[n] for n in operands]), kept, location))
        made.append(Computation(title, tuple(body), body[root], MappingProxyType(own)))
    return Module(name, tuple(made), made[entry], MappingProxyType(attributes), trees)


def rewrite(
    computation: Computation, change: Callable[[Instruction], Instruction | None], name: str | None = None
) -> Computation:
    """Rebuild a computation: `change` gets each instruction with its operands already rebuilt.

    It returns a replacement (which may be one of the instruction's operands, or any instruction already rebuilt),
    or None to keep the instruction. A change that needs helper instructions must use `expand` instead.
    """
    return expand(computation, lambda i, _: change(i), name)


def expand(
    computation: Computation,
    change: Callable[[Instruction, Callable[[Instruction], Instruction]], Instruction | None],
    name: str | None = None,
) -> Computation:
    """Like `rewrite`, but `change(instruction, add)` may first `add` helper instructions, in topological order."""
    moved: dict[Instruction, Instruction] = {}  # old → new, for replaced instructions only
    out: dict[Instruction, None] = {}

    def add(instruction: Instruction) -> Instruction:
        out[instruction] = None
        return instruction

    for old in computation.instructions:
        base = old
        if moved:
            operands = tuple([moved.get(o, o) for o in old.operands])
            base = old if operands == old.operands else old.replace(operands=operands)
        result = change(base, add) or base
        out[result] = None
        if result is not old:
            moved[old] = result
    root = moved.get(computation.root, computation.root)
    return Computation(name or computation.name, tuple(out), root, computation.attributes)
