"""Readers of attribute values: one row of ATTRIBUTES per attribute name.

hlo/grammar.py says which opcode allows which attribute.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...hlo.attributes import (
    Alias,
    ComputationLayout,
    ConvolutionDims,
    Donor,
    OutputAlias,
    PadDim,
    Raw,
    SliceDim,
    Window,
    WindowDim,
)
from ...hlo.shapes import ShapeIndex
from .lexer import Lexer, near
from .parse_shapes import parse_shape
from .parse_sharding import sharding
from .parse_values import (
    boolean,
    booleans,
    braced,
    computation,
    computations,
    instruction_names,
    integer,
    integer_lists,
    integers,
    literal,
    one_of,
    raw,
    real,
    shape,
    shape_index,
    shapes,
    string,
    string_or_dict,
    word,
    words,
)
from .reading import Reading

_slice = re.compile(r"\[\s*(-?\d{1,18})\s*:\s*(-?\d{1,18})\s*(?::\s*(-?\d{1,18})\s*)?\]", re.ASCII)
_padding = re.compile(r"-?\d+_-?\d+(?:_-?\d+)?(?:x-?\d+_-?\d+(?:_-?\d+)?)*", re.ASCII)
_dim_labels = re.compile(r"([0-9bf?]+)_([0-9io?]+)->([0-9bf?]+)", re.ASCII)
_by_x = re.compile(r"-?\d+(?:x-?\d+)*", re.ASCII)
_WINDOW_FIELDS = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")


def slices(p: Reading, name: str) -> tuple[SliceDim, ...]:
    """Reads ranges: `{[0:4], [1:8:2]}`."""
    lexer = p.lexer

    def one() -> SliceDim:
        m = lexer.match(_slice)
        if not m:
            lexer.fail(f"expected a range in '{name}', found {lexer.found()}", remedy="write [start:limit:stride]")
        return SliceDim(int(m[1]), int(m[2]), int(m[3] or 1))

    return braced(lexer, f"the ranges of '{name}'", one)


def padding(p: Reading, name: str) -> tuple[PadDim, ...]:
    """Reads low_high[_interior] per dimension: `1_2x0_0_3`; `""` for rank 0."""
    lexer = p.lexer
    m = lexer.match(_padding)
    if not m:
        if lexer.eat('""'):
            return ()
        lexer.fail(
            f"expected low_high or low_high_interior for each dimension of '{name}', found {lexer.found()}",
            remedy="for instance padding=0_1x2_2_1",
        )
    out = []
    for dim in m[0].split("x"):
        numbers = [lexer.number(n) for n in dim.split("_")]
        out.append(PadDim(*numbers))
    return tuple(out)


def window(p: Reading, name: str) -> Window:
    """Reads a window: `{size=3x3 stride=2x2 pad=1_1x1_1 …}`."""
    lexer = p.lexer
    lexer.expect("{", f"before the fields of '{name}'")
    fields: dict[str, list[Any]] = {}
    while not lexer.at("}"):
        at = lexer.pos
        field = lexer.name(f"a field of '{name}'")
        if field not in _WINDOW_FIELDS:
            lexer.fail(
                f"unknown field '{field}' in '{name}'",
                at,
                near(field, _WINDOW_FIELDS) or f"the fields are {', '.join(_WINDOW_FIELDS)}",
            )
        if field in fields:
            lexer.fail(f"'{field}' is given twice in '{name}'", at)
        lexer.expect("=", f"after '{field}'")
        if field == "pad":
            fields[field] = [(d.low, d.high) for d in padding(p, "pad")]
        else:
            m = lexer.match(_by_x)
            if not m:
                lexer.fail(f"expected numbers like 2x3 for '{field}', found {lexer.found()}")
            fields[field] = [lexer.number(n) for n in m[0].split("x")]
        lexer.eat(",")
    at = lexer.pos
    lexer.eat("}")
    sizes = fields.get("size", [])
    for field, values in fields.items():
        if len(values) != len(sizes):
            lexer.fail(
                f"'{name}' has {len(sizes)} sizes and {len(values)} values of '{field}'",
                at,
                "give one value a dimension, joined by x",
            )
    rank = len(sizes)
    pads = fields.get("pad", [(0, 0)] * rank)
    rows = zip(
        sizes,
        fields.get("stride", [1] * rank),
        pads,
        fields.get("lhs_dilate", [1] * rank),
        fields.get("rhs_dilate", [1] * rank),
        fields.get("rhs_reversal", [0] * rank),
        strict=True,
    )
    return Window(tuple(WindowDim(s, st, lo, hi, ld, rd, bool(rev)) for s, st, (lo, hi), ld, rd, rev in rows))


def dim_labels(p: Reading, name: str) -> ConvolutionDims | Raw:
    """Reads `b01f_01io->b01f`. Labels with `?` (dimensions without a role, on custom calls) are kept as text."""
    lexer, start = p.lexer, p.lexer.pos
    m = lexer.match(_dim_labels)
    if not m:
        lexer.fail(
            f"expected dimension labels for '{name}', found {lexer.found()}", remedy="for instance b01f_01io->b01f"
        )
    lhs, rhs, out = m.groups()
    spatial = len(lhs) - 2 - lhs.count("?")

    def roles(labels: str, first: str, second: str, side: str) -> tuple[int, int, tuple[int, ...]]:
        want = sorted([first, second, *map(str, range(spatial))])
        if sorted(labels.replace("?", "")) != want:
            lexer.fail(f"{side} labels '{labels}' must be {', '.join(want)}, each once", start)
        return labels.index(first), labels.index(second), tuple(labels.index(str(i)) for i in range(spatial))

    if spatial > 10:
        lexer.fail("more than ten spatial dimensions", start)
    b, f, s = roles(lhs, "b", "f", "input")
    i, o, ks = roles(rhs, "i", "o", "kernel")
    ob, of, os = roles(out, "b", "f", "output")
    if "?" in m[0]:
        return Raw(m[0])
    return ConvolutionDims(b, f, s, i, o, ks, ob, of, os)


def entry_layout(p: Reading, name: str) -> ComputationLayout:
    """Reads the entry's shapes: `{(f32[2]{0})->f32[]}`."""
    lexer = p.lexer
    lexer.expect("{", f"before '{name}'")
    parameters = braced(lexer, f"the parameter shapes of '{name}'", lambda: parse_shape(lexer), "()")
    lexer.expect("->", f"before the result shape of '{name}'")
    result = parse_shape(lexer)
    lexer.expect("}", f"after '{name}'")
    return ComputationLayout(parameters, result)


