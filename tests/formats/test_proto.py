"""HloModuleProto and HloSnapshot: writing, reading, comparison with jaxlib's, damaged bytes, text protos."""

import importlib.metadata

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ...formats.program import load_program
from ...formats.proto import schema
from ...formats.proto.mesh_groups import read_mesh_groups
from ...formats.proto.proto import (
    Snapshot,
    leaves,
    literal_of,
    module_from_proto,
    module_from_text_proto,
    module_to_proto,
    module_to_text_proto,
    snapshot_from_proto,
    snapshot_from_text_proto,
    snapshot_to_proto,
    snapshot_to_text_proto,
)
from ...formats.proto.proto_source import read_proto_file
from ...formats.text.parser import parse_module
from ...formats.text.printer import print_module
from ...hlo.attributes import OutputAlias
from ...hlo.equality import difference
from ...hlo.errors import InputError, TestbedError
from ...hlo.ir import Literal
from ...hlo.replica_groups import mesh_groups
from ...hlo.shapes import tuple_shape
from ..support.corpus import DEEP, sample
from ..support.hlo_canonical import canonical

MANY = """HloModule many, is_scheduled=true, \
input_output_alias={ {0}: (0, {}, must-alias) }, buffer_donor={ (1, {}) }, \
entry_computation_layout={(f32[8,4]{0,1}, s32[4]{0})->(f32[8,4]{1,0}, s32[4]{0})}, frontend_attributes={a="b",c={d=1}}

FileNames
1 "a.py"

FunctionNames
1 "f\\"g"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=2 end_column=4}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=1 parent_frame_id=2}

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

less {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  ROOT z = pred[] compare(x, y), direction=LT
}

ENTRY e {
  p = f32[8,4]{0,1} parameter(0), sharding={devices=[2,1,2]<=[2,2]T(1,0) last_tile_dims={replicated}}
  q = s32[4]{0} parameter(1), sharding={maximal device=1 metadata={op_name="s"}}, parameter_replication={true}
  zero = f32[] constant(0), metadata={op_type="t" op_name="a\\\\b" source_line=3 stack_frame_id=2}
  w = f32[2,3]{0,1} constant({ { 1, -0.0, nan }, { inf, -inf, 1e-45 } }), statistics={visualizing_index=1,s=2.5}
  n = s4[3]{0} constant({ 1, -3, 7 }), origin={({"v"}, {"w" {1,2}})}
  t = (pred[2]{0}, c64[1]{0}, bf16[]) constant(( { 1, 0 }, { (1, -2) }, 3 ))
  r = f32[8]{0} reduce(p, zero), dimensions={1}, to_apply=sum, backend_config={"k":[1]}
  s = s32[4]{0} sort(q), dimensions={0}, is_stable=true, to_apply=less, control-predecessors={r}
  d = f32[8,8]{1,0} dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={1}, operand_precision={high,default}, \
algorithm=dot_bf16_bf16_f32
  k = f32[8,4]{1,0} custom-call(p, d), custom_call_target="t", operand_layout_constraints={f32[8,4]{1,0}, \
f32[8,8]{0,1}}, custom_call_has_side_effect=true, api_version=API_VERSION_TYPED_FFI, backend_config="{a=", \
output_to_operand_aliasing={{}: (0, {})}, literal=f32[2]{0} { 1, 2 }
  m = f32[8,4]{1,0} sqrt(k), result_accuracy={tolerance={atol=0,rtol=0.5,ulps=2}}
  g = f32[10,6]{1,0:T(8,128)E(32)S(1)} pad(k, zero), padding=1_1_0x0_2_0
  h = f32[4]{0} reduce-window(r, zero), window={size=2 stride=2}, to_apply=sum
  ar = f32[8]{0} all-reduce(r), replica_groups=[2,2]<=[2,2]T(1,0), channel_id=1, \
use_global_device_ids=true, to_apply=sum
  ROOT o = (f32[8,4]{1,0}, s32[4]{0}) tuple(m, s)
}
"""


@pytest.fixture(scope="module")
def many():
    return parse_module(MANY)


# -- our own way out and in -------------------------------------------------------------------------------------------
def test_binary_round_trip_loses_nothing(many):
    assert difference(many, module_from_proto(module_to_proto(many))) is None


def test_text_round_trip_loses_nothing(many):
    text = module_to_text_proto(many)
    assert 'custom_call_target: "t"' in text
    assert difference(many, module_from_text_proto(text)) is None


