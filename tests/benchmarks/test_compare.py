"""Comparisons of two stacks: the statistics on a clock that is moved by hand (never a speed), then the whole."""

import math

import ml_dtypes
import numpy as np
import pytest

from ...benchmarks import compare as compare_module
from ...benchmarks.compare import aligned, compare, slowed
from ...benchmarks.rounds import LEAST_BLOCKS, Block, Settings, geometric_mean, interval, paired_blocks, timed, warmed
from ...formats.program import Program
from ...hlo.errors import TestbedError
from ...migration.programs import load_program


class Machine:
    """A clock, and runs that move it: with a cost of their own in each block, noise, drift, and interruptions."""

    def __init__(self, seed: int, slower: float = 1.0):
        self.now, self.slower = 0.0, slower
        self.rng = np.random.default_rng(seed)
        self.runs = 0

    def clock(self) -> float:
        return self.now

    def make(self, side: int, block: int):
        cost = 1e-4 * (self.slower if side else 1.0) * math.exp(self.rng.normal(0, 0.01))

        def run() -> None:
            self.runs += 1
            drift = 1.5 if int(self.now * 20) % 3 == 0 else 1.0  # the machine's speed changes every 50 ms
            interrupted = 5e-3 if self.rng.random() < 0.002 else 0.0
            self.now += cost * drift * (1 + abs(self.rng.normal(0, 0.05))) + interrupted

        return run


SETTINGS = Settings(width=0.02, seconds=1.0, sample=5e-4, rounds=5)


def comparison(seed, slower=1.0, settings=SETTINGS):
    machine = Machine(seed, slower)
    blocks, narrow = paired_blocks(machine.make, settings, machine.clock)
    return interval(blocks), blocks, narrow, machine


def test_intervals_of_equal_runs_hold_1_and_those_of_a_slower_one_do_not():
    """Of 100 comparisons on a machine that other processes interrupt, as the guide to benchmarks promises."""
    equal = [comparison(seed)[0] for seed in range(100)]
    assert sum(found.low <= 1 <= found.high for found in equal) >= 90
    slower = [comparison(seed, 1.05)[0] for seed in range(20)]
    assert all(found.low > 1 for found in slower)
    assert np.median([found.median for found in slower]) == pytest.approx(1.05, abs=0.005)


def test_it_stops_when_the_interval_is_narrow_or_the_time_is_over():
    found, blocks, narrow, machine = comparison(1)
    assert narrow and found.high - found.low <= 0.02 * found.median and machine.now < 1.1
    assert len(blocks) >= LEAST_BLOCKS and all(len(block.a) == len(block.b) == 5 for block in blocks)
    longer, more, narrow, machine = comparison(1, settings=Settings(width=0.0, seconds=1.0, sample=5e-4, rounds=5))
    assert not narrow and 1.0 <= machine.now < 1.1 and len(more) > len(blocks)
    assert longer.high - longer.low < found.high - found.low
    again = comparison(1)[0]
    assert (again.median, again.low, again.high) == (found.median, found.low, found.high)


