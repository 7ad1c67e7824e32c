"""The oracle: evaluates a module in NumPy, instruction by instruction, by the functions in the table RULES.

A computation is turned once into a list of steps (function, operand slots, result slot, slots that are no longer
needed), so that a loop of thousands of iterations looks up each function once. No function may write to an operand.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from ..hlo.analysis.nesting import make_room
from ..hlo.conventions import FIRST_STATE
from ..hlo.dtypes import FROM_NUMPY
from ..hlo.dynamic_border import DynamicBorder
from ..hlo.errors import InputError, OutOfMemoryError, UnsupportedError
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opcodes import Op
from ..hlo.opset import BINARY, OPSET
from ..hlo.records import dataclass, field
from ..hlo.shapes import Shape
from .lockstep import World
from .reference.context import Pending, Value
from .reference.custom_calls import CustomCall, run_custom_call
from .reference.float_environment import flushing_subnormals
from .reference.lifting import lift
from .reference.shape import crop
from .rules import RULES, Form, Rules

Step = tuple[Callable[..., Value], tuple[int, ...], int, tuple[int, ...]]
Adjust = Callable[[Instruction, Callable[..., Value]], Callable[..., Value]]


def _as_it_is(_instruction: Instruction, run: Callable[..., Value]) -> Callable[..., Value]:
    return run


def evaluate(
    module: Module,
    inputs: Sequence[np.ndarray],
    *,
    flush_subnormals: bool = True,
    seed: int = 0,
    custom_calls: Mapping[str, CustomCall] | None = None,
    infeed: Iterable[Value] = (),
    outfeed: list[Value] | None = None,
    adjust: Adjust | None = None,
    rules: Rules = RULES,
) -> list[np.ndarray]:
    """The array leaves of the result, with tuples flattened in order.

    inputs: one array per array leaf of the entry parameters, in logical order. flush_subnormals: treat subnormal
    numbers as zero, as XLA:CPU does. seed: key of the random numbers. custom_calls: functions of targets that the
    evaluator does not know. infeed: values in the order in which they are read. outfeed: a list that gets the values
    written. adjust: gives the function that takes the place of an instruction's own. rules: the meaning of each opcode.
    Raises InputError for inputs that
    do not fit and UnsupportedError for an opcode without a rule.
    """
    evaluator = Evaluator(
        seed=seed,
        custom_calls=custom_calls or {},
        infeed=list(infeed),
        outfeed=outfeed if outfeed is not None else [],
        adjust=adjust or _as_it_is,
        rules=rules,
    )
    return evaluator.run(module, _arguments(module, inputs), flush_subnormals)


def evaluate_replicated(
    module: Module,
    inputs: Sequence[Sequence[np.ndarray]],
    *,
    replicas: int | None = None,
    partitions: int | None = None,
    flush_subnormals: bool = True,
    seed: int = 0,
    custom_calls: Mapping[str, CustomCall] | None = None,
    infeeds: Sequence[Iterable[Value]] | None = None,
    outfeeds: Sequence[list[Value]] | None = None,
) -> list[list[np.ndarray]]:
    """`evaluate` on replicas × partitions simulated devices, which exchange values at collectives; the results of each.

    inputs: one list of leaves per device; device number = replica · partitions + partition. Counts that are not given
    come from the module's header (replica_count, num_partitions), else they are 1. infeeds, outfeeds: one per device.
    Raises CollectiveError if devices wait for each other forever or meet at different collectives.
    """
    world = World(
        int(module.attributes.get("replica_count", 1)) if replicas is None else replicas,
        int(module.attributes.get("num_partitions", 1)) if partitions is None else partitions,
    )
    sizes = f"{world.replicas} replicas × {world.partitions} partitions"
    if world.replicas < 1 or world.partitions < 1:
        raise InputError(f"there is no device: {sizes}", remedy="give at least one of each")
    count = world.replicas * world.partitions
    for what, given in (("lists of inputs", inputs), ("infeeds", infeeds), ("outfeeds", outfeeds)):
        if given is not None and len(given) != count:
            raise InputError(f"{len(given)} {what} for {count} devices ({sizes})", remedy="give one for each device")
    programs = []
    for device in range(count):
        feeds = list(infeeds[device]) if infeeds else [], outfeeds[device] if outfeeds else []
        evaluator = Evaluator(seed, custom_calls or {}, *feeds, device=device, world=world)
        programs.append(partial(evaluator.run, module, _arguments(module, inputs[device]), flush_subnormals))
    return world.turns.run(programs)


def _arguments(module: Module, inputs: Sequence[np.ndarray]) -> list[Value]:
    """One value per parameter, after checking each leaf."""
    border = DynamicBorder.of(module)
    inputs = inputs if border is None else border.padded(inputs)
    leaves = [(p, index, shape) for p in module.entry.parameters for index, shape in p.shape.leaves() if shape.is_array]
    if len(inputs) != len(leaves):
        raise InputError(f"{module.name} takes {len(leaves)} inputs (tuples count by leaf), {len(inputs)} given")
    arrays = iter(
        [
            _check(n, leaf, shape, np.asarray(x))
            for n, ((leaf, _, shape), x) in enumerate(zip(leaves, inputs, strict=True))
        ]
    )
    return [_build(p.shape, arrays) for p in module.entry.parameters]


def _check(number: int, parameter: Instruction, shape: Shape, x: np.ndarray) -> np.ndarray:
    wanted = f"{shape.dtype.value}[{','.join(map(str, shape.dims))}]"
    given = FROM_NUMPY.get(x.dtype)
    if given is not shape.dtype or not shape.holds(x.shape):
        name = given.value if given else str(x.dtype)
        got = f"{name}[{','.join(map(str, x.shape))}]"
        raise InputError(f"input {number} ({parameter.name}) must be {wanted}, got {got}", location=parameter.location)
    return x


def _build(shape: Shape, arrays) -> Value:
    if shape.is_tuple:
        return tuple(_build(e, arrays) for e in shape.elements)
    return next(arrays) if shape.is_array else None


def _flatten(value: Value, shape: Shape) -> Iterable[np.ndarray]:
    value = value.result() if isinstance(value, Pending) else value
    if shape.is_tuple:
        for element, element_shape in zip(value, shape.elements, strict=True):
            yield from _flatten(element, element_shape)
    elif shape.is_array:
        yield np.array(value, order="C")  # a copy: results never alias inputs


@dataclass(eq=False)
class Prepared:
    """A computation prepared for evaluation: steps over numbered slots, one slot per instruction.

    start: the slots before the first step: constants, None for all others. parameters: parameter number → slot.
    root: the slot of the result. pointwise: the steps also work on whole arrays in place of scalars.
    """

    start: tuple[Value, ...]
    parameters: tuple[int, ...]
    steps: tuple[Step, ...]
    root: int
    pointwise: bool


@dataclass(eq=False)
class Evaluator:
    """One evaluation on one device: prepared computations, infeed and outfeed, other devices. It implements Context."""

    seed: int = 0
    custom_calls: Mapping[str, CustomCall] = field(default_factory=dict)
    infeed: list[Value] = field(default_factory=list)
    outfeed: list[Value] = field(default_factory=list)
    device: int = 0
    world: World = field(default_factory=World)
    prepared: dict[Computation, Prepared] = field(default_factory=dict)
    rng_state: int = FIRST_STATE
    adjust: Adjust = _as_it_is
    rules: Rules = field(default_factory=lambda: RULES)

    def run(self, module: Module, arguments: Sequence[Value], flush_subnormals: bool) -> list[np.ndarray]:
        """The array leaves of the entry's result."""
        make_room(module)
        with flushing_subnormals(flush_subnormals), np.errstate(all="ignore"):
            result = self.call(module.entry, arguments)
            leaves = list(_flatten(result, module.result_shape))
        border = DynamicBorder.of(module)
        return leaves if border is None else border.cut(leaves)

    @property
    def has_ufuncs(self) -> bool:
        return self.rules is RULES

    # --- Context -----------------------------------------------------------------------------------------------------
    @property
    def rng_key(self) -> int:
        return self.seed & 0xFFFFFFFF | self.device << 32

    def call(self, computation: Computation, arguments: Sequence[Value]) -> Value:
        prepared = self.prepared.get(computation) or self.prepare(computation)
        slots = list(prepared.start)
        for slot, argument in zip(prepared.parameters, arguments, strict=True):
            slots[slot] = argument
        result = -1
        try:
            for run, operands, result, dead in prepared.steps:
                slots[result] = run(*[slots[o] for o in operands])
                for slot in dead:
                    slots[slot] = None
        except MemoryError as error:
            raise _no_memory(computation.instructions[result]) from error
        return slots[prepared.root]

    def vectorise(self, computation: Computation, arguments: Sequence[np.ndarray]) -> Value:
        prepared = self.prepared.get(computation) or self.prepare(computation)
        if prepared.pointwise:
            return self.call(computation, arguments)
        spread = np.broadcast_arrays(*arguments)
        results = [
            self.call(computation, [x[index] if x.ndim else x for x in spread]) for index in np.ndindex(spread[0].shape)
        ]
        shape = computation.root.shape
        leaves = shape.elements if shape.is_tuple else (shape,)
        columns = [[r[k] if shape.is_tuple else r for r in results] for k in range(len(leaves))]
        out = tuple(
            np.array(column, leaf.dtype.numpy).reshape(spread[0].shape)
            for column, leaf in zip(columns, leaves, strict=True)
        )
        return out if shape.is_tuple else out[0]

    def custom_call(self, instruction: Instruction, operands: Sequence[Value]) -> Value:
        return run_custom_call(instruction, operands, self, self.custom_calls)

    def read_infeed(self) -> Value:
        if not self.infeed:
            raise InputError("the module reads an infeed that is empty", remedy="pass evaluate(..., infeed=[value, …])")
        return self.infeed.pop(0)

    def write_outfeed(self, value: Value) -> None:
        self.outfeed.append(value)

    # --- other devices -----------------------------------------------------------------------------------------------
    @property
    def replicas(self) -> int:
        return self.world.replicas

    @property
    def partitions(self) -> int:
        return self.world.partitions

    @property
    def name(self) -> str:
        return self.world.name(self.device)

    def name_of(self, device: int) -> str:
        return self.world.name(device)

    def meet(self, instruction: Instruction, members: tuple[int, ...], value: Value) -> Pending:
        return self.world.meet(self.device, instruction, members, value)

    def post(self, address: Hashable, value: Value) -> None:
        self.world.post(address, value)

    def collect(self, instruction: Instruction, addresses: Sequence[Hashable], what: str) -> Value:
        return self.world.collect(self.device, instruction, addresses, what)

    # --- preparing computations ---------------------------------------------------------------------------------------
    def prepare(self, computation: Computation) -> Prepared:
        slot = {instruction: n for n, instruction in enumerate(computation.instructions)}
        last: dict[int, int] = {}
        for n, instruction in enumerate(computation.instructions):
            last[n] = n
            for operand in instruction.operands:
                last[slot[operand]] = n
        dying: dict[int, list[int]] = {}
        for dead, at in last.items():
            if dead != slot[computation.root]:
                dying.setdefault(at, []).append(dead)
        steps = tuple(
            (self.adjust(i, self.step(i)), tuple(slot[o] for o in i.operands), n, tuple(dying.get(n, ())))
            for n, i in enumerate(computation.instructions)
            if i.opcode not in (Op.PARAMETER, Op.CONSTANT)
        )
        constant = self.rules[Op.CONSTANT].function
        start = tuple(constant(i, (), self) if i.opcode is Op.CONSTANT else None for i in computation.instructions)
        pointwise = all(self.is_pointwise(i) for i in computation.instructions)
        prepared = Prepared(
            start, tuple(slot[p] for p in computation.parameters), steps, slot[computation.root], pointwise
        )
        self.prepared[computation] = prepared
        return prepared

    def step(self, instruction: Instruction) -> Callable[..., Value]:
        """The function that computes an instruction from its operands' values."""
        reference = self.rules.get(instruction.opcode)
        if reference is None:
            raise UnsupportedError(
                "evaluator",
                instruction.opcode.value,
                location=instruction.location,
                remedy=f"add {instruction.opcode!r} to RULES in evaluator/rules.py",
            )
        if instruction.opcode in SCALAR_IDENTITIES and _scalars(instruction):
            return _first
        function = reference.function
        if reference.form is Form.RULE:
            context = self
            return lambda *operands: function(instruction, operands, context)
        run = (
            lift(function, instruction, precise=reference.precise)
            if reference.form is Form.NUMPY
            else partial(function, instruction)
        )
        if not any(o.shape.is_dynamic for o in instruction.operands):
            return run
        return _stretched(instruction, _cropped(run)) if instruction.opcode in BINARY else _cropped(run)

    def is_pointwise(self, instruction: Instruction) -> bool:
        """Whether the step of an instruction on scalars also works on whole arrays, element by element."""
        opcode = instruction.opcode
        if opcode in (Op.CALL, Op.FUSION):
            return all((self.prepared.get(c) or self.prepare(c)).pointwise for c in instruction.called())
        if opcode in (Op.TUPLE, Op.GET_TUPLE_ELEMENT, Op.PARAMETER):
            return all(leaf.rank == 0 for _, leaf in instruction.shape.leaves())
        if OPSET[opcode].elementwise or opcode is Op.CONSTANT or opcode in SCALAR_IDENTITIES:
            return _scalars(instruction)
        return False


