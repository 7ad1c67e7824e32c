"""Random HLO modules with loops, branches, calls and in-place updates, for tests of passes and buffers."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from ...hlo.attributes import PadDim, SliceDim
from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction, Literal, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape, array, tuple_shape

MATRIX = array(DType.F32, 4, 3)
COUNTER = array(DType.S32)
TRUTH = array(DType.PRED)
UNARY = (Op.TANH, Op.NEGATE, Op.ABS, Op.SINE, Op.COPY, Op.FLOOR)
BINARY = (Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.MAXIMUM, Op.MINIMUM)


class Programs:
    """Generates one module from choices, which Hypothesis shrinks: `module` holds it, with `inputs`."""

    def __init__(self, choices: random.Random, size: int = 12, depth: int = 2):
        self.random, self.number, self.computations = choices, 0, []
        self.sum = self._binary_region(Op.ADD)
        shapes = [MATRIX] * self.random.randint(1, 3) + [COUNTER]
        entry = self.computation("main", shapes, size, depth, self.random.randint(1, 4), tupled=False)
        self.module = Module("random_program", tuple(self.computations), entry)
        draw = np.random.default_rng(choices.randrange(2**16))
        self.inputs = [
            draw.uniform(-1, 1, s.dims).astype(np.float32) if s is MATRIX else np.int32(draw.integers(0, 4))
            for s in shapes
        ]

    def name(self, stem: str) -> str:
        self.number += 1
        return f"{stem}.{self.number}"

    def _binary_region(self, op: Op) -> Computation:
        scalar = array(DType.F32)
        a, b = (Instruction(Op.PARAMETER, self.name("p"), scalar, (), {"parameter_number": n}) for n in (0, 1))
        root = Instruction(op, self.name(op.value), scalar, (a, b))
        self.computations.append(Computation(self.name("region"), (a, b, root), root))
        return self.computations[-1]

    def computation(
        self,
        stem: str,
        shapes: Sequence[Shape],
        size: int,
        depth: int,
        results: int,
        *,
        tupled: bool,
        root: Callable[[_Body], Instruction] | None = None,
    ) -> Computation:
        """A computation of arrays, or of one tuple of them. It returns a tuple of matrices, or the result of `root`."""
        body = _Body(self)
        if tupled:
            parameter = body.add(Op.PARAMETER, tuple_shape(*shapes), (), parameter_number=0)
            values = [body.add(Op.GET_TUPLE_ELEMENT, s, (parameter,), index=n) for n, s in enumerate(shapes)]
        else:
            values = [body.add(Op.PARAMETER, s, (), parameter_number=n) for n, s in enumerate(shapes)]
        body.matrices = [v for v in values if v.shape is MATRIX]
        body.counters = [v for v in values if v.shape is COUNTER]
        for _ in range(size):
            body.grow(depth)
        last = root(body) if root is not None else body.tuple([body.matrix() for _ in range(results)])
        self.computations.append(Computation(self.name(stem), tuple(body.instructions), last))
        return self.computations[-1]


class _Body:
    """One computation under construction."""

    def __init__(self, programs: Programs):
        self.programs, self.random = programs, programs.random
        self.instructions: list[Instruction] = []
        self.matrices: list[Instruction] = []
        self.counters: list[Instruction] = []

    def add(self, op: Op, shape: Shape, operands: Sequence[Instruction], **attributes) -> Instruction:
        made = Instruction(op, self.programs.name(op.value), shape, tuple(operands), attributes)
        self.instructions.append(made)
        return made

    def tuple(self, operands: Sequence[Instruction]) -> Instruction:
        return self.add(Op.TUPLE, tuple_shape(*(o.shape for o in operands)), operands)

    def constant(self, value, shape: Shape) -> Instruction:
        return self.add(Op.CONSTANT, shape, (), literal=Literal(shape, np.full(shape.dims, value, shape.dtype.numpy)))

    def matrix(self) -> Instruction:
        return self.random.choice(self.matrices[-6:] if self.random.random() < 0.7 else self.matrices)

    def counter(self) -> Instruction:
        return self.random.choice(self.counters) if self.counters else self.constant(self.random.randint(0, 3), COUNTER)

    def grow(self, depth: int) -> None:
        kinds = [
            self.unary,
            self.binary,
            self.binary,
            self.update,
            self.rows,
            self.sums,
            self.roll,
            self.padded,
            self.product,
            self.flip,
            self.filled,
            self.picked,
            self.gathered,
            self.scattered,
            self.scattered,
        ]
        if depth:
            kinds += [self.loop, self.loop, self.branch, self.call]
        kind = self.random.choice(kinds)
        made = kind(depth) if kind in (self.loop, self.branch, self.call) else kind()
        self.matrices.extend(made if isinstance(made, list) else [made])

    def unary(self) -> Instruction:
        return self.add(self.random.choice(UNARY), MATRIX, (self.matrix(),))

    def binary(self) -> Instruction:
        return self.add(self.random.choice(BINARY), MATRIX, (self.matrix(), self.matrix()))

    def filled(self) -> Instruction:
        return self.add(
            Op.BROADCAST, MATRIX, (self.constant(self.random.randint(-2, 2), array(DType.F32)),), dimensions=()
        )

    def picked(self) -> Instruction:
        test = self.add(Op.COMPARE, array(DType.PRED, 4, 3), (self.matrix(), self.matrix()), direction="LT")
        return self.add(Op.SELECT, MATRIX, (test, self.matrix(), self.matrix()))

    def update(self) -> Instruction:
        row, target = array(DType.F32, 1, 3), self.matrix()
        source = target if self.random.random() < 0.5 else self.matrix()
        index, zero = self.counter(), self.constant(0, COUNTER)
        piece = self.add(Op.DYNAMIC_SLICE, row, (source, index, zero), dynamic_slice_sizes=(1, 3))
        if self.random.random() < 0.6:
            piece = self.add(Op.TANH, row, (piece,))
        where = index if self.random.random() < 0.7 else self.counter()
        return self.add(Op.DYNAMIC_UPDATE_SLICE, MATRIX, (target, piece, where, zero))

    def places(self) -> Instruction:
        """Row numbers; some may be beyond the last row, and some may be equal."""
        four = array(DType.S32, 4)
        start = self.add(Op.BROADCAST, four, (self.counter(),), dimensions=())
        step = self.add(Op.IOTA, four, (), iota_dimension=0)
        return self.add(self.random.choice((Op.ADD, Op.SUBTRACT, Op.MINIMUM)), four, (start, step))

    def gathered(self) -> Instruction:
        return self.add(
            *(Op.GATHER, MATRIX, (self.matrix(), self.places())),
            offset_dims=(1,),
            collapsed_slice_dims=(0,),
            start_index_map=(0,),
            index_vector_dim=1,
            slice_sizes=(1, 3),
        )

    def scattered(self) -> Instruction:
        target, updates = self.matrix(), self.matrix()
        if self.random.random() < 0.5:
            target = self.add(Op.NEGATE, MATRIX, (target,))
        return self.add(
            *(Op.SCATTER, MATRIX, (target, self.places(), updates)),
            update_window_dims=(1,),
            inserted_window_dims=(0,),
            scatter_dims_to_operand_dims=(0,),
            index_vector_dim=1,
            to_apply=self.programs.sum,
        )

    def rows(self) -> Instruction:
        piece = self.add(Op.SLICE, array(DType.F32, 2, 3), (self.matrix(),), slice=(SliceDim(1, 3), SliceDim(0, 3)))
        return self.add(Op.CONCATENATE, MATRIX, (piece, piece), dimensions=(0,))

    def sums(self) -> Instruction:
        zero = self.constant(0, array(DType.F32))
        total = self.add(
            Op.REDUCE, array(DType.F32, 4), (self.matrix(), zero), dimensions=(1,), to_apply=self.programs.sum
        )
        return self.add(Op.BROADCAST, MATRIX, (total,), dimensions=(0,))

    def roll(self) -> Instruction:
        flat = self.add(Op.RESHAPE, array(DType.F32, 12), (self.matrix(),))
        return self.add(Op.RESHAPE, MATRIX, (self.add(Op.REVERSE, flat.shape, (flat,), dimensions=(0,)),))

    def padded(self) -> Instruction:
        piece = self.add(Op.SLICE, array(DType.F32, 2, 3), (self.matrix(),), slice=(SliceDim(0, 4, 2), SliceDim(0, 3)))
        return self.add(
            Op.PAD, MATRIX, (piece, self.constant(1, array(DType.F32))), padding=(PadDim(1, 1), PadDim(0, 0))
        )

    def product(self) -> Instruction:
        other = self.add(Op.TRANSPOSE, array(DType.F32, 3, 4), (self.matrix(),), dimensions=(1, 0))
        square = self.add(
            Op.DOT, array(DType.F32, 4, 4), (self.matrix(), other), lhs_contracting_dims=(1,), rhs_contracting_dims=(0,)
        )
        made = self.add(Op.DOT, MATRIX, (square, self.matrix()), lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))
        return self.add(Op.TANH, MATRIX, (made,))

    def flip(self) -> Instruction:
        turned = self.add(Op.TRANSPOSE, array(DType.F32, 3, 4), (self.matrix(),), dimensions=(1, 0))
        return self.add(Op.RESHAPE, MATRIX, (turned,))

    def parts(self, whole: Instruction) -> list[Instruction]:
        found = [self.add(Op.GET_TUPLE_ELEMENT, s, (whole,), index=n) for n, s in enumerate(whole.shape.elements)]
        return [f for f in found if f.shape is MATRIX]

    def loop(self, depth: int) -> list[Instruction]:
        count = self.random.randint(1, 4)
        shapes = [COUNTER] + [MATRIX] * count
        init = self.tuple([self.constant(0, COUNTER), *(self.matrix() for _ in range(count))])
        limit = self.random.randint(0, 3)

        def test(body: _Body) -> Instruction:
            return body.add(Op.COMPARE, TRUTH, (body.counters[0], body.constant(limit, COUNTER)), direction="LT")

        def state(body: _Body) -> Instruction:
            step = body.add(Op.ADD, COUNTER, (body.counters[0], body.constant(1, COUNTER)))
            carried = body.matrices[:count]
            return body.tuple(
                [
                    step,
                    *(
                        self.random.choice([body.matrix(), body.matrices[-1], self.random.choice(carried), carried[n]])
                        for n in range(count)
                    ),
                ]
            )

        condition = self.programs.computation("condition", shapes, 0, 0, 0, tupled=True, root=test)
        body = self.programs.computation(
            "body", shapes, self.random.randint(0, 5), depth - 1, 0, tupled=True, root=state
        )
        return self.parts(self.add(Op.WHILE, init.shape, (init,), condition=condition, body=body))

    def branch(self, depth: int) -> list[Instruction]:
        results = self.random.randint(1, 3)
        operands = [self.tuple([self.matrix() for _ in range(self.random.randint(1, 3))]) for _ in range(2)]
        made = [
            self.programs.computation(
                "branch", [MATRIX] * len(o.operands), self.random.randint(0, 4), depth - 1, results, tupled=True
            )
            for o in operands
        ]
        shape = tuple_shape(*[MATRIX] * results)
        if self.random.random() < 0.5:
            test = self.add(Op.COMPARE, TRUTH, (self.counter(), self.constant(2, COUNTER)), direction="LT")
            return self.parts(
                self.add(Op.CONDITIONAL, shape, (test, *operands), true_computation=made[0], false_computation=made[1])
            )
        return self.parts(self.add(Op.CONDITIONAL, shape, (self.counter(), *operands), branch_computations=tuple(made)))

    def call(self, depth: int) -> list[Instruction]:
        operands = [self.matrix() for _ in range(2)]
        made = self.programs.computation("callee", [MATRIX] * 2, self.random.randint(0, 4), depth - 1, 2, tupled=False)
        return self.parts(self.add(Op.CALL, tuple_shape(MATRIX, MATRIX), operands, to_apply=made))


EVERY = ("add", "subtract", "multiply", "maximum", "minimum")
UNARY_OF = {
    "float": ("negate", "abs", "floor", "ceil", "sign", "exponential", "round-nearest-even"),
    "int": ("negate", "not"),
    "pred": ("not",),
}
BINARY_OF = {
    "float": (*EVERY, "divide"),
    "int": (*EVERY, "and", "or", "xor", "divide", "remainder", "shift-left", "shift-right-logical"),
    "pred": ("and", "or", "xor", "maximum", "minimum"),
}
CONSTANTS_OF = {
    "float": ("0", "-0", "1", "-1", "2", "0.5", "nan", "inf", "-inf", "8", "3"),
    "int": ("0", "1", "2", "8", "3", "$least", "$most", "$ones", "7"),
    "pred": ("0", "1"),
}


def expression(draw: random.Random, dtype: DType, size: int = 14) -> str:
    """The body of a template (algebra_template.py) of elementwise ops, selects and constants that rules look for."""
    kind = "float" if dtype.is_float else "int" if dtype.is_integer else "pred"
    values, tests, lines = ["x", "y"], ["p"], []

    def value() -> str:
        if draw.random() < 0.3:
            return f"#{draw.choice(CONSTANTS_OF[kind])}"
        return draw.choice(values[-4:])

    for n in range(size):
        choice, name = draw.random(), f"v{n}"
        if choice < 0.2:
            line = f"T {draw.choice(UNARY_OF[kind])}({draw.choice(values[-3:])})"
        elif choice < 0.65:
            line = f"T {draw.choice(BINARY_OF[kind])}({value()}, {value()})"
        elif choice < 0.75:
            line = f"T select({draw.choice(tests)}, {value()}, {value()})"
        elif choice < 0.8 and kind != "pred":
            line = f"T clamp({value()}, {value()}, {value()})"
        elif choice < 0.92:
            line = f"P compare({value()}, {value()}), direction={draw.choice(('EQ', 'NE', 'LT', 'LE', 'GT', 'GE'))}"
        else:
            line = draw.choice((f"P not({draw.choice(tests)})", f"P and({draw.choice(tests)}, {draw.choice(tests)})"))
        (tests if line[0] == "P" else values).append(name)
        lines.append(f"{name} = {line}")
    last = [*values[-3:], *tests[-2:]]
    shapes = ", ".join("T" if v in values else "P" for v in last)
    return ";".join([*lines, f"ROOT r = ({shapes}) tuple({', '.join(last)})"])
