"""HloSnapshot: a module with its arguments and results."""

import numpy as np
import pytest

from ...formats.program import load_program
from ...formats.proto import schema
from ...formats.proto.proto import (
    Snapshot,
    leaves,
    literal_of,
    snapshot_from_proto,
    snapshot_from_text_proto,
    snapshot_to_proto,
    snapshot_to_text_proto,
)
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError
from ...hlo.shapes import tuple_shape
from ..support.protos import ADD, snapshot


def test_snapshot_round_trips_with_its_literals():
    before, value = snapshot()
    for after in (
        snapshot_from_proto(snapshot_to_proto(before)),
        snapshot_from_text_proto(snapshot_to_text_proto(before)),
    ):
        assert after.platform == "cpu" and after.result == before.result
        assert np.array_equal(leaves(after.arguments)[0], value)


def test_literals_stand_in_the_order_of_their_layout():
    before, _ = snapshot()
    proto = schema.message("HloSnapshot")()
    proto.ParseFromString(snapshot_to_proto(before))
    assert list(proto.arguments[0].f32s) == [0, 3, 1, 4, 2, 5]


def test_a_snapshot_file_is_a_program_with_inputs(tmp_path):
    before, value = snapshot()
    (tmp_path / "s.hlo_snapshot.pb").write_bytes(snapshot_to_proto(before))
    (tmp_path / "s.pbtxt").write_text(snapshot_to_text_proto(before))
    for name in ("s.hlo_snapshot.pb", "s.pbtxt"):
        program = load_program(str(tmp_path / name))
        assert np.array_equal(program.inputs[0], value) and np.array_equal(program.expected[0], value)


def test_a_snapshot_of_other_arguments_is_refused(tmp_path):
    before, _ = snapshot()
    wrong = Snapshot(before.module, (*before.arguments, *before.arguments))
    (tmp_path / "s.pb").write_bytes(snapshot_to_proto(wrong))
    with pytest.raises(InputError, match="2 argument leaves for 1"):
        load_program(str(tmp_path / "s.pb"))


def test_literal_of_takes_tuples():
    shape = parse_module(ADD).parameter_shapes[0]
    literal = literal_of([np.zeros((2, 3), np.float32)] * 2, tuple_shape(shape, shape))
    assert len(leaves([literal])) == 2