SCALAR_IDENTITIES = frozenset({Op.BROADCAST, Op.RESHAPE, Op.COPY, Op.TRANSPOSE})
"""Opcodes that return a scalar operand unchanged."""


def _scalars(instruction: Instruction) -> bool:
    return all(s.is_array and s.rank == 0 for s in (instruction.shape, *[o.shape for o in instruction.operands]))


def _no_memory(instruction: Instruction) -> OutOfMemoryError:
    """The error of an instruction whose result, or what its function needs besides, does not fit into memory."""
    what = f"{instruction.opcode.value} {instruction.name}, {instruction.shape.without_layout()},"
    size = sum(leaf.bytes for _, leaf in instruction.shape.leaves() if leaf.is_array)
    return OutOfMemoryError(what, size, location=instruction.location)


def _first(operand: Value, *_rest: Value) -> Value:
    return operand


def _cropped(run: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Crop operands of equal bounds to the smallest of their present sizes: the rest is padding."""
    return lambda *operands: run(*crop(operands))


_SIZING = frozenset({Op.SET_DIMENSION_SIZE, Op.DYNAMIC_RESHAPE, Op.CUSTOM_CALL, Op.GET_TUPLE_ELEMENT, Op.PARAMETER})


def _is_full(i: Instruction, dimension: int) -> bool:
    """Whether a dimension has its full bound although it may be declared dynamic, e.g. in a broadcast of a scalar."""
    if not i.shape.dynamic or not i.shape.dynamic[dimension]:
        return True
    if i.opcode in _SIZING or i.called():
        return False
    if i.opcode is Op.BROADCAST:
        return dimension not in i.dimensions or _is_full(i.operands[0], i.dimensions.index(dimension))
    return all(_is_full(o, d) for o in i.operands for d in range(o.shape.rank))


def _stretched(instruction: Instruction, run: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Where both sides are dynamic, size 1 on one side is broadcast to the other side's size, as in XLA."""
    both = [d for d in range(instruction.shape.rank) if not any(_is_full(o, d) for o in instruction.operands)]

    def stretched(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        for d in both:
            n, m = x.shape[d], y.shape[d]
            if n == 1 < m:
                x = np.repeat(x, m, axis=d)
            elif m == 1 < n:
                y = np.repeat(y, n, axis=d)
        return run(x, y)

    return stretched
