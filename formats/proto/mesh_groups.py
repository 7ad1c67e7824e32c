"""replica_groups that name axes of a mesh of devices: between text and MeshAxesReplicaGroupListProto."""

from __future__ import annotations

from typing import Any

from ...hlo.errors import InputError
from .tokens import Tokens


def mesh_groups_text(proto: Any) -> str:
    """The text of a MeshAxesReplicaGroupListProto: `mesh['a'=2,'b'=4], device_ids=(…) {'b':(1)2}`."""
    mesh = proto.mesh
    axes = ",".join(f"'{axis.name}'={axis.size}" for axis in mesh.axes)
    if mesh.HasField("iota_transform"):
        iota = mesh.iota_transform
        order = f"T({_join(iota.transpose_perm)})" if iota.transpose_perm else ""
        ids = f", device_ids=([{_join(iota.reshape_dims)}]{order})"
    else:
        ids = f", device_ids=({_join(mesh.device_ids)})" if mesh.device_ids else ""
    return f"mesh[{axes}]{ids} {{{','.join(_axis_text(mesh, axis) for axis in proto.axes)}}}"


def _join(numbers: Any) -> str:
    return ",".join(map(str, numbers))


def _axis_text(mesh: Any, axis: Any) -> str:
    if not 0 <= axis.mesh_axis_index < len(mesh.axes):
        raise InputError(f"replica_groups: the mesh has no axis {axis.mesh_axis_index}", remedy="is the proto damaged?")
    part = axis.sub_axis_info
    name = f"'{mesh.axes[axis.mesh_axis_index].name}'"
    return f"{name}:({part.pre_size}){part.size}" if axis.HasField("sub_axis_info") else name


def read_mesh_groups(text: str, proto: Any) -> None:
    """Fill a MeshAxesReplicaGroupListProto from the text that `mesh_groups_text` makes."""
    t = Tokens(text, "replica_groups")
    t.expect("mesh")
    t.expect("[")
    places: dict[str, int] = {}
    while not t.eat("]"):
        name = _quoted(t)
        t.expect("=")
        places[name] = len(places)
        proto.mesh.axes.add(name=name, size=t.integer())
        t.eat(",")
    t.eat(",")
    if t.eat("device_ids"):
        t.expect("=")
        _device_ids(t, proto.mesh)
        t.eat(",")
    t.expect("{")
    while not t.eat("}"):
        name = _quoted(t)
        if name not in places:
            t.fail(f"the mesh has no axis {name!r}")
        axis = proto.axes.add(mesh_axis_index=places[name])
        if t.eat(":"):
            (axis.sub_axis_info.pre_size,) = t.integers("()")
            axis.sub_axis_info.size = t.integer()
        t.eat(",")
    t.end()


def _quoted(t: Tokens) -> str:
    t.expect("'")
    name = ""
    while not t.eat("'"):
        if not t.peek():
            t.fail("an axis without a closing quote")
        name += t.next()
    return name


def _device_ids(t: Tokens, mesh: Any) -> None:
    """Reads `(3,1,2,0)` or `([2,2]T(1,0))`."""
    t.expect("(")
    if t.peek() == "[":
        mesh.iota_transform.reshape_dims.extend(t.integers())
        if t.eat("T"):
            mesh.iota_transform.transpose_perm.extend(t.integers("()"))
        t.expect(")")
        return
    while not t.eat(")"):
        mesh.device_ids.append(t.integer())
        t.eat(",")