def test_repeated_names_become_unique():
    module = parse_module(
        "HloModule m\n\nf {\n ROOT p = f32[] parameter(0)\n}\n\nENTRY e {\n p = f32[] parameter(0)\n"
        " ROOT c = f32[] call(p), to_apply=f\n}\n"
    )
    again = module_from_proto(module_to_proto(module))
    assert sorted(i.name for i in again.instructions()) == ["c", "p", "p.1"]
    assert difference(canonical(again), canonical(module_from_proto(module_to_proto(again)))) is None


RECENT = """HloModule m

work {
  a = f32[2]{0} parameter(0)
  ROOT n = f32[2]{0} negate(a)
}

ENTRY e {
  x = f32[1,4,2]{2,1,0} parameter(0)
  k = f32[2,2,3]{2,1,0} parameter(1)
  p = f32[2]{0} parameter(2)
  c = f32[1,3,3]{2,1,0} convolution(x, k), window={size=2}, dim_labels=b0f_0io->b0f, algorithm=dot_bf16_bf16_f32
  s = ((f32[2]{0}), f32[2]{0}, u32[]) async-start(p), calls=work
  u = ((f32[2]{0}), f32[2]{0}, u32[]) async-update(s), output_to_operand_aliasing={{1}: (0, {1})}
  d = f32[2]{0} async-done(u)
  ROOT t = (f32[1,3,3]{2,1,0}, f32[2]{0}) tuple(c, d)
}
"""
"""Attributes that jaxlib 0.12 writes, and 0.10 does not read."""


def test_attributes_of_newer_xla_are_kept_in_protos_and_in_text():
    module = parse_module(RECENT)
    again = module_from_proto(module_to_proto(module))
    for there in (again, parse_module(print_module(again))):
        names = there.entry.by_name
        assert names["c"].attributes["algorithm"] == "dot_bf16_bf16_f32"
        assert names["u"].attributes["output_to_operand_aliasing"] == (OutputAlias((1,), 0, (1,)),)


@pytest.mark.xla
def test_attributes_of_newer_xla_are_read_from_its_protos():
    hlo = pytest.importorskip("jaxlib._hlo", reason="needs jaxlib")
    if tuple(map(int, importlib.metadata.version("jaxlib").split(".")[:2])) < (0, 12):
        pytest.skip("needs jaxlib 0.12")
    module = parse_module(RECENT)
    theirs = hlo.hlo_module_from_text(print_module(module)).as_serialized_hlo_module_proto()
    names = module_from_proto(theirs).entry.by_name
    for name in ("c", "u"):
        own = module.entry.by_name[name].attributes
        for key in ("algorithm", "output_to_operand_aliasing"):
            assert names[name].attributes.get(key) == own.get(key)


MESHES = {
    "mesh['a'=2,'b'=2] {'b'}": ((0, 1), (2, 3)),
    "mesh['a'=2,'b'=2], device_ids=(3,1,2,0) {'b'}": ((3, 1), (2, 0)),
    "mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}": ((0, 2), (1, 3)),
    "mesh['x.1'=4] {'x.1'}": ((0, 1, 2, 3),),
    "mesh['a'=4] {'a':(1)2}": None,  # a part of an axis, which the evaluator refuses
}
"""Text of replica_groups on a mesh → the groups."""


def all_reduce(groups: str):
    return parse_module(
        "HloModule m, replica_count=4\n"
        "f {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n"
        f"ENTRY e {{\n p = f32[] parameter(0)\n ROOT r = f32[] all-reduce(p), replica_groups={groups}, to_apply=f\n}}\n"
    )


@pytest.mark.parametrize("text", MESHES)
def test_groups_on_a_mesh_keep_their_text(text):
    again = module_from_proto(module_to_proto(all_reduce(text))).entry.root
    assert again.attributes["replica_groups"].text == text
    assert mesh_groups(text) == MESHES[text]


@pytest.mark.xla
@pytest.mark.parametrize("text", MESHES)
def test_groups_on_a_mesh_are_xlas(xla, text):
    hlo, options = xla
    ours = module_to_proto(all_reduce(text))
    printed = hlo.HloModule.from_serialized_hlo_module_proto(ours).to_string(options)
    assert f"replica_groups={text}, " in printed
    theirs = hlo.hlo_module_from_text(printed).as_serialized_hlo_module_proto()
    assert module_from_proto(theirs).entry.root.attributes["replica_groups"].text == text


@pytest.mark.parametrize(
    "text", ["mesh['a'=2] {'b'}", "mesh['a=2] {}", "mesh['a'=2], device_ids=(x) {'a'}", "mesh['a'=2] {'a'} 3"]
)
def test_malformed_groups_on_a_mesh_are_refused(text):
    with pytest.raises(InputError, match="replica_groups cannot be written to a proto"):
        read_mesh_groups(text, schema.message("MeshAxesReplicaGroupListProto")())


