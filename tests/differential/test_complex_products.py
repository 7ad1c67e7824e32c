"""Products of complex numbers with few results: their sums are as near as those of short chains."""

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...codegen.options import Target
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module

TEXT = """HloModule m
ENTRY e { a = c64[4,2048] parameter(0)
  b = c64[2048,4] parameter(1)
  ROOT d = c64[4,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
"""


@pytest.mark.parametrize("cpu", ["host", *Target.levels()], indirect=True)
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_sums_of_few_products_have_short_chains(stack, cpu):
    """One chain of 300 products lost twice as much."""
    executable = compile_module(parse_module(TEXT), Flags.parse(stack), CompileOptions(cache=None))
    generator = np.random.default_rng(0)
    errors = []
    for _ in range(20):
        a, b = (
            (generator.standard_normal(dims) + 1j * generator.standard_normal(dims)).astype(np.complex64)
            for dims in ((4, 2048), (2048, 4))
        )
        (found,) = executable.execute([a, b])
        wanted = a.astype(np.complex128) @ b.astype(np.complex128)
        errors.append(np.abs(found - wanted).max() / np.abs(wanted).max())
    assert np.median(errors) < 2.6e-7
