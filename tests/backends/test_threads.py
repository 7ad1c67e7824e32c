"""Threads compile in parallel on both stacks, with the same results as one thread."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module

SUM = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"


def text(n: int) -> str:
    """A chain of kernels that do not fuse; different for every program."""
    lines = [f"p = f32[8,{n}] parameter(0)", "zero = f32[] constant(0)"]
    last = "p"
    for k in range(6):
        lines += [f"r{k} = f32[8] reduce({last}, zero), dimensions={{1}}, to_apply=add",
                  f"b{k} = f32[8,{n}] broadcast(r{k}), dimensions={{0}}",
                  f"t{k} = f32[8,{n}] {('tanh', 'sine', 'cosine')[(n + k) % 3]}(b{k})"]  # fmt: skip
        last = f"t{k}"
    body = "\n ".join([*lines, f"ROOT r = f32[8,{n}] subtract({last}, p)"])
    return f"HloModule m\n{SUM}ENTRY e {{ {body} }}"


@pytest.mark.parametrize("stacks", [("legacy", "legacy"), ("mlir", "mlir"), ("legacy", "mlir")])
def test_threads_compile_and_execute_at_once(stacks):
    options = CompileOptions(cache=None)

    def one(n):
        module, x = parse_module(text(n)), np.linspace(-1, 1, 8 * n, dtype=np.float32).reshape(8, n)
        (z,) = compile_module(module, Flags.parse(stacks[n % 2]), options).execute([x])
        np.testing.assert_allclose(z, evaluate(module, [x])[0], rtol=1e-2, atol=2e-2)  # the chain amplifies roundings
        return z

    alone = [one(n) for n in range(3, 9)]
    with ThreadPoolExecutor(4) as pool:
        for z, want in zip(pool.map(one, range(3, 9)), alone):
            np.testing.assert_array_equal(z, want)
