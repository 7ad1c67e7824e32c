"""Slips in what both stacks share: passes, the buffer plan, thunks and host program, LLVM."""

from __future__ import annotations

from .fault import Edit, Fault

_BOTH = ("legacy", "mlir")

PASSES: tuple[Fault, ...] = (
    Fault(
        "pass-algebra-difference-of-itself",
        "nan",
        "algebra makes 0 of x - x for floats, too",
        _BOTH,
        ("pass algebra",),
        [Edit("passes.algebra.arithmetic", "subtract_itself", " and i.shape.dtype.is_integer", "")],
    ),
    Fault(
        "pass-algebra-remainder-by-mask",
        "sign",
        "algebra makes x and (2^k - 1) of x % 2^k for negative x, too",
        _BOTH,
        ("pass algebra",),
        [
            Edit(
                "passes.algebra.arithmetic",
                "unsigned_remainder_power_of_two",
                "value & (value - 1) or range_of(i.operands[0])[0] < 0",
                "value & (value - 1)",
            )
        ],
    ),
    Fault(
        "pass-algebra-slice-of-reverse",
        "bounds",
        "algebra takes the limit of a slice for its last element",
        _BOTH,
        ("pass algebra",),
        [
            Edit(
                "passes.algebra.movement",
                "slice_of_reverse",
                "last = s.start + (i.shape.dims[d] - 1) * s.stride",
                "last = s.limit - 1",
            )
        ],
    ),
    Fault(
        "pass-algebra-quotient-of-negated",
        "operands",
        "algebra forgets both signs of a quotient of integers",
        _BOTH,
        ("pass algebra",),
        [
            Edit(
                "passes.algebra.arithmetic",
                "multiply_negated",
                "    if i.opcode is Op.DIVIDE and not i.shape.dtype.is_float:\n        return None\n",
                "",
            )
        ],
    ),
    Fault(
        "pass-algebra-minimum-of-broadcast",
        "special case",
        "algebra leaves out the initial value of an extremum of a broadcast",
        _BOTH,
        ("pass algebra",),
        [Edit("passes.algebra.reduce", "_with_start", "op is None or _is_identity(i.operands[1], op)", "True")],
    ),
    Fault(
        "pass-simplify-composes-backwards",
        "index",
        "simplify composes two transposes in the other order",
        _BOTH,
        ("pass simplify",),
        [
            Edit(
                "passes.cleanup.simplify",
                "_transpose",
                "tuple(source.dimensions[d] for d in order)",
                "tuple(order[d] for d in source.dimensions)",
            )
        ],
    ),
    Fault(
        "pass-simplify-reduce-of-one",
        "operands",
        "simplify leaves out the initial value of a reduction over size 1",
        _BOTH,
        ("pass simplify",),
        [
            Edit(
                "passes.cleanup.simplify",
                "_reduce",
                "return _made(i, op.opcode, start, flat)",
                "return _made(i, Op.COPY, flat) if start else None",
            )
        ],
    ),
    Fault(
        "pass-conditionals-other-branch",
        "predicate",
        "a conditional on true is its second branch",
        _BOTH,
        ("pass conditionals",),
        [Edit("passes.control.conditionals", "_known_branch", "0 if bool(value) else 1", "1 if bool(value) else 0")],
    ),
    Fault(
        "pass-loops-one-trip-less",
        "bounds",
        "a loop that is unrolled ends one trip early",
        _BOTH,
        ("pass loops",),
        [Edit("passes.control.loops", "_unrolled", "for _ in range(trips):", "for _ in range(trips - 1):")],
    ),
    Fault(
        "pass-expand-scan-forwards",
        "order",
        "a reversed scan goes forwards",
        _BOTH,
        ("pass expand-scan",),
        [Edit("passes.expand.scan", "_in_order", "if reverse else k", "if False else k")],
    ),
    Fault(
        "pass-expand-batch-norm-variance",
        "accumulator",
        "the variance of batch-norm-training is the mean of squares",
        _BOTH,
        ("pass expand-batch-norm",),
        [
            Edit(
                "passes.expand.batch_norm",
                "training",
                "b.binary(Op.MULTIPLY, centred, centred)",
                "b.binary(Op.MULTIPLY, x, x)",
            )
        ],
    ),
    Fault(
        "pass-expand-select-and-scatter-last",
        "order",
        "select-and-scatter takes the last of equal elements",
        _BOTH,
        ("pass expand-select-and-scatter",),
        [
            Edit(
                "passes.expand.select_and_scatter",
                "_places",
                "(keep,) = apply_pointwise(b, select, [best[0], met[0]])",
                "(take_,) = apply_pointwise(b, select, [met[0], best[0]])\n        keep = b.unary(Op.NOT, take_)",
            )
        ],
    ),
    Fault(
        "pass-canonical-dot-folds-batch",
        "index",
        "canonicalize-dot reads through a transpose without its contracting dimensions",
        _BOTH,
        ("pass canonicalize-dot",),
        [
            Edit(
                "passes.canonical.dot",
                "fold_operands",
                "batch, contracting = (tuple(order[d] for d in group) for group in numbers(changed, side))",
                "batch, contracting = (tuple(order.index(d) for d in group) for group in numbers(changed, side))",
            )
        ],
    ),
    Fault(
        "pass-fuse-small-shares-results",
        "index",
        "fuse-small gives the results of a kernel in the other order",
        _BOTH,
        ("pass fuse-small",),
        [
            Edit(
                "passes.fusion.small",
                "_fusion",
                'root = Instruction(Op.TUPLE, names.fresh("tuple"), shape, tuple(roots))',
                "alike = len({r.shape for r in roots}) == 1\n"
                '    root = Instruction(Op.TUPLE, names.fresh("tuple"), shape, tuple(roots[::-1] if alike else roots))',
            )
        ],
    ),
)

