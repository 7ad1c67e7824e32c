"""Programs of libraries with FFI handlers, on JAX, both stacks and the evaluator: `third_party LIBRARY` prints JSON.

Program → the targets that it calls, whether it does nothing else but move data, and how far each result is from JAX's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...evaluator.evaluator import evaluate
from ...ffi.static_library import register_jax
from ...formats.text.parser import parse_module
from ...hlo.ir import Module
from ...hlo.opcodes import Op
from ...migration import Flags, compile_module

Program = tuple[str, Callable[..., Any], list[Any]]
MOVES = {Op.PARAMETER, Op.CONSTANT, Op.CUSTOM_CALL, Op.TUPLE, Op.GET_TUPLE_ELEMENT, Op.RESHAPE, Op.TRANSPOSE, Op.COPY}
MOVES |= {Op.BROADCAST, Op.CALL, Op.BITCAST, Op.SLICE}


def klujax() -> Iterator[Program]:
    """Sparse systems: a diagonal and four elements beside it, three right-hand sides."""
    import klujax as klu

    draw = np.random.default_rng(1)
    rows, columns = np.int32([0, 1, 2, 3, 4, 0, 2, 4, 1]), np.int32([0, 1, 2, 3, 4, 1, 3, 0, 4])
    values, right = np.concatenate([draw.normal(size=5) + 6, draw.normal(size=4)]), draw.normal(size=(5, 3))
    given = [rows, columns, values, right]
    complex_ones = [rows, columns, values + 1j * values[::-1], right + 1j * right[::-1]]
    yield "solve_f64", klu.solve, given
    yield "solve_c128", klu.solve, complex_ones
    yield "dot_f64", klu.dot, given
    yield "dot_c128", klu.dot, complex_ones
    yield "solve_batched", klu.solve, [rows, columns, np.stack([values, values * 2]), np.stack([right, right + 1])]
    yield "coalesced", lambda i, j, x, b: klu.solve(i, j, x * 2.0, b), given


def jax_finufft() -> Iterator[Program]:
    """Non-uniform transforms in one to three dimensions, of both precisions, and a derivative."""
    import jax
    import jax.numpy as jnp
    from jax_finufft import nufft1, nufft2, nufft3

    draw = np.random.default_rng(2)
    x, y, z = draw.uniform(-3, 3, size=(3, 50))
    c = draw.normal(size=50) + 1j * draw.normal(size=50)
    modes = draw.normal(size=(6, 5, 4)) + 0j
    yield "nufft1d1", lambda c, x: nufft1(20, c, x), [c, x]
    yield "nufft2d1", lambda c, x, y: nufft1((8, 9), c, x, y), [c, x, y]
    yield "nufft3d1", lambda c, x, y, z: nufft1((5, 6, 7), c, x, y, z), [c, x, y, z]
    yield "nufft1d2", nufft2, [c[:20], x]
    yield "nufft2d2", nufft2, [modes[0], x, y]
    yield "nufft3d2", nufft2, [modes, x, y, z]
    yield "nufft1d3", nufft3, [c, x, y]
    yield "nufft1d1f", lambda c, x: nufft1(20, c, x), [c.astype(np.complex64), x.astype(np.float32)]
    yield "gradient", jax.grad(lambda x, c: jnp.abs(nufft1(20, c, x)).sum()), [x, c]


def celerite2() -> Iterator[Program]:
    """Gaussian processes: each primitive, and a likelihood with its derivative."""
    import jax
    from celerite2.jax import GaussianProcess, ops, terms

    draw = np.random.default_rng(3)
    t, c = np.sort(draw.uniform(0, 5, 40)), np.array([0.7, 0.3])
    u, w, values = draw.normal(size=(40, 2)), draw.normal(size=(40, 2)), draw.normal(size=(40, 3))

    def likelihood(p: Any, y: Any) -> Any:
        process = GaussianProcess(terms.SHOTerm(S0=p[0], w0=p[1], Q=p[2]), mean=0.0)
        process.compute(t, diag=0.1)
        return process.log_likelihood(y)

    yield "factor", ops.factor, [t, c, np.full(40, 9.0), u * 0.1, w * 0.1]
    for name in ("solve_lower", "solve_upper", "matmul_lower", "matmul_upper"):
        yield name, getattr(ops, name), [t, c, u, w, values]
    yield "likelihood", likelihood, [np.array([1.0, 2.0, 3.0]), np.sin(t)]
    yield "gradient", jax.grad(likelihood), [np.array([1.0, 2.0, 3.0]), np.sin(t)]


LIBRARIES = {"klujax": klujax, "jax_finufft": jax_finufft, "celerite2": celerite2}


def lowered(function: Callable[..., Any], inputs: list[Any]) -> tuple[Module, list[Any]]:
    """The module that JAX makes of a function, and the leaves of JAX's own result."""
    import jax

    compiled = jax.jit(function)
    text = compiled.lower(*inputs).compiler_ir("hlo").as_hlo_text(print_large_constants=True)
    return parse_module(text), [np.asarray(leaf) for leaf in jax.tree.leaves(compiled(*inputs))]


def difference(given: Any, wanted: np.ndarray) -> float:
    """The largest, relative to the largest magnitude; 0 for the same bits, infinity where one is no number."""
    given = np.asarray(given)
    if given.tobytes() == wanted.tobytes():
        return 0.0
    if given.shape != wanted.shape or not (np.isfinite(given).all() and np.isfinite(wanted).all()):
        return float("inf")
    return float(np.max(np.abs(given - wanted)) / np.max(np.abs(wanted)))


def report(function: Callable[..., Any], inputs: list[Any]) -> dict[str, Any]:
    module, wanted = lowered(function, inputs)
    used = [i for i in module.instructions() if i.opcode is not Op.PARAMETER]
    runs: dict[str, Callable[[list[Any]], Any]] = {"evaluator": lambda given: evaluate(module, given)}
    for stack in ("legacy", "mlir"):
        runs[stack] = compile_module(module, Flags.parse(stack)).execute
    results = {name: run(inputs) for name, run in runs.items()}
    return {
        "targets": sorted({str(i.attributes["custom_call_target"]) for i in used if i.opcode is Op.CUSTOM_CALL}),
        "alone": all(i.opcode in MOVES for i in used),
        "differences": {
            name: max(difference(g, w) for g, w in zip(leaves, wanted, strict=True)) for name, leaves in results.items()
        },
    }


def main(library: str) -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    programs = list(LIBRARIES[library]())
    register_jax()
    print(json.dumps({name: report(function, inputs) for name, function, inputs in programs}))


if __name__ == "__main__":
    main(sys.argv[1])
