"""Runs the evaluator on an entry computation given as text."""

import numpy as np

from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module

REGIONS = """add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y) }
addi { x = s32[] parameter(0)
  y = s32[] parameter(1)
  ROOT z = s32[] add(x, y) }
second { x = s32[] parameter(0)
  ROOT y = s32[] parameter(1) }
"""


def run(body: str, *inputs, computations: str = "", **options) -> list[np.ndarray]:
    """Evaluate an entry computation. Inputs are arrays, or numbers and lists, which become s32 or f32."""
    arrays = [
        x
        if isinstance(x, (np.ndarray, np.generic))
        else np.array(x, np.float32 if np.asarray(x).dtype.kind == "f" else np.int32)
        for x in inputs
    ]
    module = parse_module(f"HloModule m\n{computations}\nENTRY e {{\n{body}\n}}\n")
    return evaluate(module, [np.asarray(a) for a in arrays], **options)


def elementwise(dtype: str, operation: str, *operands: np.ndarray) -> np.ndarray:
    n = operands[0].size
    lines = [f"  p{i} = {dtype}[{n}] parameter({i})" for i in range(len(operands))]
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    return run("\n".join([*lines, f"  ROOT r = {dtype}[{n}] {operation}({names})"]), *operands)[0]
