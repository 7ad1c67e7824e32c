"""jaxlib's own LAPACK handlers, called as any handler is: with JAX's operands, they give XLA's bits."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ...backends.xla import installed
from ...ffi import registry
from ...ffi.static_library import register_jaxlib
from ...formats.text.parser import parse_module
from ...hlo.ir import Instruction
from ...hlo.shapes import Shape
from ...migration import Flags, compile_module

needs_jax = pytest.mark.skipif(not installed(), reason="needs jaxlib (./testbed setup --xla)")
N = 5


def programs():
    """Functions of JAX that call each target, and the shapes of what they take."""
    import jax
    from jax import lax

    square, tall = (N, N), (N + 2, N)
    linalg = lax.linalg
    svd = jax.lax.linalg.SvdAlgorithm
    yield lambda a: linalg.cholesky(a, symmetrize_input=False), [square]
    yield lambda a: linalg.lu(a), [tall]
    yield lambda a: linalg.qr(a, full_matrices=False), [tall]
    yield lambda a: linalg.qr(a, full_matrices=False, pivoting=True), [tall]
    yield lambda a: linalg.eigh(a, symmetrize_input=False), [square]
    yield lambda a: linalg.svd(a, full_matrices=False, algorithm=svd.QR), [tall]
    yield lambda a: linalg.svd(a, full_matrices=False, algorithm=svd.DEFAULT), [tall]
    yield lambda a: linalg.eig(a), [square]
    yield lambda a: linalg.schur(a), [square]
    yield lambda a: linalg.hessenberg(a), [square]
    yield lambda a: linalg.tridiagonal(a), [square]
    yield lambda a, b: linalg.triangular_solve(a, b, left_side=True, lower=True), [square, (N, 2)]
    yield lambda d, e, f, b: linalg.tridiagonal_solve(d, e, f, b), [(N,), (N,), (N,), (N, 2)]
    perturbed = True
    yield (
        lambda d, e, f, b: linalg.tridiagonal_solve(d, e, f, b, perturb_singular=perturbed),
        [(N,), (N,), (N,), (N, 2)],
    )
    yield lambda a, t, c: linalg.ormqr(a, t, c, left=True, transpose=False), [(N, 3), (3,), (N, 2)]


def calls() -> dict[str, Instruction]:
    """Target → a call of it, as JAX and XLA's importer write it, for as many as JAX has functions that call them."""
    import jax

    found: dict[str, Instruction] = {}
    with jax.enable_x64(True):
        for dtype in (np.float32, np.float64, np.complex64, np.complex128):
            for function, shapes in programs():
                given = [jax.ShapeDtypeStruct(s, dtype) for s in shapes]
                text = jax.jit(function).lower(*given).compiler_ir("hlo").as_hlo_text(print_large_constants=True)
                for i in parse_module(text).instructions():
                    target = str(i.attributes.get("custom_call_target", ""))
                    if target.endswith("_ffi"):
                        found.setdefault(target, i)
    return found


def aliases(i: Instruction) -> str:
    rows = i.attributes.get("output_to_operand_aliasing", ())
    pairs = ", ".join(f"{{{','.join(map(str, row.output))}}}: ({row.operand}, {{}})" for row in rows)
    return f"output_to_operand_aliasing={{{pairs}}}, " if rows else ""


def together(instructions: dict[str, Instruction], prefix: str) -> tuple[str, list[Shape]]:
    """A module with all calls. The targets' names get a prefix."""
    lines, leaves, shapes = [], [], []
    for number, (target, i) in enumerate(instructions.items()):
        names = []
        for o in i.operands:
            names.append(f"p{len(shapes)}")
            lines.append(f"{names[-1]} = {o.shape.without_layout()} parameter({len(shapes)})")
            shapes.append(o.shape)
        config = i.attributes["backend_config"]
        text = str(getattr(config, "text", config)) or "{}"
        layouts = ", ".join(str(s) for s in i.attributes["operand_layout_constraints"])
        lines.append(
            f'c{number} = {i.shape} custom-call({", ".join(names)}), custom_call_target="{prefix}{target}", '
            f"{aliases(i)}operand_layout_constraints={{{layouts}}}, api_version=API_VERSION_TYPED_FFI, "
            f"backend_config={text}"
        )
        for n, (_, leaf) in enumerate(i.shape.leaves()):
            lines.append(f"r{len(leaves)} = {leaf} get-tuple-element(c{number}), index={n}" if i.shape.is_tuple else
                         f"r{len(leaves)} = {leaf} copy(c{number})")  # fmt: skip
            leaves.append(leaf)
    results = ", ".join(f"r{n}" for n in range(len(leaves)))
    lines.append(f"ROOT all = ({', '.join(str(s.without_layout()) for s in leaves)}) tuple({results})")
    return "HloModule m\n\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n", shapes


def value(shape: Shape, draw: np.random.Generator) -> np.ndarray:
    """A positive definite matrix where that fits; small integers."""
    numpy = shape.dtype.numpy
    if numpy.kind not in "fc":
        return draw.integers(0, 2, shape.dims).astype(numpy)
    x = draw.normal(size=shape.dims) + (1j * draw.normal(size=shape.dims) if numpy.kind == "c" else 0)
    if len(shape.dims) == 2 and shape.dims[0] == shape.dims[1]:
        x = x @ np.conj(x.T) + N * np.eye(N)
    return x.astype(numpy)


@needs_jax
def test_each_target_gives_xlas_bits():
    from ...backends.xla.executable import XlaExecutable

    targets = register_jaxlib("test.jaxlib.")
    try:
        found = calls()
        names = {re.sub("^test.jaxlib.", "", t) for t in targets}
        assert names - set(found) == set() and len(names) == 61
        text, shapes = together(found, "test.jaxlib.")
        draw = np.random.default_rng(0)
        inputs = [value(s, draw) for s in shapes]
        ours = compile_module(parse_module(text), Flags.parse("legacy")).execute(inputs)
        theirs = XlaExecutable(together(found, "")[0]).execute(inputs)
        assert len(ours) == len(theirs)
        assert [n for n, (a, b) in enumerate(zip(ours, theirs)) if a.tobytes() != np.asarray(b).tobytes()] == []
    finally:
        for target in targets:
            registry.unregister(target)