def test_what_has_no_field_is_refused():
    module = parse_module(
        "f {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n"
        "ENTRY e {\n p = f32[] parameter(0)\n ROOT a = f32[] all-reduce(p), to_apply=f, mode=flattened_id\n}\n"
    )
    with pytest.raises(InputError, match="a: the attribute mode has no field"):
        module_to_proto(module)


def test_an_elided_constant_is_refused():
    module = parse_module("HloModule m\n\nENTRY e {\n ROOT p = f32[2]{0} constant({...})\n}\n")
    with pytest.raises(InputError, match="elided"):
        module_to_proto(module)


# -- snapshots --------------------------------------------------------------------------------------------------------
ADD = "HloModule m\n\nENTRY e {\n p = f32[2,3]{0,1} parameter(0)\n ROOT r = (f32[2,3]{1,0}) tuple(p)\n}\n"


def snapshot():
    module, value = parse_module(ADD), np.arange(6, dtype=np.float32).reshape(2, 3)
    p = module.parameter_shapes[0]
    return Snapshot(module, (Literal(p, value),), literal_of([value], module.result_shape), "cpu"), value


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


# -- damage -----------------------------------------------------------------------------------------------------------
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


# -- against XLA ------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def xla():
    pytest.importorskip("jaxlib", reason="needs jaxlib (./testbed setup --xla)")
    from jaxlib import _hlo

    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    return _hlo, options


@pytest.mark.parametrize(
    ("suite", "count"), [("op_cases/*.hlo", 40), ("xla_modules/*.hlo", 60), ("jax_programs/*/module.hlo", 6)]
)
def test_protos_are_xlas(xla, suite, count):
    """XLA's proto read by us, and ours read by XLA, equal the module that both read from text."""
    hlo, options = xla
    for path in sample(suite, None if DEEP else count, seed=7):
        text = path.read_text()
        if "sparsity_config" in text:
            continue
        theirs = hlo.hlo_module_from_text(text)
        printed = theirs.to_string(options)
        want = canonical(parse_module(printed))
        assert difference(want, canonical(module_from_proto(theirs.as_serialized_hlo_module_proto()))) is None, path
        back = hlo.HloModule.from_serialized_hlo_module_proto(module_to_proto(parse_module(printed)))
        assert difference(want, canonical(parse_module(back.to_string(options)))) is None, path


NEWER = {"ALG_DOT_BF16_BF16_FP8X3", "ALG_DOT_BF16_BF16_FP8X4", "HloInstructionProto.comparison_order"}
"""Labels of enums and fields that jaxlib 0.12 has, and 0.10 has not."""


@pytest.mark.parametrize(
    ("dtype", "order", "wanted"),
    [("f32", "TOTAL", "TOTALORDER"), ("f32", "PARTIAL", None), ("s32", "TOTAL", None), ("f32", "", None)],
)
def test_the_order_of_a_comparison_is_read_as_its_type(dtype, order, wanted):
    text = f"ENTRY e {{\n  x = {dtype}[2] parameter(0)\n  ROOT c = pred[2] compare(x, x), direction=LT\n}}"
    proto = schema.message("HloModuleProto").FromString(module_to_proto(parse_module(text)))
    compare = proto.computations[0].instructions[1]
    compare.comparison_type, compare.comparison_order = "", order
    assert module_from_proto(proto.SerializeToString()).entry.root.attributes.get("type") == wanted
    compare.comparison_order = "WEAK"
    with pytest.raises(TestbedError, match="comparison_order: 'WEAK' is not supported"):
        module_from_proto(proto.SerializeToString())


def test_fields_and_enums_are_those_that_jaxlib_carries(xla):
    """Every row of the sources, compared with the descriptors in jaxlib's own binary."""
    found = descriptors_in_jaxlib()
    assert found, "no descriptor in jaxlib's library"

    def rows(owner, path, messages):
        for enum in owner.enum_type:
            yield f"{path}{enum.name}", [(value.name, value.number) for value in enum.value]
        for message in messages:
            for field in message.field:
                row = (field.number, field.type, field.label, field.type_name)
                yield f"{path}{message.name}.{field.name}", row
            yield from rows(message, f"{path}{message.name}.", message.nested_type)

    theirs = {name: row for file in found for name, row in rows(file, "", file.message_type)}
    for file in schema.file_descriptors():
        for name, row in rows(file, "", file.message_type):
            if name in NEWER and name not in theirs:
                continue
            assert name in theirs, f"{name} is unknown to jaxlib"
            if isinstance(row, list):
                assert not {label for label, _ in set(theirs[name]) ^ set(row)} - NEWER, name
            else:
                assert theirs[name] == row, name


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("message A {\n  int32 a = x;\n}", "f.proto:2: expected a number, found 'x'"),
        ("message A {\n  int32 a 1;\n}", "f.proto:2: expected '=', found '1'"),
        ("message A {\n  // none\n  oneof o {\n", "f.proto:4: expected '=', found ''"),
        ('syntax = "proto2";', "f.proto:1: expected 'proto3', found 'proto2'"),
        ("option x = 1;", "f.proto:1: expected a message or an enum, found 'option'"),
        ("message A [", "f.proto:1: unexpected '\\['"),
    ],
)
def test_a_source_that_cannot_be_read_is_an_error_with_its_line(text, complaint):
    with pytest.raises(ValueError, match=complaint):
        read_proto_file("f.proto", text)


