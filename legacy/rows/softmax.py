"""Softmax and log-softmax of rows in memory as functions that the kernels of all programs call. A function works on all
rows of a call: loaded once for each short row, its constants alone took a tenth of the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Code, IndexValue, Unroll
from ..core.helper import call, declared
from ..core.registers import FLOAT, I64, POINTER, Register, flatten, real_constant
from ..core.stack import alloca
from ..core.view import View
from ..loops.elemental import Elemental
from ..loops.fetch import AHEAD, streams_of
from ..loops.form import Fit, Results, Task, between, form, known, needs
from ..loops.memory import Pointer, address, prefetch
from ..loops.ranges import Steps, bounds
from ..numerics.functions import library
from ..numerics.real import Real
from ..reductions.extremum import close_chains, combine_chains, open_chains
from ..reductions.long_sums import LINES, PartialSums, nothing
from ..reductions.reduce import simple_op
from ..reductions.sum_run import scaled_source
from .row_graph import PASSED, Role, RowGraph
from .rows import in_whole_rows, rows_of

MINIMUM_LENGTH = 1 << 9
"""Elements of a row. Half as many take up to a tenth longer than in loops of a known length."""

MAXIMUM_LENGTH = 1 << 16
"""Elements of a row: a copy is on the stack."""

LANES, EVEN = 32, 64
"""Partial sums of a row; elements of which rows that have no rest are multiples."""


@dataclass(frozen=True, slots=True)
class Softmax:
    """exp(y) / Σ exp(y), or y − log Σ exp(y), where y = x − max x. scaled: x is multiplied by a number first.
    ahead: there are enough rows to fetch what follows. even: rows are multiples of EVEN elements, and so long are
    no loops for the rest.
    """

    log: bool
    scaled: bool
    ahead: bool
    even: bool

    @property
    def name(self) -> str:
        return f"legacy.{'log_' * self.log}softmax.f32{'s' * self.scaled}{'a' * self.ahead}{'e' * self.even}"

    def declare(self, module: ir.Module) -> ir.Function:
        types = [POINTER, POINTER, POINTER, I64, I64, *[FLOAT] * self.scaled]
        function = declared(
            module, self.name, types, [True, False, False], (2,)
        )  # the result may be in the operand's place
        for number in function.args[3:5]:
            set.add(number.attributes, f"range(i64 1, {1 << 32})")
        return function

    def define(self, module: ir.Module) -> None:
        function = self.declare(module)
        code = Code(module, function)
        source, result, held, rows, count, *factor = function.args
        length = code.multiply(count, EVEN) if self.even else count
        real = Real(code, 32)

        def place(memory: ir.Value, at: IndexValue) -> ir.Value:
            return code.b.gep(memory, [code.value(at)], inbounds=True, source_etype=FLOAT)

        def element(first: ir.Value, at: IndexValue) -> ir.Value:
            value = code.b.load(place(first, at), typ=FLOAT, align=4)
            return real.mul(value, factor[0]) if factor else value

        with code.loop(rows, unroll=Unroll.NEVER) as row:
            first, target = (place(memory, code.b.mul(code.value(row), length)) for memory in (source, result))
            least = real_constant(FLOAT, -math.inf)
            column = code.loop(length, carried=open_chains(code, least), unroll=Unroll.TWICE)
            chains = combine_chains(
                code, Op.MAXIMUM, [flatten(x)[0] for x in column.carried], element(first, column.index)
            )
            most = close_chains(code, [flatten(x)[0] for x in column.close(chains)])

            def term(at: IndexValue) -> ir.Value:
                y = real.sub(element(first, at), most)
                power = library("exp")(real, y)
                code.b.store(y if self.log else power, place(held, at), align=4)
                return power

            total = self._sum(code, first, length, term)
            if self.log:
                total = library("log")(real, total)
            with code.loop(length) as i:
                value = code.b.load(place(held, i), typ=FLOAT, align=4)
                made = real.sub(value, total) if self.log else real.div(value, total)
                code.b.store(made, place(target, i), align=4)
        code.b.ret_void()

    def _sum(self, code: Code, first: ir.Value, length: ir.Value, term: Callable[[IndexValue], ir.Value]) -> ir.Value:
        """The sum of all terms of a row."""
        sums = PartialSums(code, [nothing(real_constant(FLOAT, 0.0))], [4 * LANES], expensive=True)
        assert sums.width == LANES

        def add(start: IndexValue, lane: IndexValue) -> None:
            (before,) = sums.read(lane)
            sums.write(lane, [code.b.fadd(before, term(code.add(start, lane)))])

        def fetch(start: IndexValue) -> None:
            for k in range(0, LANES * 4, code.view.processor.line_bytes) if self.ahead else ():
                prefetch(code, Pointer(first), DType.F32, code.add(start, (AHEAD + k) // 4))

        whole = length if self.even else code.subtract(length, code.remainder(length, LANES))
        sums.start()
        sums.add_lines(0, whole, LINES, add, fetch)
        if not self.even:
            with code.range(0, code.subtract(length, whole)) as rest:
                add(whole, rest)
        return flatten(sums.totals()[0])[0]


@dataclass(frozen=True, slots=True)
class SoftmaxRows:
    """source: the array; factor: the scalar by which it is multiplied, if it is."""

    rows: RowGraph
    source: Instruction
    factor: Instruction | None
    helper: Softmax


def emit_softmax(e: Elemental, results: Results, given: SoftmaxRows, steps: Steps | None) -> None:
    code, rows, factor, helper, length = e.code, given.rows, given.factor, given.helper, given.rows.grid.length
    numbers: list[Register] = [] if factor is None else [e.number(factor)]
    begin, end = bounds(code, steps, rows.grid.count)
    offset = code.b.mul(code.value(begin), I64(length))
    places = [
        address(code, pointer, DType.F32, offset) for pointer in (e.leaves[given.source], results.first.pointer(e))
    ]
    held = alloca(code, FLOAT, length)
    call(
        code.b,
        helper,
        [
            *places,
            held,
            code.value(code.subtract(end, begin)),
            I64(length // EVEN if helper.even else length),
            *(flatten(x)[0] for x in numbers),
        ],
    )


def _softmax_of(view: View, root: Instruction, rows: RowGraph) -> tuple[Instruction, Instruction | None, bool] | None:
    """(The array, the scalar by which it is multiplied, whether it is the logarithm) of a softmax of its rows."""
    if root in view.leaves or root.opcode not in (Op.DIVIDE, Op.SUBTRACT):
        return None
    above, total = root.operands[0], _of_row(root.operands[1], rows)
    log = root.opcode is Op.SUBTRACT
    if log:
        total = _of_row(total.operands[0], rows) if total is not None and total.opcode is Op.LOG else None
    powers = _reduced(total, Op.ADD, 0.0)
    if powers is None or powers.opcode is not Op.EXPONENTIAL or (powers.operands[0] if log else powers) is not above:
        return None
    difference = powers.operands[0]
    if difference in view.leaves or difference.opcode is not Op.SUBTRACT:
        return None
    scores = difference.operands[0]
    if _reduced(_of_row(difference.operands[1], rows), Op.MAXIMUM, -math.inf) is not scores:
        return None
    scaled = scaled_source(scores, view.leaves)
    if scaled is None or (scaled[1] is not None and scaled[1].operands[0].shape.rank):
        return None
    return scaled[0], None if scaled[1] is None else scaled[1].operands[0], log


def _of_row(instruction: Instruction, rows: RowGraph) -> Instruction | None:
    """The number of a row that is broadcast along it."""
    while instruction.opcode in PASSED and instruction in rows.roles:
        (instruction,) = instruction.operands
    return instruction if rows.roles.get(instruction) is Role.ROW else None


def _reduced(reduction: Instruction | None, op: Op, start: float) -> Instruction | None:
    """What is added up from 0 on, or of what the maximum is taken; None for anything else."""
    if reduction is None or reduction.opcode is not Op.REDUCE or len(reduction.operands) != 2:
        return None
    root, init = simple_op(reduction.called()[0]), reduction.operands[1]
    same = root is not None and root.opcode is op and init.opcode is Op.CONSTANT
    return reduction.operands[0] if same and float(init.literal.array) == start else None


@form("rows/softmax", emit_softmax, MINIMUM_LENGTH="elements of a row", MAXIMUM_LENGTH="elements of a row")
def softmax(task: Task) -> Fit:
    """Softmax and log-softmax: a function that kernels share does all rows of a call."""
    view, results, rows = task.view, task.results, rows_of(task)
    length, dtype = rows.grid.length, results.shape.dtype
    needs(results.alone and dtype is DType.F32, f"{len(results.leaves)} results, the first of {dtype.value}")
    between(length, MINIMUM_LENGTH, MAXIMUM_LENGTH, "elements of a row")
    needs(not view.strict and not view.by_element, "sums are strict, or it is for a device")
    source, factor, log = known(_softmax_of(view, results.root, rows), "no softmax or log-softmax")
    helper = Softmax(log, factor is not None, bool(streams_of(view, [source], source.shape)), length % EVEN == 0)
    given = SoftmaxRows(rows, source, factor, helper)
    return Fit(given, in_whole_rows(rows, task), tuple(rows.sources), shares=True, light=True)