BELOW: tuple[Fault, ...] = (
    Fault(
        "plan-value-dies-early",
        "lifetime",
        "a value is dead where its last reader begins",
        _BOTH,
        ("buffer reuse", "thunks"),
        [Edit("planning.liveness", "_Walker.touch", "end = 2 * self.position + 1", "end = 2 * self.position")],
    ),
    Fault(
        "plan-gap-of-later-values",
        "alias",
        "a buffer is packed without regard to those that begin later",
        _BOTH,
        ("buffer reuse", "thunks"),
        [Edit("planning.packing", "_meet", "a[i][0] < b[j][1] and b[j][0] < a[i][1]", "b[j][0] <= a[i][0] < b[j][1]")],
    ),
    Fault(
        "plan-reads-after-update",
        "alias",
        "an update in place does not look for other readers of the array",
        _BOTH,
        ("buffer reuse", "thunks"),
        [
            Edit("planning.coalesce", "Classes._conflict", "if stop - start != 1:", "if stop - start > 4:"),
            Edit(
                "planning.coalesce",
                "Classes._hands_over",
                "segments[bisect_right(segments, (tick + 1,)) - 1][1] == tick + 1",
                "True",
            ),
        ],
    ),
    Fault(
        "plan-loop-state-dies-in-the-condition",
        "lifetime",
        "the state of a loop is dead after its condition",
        _BOTH,
        ("buffer reuse", "thunks"),
        [
            Edit(
                "planning.liveness",
                "_Walker.loop",
                "self.touch(predicate)\n    self.touch(carried)",
                "self.touch(predicate)",
            )
        ],
    ),
    Fault(
        "plan-selector-dies-early",
        "lifetime",
        "the selector of a conditional is dead before the conditional",
        _BOTH,
        ("buffer reuse", "thunks"),
        [Edit("planning.liveness", "_Walker.conditional", "self.touch(self.leaves[i.operands[0]])", "pass")],
    ),
    Fault(
        "plan-constants-share-memory",
        "alias",
        "constants of one shape are one",
        _BOTH,
        ("thunks", "buffer reuse"),
        [Edit("planning.liveness", "_Walker.constant", "key = (shape, literal)", "key = (shape, None)")],
    ),
    Fault(
        "thunk-branches-exchanged",
        "predicate",
        "a conditional on a pred takes the other branch",
        _BOTH,
        ("thunks", "host program"),
        [
            Edit(
                "thunks.lowering",
                "_conditional",
                "enumerate(step.branches))",
                "enumerate(step.branches[::-1] if step.selector_is_pred else step.branches))",
            )
        ],
    ),
    Fault(
        "thunk-copy-loses-an-offset",
        "index",
        "copies write to the beginning of an allocation",
        _BOTH,
        ("thunks", "host program", "buffer reuse"),
        [
            Edit(
                "thunks.lowering",
                "_copy",
                "step.destination)",
                "type(step.destination)(step.destination.allocation, 0, step.destination.size))",
            )
        ],
    ),
    Fault(
        "host-program-takes-the-other-branch",
        "predicate",
        "the compiled host program takes the other branch of a pred",
        _BOTH,
        ("compiled host program",),
        [
            Edit(
                "thunks.host_module",
                "_Writer.selected",
                'self.compare("eq", self.load(place, "i8")',
                'self.compare("ne", self.load(place, "i8")',
            )
        ],
    ),
    Fault(
        "host-program-loses-a-copy",
        "order",
        "the compiled host program leaves out copies of 4 bytes",
        _BOTH,
        ("compiled host program",),
        [Edit("thunks.host_steps", "Steps.copy", "if thunk.source.size:", "if thunk.source.size != 4:")],
    ),
)

SLIPS = (*PASSES, *BELOW)
