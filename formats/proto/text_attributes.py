"""Attributes that the parser keeps as text (sharding, metadata, …) ↔ their proto messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...hlo.errors import InputError, ParseError
from ..text.lexer import Lexer
from ..text.parse_values import raw_end
from ..text.printer import quote
from .schema import enum_name, enum_number
from .tokens import Tokens

# -- sharding ---------------------------------------------------------------------------------------------------------
_PLAIN = {"replicated": "REPLICATED", "manual": "MANUAL", "unknown": "UNKNOWN", "unreduced": "UNREDUCED"}
_WORDS = {v: k for k, v in _PLAIN.items()}


def read_sharding(text: str, proto: Any) -> None:
    """Fill an OpSharding from `{devices=[2,1]<=[2]}`, `{{replicated}, {manual}}`, …"""
    tokens = Tokens(text, "sharding")
    _sharding(tokens, proto)
    tokens.end()


def _sharding(t: Tokens, proto: Any) -> None:
    t.expect("{")
    if t.peek() in ("{", "}"):
        proto.type = enum_number("OpSharding.Type", "TUPLE")
        while not t.eat("}"):
            _sharding(t, proto.tuple_shardings.add())
            t.eat(",")
        return
    while not t.eat("}"):
        word = t.next()
        if word in _PLAIN:
            proto.type = enum_number("OpSharding.Type", _PLAIN[word])
        elif word == "maximal":
            proto.type = enum_number("OpSharding.Type", "MAXIMAL")
            proto.tile_assignment_dimensions.append(1)
        elif word == "device":
            t.expect("=")
            proto.tile_assignment_devices.append(t.integer())
        elif word == "devices":
            _devices(t, proto)
        elif word == "last_tile_dim_replicate":
            proto.replicate_on_last_tile_dim = True
        elif word == "last_tile_dims":
            _last_tile_dims(t, proto)
        elif word == "metadata":
            t.expect("=")
            if t.tokens[t.at : t.at + 2] == ["{", "{"]:
                t.expect("{")
                while not t.eat("}"):
                    _metadata(t, proto.metadata.add())
                    t.eat(",")
            else:
                _metadata(t, proto.metadata.add())
        elif word in ("shard_as", "shard_like"):
            proto.is_shard_group = True
            proto.shard_group_type = enum_number("OpSharding.ShardGroupType", word[6:].upper())
            proto.shard_group_id = t.integer()
        else:
            t.fail(f"{word!r} is not known in a sharding")
        t.eat(",")


def _devices(t: Tokens, proto: Any) -> None:
    t.expect("=")
    proto.type = enum_number("OpSharding.Type", "OTHER")
    proto.tile_assignment_dimensions.extend(t.integers())
    if t.eat("<="):
        _iota(t, proto)
        return
    while re.match(r"-?\d", t.peek()):
        proto.tile_assignment_devices.append(t.integer())
        if not t.eat(","):
            break


def _iota(t: Tokens, proto: Any) -> None:
    proto.iota_reshape_dims.extend(t.integers())
    perm = t.integers("()") if t.eat("T") else list(range(len(proto.iota_reshape_dims)))
    proto.iota_transpose_perm.extend(perm)


def _last_tile_dims(t: Tokens, proto: Any) -> None:
    t.expect("=")
    t.expect("{")
    while not t.eat("}"):
        word = t.next()
        if word not in _PLAIN:
            t.fail(f"{word!r} is no kind of a tile dimension")
        proto.last_tile_dims.append(enum_number("OpSharding.Type", _PLAIN[word]))
        t.eat(",")


def sharding_text(proto: Any) -> str:
    """The text of an OpSharding, as XLA prints it."""
    kind = enum_name("OpSharding.Type", proto.type)
    if kind == "TUPLE":
        return "{" + ", ".join(map(sharding_text, proto.tuple_shardings)) + "}"
    if proto.HasField("named_sharding"):
        raise InputError(
            "sharding: a named (mesh) sharding cannot be written as text", remedy="dump the module as HLO text"
        )
    parts = []
    if kind == "MAXIMAL":
        parts.append("maximal device=" + ",".join(map(str, proto.tile_assignment_devices)))
    elif kind == "OTHER":
        parts.append(f"devices=[{_join(proto.tile_assignment_dimensions)}]" + _device_order(proto))
    elif kind in _WORDS:
        parts.append(_WORDS[kind])
    else:
        raise InputError(f"sharding: type {proto.type} is unknown", remedy="is the proto of a newer XLA?")
    if proto.replicate_on_last_tile_dim:
        parts.append("last_tile_dim_replicate")
    if proto.last_tile_dims:
        kinds = (_WORDS.get(enum_name("OpSharding.Type", k) or "", "unknown") for k in proto.last_tile_dims)
        parts.append("last_tile_dims={" + ", ".join(kinds) + "}")
    if proto.is_shard_group:
        parts.append(f"shard_{'like' if proto.shard_group_type else 'as'} {proto.shard_group_id}")
    rows = [metadata_text(m) or "{}" for m in proto.metadata]
    if rows:
        parts.append("metadata=" + (rows[0] if len(rows) == 1 else "{" + ", ".join(rows) + "}"))
    return "{" + " ".join(parts) + "}"


def _join(numbers: Any) -> str:
    return ",".join(map(str, numbers))


def _device_order(proto: Any) -> str:
    if not proto.iota_reshape_dims:
        return _join(proto.tile_assignment_devices)
    return "<=" + _iota_text(proto)


def _iota_text(proto: Any) -> str:
    perm = list(proto.iota_transpose_perm)
    turned = f"T({_join(perm)})" if perm != list(range(len(perm))) else ""
    return f"[{_join(proto.iota_reshape_dims)}]{turned}"


# -- messages whose text is a list of name=value ----------------------------------------------------------------------
METADATA = (
    ("op_type", str),
    ("op_name", str),
    ("source_file", str),
    ("source_line", int),
    ("source_end_line", int),
    ("source_column", int),
    ("source_end_column", int),
    ("profile_type", list),
    ("deduplicated_name", str),
    ("stack_frame_id", int),
    ("scheduling_name", str),
    ("size_of_generated_code_in_bytes", int),
    ("size_of_memory_working_set_in_bytes", int),
)
"""Fields of OpMetadata that have text, in XLA's order."""


