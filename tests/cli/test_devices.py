"""Programs for several devices, and with feeds, on the command line."""

import re

import ml_dtypes
import numpy as np
import pytest

from ...cli.main import main
from ...formats.arrays import raw_view

PROGRAM = """HloModule m
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y) }
ENTRY e {
  r = u32[] replica-id()
  q = u32[] partition-id()
  t = u32[] constant(10)
  w = u32[] multiply(r, t)
  u = u32[] add(w, q)
  f = f32[] convert(u)
  k = token[] after-all()
  i = ((f32[2], bf16[]), token[]) infeed(k)
  v = (f32[2], bf16[]) get-tuple-element(i), index=0
  o = token[] outfeed(v, k), outfeed_shape=(f32[2], bf16[])
  ROOT a = f32[] all-reduce(f), replica_groups={{0,1}}, to_apply=add
}
"""
LINES = [
    *("replica 0, partition 0 out0 float32[] 10.", "replica 0, partition 1 out0 float32[] 12."),
    *("replica 1, partition 0 out0 float32[] 10.", "replica 1, partition 1 out0 float32[] 12."),
]


@pytest.fixture
def program(tmp_path):
    (tmp_path / "m.hlo").write_text(PROGRAM)
    return str(tmp_path / "m.hlo")


@pytest.fixture
def feed(tmp_path):
    """A value for all devices, and a second one for device 1, which nobody reads."""
    half = raw_view(np.array(0.5, ml_dtypes.bfloat16))
    np.savez(
        tmp_path / "feed.npz",
        value0=np.float32([1, 2]),
        value0_1=half,
        device1_value1_0=np.float32([3, 4]),
        device1_value1_1=half,
    )
    return str(tmp_path / "feed.npz")


@pytest.mark.parametrize("emitters", ["evaluator", "legacy", "mlir"])
def test_run_prints_each_device_and_its_outfeed(emitters, program, feed, capsys):
    command = ["run", program, "--emitters", emitters, "--replicas", "2", "--partitions", "2", "--infeed", feed]
    assert main([*command, "--iterations", "2"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[:4] == LINES
    assert out[4:6] == [
        "replica 0, partition 0 outfeed 0 out0 float32[2] [1., 2.]",
        "replica 0, partition 0 outfeed 0 out1 bfloat16[] 0.5",
    ]
    assert len(out) == 25 and out[12].startswith("iteration 2: seed") and out[13:17] == LINES


def test_a_file_runs_on_the_devices_that_it_was_compiled_for(program, feed, tmp_path, capsys):
    file = str(tmp_path / "m.tbx")
    assert main(["compile", program, "-o", file, "--replicas", "2", "--partitions", "2"]) == 0
    capsys.readouterr()
    assert main(["exec", file, "--infeed", feed]) == 0
    assert capsys.readouterr().out.splitlines()[:4] == LINES
    assert main(["exec", file, "--infeed", feed, "--output", str(tmp_path / "o.npz")]) == 2
    assert "--output takes a program of one device" in capsys.readouterr().err
    assert main(["inspect", file]) == 0
    assert re.search(r"devices: 2 replicas (×|x) 2 partitions", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--replicas", "2", "--partitions", "2"], "m: its infeed is empty at i"),
        (["--replicas", "2", "--infeed", "gone.npz"], "gone.npz: no such file"),
        (["--infeed", "FEED"], "device1_value1_0 is no value of an infeed"),
        (["--replicas", "2", "--emitters", "xla"], "xla runs on one device"),
        (["--replicas", "2", "--output", "o.npz"], "--output takes one MODULE, one iteration and one device"),
        (["--replicas", "0"], "0 is not in the range"),
        (["--wait-limit", "0", "--replicas", "2"], "0.0 is not in the range"),
        ([], "all-reduce for more devices than one"),
    ],
)
def test_wrong_options_are_one_line(options, words, program, feed, capsys):
    assert main(["run", program, *[feed if o == "FEED" else o for o in options]]) == 2
    out, err = capsys.readouterr()
    assert words in err.splitlines()[0] and out == ""


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"in0": np.float32([1, 2])}, "in0 is no value of an infeed"),
        ({"value1": np.float32([1, 2])}, "value0 is missing"),
        ({"value0": np.float32([1, 2])}, "value0: 1 leaves, where the module reads 2"),
        ({"value0": np.float32([1]), "value0_1": np.uint16(1)}, "value0: shape [1] does not match f32[2]"),
        ({"value0": np.int32([1, 2]), "value0_1": np.uint16(1)}, "value0: dtype s32 does not match f32[2]"),
    ],
)
def test_wrong_values_of_an_infeed_are_one_line(arrays, words, program, tmp_path, capsys):
    np.savez(tmp_path / "wrong.npz", **arrays)
    assert main(["run", program, "--replicas", "2", "--infeed", str(tmp_path / "wrong.npz")]) == 2
    assert words in capsys.readouterr().err.splitlines()[0]


def test_partitions_of_the_header_are_asked_for(tmp_path, capsys):
    (tmp_path / "p.hlo").write_text(
        "HloModule p, num_partitions=4\nENTRY e {\n  p = f32[1] parameter(0)\n  ROOT g = f32[4] all-gather(p), "
        "dimensions={0}, replica_groups={{0,1,2,3}}, channel_id=1, use_global_device_ids=true\n}\n"
    )
    file = str(tmp_path / "p.hlo")
    assert main(["run", file, "--replicas", "2"]) == 2
    assert "p has 4 partitions" in (error := capsys.readouterr().err) and "add --partitions 4" in error
    assert main(["run", file, "--partitions", "4", "--input", "7", "--emitters", "mlir"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"partition {n} out0 float32[4] [7., 7., 7., 7.]" for n in range(4)]
