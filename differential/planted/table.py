"""All faults by name, and what plants one in a new process."""

from __future__ import annotations

import numpy as np

from ...formats.text.parser import parse_module
from ...hlo.errors import InputError
from ..fake_inputs import fake_inputs
from ..finding import Finding
from .fault import Fault
from .legacy_slips import LEGACY
from .memory_slips import MEMORY
from .mlir_slips import MLIR
from .shared import SHARED
from .shared_slips import SLIPS
from .stacks import STACKS

FAULTS: dict[str, Fault] = {fault.name: fault for fault in (*STACKS, *LEGACY, *MLIR, *SHARED, *SLIPS, *MEMORY)}


def plant(name: str) -> None:
    """Give this process a fault until it ends. `Child(partial(plant, name))` has one. Raises InputError."""
    if name not in FAULTS:
        raise InputError(f"no fault named {name!r}", remedy=f"choose from {', '.join(FAULTS)}")
    for spot in FAULTS[name].spots:
        spot.swap()


def case_of_fault(fault: Fault, seed: int = 0) -> Finding:
    """The module on which a fault shows, with inputs; it is not judged yet."""
    module = parse_module(fault.text)
    inputs = fake_inputs(module, seed)
    for x in inputs:
        first = np.array(fault.values[: x.size]).astype(x.dtype)
        x.reshape(-1)[: first.size] = first
    return Finding(fault.text, module, tuple(inputs), seed=seed)