def _target(lexer: Lexer, name: str, what: str) -> tuple[int, ShapeIndex]:
    """Reads `(number, {index}`, without the closing parenthesis."""
    lexer.expect("(", f"before the {what} in '{name}'", f"write ({what}, {{index}})")
    number = lexer.integer(f"for the {what} in '{name}'")
    lexer.expect(",", f"after the {what} in '{name}'", f"write ({what}, {{index}})")
    return number, shape_index(lexer, name)


def input_output_alias(p: Reading, name: str) -> tuple[Alias, ...]:
    """Reads rows of output, parameter and kind: `{ {0}: (1, {}, may-alias), … }`."""
    lexer = p.lexer

    def row() -> Alias:
        output, kind = shape_index(lexer, name), "may-alias"
        lexer.expect(":", f"after an output in '{name}'", "write {output}: (parameter, {index})")
        number, index = _target(lexer, name, "parameter")
        if lexer.eat(","):
            kind = one_of("may-alias", "must-alias")(p, name)
        lexer.expect(")", f"after the parameter in '{name}'")
        return Alias(output, number, index, kind)

    return braced(lexer, f"the rows of '{name}'", row)


def buffer_donor(p: Reading, name: str) -> tuple[Donor, ...]:
    """Reads donated parameters: `{ (0, {}) }`."""

    def row() -> Donor:
        number, index = _target(p.lexer, name, "parameter")
        p.lexer.expect(")", f"after the parameter in '{name}'")
        return Donor(number, index)

    return braced(p.lexer, f"the rows of '{name}'", row)


def operand_aliasing(p: Reading, name: str) -> tuple[OutputAlias, ...]:
    """Reads pairs of output and operand: `{{0}: (1, {})}`."""

    def row() -> OutputAlias:
        output = shape_index(p.lexer, name)
        p.lexer.expect(":", f"after an output in '{name}'", "write {output}: (operand, {index})")
        number, index = _target(p.lexer, name, "operand")
        p.lexer.expect(")", f"after the operand in '{name}'")
        return OutputAlias(output, number, index)

    return braced(p.lexer, f"the rows of '{name}'", row)


