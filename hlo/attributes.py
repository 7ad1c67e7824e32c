"""Frozen values of HLO attributes whose text is more than a number, a name or a list of numbers.

In `Instruction.attributes` the key is the attribute's name in HLO text and the value is:
an int, bool, float or str (`iota_dimension`, `is_stable`, `direction`='LT', `kind`='kLoop');
a tuple of ints (`dimensions`, `lhs_contracting_dims`, `dynamic_slice_sizes`, `replica_groups` as a tuple of tuples);
a Computation or a tuple of them (`to_apply`, `calls`, `condition`, `body`, `branch_computations`);
a tuple of names (`control-predecessors`: instructions of the same computation); a Literal (`literal` of a custom call);
one of the classes below; or Raw for what the parser keeps without understanding it (`metadata`, `sharding`, …).
A `backend_config` is a str where the text quotes it and Raw where it is a bare dictionary.
"""

from __future__ import annotations

from .records import dataclass
from .shapes import Shape, ShapeIndex


@dataclass(frozen=True, slots=True)
class Raw:
    """Text of an attribute that is not interpreted; the printer prints it unchanged."""

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


@dataclass(frozen=True, slots=True)
class ComputationLayout:
    """`entry_computation_layout={(f32[2]{0}, …)->f32[]}`."""

    parameters: tuple[Shape, ...]
    result: Shape


@dataclass(frozen=True, slots=True)
class Alias:
    """One row of the header's `input_output_alias={ {0}: (1, {}, may-alias) }`."""

    output: ShapeIndex
    parameter: int
    parameter_index: ShapeIndex
    kind: str = "may-alias"


@dataclass(frozen=True, slots=True)
class Donor:
    """One row of the header's `buffer_donor={ (0, {}) }`."""

    parameter: int
    index: ShapeIndex


@dataclass(frozen=True, slots=True)
class OutputAlias:
    """One row of `output_to_operand_aliasing={{0}: (1, {})}` of fusions and custom calls."""

    output: ShapeIndex
    operand: int
    operand_index: ShapeIndex
