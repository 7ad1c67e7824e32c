"""What the float rules permit as the result of a program on inputs."""

from __future__ import annotations

import numpy as np

from ...differential.bounds import Bound, bounds_of
from ...differential.permitted import Permitted
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module


def permits(text: str, inputs: list[np.ndarray], value: float, *, rounding: bool = True) -> bool:
    """Whether all elements of the result may be the value."""
    module = parse_module(text)
    (result,) = evaluate(module, inputs)
    bound = bounds_of(module)[0] if rounding else Bound(flush=True)
    return not Permitted(module, inputs, rounding=rounding).forbids(0, np.full_like(result, value), bound).any()
