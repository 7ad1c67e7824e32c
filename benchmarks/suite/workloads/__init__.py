"""The workloads, a file per family; each declares its own in registers, one per group."""

from __future__ import annotations

from ..workload import Register, Workload
from .attention import ATTENTION
from .convolutions import CONVOLUTIONS, POOLING
from .dots import DOTS
from .elementwise import CONVERSIONS, ELEMENTWISE
from .models import EXAMPLES, MODELS, TRAINING
from .movement import INDEXED, JOINING, TRANSPOSES
from .norms import NORMS
from .random_bits import RANDOM
from .reductions import ARGMAX, CUMSUM, REDUCTIONS
from .small import SMALL
from .solvers import LOOPS, SOLVERS
from .sorting import SORTING
from .special import SPECIAL
from .transforms import FFT, LINALG

REGISTERS: tuple[Register, ...] = (
    ELEMENTWISE,
    CONVERSIONS,
    SPECIAL,
    NORMS,
    REDUCTIONS,
    ARGMAX,
    CUMSUM,
    TRANSPOSES,
    JOINING,
    INDEXED,
    SORTING,
    DOTS,
    CONVOLUTIONS,
    POOLING,
    ATTENTION,
    MODELS,
    TRAINING,
    EXAMPLES,
    SOLVERS,
    LOOPS,
    RANDOM,
    FFT,
    LINALG,
    SMALL,
)

WORKLOADS: dict[str, Workload] = {w.name: w for register in REGISTERS for w in register.workloads}
"""By name, in the order of the report."""
