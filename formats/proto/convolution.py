"""`dim_labels` ↔ ConvolutionDimensionNumbers, also with dimensions that have no role (`?`)."""

from __future__ import annotations

import re
from typing import Any

from ...hlo.attributes import ConvolutionDims, Raw
from ...hlo.errors import InputError
from ..text.printer import attribute_to_text

_ROLES = (
    ("input_batch", "input_batch_dimension"),
    ("input_feature", "input_feature_dimension"),
    ("input_spatial", "input_spatial_dimensions"),
    ("kernel_input_feature", "kernel_input_feature_dimension"),
    ("kernel_output_feature", "kernel_output_feature_dimension"),
    ("kernel_spatial", "kernel_spatial_dimensions"),
    ("output_batch", "output_batch_dimension"),
    ("output_feature", "output_feature_dimension"),
    ("output_spatial", "output_spatial_dimensions"),
)


def read_convolution(proto: Any, where: str) -> ConvolutionDims | Raw | None:
    if not proto.HasField("convolution_dimension_numbers"):
        return None
    dims = proto.convolution_dimension_numbers
    values = {ours: getattr(dims, theirs) for ours, theirs in _ROLES}
    values = {k: v if isinstance(v, int) else tuple(v) for k, v in values.items()}
    for side in ("input", "kernel", "output"):
        roles = [v for k, v in values.items() if k.startswith(side)]
        flat = sorted(n for v in roles for n in (v if isinstance(v, tuple) else (v,)))
        if flat[0] < 0 or len(set(flat)) != len(flat) or flat[-1] > MOST_DIMENSIONS:
            raise InputError(
                f"{where}.convolution_dimension_numbers: the {side} roles are dimensions {flat}",
                remedy="is it damaged?",
            )
    found = ConvolutionDims(**values)
    text = attribute_to_text("dim_labels", found).removeprefix("dim_labels=")
    return Raw(text) if "?" in text else found


MOST_DIMENSIONS = 64


def _labelled(text: str) -> ConvolutionDims:
    """Reads labels with dimensions that have no role, which only custom calls have: `?b01f_0?1io->b01?f`."""
    lhs, rhs, out = re.split("_|->", text)
    spatial = [str(n) for n in range(len(lhs) - lhs.count("?") - 2)]
    places = (tuple(side.index(n) for n in spatial) for side in (lhs, rhs, out))
    return ConvolutionDims(
        *(lhs.index("b"), lhs.index("f"), next(places)),
        *(rhs.index("i"), rhs.index("o"), next(places)),
        *(out.index("b"), out.index("f"), next(places)),
    )


def write_convolution(proto: Any, value: ConvolutionDims | Raw) -> None:
    if isinstance(value, Raw):
        value = _labelled(value.text)
    proto.convolution_dimension_numbers.SetInParent()
    for ours, theirs in _ROLES:
        role = getattr(value, ours)
        if isinstance(role, tuple):
            getattr(proto.convolution_dimension_numbers, theirs).extend(role)
        else:
            setattr(proto.convolution_dimension_numbers, theirs, role)
