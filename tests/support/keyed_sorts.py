"""Sorts whose comparators compare one key: texts, keys of all types, and the evaluator's bits."""

from __future__ import annotations

import numpy as np

from ...backends.base import CompileOptions
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...migration import Flags, compile_module

FLOATS = (DType.F16, DType.BF16, DType.F32, DType.F64)
KEYS = (
    *(*FLOATS, DType.S8, DType.S16, DType.S32, DType.S64, DType.U8, DType.U16, DType.U32, DType.U64),
    *(DType.S4, DType.U4, DType.PRED),
)

SPECIAL = (0.0, -0.0, 1.0, -1.0, 1.5, np.inf, -np.inf, 1e-40, -1e-40, 3e-320, 1e-6, -1e-6, np.nan, -np.nan)
"""With subnormals of each type."""
ORDERED = 12
"""Of SPECIAL: without NaNs, of which a partial order says nothing."""


def keys(dtype: DType, dims: tuple[int, ...], seed: int, special: int = len(SPECIAL)) -> np.ndarray:
    """Half of them are from few values, so that there are ties; the others are from all of the type."""
    random = np.random.default_rng(seed)
    if dtype is DType.PRED:
        return random.integers(0, 2, dims).astype(bool)
    few = random.random(dims) < 0.5
    if dtype.is_float:
        pool = np.array(SPECIAL[:special]).astype(dtype.numpy)
        return np.where(few, random.choice(pool, dims), (random.normal(size=dims) * 100).astype(dtype.numpy))
    limits = (-(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1) if dtype.is_signed else (0, (1 << dtype.bits) - 1)
    wide = random.integers(*limits, dims, np.int64 if dtype.is_signed else np.uint64, endpoint=True)
    return np.where(few, random.integers(0, 7, dims).astype(wide.dtype), wide).astype(dtype.numpy)


def sort_text(
    dtype: DType, dims: tuple[int, ...], compare: str, dimension: int = 1, payloads: tuple[str, ...] = (),
    layout: str = "", root: str = "", body: str = "",
) -> str:  # fmt: skip
    """A sort. compare: the comparator's root on a0, b0, a1 …; body: instructions before it; root: what follows the sort
    `s`, whose parts are s0, s1 …
    """
    types = (dtype.value, *payloads)
    arrays = [f"{t}[{','.join(map(str, dims))}]{layout}" for t in types]
    several = len(types) > 1
    lines = [f"{side}{n} = {t}[] parameter({2 * n + k})" for n, t in enumerate(types) for k, side in enumerate("ab")]
    entry = [f"x{n} = {a} parameter({n})" for n, a in enumerate(arrays)]
    result = f"({', '.join(arrays)})" if several else arrays[0]
    operands = ", ".join(f"x{n}" for n in range(len(types)))
    sort = f"{result} sort({operands}), dimensions={{{dimension}}}, is_stable=true, to_apply=by"
    if root:
        entry.append(f"s = {sort}")
        if several:
            entry += [f"s{n} = {a} get-tuple-element(s), index={n}" for n, a in enumerate(arrays)]
        entry.append(root)
    else:
        entry.append(f"ROOT s = {sort}")
    comparator = "\n  ".join([*lines, *body.splitlines(), f"ROOT r = pred[] {compare}"])
    return "HloModule m\nby {\n  " + comparator + " }\nENTRY e {\n  " + "\n  ".join(entry) + " }"


def agree(text: str, inputs: list[np.ndarray]) -> None:
    """Both stacks give the evaluator's bits, and write nothing else."""
    module = parse_module(text)
    expected = evaluate(module, inputs)
    for stack in ("legacy", "mlir"):
        found = compile_module(module, Flags.parse(stack), CompileOptions(cache=None, red_zones=True)).execute(inputs)
        for a, b in zip(found, expected, strict=True):
            assert a.shape == b.shape and a.tobytes() == b.tobytes(), stack


def order_of(dtype: DType) -> str:
    return ", type=TOTALORDER" if dtype in FLOATS else ""


JAX = """z = f32[] constant(0)
n = f32[] constant(nan)
az = pred[] compare(a0, z), direction=EQ
bz = pred[] compare(b0, z), direction=EQ
ac = f32[] select(az, z, a0)
bc = f32[] select(bz, z, b0)
an = pred[] compare(a0, a0), direction=NE
bn = pred[] compare(b0, b0), direction=NE
ak = f32[] select(an, n, ac)
bk = f32[] select(bn, n, bc)"""

COMPARATORS = {
    "less": ("", "compare(a0, b0), direction=LT", True),
    "greater": ("", "compare(b1, a1), direction=GT", True),
    "by a key": ("p = s32[] negate(a0)\nq = s32[] negate(b0)", "compare(p, q), direction=LT", True),
    "or equal": ("", "compare(a0, b0), direction=LE", False),
    "unequal": ("", "compare(a0, b0), direction=NE", False),
    "other operands": ("", "compare(a0, b1), direction=LT", False),
    "one element": ("", "compare(a0, a1), direction=LT", False),
    "both on a side": (
        "p = s32[] add(a0, b0)\nq = s32[] add(b0, a0)",
        "compare(p, q), direction=LT",
        False,
    ),
    "other ops": ("p = s32[] negate(a0)\nq = s32[] not(b0)", "compare(p, q), direction=LT", False),
    "other constants": (
        "c = s32[] constant(1)\nd = s32[] constant(2)\np = s32[] multiply(a0, c)\nq = s32[] multiply(b0, d)",
        "compare(p, q), direction=LT",
        False,
    ),
    "a constant": ("c = s32[] constant(1)\nd = s32[] constant(1)", "compare(c, d), direction=LT", False),
    "two keys": (
        """l = pred[] compare(a0, b0), direction=LT
e = pred[] compare(a0, b0), direction=EQ
m = pred[] compare(a1, b1), direction=LT
f = pred[] and(e, m)""",
        "or(l, f)",
        False,
    ),
}
"""Name → (instructions, the root, whether it is a known order)."""
