"""The suite: for each fault its report, what is looked at, and on which sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import numpy as np

from ...formats.text.parser import parse_module
from ...hlo.ir import Module
from ..filled_inputs import filled_inputs
from . import programs as p

Text = Callable[[int], str]
"""A size → HLO text."""


class Look(StrEnum):
    """What is looked at besides the results. run: how the time of a run grows from the first size to the last. compile:
    so the time and memory of compiling. speed: the time of a run, against that of another version.
    """

    VALUE = "value"
    RUN = "run"
    COMPILE = "compile"
    SPEED = "speed"


@dataclass(frozen=True)
class Replayed:
    """A program of the suite. report: where the fault was told; versions: of jaxlib that are said to have it.

    values: sizes whose results are compared with the evaluator's. timed: the two sizes that are timed, or compiled;
    work: how many times the work of the first one is done for the second. long: the program that is timed, if another.
    low, high: of the inputs, which otherwise are drawn.
    """

    name: str
    report: str
    versions: str
    look: Look
    text: Text
    values: tuple[int, ...]
    timed: tuple[int, int] | None = None
    work: float = 8.0
    long: Text | None = None
    low: float | None = None
    high: float | None = None

    def module(self, size: int, timed: bool = False) -> Module:
        text = self.long if timed and self.long is not None else self.text
        return parse_module(text(size), f"{self.name} {size}")

    def inputs(self, module: Module) -> list[np.ndarray]:
        if self.low is None or self.high is None:
            return filled_inputs(module, "random", 1)
        leaves = filled_inputs(module, "zeros")
        return [np.linspace(self.low, self.high, x.size).reshape(x.shape).astype(x.dtype) for x in leaves]


STEPS = 20_000
"""Steps of a loop that is timed: enough that filling its buffer once does not count."""


def _updates(bytes_: int) -> Replayed:
    return Replayed(
        f"small-updates.{bytes_}",
        "jax#40101",
        "0.11.1",
        Look.RUN,
        partial(p.small_updates, bytes_, 50),
        (1000,),
        (1 << 14, 1 << 17),
        work=1.0,
        long=partial(p.small_updates, bytes_, STEPS),
    )


SUITE: tuple[Replayed, ...] = (
    Replayed(
        "matvec-squares.f64",
        "jax#39103",
        "0.10.2",
        Look.VALUE,
        partial(p.matvec_squares, "f64"),
        (16_385,),
        low=0,
        high=9,
    ),
    Replayed(
        "matvec-squares.f32",
        "jax#39103",
        "0.10.2",
        Look.VALUE,
        partial(p.matvec_squares, "f32"),
        (32_769,),
        low=0,
        high=9,
    ),
    Replayed("shifted-in-place", "xla#49176", "nightly", Look.VALUE, p.shifted_in_place, (4, 1000), low=1, high=4),
    Replayed("shifted-in-loop", "xla#49176", "nightly", Look.VALUE, p.shifted_in_loop, (4, 1000), low=1, high=4),
    *map(_updates, (4, 128, 256, 480, 512)),
    Replayed("written-steps", "jax#40101", "0.11.1", Look.RUN, p.written_steps, (300,), (1 << 14, 1 << 17)),
    Replayed("picked-steps", "jax#31284", "0.7.1", Look.RUN, p.picked_steps, (300,), (1 << 13, 1 << 16)),
    Replayed("running-sum", "", "", Look.RUN, p.running_sum, (1000,), (1 << 14, 1 << 17)),
    Replayed("high-rank", "xla#41173", "0.9.1", Look.COMPILE, p.high_rank, (8, 10), (6, 16)),
    Replayed("thin-sums", "jax#39257, #40412", "0.10.2, 0.11.0", Look.VALUE, p.thin_sums, (1, 2, 17), low=0.5, high=2),
    Replayed("undone.f32", "xla#42732", "2026-05", Look.VALUE, partial(p.undone, "f32"), (64,), low=-1e30, high=1e30),
    Replayed("undone.f64", "xla#42732", "2026-05", Look.VALUE, partial(p.undone, "f64"), (64,), low=-1e200, high=1e200),
    Replayed("undone.near", "xla#42732", "2026-05", Look.VALUE, partial(p.undone, "f32"), (64,), low=80, high=100),
    Replayed("matrix-scan", "jax#40150, #36799", "0.4.32 on", Look.SPEED, p.matrix_scan, (100,), (2000, 16_000)),
    Replayed("gate-scan", "jax#26021, #26145", "0.4.32 on", Look.SPEED, p.gate_scan, (100,), (2000, 16_000)),
    Replayed("difference-squares", "jax#37465", "0.10 on", Look.SPEED, p.difference_squares, (33,), (256, 2048)),
)
"""What it lacks: jax#23590, a climate model whose fault nobody cut out, and reports of conversion to StableHLO."""
