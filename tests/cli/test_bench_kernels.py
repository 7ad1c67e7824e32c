"""`testbed bench --kernels`: every distinct kernel once, its ratio, and what they say together."""

import json

import pytest

from ...benchmarks.kernel_ratios import parity
from ...benchmarks.paired import Ratio
from ...cli.main import main

TWO = """
HloModule two
ENTRY e {
  p = f32[20,30] parameter(0)
  s = f32[20,30] sort(p), dimensions={1}, to_apply=c
  ROOT r = f32[20,30] tanh(s)
}
"""
COMPARE = """
HloModule two
c {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT l = pred[] compare(x, y), direction=LT
}
"""
QUICK = ("--rounds", "3", "--seconds", "0.0005")


@pytest.fixture
def folder(tmp_path):
    text = COMPARE + TWO.replace("HloModule two\n", "")
    for name in ("a", "b"):
        (tmp_path / f"{name}.hlo").write_text(text)
    return str(tmp_path)


def test_each_kernel_is_timed_once(folder, capsys):
    assert main(["bench", "--kernels", folder, "--least", "0", "--json", *QUICK]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["stacks"] == ["legacy", "mlir"]
    assert sorted(k["name"].split()[0] for k in found["kernels"]) == ["sort", "tanh"]
    for kernel in found["kernels"]:
        assert len(kernel["programs"]) == 2 and kernel["median_seconds"] > 0 and kernel["refused"] is None
        ((median, low, high),) = kernel["ratios"]
        assert 0 < low <= median <= high


def test_short_kernels_are_counted_and_not_compared(folder, capsys):
    assert main(["bench", "--kernels", folder, "--least", "9", *QUICK]) == 0
    out = capsys.readouterr().out
    assert out.startswith("2 kernels take less than 9e+06 ") and "on legacy and are not compared" in " ".join(
        out.split()
    )


def test_modules_and_folders_exclude_each_other(folder, capsys):
    assert main(["bench", f"{folder}/a.hlo", "--kernels", folder]) == 2
    assert main(["bench"]) == 2
    assert capsys.readouterr().err.count("give MODULEs, or --kernels DIR") == 2


def test_parity_counts():
    found = parity([Ratio(r, r, r) for r in (0.5, 1.0, 1.25, 2.0, 4.0)])
    assert (found.kernels, found.close, found.far) == (5, 0.6, 1)
    assert found.mean == pytest.approx(5**0.2)
