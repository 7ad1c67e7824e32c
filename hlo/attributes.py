"""Frozen values of HLO attributes whose text is more than a number, a name or a list of numbers.

In `Instruction.attributes` the key is the attribute's name in HLO text and the value is:
an int, bool, float or str (`iota_dimension`, `is_stable`, `direction`='LT', `kind`='kLoop', `custom_call_target`);
a tuple of ints (`dimensions`, `lhs_contracting_dims`, `dynamic_slice_sizes`, `replica_groups` as a tuple of tuples);
a Computation or a tuple of them (`to_apply`, `calls`, `condition`, `body`, `branch_computations`);
one of the classes below; or Raw for what the parser keeps without understanding it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Raw:
    """Text of an attribute that nothing here interprets; printed back as it was."""

    text: str


@dataclass(frozen=True, slots=True)
class SliceDim:
    """One dimension of `slice={[start:limit:stride], …}`."""

    start: int
    limit: int
    stride: int = 1


@dataclass(frozen=True, slots=True)
class PadDim:
    """One dimension of `padding=low_high_interior x …`; low and high may be negative."""

    low: int
    high: int
    interior: int = 0


@dataclass(frozen=True, slots=True)
class WindowDim:
    """One dimension of `window={size=… stride=… pad=… lhs_dilate=… rhs_dilate=… rhs_reversal=…}`."""

    size: int
    stride: int = 1
    pad_low: int = 0
    pad_high: int = 0
    lhs_dilate: int = 1
    rhs_dilate: int = 1
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    dims: tuple[WindowDim, ...]


@dataclass(frozen=True, slots=True)
class ConvolutionDims:
    """`dim_labels=b01f_01io->b01f`: the position of each role in lhs, rhs and output."""

    input_batch: int
    input_feature: int
    input_spatial: tuple[int, ...]
    kernel_input_feature: int
    kernel_output_feature: int
    kernel_spatial: tuple[int, ...]
    output_batch: int
    output_feature: int
    output_spatial: tuple[int, ...]
