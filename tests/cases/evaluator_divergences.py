"""Corpus cases on which the evaluator and the golden result differ: the difference, and which side is right.

docs/conformance.md shows them. Tests check both lists (a case that agrees again must be removed).
"""

from dataclasses import dataclass
from enum import Enum

from ..support.corpus import DEEP


class Right(Enum):
    """The side whose result follows HLO's semantics."""

    EVALUATOR = "evaluator"
    XLA = "XLA"
    BOTH = "both"
    UNKNOWN = "nobody knows"


@dataclass(frozen=True)
class Divergence:
    suite: str
    right: Right
    what: str


def _all(suite: str, right: Right, what: str, *ids: str) -> dict[str, Divergence]:
    return dict.fromkeys(ids, Divergence(suite, right, what))


_OP, _JAX, _XLA = "op_cases", "jax_programs", "xla_modules"

DIVERGENCES: dict[str, Divergence] = {
    **_all(
        _OP,
        Right.EVALUATOR,
        "XLA gives -5.6e-16 as the cube root of a subnormal of either sign, where 0 (flushed) or ±4.5e-14 belongs",
        "cbrt.bf16",
    ),
    **_all(
        _JAX, Right.BOTH, "one ulp in an input moves the results by 4e-4, four times the bound", "diffrax_lotka_tsit5"
    ),
    # the golden result was made through StableHLO, which lost something
    **_all(
        _XLA,
        Right.EVALUATOR,
        "a bitcast between layouts reorders elements; the golden was made without layouts",
        "3dfe33a1b6ce4d75",
        "c122c8d58edc2417",
        "a1c6c80065da4a32",
    ),
    **_all(
        _XLA,
        Right.EVALUATOR,
        "reduce-window of a scalar: the golden leaves the init value out",
        "4d2a91aa3b9ba01a",
        "a1560bcd6c492e34",
    ),
    **_all(
        _XLA,
        Right.EVALUATOR,
        "reshape of a dynamic dimension: the golden was made with static dimensions and counts the padding",
        "9884f583fad577e4",
    ),
    **_all(
        _XLA,
        Right.EVALUATOR,
        "bitcast-convert of s32 to s4: the golden reads one s4 from each byte",
        "5f72e1d1902f3913",
    ),
    **_all(
        _XLA,
        Right.EVALUATOR,
        "dynamic-update-slice at 4 beside its update in one fusion: the golden has one element of the update at 0",
        "47e482ce88fcc3eb",
    ),
    **_all(
        _XLA,
        Right.UNKNOWN,
        "bitcast-convert of f32[33] to f32[33,16] is no HLO; the golden is the operand",
        "bdf3f1e09cb51b15",
    ),
    # XLA rewrites
    **_all(
        _XLA,
        Right.EVALUATOR,
        "XLA keeps f32 between a bf16 dot and its convert, where the text rounds to bf16",
        "8230304e051f6bb9",
        "3ec2ef460ffd49e3",
    ),
    **_all(
        _XLA, Right.BOTH, "a sum of 256 f16: XLA rounds partial sums to f16, the evaluator once", "e88babc1085fc61a"
    ),
    **_all(
        _XLA,
        Right.BOTH,
        "a reduce whose init is no identity: XLA adds it once a tile, which HLO allows",
        "6efcaf75f5fc2531",
        "921dca071a6dcae5",
    ),
    **_all(_XLA, Right.BOTH, "a reduce whose region is not associative: HLO fixes no order", "017e42369b1ad584"),
    **_all(
        _XLA,
        Right.BOTH,
        "complex quotient of (nan, inf): XLA's constant folding differs from its compiled code, "
        "which the evaluator follows",
        "59bc5bc4e83b21df",
    ),
    **_all(_XLA, Right.BOTH, "the sine of 1e18: an ulp of the operand is more than a turn", "1101b87b83bf8fcb"),
    # several results are right
    **_all(
        _XLA,
        Right.BOTH,
        "sort by a comparator that is no strict weak order: any permutation will do",
        "c16fde39fdeaab5a",
        "dc64aba0d07276bd",
    ),
    **_all(
        _XLA,
        Right.BOTH,
        "an unstable sort with ties: the evaluator's is stable",
        "c20df12586fb655b",
        "225f5ea1013015c5",
        "1c4c02ae2f88bc35",
    ),
}

ELIDED: dict[str, Divergence] = _all(
    _XLA,
    Right.UNKNOWN,
    "`constant({...})`: nobody knows the values; refused",
    "202703682fc2e503",
    "82717d24f2415495",
    "d962616a34a9896f",
    "8f92ac289bfd8948",
    "d96072d0bd8d6ff9",
    "0df91bd26d46340a",
    "2deeeffa63367c3b",
    "d8c5e870cf7f5e00",
)

ENDLESS: dict[str, Divergence] = _all(_XLA, Right.XLA, "2³¹ iterations take hours in Python", "e71c2635349ee2e1")

MISSES = DIVERGENCES | ELIDED | ENDLESS

SLOW = frozenset() if DEEP else frozenset({"8e39eb72c0eaef86", "db893d66e87e4edb"})
"""Loops of a million iterations, which only the deep run includes."""
