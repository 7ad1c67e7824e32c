"""HloModuleProto: replica groups on a mesh, and slices that collectives permute."""

import pytest

from ...formats.proto import schema
from ...formats.proto.mesh_groups import read_mesh_groups
from ...formats.proto.proto import (
    module_from_proto,
    module_to_proto,
)
from ...formats.text.parser import parse_module
from ...hlo.equality import difference
from ...hlo.errors import InputError
from ...hlo.replica_groups import mesh_groups
from ..support.hlo_canonical import canonical
from ..support.protos import xla_hlo


@pytest.fixture(scope="module")
def xla():
    return xla_hlo()


MESHES = {
    "mesh['a'=2,'b'=2] {'b'}": ((0, 1), (2, 3)),
    "mesh['a'=2,'b'=2], device_ids=(3,1,2,0) {'b'}": ((3, 1), (2, 0)),
    "mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}": ((0, 2), (1, 3)),
    "mesh['x.1'=4] {'x.1'}": ((0, 1, 2, 3),),
    "mesh['a'=4] {'a':(1)2}": ((0, 2), (1, 3)),  # a part of an axis
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
