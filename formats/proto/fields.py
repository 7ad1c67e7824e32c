"""Attributes of instructions ↔ fields of HloInstructionProto: one row of FIELDS per attribute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from ...hlo.attributes import OutputAlias, PadDim, Raw, SliceDim, Window, WindowDim
from ...hlo.errors import InputError
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from .convolution import read_convolution, write_convolution
from .mesh_groups import mesh_groups_text, read_mesh_groups
from .schema import enum_name, enum_number
from .shapes import read_literal, read_shape, write_literal, write_shape
from .text_attributes import RAW, domain_text, iota_groups_text, is_dictionary, read_domain, read_iota_groups


@dataclass(frozen=True, slots=True)
class Field:
    """read(proto, where): the attribute's value in an instruction's proto, or None; `where` names the proto in errors.
    write(proto, value): sets it.
    """

    read: Callable[[Any, str], Any]
    write: Callable[[Any, Any], None]


def _set(proto: Any, path: str, value: Any) -> None:
    *outer, last = path.split(".")
    for name in outer:
        proto = getattr(proto, name)
    if isinstance(value, tuple):
        getattr(proto, last).extend(value)
    else:
        setattr(proto, last, value)


def _get(proto: Any, path: str) -> Any:
    for name in path.split("."):
        proto = getattr(proto, name)
    return proto


def scalar(path: str) -> Field:
    """A number, boolean or string that proto and attribute hold in the same form."""
    return Field(lambda p, w: _get(p, path), lambda p, v: _set(p, path, v))


def ints(path: str) -> Field:
    return Field(lambda p, w: tuple(_get(p, path)), lambda p, v: _set(p, path, v))


def string_bytes(path: str) -> Field:
    """A string in a field of bytes; bytes that are not UTF-8 become surrogates (surrogateescape)."""
    return Field(
        lambda p, w: _get(p, path).decode("utf-8", "surrogateescape"),
        lambda p, v: _set(p, path, v.encode("utf-8", "surrogateescape")),
    )


def enum(path: str, kind: str, to_text: Callable[[str], str] = str, to_label: Callable[[str], str] = str) -> Field:
    """An enum. to_text makes the attribute's text from the proto's label, to_label the reverse."""
    first = next(label for label in [enum_name(kind, 0)] if label is not None)

    def read(proto: Any, where: str) -> str | None:
        number = _get(proto, path)
        label = enum_name(kind, number)
        if label is None:
            raise InputError(f"{where}.{path}: {kind} has no value {number}", remedy="is the proto of a newer XLA?")
        return None if label == first and number == 0 and kind not in _ZERO_COUNTS else to_text(label)

    def write(proto: Any, value: str) -> None:
        number = enum_number(kind, to_label(value))
        if number is None:
            raise InputError(f"{value!r} is no {kind} and cannot be written to a proto")
        _set(proto, path, number)

    return Field(read, write)


_ZERO_COUNTS = frozenset({"FftType", "RandomAlgorithm", "CustomCallApiVersion"})
"""Enums whose value 0 is a real value; in all others 0 means that the attribute is absent."""


def raw(attribute: str) -> Field:
    """An attribute that is kept as Raw text and has a message type of its own in the proto."""
    path, to_proto, to_text = RAW[attribute]

    def read(proto: Any, where: str) -> Raw | None:
        if not proto.HasField(path):
            return None
        text = to_text(getattr(proto, path))
        return Raw(text) if text else None

    def write(proto: Any, value: Raw) -> None:
        getattr(proto, path).SetInParent()
        to_proto(value.text, getattr(proto, path))

    return Field(read, write)


# -- structured values ------------------------------------------------------------------------------------------------
def _write_slices(proto: Any, value: tuple[SliceDim, ...]) -> None:
    for d in value:
        proto.slice_dimensions.add(start=d.start, limit=d.limit, stride=d.stride)


def _write_padding(proto: Any, value: tuple[PadDim, ...]) -> None:
    proto.padding_config.SetInParent()
    for d in value:
        proto.padding_config.dimensions.add(
            edge_padding_low=d.low, edge_padding_high=d.high, interior_padding=d.interior
        )


def _read_padding(proto: Any, where: str) -> tuple[PadDim, ...]:
    dims = proto.padding_config.dimensions
    return tuple(PadDim(d.edge_padding_low, d.edge_padding_high, d.interior_padding) for d in dims)


def _read_window(proto: Any, where: str) -> Window | None:
    if not proto.window.dimensions:
        return None
    return Window(
        tuple(
            WindowDim(
                d.size,
                d.stride,
                d.padding_low,
                d.padding_high,
                d.base_dilation,
                d.window_dilation,
                d.window_reversal,
            )
            for d in proto.window.dimensions
        )
    )


def _write_window(proto: Any, value: Window) -> None:
    proto.window.SetInParent()
    for d in value.dims:
        proto.window.dimensions.add(
            size=d.size,
            stride=d.stride,
            padding_low=d.pad_low,
            padding_high=d.pad_high,
            base_dilation=d.lhs_dilate,
            window_dilation=d.rhs_dilate,
            window_reversal=d.reverse,
        )


def _read_precision(proto: Any, where: str) -> tuple[str, ...] | None:
    kinds = [enum_name("PrecisionConfig.Precision", k) for k in proto.precision_config.operand_precision]
    if None in kinds:
        raise InputError(f"{where}.precision_config.operand_precision: an unknown value", remedy="is it damaged?")
    return tuple(str(k).lower() for k in kinds) if any(k != "DEFAULT" for k in kinds) else None


def _write_precision(proto: Any, value: tuple[str, ...]) -> None:
    for word in value:
        number = enum_number("PrecisionConfig.Precision", word.upper())
        if number is None:
            raise InputError(f"operand_precision {word!r} cannot be written to a proto")
        proto.precision_config.operand_precision.append(number)


def _read_groups(proto: Any, where: str) -> Any:
    which = proto.WhichOneof("replica_group_list")
    if which == "iota_collective_device_list":
        return Raw(iota_groups_text(proto.iota_collective_device_list))
    if which == "mesh_axes_replica_group_list":
        return Raw(mesh_groups_text(proto.mesh_axes_replica_group_list))
    groups = proto.collective_device_list.replica_groups if which else proto.replica_groups
    return tuple(tuple(g.replica_ids) for g in groups)


def _write_groups(proto: Any, value: Any) -> None:
    if isinstance(value, Raw) and value.text.startswith("mesh"):
        read_mesh_groups(value.text, proto.mesh_axes_replica_group_list)
        return
    if isinstance(value, Raw):
        read_iota_groups(value.text, proto.iota_collective_device_list)
        return
    proto.collective_device_list.SetInParent()
    for group in value:
        ids = group if isinstance(group, tuple) else (group,)
        proto.collective_device_list.replica_groups.add(replica_ids=ids)


def _write_pairs(proto: Any, value: tuple[tuple[int, int], ...]) -> None:
    for source, target in value:
        proto.source_target_pairs.add(source=source, target=target)


def _write_shapes(proto: Any, value: Any) -> None:
    proto.constrain_layout = True
    for shape in value:
        write_shape(shape, proto.operand_shapes_with_layout.add())


def _read_operand_layouts(proto: Any, where: str) -> Any:
    if not proto.constrain_layout:
        return None
    rows = enumerate(proto.operand_shapes_with_layout)
    return tuple(read_shape(s, f"{where}.operand_shapes_with_layout[{i}]") for i, s in rows)


def _read_aliases(proto: Any, where: str) -> tuple[OutputAlias, ...] | None:
    rows = proto.output_operand_aliasing
    return (
        tuple(OutputAlias(tuple(a.output_shape_index), a.operand_index, tuple(a.operand_shape_index)) for a in rows)
        or None
    )


def _write_aliases(proto: Any, value: tuple[OutputAlias, ...]) -> None:
    for a in value:
        proto.output_operand_aliasing.add(
            output_shape_index=a.output, operand_index=a.operand, operand_shape_index=a.operand_index
        )


def _read_backend_config(proto: Any, where: str) -> str | Raw | None:
    text = proto.backend_config.decode("utf-8", "surrogateescape")
    if not text:
        return None
    return Raw(text) if is_dictionary(text) else text


def _text(value: str | Raw) -> str:
    return value.text if isinstance(value, Raw) else value


def _read_domain(proto: Any, where: str) -> Raw:
    return Raw(domain_text(proto))


def _read_replication(proto: Any, where: str) -> tuple[bool, ...] | None:
    return tuple(proto.parameter_replication.replicated_at_leaf_buffers) or None


def _write_replication(proto: Any, value: Any) -> None:
    flags = value if isinstance(value, tuple) else (value,)
    proto.parameter_replication.replicated_at_leaf_buffers.extend(flags)


def _optional_scalar(path: str) -> Field:
    return Field(lambda p, w: _get(p, path) if p.HasField(path) else None, lambda p, v: _set(p, path, v))


def _one_of_list(path: str) -> Field:
    """A number that is the only element of a repeated field."""

    def read(proto: Any, where: str) -> int | None:
        values = _get(proto, path)
        return values[0] if len(values) else None

    return Field(read, lambda p, v: _get(p, path).append(v))


def _read_literal_field(proto: Any, where: str) -> Any:
    return read_literal(proto.literal, f"{where}.literal") if proto.HasField("literal") else None


_API_VERSION = enum("custom_call_api_version", "CustomCallApiVersion")
ORIGINAL = 1
"""The API version of a custom call whose text states none (API_VERSION_ORIGINAL)."""


def _read_api_version(proto: Any, where: str) -> str | None:
    return None if proto.custom_call_api_version == ORIGINAL else _API_VERSION.read(proto, where)


DOT = "dot_dimension_numbers."
RAGGED = "ragged_dot_dimension_numbers."
GATHER = "gather_dimension_numbers."
SCATTER = "scatter_dimension_numbers."
SOLVE = "triangular_solve_options."
_DOT_DIMS = (
    ("lhs_contracting_dims", "lhs_contracting_dimensions"),
    ("rhs_contracting_dims", "rhs_contracting_dimensions"),
    ("lhs_batch_dims", "lhs_batch_dimensions"),
    ("rhs_batch_dims", "rhs_batch_dimensions"),
)

FIELDS: dict[str, Field] = {
    "dimensions": ints("dimensions"),
    "iota_dimension": _one_of_list("dimensions"),
    "inferred_dimension": _one_of_list("dimensions"),
    "slice": Field(lambda p, w: tuple(SliceDim(d.start, d.limit, d.stride) for d in p.slice_dimensions), _write_slices),
    "dynamic_slice_sizes": ints("dynamic_slice_sizes"),
    "padding": Field(_read_padding, _write_padding),
    "window": Field(_read_window, _write_window),
    "dim_labels": Field(read_convolution, write_convolution),
    "index": scalar("tuple_index"),
    "feature_group_count": scalar("feature_group_count"),
    "batch_group_count": scalar("batch_group_count"),
    "operand_precision": Field(_read_precision, _write_precision),
    "algorithm": enum(
        "precision_config.algorithm",
        "PrecisionConfig.Algorithm",
        lambda label: label.removeprefix("ALG_").lower(),
        lambda text: "ALG_" + text.upper(),
    ),
    **{ours: ints(DOT + theirs) for ours, theirs in _DOT_DIMS},
    "lhs_ragged_dims": ints(RAGGED + "lhs_ragged_dimensions"),
    "rhs_group_dims": ints(RAGGED + "rhs_group_dimensions"),
    "offset_dims": ints(GATHER + "offset_dims"),
    "collapsed_slice_dims": ints(GATHER + "collapsed_slice_dims"),
    "start_index_map": ints(GATHER + "start_index_map"),
    "operand_batching_dims": ints(GATHER + "operand_batching_dims"),
    "start_indices_batching_dims": ints(GATHER + "start_indices_batching_dims"),
    "index_vector_dim": scalar(GATHER + "index_vector_dim"),
    "slice_sizes": ints("gather_slice_sizes"),
    "indices_are_sorted": scalar("indices_are_sorted"),
    "unique_indices": scalar("unique_indices"),
    "update_window_dims": ints(SCATTER + "update_window_dims"),
    "inserted_window_dims": ints(SCATTER + "inserted_window_dims"),
    "scatter_dims_to_operand_dims": ints(SCATTER + "scatter_dims_to_operand_dims"),
    "input_batching_dims": ints(SCATTER + "input_batching_dims"),
    "scatter_indices_batching_dims": ints(SCATTER + "scatter_indices_batching_dims"),
    "direction": scalar("comparison_direction"),
    "type": scalar("comparison_type"),
    "exponent_bits": scalar("exponent_bits"),
    "mantissa_bits": scalar("mantissa_bits"),
    "is_stable": scalar("is_stable"),
    "k": scalar("k"),
    "largest": scalar("largest"),
    "fft_type": enum("fft_type", "FftType"),
    "fft_length": ints("fft_length"),
    "left_side": scalar(SOLVE + "left_side"),
    "lower": scalar(SOLVE + "lower"),
    "unit_diagonal": scalar(SOLVE + "unit_diagonal"),
    "transpose_a": enum(SOLVE + "transpose_a", "TriangularSolveOptions.Transpose"),
    "epsilon": Field(lambda p, w: float(str(np.float32(p.epsilon))), lambda p, v: _set(p, "epsilon", v)),
    "feature_index": scalar("feature_index"),
    "distribution": enum("distribution", "RandomDistribution", str.lower, str.upper),
    "delta": scalar("delta"),
    "is_reverse": scalar("is_reverse"),
    "is_associative": enum(
        "is_associative",
        "TriState",
        lambda label: label.removeprefix("TRI_STATE_").lower(),
        lambda text: "TRI_STATE_" + ("UNSPECIFIED" if text == "unknown" else text.upper()),
    ),
    "num_carries": scalar("num_carries"),
    "kind": scalar("fusion_kind"),
    "is_composite": scalar("is_composite"),
    "replica_groups": Field(_read_groups, _write_groups),
    "channel_id": scalar("channel_id"),
    "use_global_device_ids": scalar("use_global_device_ids"),
    "constrain_layout": scalar("constrain_layout"),
    "source_target_pairs": Field(lambda p, w: tuple((s.source, s.target) for s in p.source_target_pairs), _write_pairs),
    "is_host_transfer": scalar("is_host_transfer"),
    "infeed_config": string_bytes("infeed_config"),
    "outfeed_config": string_bytes("outfeed_config"),
    "outfeed_shape": Field(
        lambda p, w: read_shape(p.outfeed_shape, f"{w}.outfeed_shape") if p.HasField("outfeed_shape") else None,
        lambda p, v: write_shape(v, p.outfeed_shape) and None,
    ),
    "async_execution_thread": scalar("async_execution_thread"),
    "cross_program_prefetch_index": _optional_scalar("cross_program_prefetch_index"),
    "custom_call_target": scalar("custom_call_target"),
    "custom_call_has_side_effect": scalar("custom_call_has_side_effect"),
    "operand_layout_constraints": Field(_read_operand_layouts, _write_shapes),
    "output_to_operand_aliasing": Field(_read_aliases, _write_aliases),
    "api_version": Field(_read_api_version, _API_VERSION.write),
    "schedule": enum("custom_call_schedule", "CustomCallSchedule"),
    "padding_type": enum("padding_type", "PaddingType"),
    "convolution_kind": enum(
        "conv_kind",
        "ConvolutionKind",
        lambda label: label.removeprefix("CONVOLUTION_KIND_").lower(),
        lambda text: "CONVOLUTION_KIND_" + text.upper(),
    ),
    "literal": Field(_read_literal_field, lambda p, v: write_literal(v, p.literal)),
    "parameter_replication": Field(_read_replication, _write_replication),
    "domain": Field(_read_domain, lambda p, v: read_domain(v.text, p)),
    "backend_config": Field(
        _read_backend_config, lambda p, v: _set(p, "backend_config", _text(v).encode("utf-8", "surrogateescape"))
    ),
    **{name: raw(name) for name in RAW},
}

PERMUTES = (Op.COLLECTIVE_PERMUTE, Op.COLLECTIVE_PERMUTE_START)


def _read_permuted_sizes(proto: Any, where: str) -> tuple[int, ...] | None:
    return tuple(proto.dynamic_slice_sizes) or None


def _write_permuted_sizes(proto: Any, value: Any) -> None:
    for sizes in value:
        proto.dynamic_slice_sizes.extend(sizes)


def split_slice_sizes(flat: Sequence[int], operands: Sequence[Instruction], where: str) -> tuple[tuple[int, ...], ...]:
    """The sizes of each slice of a collective-permute, which a proto holds as one list.

    operands: (inputs, outputs, starts in the inputs, starts in the outputs); the starts tell how many slices an array
    has, and its rank how many sizes a slice. Raises InputError if the list is shorter or longer.
    """
    if len(operands) != 4:
        raise InputError(
            f"{where}.dynamic_slice_sizes: a collective-permute of slices has 4 operands, not {len(operands)}"
        )
    inputs, starts = operands[0].shape, operands[2].shape
    arrays, places = (inputs.elements, starts.elements) if inputs.is_tuple else ((inputs,), (starts,))
    ranks = [
        array.rank
        for array, place in zip(arrays, places, strict=False)
        for _ in range(len(place.elements) if place.elements and place.elements[0].is_tuple else 1)
    ]
    if sum(ranks) != len(flat):
        raise InputError(f"{where}.dynamic_slice_sizes: {len(flat)} sizes for slices of ranks {ranks}")
    ends = list(accumulate(ranks))
    return tuple(tuple(flat[end - rank : end]) for rank, end in zip(ranks, ends, strict=True))


BY_OPCODE: dict[tuple[Op, str], Field] = {
    (Op.RNG_BIT_GENERATOR, "algorithm"): enum("rng_algorithm", "RandomAlgorithm", str.lower, str.upper),
    (Op.SCATTER, "index_vector_dim"): scalar(SCATTER + "index_vector_dim"),
    **{(op, "slice_sizes"): Field(_read_permuted_sizes, _write_permuted_sizes) for op in PERMUTES},
    (Op.CHOLESKY, "lower"): scalar("cholesky_options.lower"),
    **{(Op.RAGGED_DOT, ours): ints(RAGGED + DOT + theirs) for ours, theirs in _DOT_DIMS},
}
"""Attributes that this opcode keeps in another field than other opcodes do."""


def field_of(op: Op, attribute: str) -> Field | None:
    """The field of an opcode's attribute; None if protos have none."""
    return BY_OPCODE.get((op, attribute)) or FIELDS.get(attribute)
