"""Products of complex numbers on the MLIR stack: vectors over columns, for all layouts and numbers of dimensions."""

import pytest

from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions
from ...formats.text.parser import parse_module
from ...mlir_emitters import emit
from ...planning.planner import plan
from ..support.check import check

CASES = {
    "blocks and a rest": ("[5,7]", "[7,600]", "[5,600]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "few columns": ("[3,4]", "[4,5]", "[3,5]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "a row": ("[5]", "[5,16]", "[16]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    "columns of the left": ("[6,40]", "[6]", "[40]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    "columns apart": ("[4,6]", "[20,6]", "[4,20]", "lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
    "a transposed result": ("[9,6]", "[6,12]", "[9,12]{0,1}", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "both transposed": ("[6,9]{0,1}", "[12,6]{0,1}", "[9,12]", "lhs_contracting_dims={0}, rhs_contracting_dims={1}"),
    "nothing to sum": ("[4,0]", "[0,9]", "[4,9]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "batches, two sums": (
        "[3,4,5,2]",
        "[5,3,2,10]",
        "[3,4,10]",
        "lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2,3}, rhs_contracting_dims={0,2}",
    ),
}


def text_of(name: str, dtype: str) -> str:
    left, right, result, numbers = CASES[name]
    lines = [f"p = {dtype}{left} parameter(0)", f"q = {dtype}{right} parameter(1)"]
    return "\n".join(["HloModule m", "ENTRY e {", *lines, f"ROOT r = {dtype}{result} dot(p, q), {numbers}", "}", ""])


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("name", CASES)
def test_product(name: str, dtype: str):
    check(text_of(name, dtype), stacks=("evaluator", "mlir"))


@pytest.mark.parametrize(
    ("name", "tiled"), [("blocks and a rest", True), ("columns of the left", True), ("batches, two sums", False)]
)
def test_columns_are_vectors(name: str, tiled: bool):
    options = EmitOptions.host()
    if options.target.vector_bits < 256:
        pytest.skip(f"vectors of {options.target.vector_bits} bits")
    module = emit(plan(parse_module(text_of(name, "c64"))).kernels, options)
    assert any("mlir.tile" in text for text in module.helpers) == tiled
    lanes = options.target.vector_bits // 32
    text = "".join(optimize(text, options) for text in (module.llvm_ir, *module.helpers))
    products = [line for line in text.splitlines() if "fma" in line or "fmul" in line]
    assert any(f"<{n} x float>" in line for n in (lanes, lanes // 2) for line in products)


def test_operands_made_in_the_kernel_stay_right():
    check("""HloModule m
body {
  a = c64[6,5] parameter(0)
  b = c64[5,20] parameter(1)
  n = c64[5,20] negate(b)
  ROOT d = c64[6,20] dot(a, n), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
ENTRY e {
  p = c64[6,5] parameter(0)
  q = c64[5,20] parameter(1)
  ROOT f = c64[6,20] fusion(p, q), kind=kLoop, calls=body
}
""")
