"""Memory does not grow with the number of compiles, and the command that shows it judges what it measures."""

import mmap

import pytest

from ...benchmarks import memory
from ...migration.flags import STACK_NAMES

KEPT = 25_000
"""Bytes that a compile may keep here. A module whose passes or code were not freed kept 100,000."""


@pytest.mark.parametrize("stack", STACK_NAMES)
def test_compiles_keep_no_memory(stack):
    steps = 160
    points = memory._in_a_new_process("compiles", stack, steps)
    after = memory.SAMPLES // 2
    assert points[-1] - points[after - 1] < KEPT * steps * (1 - after / memory.SAMPLES)


def test_growth_is_measured_from_the_end_of_the_warm_up():
    assert memory.growth([10, 50, 80, 100, 100, *[100] * 15]) == 0
    assert memory.growth([10, 50, 80, 100, 100, *[100] * 5, 130, *[100] * 9]) == pytest.approx(0.3)
    kept = []

    def grow():
        kept.append(mmap.mmap(-1, 1 << 20))  # new pages, whatever the tests before this one gave back to malloc
        kept[-1].write(b"x" * (1 << 20))

    points = memory.curve(grow, 100)
    assert len(points) == memory.SAMPLES and points[-1] - points[0] > 80 << 20


def test_the_command_prints_each_curve_and_judges_it(monkeypatch, capsys):
    monkeypatch.setattr(memory, "_in_a_new_process", lambda name, stack, steps: [100] * 19 + [110])
    assert memory.main(["--compiles", "20", "--runs", "40", "--stack", "mlir"]) == 1
    out = capsys.readouterr().out
    arenas, curves = (
        [line.split()[:3] for line in out.splitlines()[:-1] if (line[:5] == "arena") is wanted]
        for wanted in (True, False)
    )
    assert len(arenas) == len(memory.ARENAS)
    assert curves == [
        ["mlir", "compiles", "20"],
        ["mlir", "cached", "20"],
        ["mlir", "runs", "40"],
    ]
    assert out.count("growth +10.00%") == 3 and "(bound 2%)" in out
    assert memory.main(["--compiles", "0", "--runs", "40", "--bound", "11"]) == 0
    with pytest.raises(SystemExit):
        memory.main(["--compiles", "3"])
    assert "give 0 or at least 20" in capsys.readouterr().err


@pytest.mark.parametrize("name", memory.ARENAS)
def test_an_arena_is_within_its_bound(name):
    text, most = memory.ARENAS[name]
    assert memory.arena_bytes(text) <= most


def test_an_arena_above_its_bound_fails_the_command(monkeypatch, capsys):
    monkeypatch.setattr(memory, "ARENAS", {"a program": (next(iter(memory.ARENAS.values()))[0], -1)})
    assert memory.main(["--compiles", "0", "--runs", "0"]) == 1
    assert "of          -1 bytes: a program" in capsys.readouterr().out


@pytest.mark.parametrize("size, arena", [(8192, 1 << 28), (8193, 0)])
def test_what_is_read_in_two_orders_is_stored_up_to_a_size(size, arena):
    for name in list(memory.ARENAS)[:2]:
        assert memory.arena_bytes(memory.ARENAS[name][0].replace("16384", str(size))) == arena