def descriptors_in_jaxlib():
    """FileDescriptorProtos of hlo.proto and xla_data.proto, as the protobuf compiler embeds them in a library."""
    import mmap
    from pathlib import Path

    import jaxlib
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    out = []
    for library in sorted(Path(jaxlib.__file__).parent.glob("*.so")):
        if library.stat().st_size < 1 << 20:
            continue
        with open(library, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for name in (b"xla/service/hlo.proto", b"xla/xla_data.proto"):
                at = data.find(b"\n" + bytes([len(name)]) + name)
                if at >= 0:
                    out.append(FileDescriptorProto.FromString(data[at : top_level_end(data, at)]))
    return out


def top_level_end(data, at):
    """The end of the fields of a FileDescriptorProto; its last field is `syntax`."""
    while True:
        tag, size, shift = data[at], 0, 0
        while True:
            at += 1
            size |= (data[at] & 127) << shift
            shift += 7
            if data[at] < 128:
                break
        at += 1 + size
        if tag == 12 << 3 | 2:
            return at


_PERMUTED = {
    "one slice": ("x", "y", "si", "f32[8,128]", "{{4,64}}", "{{0,1},{1,0}}"),
    "two slices of one array": ("x", "y", "ss", "f32[8,128]", "{{4,64},{2,32}}", "{{0,1},{1,0},{0,1},{1,0}}"),
    "two arrays": ("xw", "yv", "st", "(f32[8,128], s8[8,128,3])", "{{4,64},{2,32,1}}", "{{0,1},{1,0}}"),
}


def _permute(kind: str) -> str:
    inputs, outputs, starts, shape, sizes, pairs = _PERMUTED[kind]
    return f"""HloModule m
ENTRY e {{
  x = f32[8,128] parameter(0)
  y = f32[8,128] parameter(1)
  w = s8[8,128,3] parameter(2)
  v = s8[8,128,3] parameter(3)
  z = s32[] constant(0)
  xw = (f32[8,128], s8[8,128,3]) tuple(x, w)
  yv = (f32[8,128], s8[8,128,3]) tuple(y, v)
  si = (s32[], s32[]) tuple(z, z)
  sj = (s32[], s32[], s32[]) tuple(z, z, z)
  ss = ((s32[], s32[]), (s32[], s32[])) tuple(si, si)
  st = ((s32[], s32[]), (s32[], s32[], s32[])) tuple(si, sj)
  ROOT c = {shape} collective-permute({inputs}, {outputs}, {starts}, {starts}), source_target_pairs={pairs},
    slice_sizes={sizes}
}}
"""


@pytest.mark.parametrize("kind", _PERMUTED)
def test_a_collective_permute_of_slices(kind):
    module = parse_module(_permute(kind))
    data = module_to_proto(module)
    assert module_from_proto(data).entry.root.attributes["slice_sizes"] == module.entry.root.attributes["slice_sizes"]
    proto = schema.message("HloModuleProto")()
    proto.ParseFromString(data)
    (permute,) = (i for i in proto.computations[0].instructions if i.opcode == "collective-permute")
    permute.dynamic_slice_sizes.append(7)
    with pytest.raises(InputError, match=r"dynamic_slice_sizes: .* sizes for slices of ranks"):
        module_from_proto(proto.SerializeToString())


@pytest.mark.parametrize("kind", _PERMUTED)
def test_a_collective_permute_of_slices_is_xlas(xla, kind):
    hlo, options = xla
    theirs = hlo.hlo_module_from_text(_permute(kind))
    printed = theirs.to_string(options)
    want = canonical(parse_module(printed))
    assert difference(want, canonical(module_from_proto(theirs.as_serialized_hlo_module_proto()))) is None
    back = hlo.HloModule.from_serialized_hlo_module_proto(module_to_proto(parse_module(printed)))
    assert f"slice_sizes={_PERMUTED[kind][4]}" in back.to_string()
