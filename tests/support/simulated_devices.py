"""Runs an entry computation given as text on simulated devices."""

import numpy as np

from ...evaluator.evaluator import evaluate_replicated
from ...formats.text.parser import parse_module

REGIONS = """add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y) }
"""


def run(body: str, inputs: list, replicas: int = 1, partitions: int = 1, computations: str = "", **options) -> list:
    """The results of each device. inputs: per device, one list of numbers (f32) or arrays, or a list of lists."""
    module = parse_module(f"HloModule m\n{REGIONS}{computations}\nENTRY e {{\n{body}\n}}\n")
    given = [[np.asarray(x, np.float32) if isinstance(x, list) else np.asarray(x) for x in xs] for xs in inputs]
    return evaluate_replicated(module, given, replicas=replicas, partitions=partitions, **options)


def first(results: list) -> list:
    return [r[0].tolist() for r in results]


def alone(*values: list) -> list:
    return [[v] for v in values]