def read_metadata(text: str, proto: Any) -> None:
    """Fill an OpMetadata from `{op_name="…" source_line=3}`."""
    t = Tokens(text, "metadata")
    _metadata(t, proto)
    t.end()


def _metadata(t: Tokens, proto: Any) -> None:
    known = dict(METADATA)
    t.expect("{")
    while not t.eat("}"):
        key = t.next()
        t.expect("=")
        if known.get(key) is str:
            setattr(proto, key, t.string())
        elif known.get(key) is int:
            setattr(proto, key, t.integer())
        elif known.get(key) is list:
            proto.profile_type.extend(t.integers("{}"))
        else:
            t.fail(f"{key!r} is no field of metadata")
        t.eat(",")


def quoted(text: str) -> str:
    """A quoted string as XLA prints it in metadata and stack frames: single quotes are escaped too."""
    return quote(text).replace("'", "\\'")


def metadata_text(proto: Any) -> str:
    parts = []
    for key, kind in METADATA:
        value = getattr(proto, key)
        if kind is str and value:
            parts.append(f"{key}={quoted(value)}")
        elif kind is int and value:
            parts.append(f"{key}={value}")
        elif kind is list and value:
            parts.append(f"{key}={{{_join(value)}}}")
    return "{" + " ".join(parts) + "}" if parts else ""


def read_frontend_attributes(text: str, proto: Any) -> None:
    """Fill FrontendAttributes from `{key="value",…}`; a value that is a bare dictionary is kept as text."""
    t = Tokens(text, "frontend_attributes")
    t.expect("{")
    while not t.eat("}"):
        key = t.string()
        t.expect("=")
        proto.map[key] = t.dictionary() if t.peek() == "{" else t.string()
        t.eat(",")


_WORD = re.compile(r"[A-Za-z_][\w.\-]*")


def frontend_attributes_text(proto: Any) -> str:
    pairs = sorted(proto.map.items())
    rows = (f"{k if _WORD.fullmatch(k) else quote(k)}={v if is_dictionary(v) else quote(v)}" for k, v in pairs)
    return "{" + ",".join(rows) + "}" if pairs else ""


def is_dictionary(text: str) -> bool:
    """Whether XLA prints this value without quotes: it is a `{…}` with balanced brackets."""
    if not text.startswith("{"):
        return False
    try:
        return raw_end(Lexer(text), "value") == len(text)
    except ParseError:
        return False


def read_statistics(text: str, proto: Any) -> None:
    t = Tokens(text, "statistics")
    t.expect("{")
    while not t.eat("}"):
        key = t.next()
        t.expect("=")
        if key == "visualizing_index":
            proto.stat_index_to_visualize = t.integer()
        else:
            proto.statistics.add(stat_name=key, stat_val=t.real())
        t.eat(",")


def statistics_text(proto: Any) -> str:
    if not proto.statistics:
        return ""
    rows = ",".join(f"{s.stat_name}={s.stat_val:g}" for s in proto.statistics)
    return f"{{visualizing_index={proto.stat_index_to_visualize},{rows}}}"


