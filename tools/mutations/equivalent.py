"""Mutants that no test can notice, each with the reason why what they change is the same."""

_PRED = "the verifier refuses subtract of pred (BINARY4), so the row is never asked for it"
_UNSIGNED = "the verifier refuses it of unsigned integers (UNARY2), so the row is never asked for it"
_IDENTITY = "the rule needs an identity, and only ops of any order have one"
_ZERO = "the imaginary part of a real number is 0, and zeros have no neighbour here"
_ORDER = "the order of a group's members does not matter to a sum"

_OUTERMOST = (
    "a ragged all-to-all works on the outermost dimension; its `dimensions` are read and say nothing, as in XLA"
)

EQUIVALENT: dict[str, str] = {
    **{f"evaluator/RULES/ragged-all-to-all/dimensions {what}": _OUTERMOST for what in ("dropped", "changed")},
    **{f"legacy/EMIT/subtract/pred/{what}": _PRED for what in ("as add", "operands swapped", "one step off")},
    **{f"mlir_emitters/EMIT/subtract/pred/{what}": _PRED for what in ("as add", "operands swapped", "one step off")},
    "mlir_emitters/EMIT/imag/floating/one step off": _ZERO,
    "mlir_emitters/EMIT/abs/unsigned/as sign": _UNSIGNED,
    "mlir_emitters/EMIT/abs/unsigned/one step off": _UNSIGNED,
    "mlir_emitters/EMIT/sign/unsigned/as abs": _UNSIGNED,
    "mlir_emitters/EMIT/sign/unsigned/one step off": _UNSIGNED,
    "passes/algebra/reduce_of_reduce/_any_order unchecked": _IDENTITY,
    "passes/algebra/reduce_of_concatenate/_any_order unchecked": _IDENTITY,
    "passes/algebra/reduce_of_pad/_any_order unchecked": _IDENTITY,
    "evaluator/RULES/all-reduce-start/replica_groups changed": _ORDER,
}
