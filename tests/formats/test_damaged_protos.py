"""Damaged protos: an error that names the byte or the field, and no crash."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ...formats.proto import schema
from ...formats.proto.proto import (
    module_from_proto,
    module_from_text_proto,
    module_to_proto,
    snapshot_to_proto,
)
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError, TestbedError
from ..support.corpus import DEEP
from ..support.protos import MANY, snapshot


@pytest.fixture(scope="module")
def many():
    return parse_module(MANY)


@pytest.mark.parametrize("cut", [1, 10, 100, 1000])
def test_a_cut_proto_says_where(many, cut):
    data = module_to_proto(many)
    with pytest.raises(InputError, match=r"f\.pb: damaged at byte \d+ of \d+: Hlo\w+"):
        module_from_proto(data[:-cut], "f.pb")


def test_nothing_is_no_module():
    with pytest.raises(InputError, match="no computation"):
        module_from_proto(b"")


def change(**fields):
    """The bytes of MANY with fields of its last computation's instructions changed: index__field=value."""

    def make(many):
        proto = schema.message("HloModuleProto")()
        proto.ParseFromString(module_to_proto(many))
        for path, value in fields.items():
            index, name = path.lstrip("_").split("__")
            setattr(proto.computations[-1].instructions[int(index)], name, value)
        return proto.SerializeToString()

    return make


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (change(_6__opcode="redcue"), r"computations\[2\]\.instructions\[6\]\.opcode: unknown opcode 'redcue'"),
        (change(_6__id=1), r"instructions\[6\]\.id: |no instruction before"),
        (change(_6__name=""), r"instructions\[6\]\.name: empty"),
        (change(_0__parameter_number=5), r"computations\[2\]\.instructions: the parameters are numbered \[1, 5\]"),
        (change(_10__fusion_kind="x", _10__opcode="fusion"), r"called_computation_ids: fusion calls 1, not 0"),
        (change(_2__opcode="add"), r"operand_ids: add takes 2 operands, not 0"),
    ],
)
def test_wrong_values_name_their_field(many, make, message):
    with pytest.raises(InputError, match=message):
        module_from_proto(make(many))


def test_a_size_in_bytes_beyond_64_bits_is_refused(many):
    proto = schema.message("HloModuleProto")()
    proto.ParseFromString(module_to_proto(many))
    place, shape = next(
        (n, i.shape) for n, i in enumerate(proto.computations[-1].instructions) if len(i.shape.dimensions) > 1
    )
    shape.dimensions[:] = [2**62] * len(shape.dimensions)
    where = rf"instructions\[{place}\]\.shape\.dimensions: .* has more than 2\^63 - 1 bytes"
    with pytest.raises(InputError, match=where):
        module_from_proto(proto.SerializeToString())


def test_wrong_text_proto_is_located():
    with pytest.raises(InputError, match=r'm\.pbtxt:2:1: .*"nmae"'):
        module_from_text_proto('name: "m"\nnmae: "x"\n', "m.pbtxt")


SEEDS: list[bytes] = []


@settings(
    max_examples=settings().max_examples * (100 if DEEP else 5), deadline=None, suppress_health_check=list(HealthCheck)
)
@given(
    st.integers(0, 1),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255), st.sampled_from("sdix")), max_size=8),
)
def test_mutated_protos_never_crash(many, which, edits):
    if not SEEDS:
        SEEDS.extend([module_to_proto(many), snapshot_to_proto(snapshot()[0])])
    data = bytearray(SEEDS[which])
    for place, byte, kind in edits:
        at = int(place * len(data))
        if kind == "s":
            data[at] = byte
        elif kind == "d":
            del data[at : at + 1 + byte % 9]
        elif kind == "i":
            data[at:at] = bytes([byte])
        else:
            data[at : at + 1] = data[max(at - byte, 0) : at]
        if not data:
            break
    try:
        module = module_from_proto(bytes(data))
    except InputError as error:
        assert str(error)
        return
    try:
        module_to_proto(module)
    except TestbedError as error:
        assert str(error)
