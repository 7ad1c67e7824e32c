"""All functions that make ops, in XlaBuilder's vocabulary: `from testbed import ops`, `ops.add(x, y)`.

A name of xla_builder.h is written in snake_case (ConvGeneralDilated: `conv_general_dilated`), with `_` at its end where
Python reserves it (`and_`, `while_`); operands and their order are XLA's. Each docstring names the function of XLA.
Opcodes without a function here (async pairs, domain, scaled-dot, …) are made by `XlaBuilder.add`.
"""

from .elementwise import *  # noqa: F403
from .linear import *  # noqa: F403
from .movement import *  # noqa: F403
from .regions import *  # noqa: F403
from .structure import *  # noqa: F403
from .transfers import *  # noqa: F403