def test_the_order_of_a_round_is_drawn():
    """Each side begins in about half of the rounds, whatever the number of the round."""
    calls = []
    now = [0.0]

    def make(side, block):
        def run():
            calls.append(side)
            now[0] += 0.01

        return run

    paired_blocks(make, Settings(width=0.0, seconds=6.0, rounds=20, sample=0.001), lambda: now[0])
    rounds = np.array(calls[: len(calls) // 2 * 2]).reshape(-1, 2)
    firsts = [first for first, second in rounds if first != second]
    assert len(firsts) > 100 and 0.3 < np.mean(firsts) < 0.7 and len(set(firsts[::2])) == len(set(firsts[1::2])) == 2


def test_a_run_is_warm_once_its_times_are_steady():
    now, costs = [0.0], iter([9.0, 7.0, 4.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])

    def run():
        now[0] += next(costs)

    assert warmed(run, 1.0, lambda: now[0]) == (9, 1.0)
    falling, now[0] = iter(0.9**n for n in range(1000)), 0.0

    def never():
        now[0] += next(falling)

    count, fastest = warmed(never, 0.1, lambda: now[0])
    assert count < 20 and fastest == pytest.approx(0.9 ** (count - 1))


def test_interruptions_of_a_few_batches_do_not_count():
    now, number = [0.0], [0]

    def run():
        number[0] += 1
        now[0] += 4e-3 if number[0] % 37 == 0 else 1e-5

    assert timed(run, 500, lambda: now[0]) == pytest.approx(1e-5)


def test_blocks_that_differ_make_a_wide_interval():
    alike = [Block((1.0,) * 4, (1.1,) * 4, (1, 1))] * 8
    assert str(interval(alike)) == "1.100 [1.100, 1.100]"
    apart = [Block((1.0,) * 4, (b,) * 4, (1, 1)) for b in (0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5)]
    found = interval(apart)
    assert found.low < 1.0 < 1.3 < found.high


def test_the_geometric_mean_of_comparisons_and_its_interval():
    alike = [[Block((1.0,) * 4, (ratio,) * 4, (1, 1))] * 8 for ratio in (2.0, 0.5)]
    found = geometric_mean(alike)
    assert (found.median, found.low, found.high) == pytest.approx((1, 1, 1))
    random = np.random.default_rng(0)
    noisy = [
        [Block((1.0,) * 4, tuple(np.exp(random.normal(0.1, 0.05, 4))), (1, 1)) for _ in range(10)] for _ in range(4)
    ]
    found = geometric_mean(noisy)
    assert found.low < found.median < found.high and found.low < math.exp(0.1) < found.high
    assert found.high - found.low < 0.1


def test_an_outlier_hardly_counts():
    found = interval([Block((1.0,) * 7, (1.0,) * 7, (1, 1))] * 2 + [Block((1.0,) * 7, (1.0,) * 6 + (50.0,), (1, 1))])
    assert (found.median, found.low, found.high) == (1, 1, 1)


ADD = "HloModule add\nENTRY e {\n  x = f32[64] parameter(0)\n  ROOT y = f32[64] add(x, x)\n}\n"
QUICK = Settings(width=1.0, seconds=0.01, sample=1e-4, rounds=2, compiles=1)


@pytest.fixture
def program(tmp_path) -> Program:
    (tmp_path / "add.hlo").write_text(ADD)
    return load_program(str(tmp_path / "add.hlo"))


INPUTS = (np.ones(64, np.float32),)


def test_two_stacks_are_compared(program):
    found = compare(program, "legacy", "mlir,add=legacy", INPUTS, QUICK)
    assert (found.a, found.b) == ("legacy", "mlir,add=legacy") and found.low <= found.ratio <= found.high
    assert min(*found.seconds, *found.compile_seconds, found.compile_ratio, found.memory_ratio) > 0
    assert len(found.blocks) >= 2 and "blocks" not in repr(found)
    other = compare(program, "evaluator", "legacy", INPUTS, QUICK)
    assert other.a == "evaluator" and min(other.seconds) > 0


def test_memory_that_a_side_takes_more_is_seen(program, monkeypatch):
    peaks = iter([1 << 20, 1 << 20, 3 << 20, 3 << 20, 3 << 20, 3 << 20])
    order = []

    def growth(run):
        order.append(run)
        return next(peaks), run()

    monkeypatch.setattr(compare_module, "growth", growth)
    found = compare(program, "legacy", "legacy", INPUTS, QUICK)
    assert len(order) == 4 and found.memory_bytes == (3 << 20, 3 << 20) and found.memory_ratio == 1.0
    assert compare_module.memory_ratio(1 << 20, 3 << 20) == 2.0 and compare_module.memory_ratio(None, 5) == 1.0


@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (3, 7), (1 << 18,)])
@pytest.mark.parametrize("dtype", [np.bool_, np.float32, np.complex128, ml_dtypes.bfloat16, ml_dtypes.int4])
def test_a_copy_is_aligned(shape, dtype):
    array = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    copies = [aligned(array) for _ in range(5)]
    assert all(c.dtype == array.dtype and np.array_equal(c, array) for c in copies)
    if array.size:
        assert all(c.ctypes.data % 64 == 0 for c in copies) and len({c.ctypes.data for c in copies}) == 5


def test_a_copy_keeps_the_order_of_dimensions():
    """In another one, a run would begin with a copy into the parameter's layout."""
    array = np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1)
    copy = aligned(array)
    assert np.array_equal(copy, array) and copy.strides == array.strides and copy.ctypes.data % 64 == 0


def test_a_planted_slowdown_runs_the_run_once_and_longer():
    calls = []
    assert slowed(lambda: calls.append(1) or "result", 1.5)() == "result" and calls == [1]


def test_an_unknown_stack_is_refused_by_name(program):
    with pytest.raises(TestbedError, match="unknown stack 'llvm'"):
        compare(program, "legacy", "llvm", INPUTS, QUICK)