ATTRIBUTES: dict[str, Callable[[Reading, str], Any]] = {
    # shapes and indices
    "dimensions": integers,
    "iota_dimension": integer,
    "slice": slices,
    "dynamic_slice_sizes": integers,
    "padding": padding,
    "window": window,
    "dim_labels": dim_labels,
    "index": integer,
    "inferred_dimension": integer,
    # dots and convolutions
    "lhs_contracting_dims": integers,
    "rhs_contracting_dims": integers,
    "lhs_batch_dims": integers,
    "rhs_batch_dims": integers,
    "lhs_ragged_dims": integers,
    "rhs_group_dims": integers,
    "feature_group_count": integer,
    "batch_group_count": integer,
    "operand_precision": words,
    "algorithm": word,
    # gather and scatter
    "offset_dims": integers,
    "collapsed_slice_dims": integers,
    "start_index_map": integers,
    "index_vector_dim": integer,
    "slice_sizes": integer_lists,
    "indices_are_sorted": boolean,
    "unique_indices": boolean,
    "update_window_dims": integers,
    "inserted_window_dims": integers,
    "scatter_dims_to_operand_dims": integers,
    "operand_batching_dims": integers,
    "start_indices_batching_dims": integers,
    "input_batching_dims": integers,
    "scatter_indices_batching_dims": integers,
    # computations
    "to_apply": computation,
    "calls": computation,
    "condition": computation,
    "body": computation,
    "true_computation": computation,
    "false_computation": computation,
    "branch_computations": computations,
    "called_computations": computations,
    "select": computation,
    "scatter": computation,
    # numbers and switches of single opcodes
    "direction": one_of("EQ", "NE", "GE", "GT", "LE", "LT"),
    "type": one_of("FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"),
    "order": one_of("TOTAL", "PARTIAL", "WEAK"),
    "exponent_bits": integer,
    "mantissa_bits": integer,
    "is_stable": boolean,
    "k": integer,
    "largest": boolean,
    "fft_type": one_of("FFT", "IFFT", "RFFT", "IRFFT"),
    "fft_length": integers,
    "lower": boolean,
    "left_side": boolean,
    "unit_diagonal": boolean,
    "transpose_a": one_of("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"),
    "epsilon": real,
    "feature_index": integer,
    "distribution": one_of("rng_uniform", "rng_normal"),
    "delta": integer,
    "is_reverse": boolean,
    "is_associative": one_of("true", "false", "unknown"),
    "num_carries": integer,
    "kind": one_of("kLoop", "kInput", "kOutput", "kCustom"),
    "is_composite": boolean,
    # collectives and transfers
    "replica_groups": integer_lists,
    "channel_id": integer,
    "use_global_device_ids": boolean,
    "constrain_layout": boolean,
    "source_target_pairs": integer_lists,
    "is_host_transfer": boolean,
    "infeed_config": string,
    "outfeed_config": string,
    "outfeed_shape": shape,
    "async_execution_thread": string,
    "cross_program_prefetch_index": integer,
    # custom calls
    "custom_call_target": string,
    "custom_call_has_side_effect": boolean,
    "operand_layout_constraints": shapes,
    "output_to_operand_aliasing": operand_aliasing,
    "api_version": word,
    "schedule": word,
    "literal": literal,
    # any instruction
    "control-predecessors": instruction_names,
    "backend_config": string_or_dict,
    "metadata": raw,
    "sharding": sharding,
    "frontend_attributes": raw,
    "origin": raw,
    "statistics": raw,
    "parameter_replication": booleans,
    "result_accuracy": raw,
    "domain": raw,
    "mode": word,
    "padding_type": word,
    "convolution_kind": word,
    "sparsity_config": raw,
}

HEADER: dict[str, Callable[[Reading, str], Any]] = {
    "is_scheduled": boolean,
    "replica_count": integer,
    "num_partitions": integer,
    "input_output_alias": input_output_alias,
    "buffer_donor": buffer_donor,
    "alias_passthrough_params": boolean,
    "entry_computation_layout": entry_layout,
    "frontend_attributes": raw,
    "allow_spmd_sharding_propagation_to_parameters": booleans,
    "allow_spmd_sharding_propagation_to_output": booleans,
    "origin_recovery_table": raw,
}
"""Attributes of a module's header."""

COMPUTATION: dict[str, Callable[[Reading, str], Any]] = {"execution_thread": string}
"""Attributes of a computation; they follow its closing brace."""