def read_result_accuracy(text: str, proto: Any) -> None:
    t = Tokens(text, "result_accuracy")
    t.expect("{")
    kind = t.next()
    t.expect("=")
    if kind == "mode":
        number = enum_number("ResultAccuracy.Mode", t.next().upper())
        proto.mode = t.fail("an unknown mode") if number is None else number
    else:
        t.expect("{")
        while not t.eat("}"):
            key = t.next()
            t.expect("=")
            if key not in ("atol", "rtol", "ulps"):
                t.fail(f"{key!r} is no tolerance")
            setattr(proto.tolerance, key, t.integer() if key == "ulps" else t.real())
            t.eat(",")
    t.expect("}")


def result_accuracy_text(proto: Any) -> str:
    if proto.HasField("tolerance"):
        x = proto.tolerance
        return f"{{tolerance={{atol={x.atol:g},rtol={x.rtol:g},ulps={x.ulps}}}}}"
    if proto.HasField("mode") and proto.mode:
        return f"{{mode={(enum_name('ResultAccuracy.Mode', proto.mode) or '?').lower()}}}"
    return ""


# -- device groups ----------------------------------------------------------------------------------------------------
def read_iota_groups(text: str, proto: Any) -> None:
    """Fill an IotaReplicaGroupListProto from `[2,4]<=[8]T(1,0)`."""
    t = Tokens(text, "replica_groups")
    dims = t.integers()
    if len(dims) != 2 or not t.eat("<="):
        t.fail("only lists and the form [groups,devices]<=[…] are supported")
    proto.num_replica_groups, proto.num_devices_per_group = dims
    _iota(t, proto)
    t.end()


def iota_groups_text(proto: Any) -> str:
    return f"[{proto.num_replica_groups},{proto.num_devices_per_group}]<={_iota_text(proto)}"


# -- origin: original_value -------------------------------------------------------------------------------------------
def read_origin(text: str, proto: Any) -> None:
    """Fill an OriginalValueProto from `{({"a"}, {"b" {1}})}`."""
    t = Tokens(text, "origin")

    def value(index: tuple[int, ...]) -> None:
        if t.eat("("):
            i = 0
            while not t.eat(")"):
                value((*index, i))
                t.eat(",")
                i += 1
            return
        t.expect("{")
        element = proto.elements.add(shape_index=index)
        if t.eat("}"):
            return
        element.original_array.instruction_name = t.string()
        if t.peek() == "{":
            element.original_array.shape_index.extend(t.integers("{}"))
        t.expect("}")

    t.expect("{")
    if t.peek().startswith("["):
        t.fail("a synthetic call is not supported")
    value(())
    t.expect("}")


def origin_text(proto: Any) -> str:
    """The text of an OriginalValueProto; '' if it is empty. A leaf without an element prints as `{}`."""
    tree: dict[Any, Any] = {}
    for element in proto.elements:
        array, node = element.original_array, tree
        for i in element.shape_index:
            node = node.setdefault(i, {})
        index = f" {{{_join(array.shape_index)}}}" if array.shape_index else ""
        node[None] = "{" + quote(array.instruction_name) + index + "}" if array.instruction_name else "{}"

    def text(node: dict[Any, Any]) -> str:
        if None in node or not node:
            return node.get(None, "{}")
        return "(" + ", ".join(text(node.get(i, {})) for i in range(max(node) + 1)) + ")"

    return "{" + text(tree) + "}" if tree else ""


def read_domain(text: str, proto: Any) -> None:
    """Fill both shardings of a domain instruction from `{kind="sharding", entry={…}, exit={…}}`."""
    m = re.fullmatch(r'\{\s*kind="sharding",\s*entry=(\{.*\}),\s*exit=(\{.*\})\s*\}', text, re.DOTALL)
    if not m:
        raise InputError("domain cannot be written to a proto", remedy='write {kind="sharding", entry=…, exit=…}')
    # XLA's text writes the exit sharding as `entry` and the entry sharding as `exit`.
    for side, field in ((m[1], proto.domain_exit_sharding), (m[2], proto.domain_entry_sharding)):
        if side != "{}":
            read_sharding(side, field)


def domain_text(proto: Any) -> str:
    sides = []
    for name in ("domain_exit_sharding", "domain_entry_sharding"):
        sides.append(sharding_text(getattr(proto, name)) if proto.HasField(name) else "{}")
    return f'{{kind="sharding", entry={sides[0]}, exit={sides[1]}}}'


RAW: dict[str, tuple[str, Callable[[str, Any], None], Callable[[Any], str]]] = {
    "metadata": ("metadata", read_metadata, metadata_text),
    "sharding": ("sharding", read_sharding, sharding_text),
    "frontend_attributes": ("frontend_attributes", read_frontend_attributes, frontend_attributes_text),
    "statistics": ("statistics_viz", read_statistics, statistics_text),
    "result_accuracy": ("result_accuracy", read_result_accuracy, result_accuracy_text),
    "origin": ("original_value", read_origin, origin_text),
}
"""Attribute → (its field, function that fills the message from text, function that makes text from the message).

The text is '' if the message is empty.
"""
