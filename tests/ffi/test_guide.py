"""The host snippets of XLA's guide on custom calls: evaluator, both stacks and XLA give equal results and errors."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...backends.xla import installed
from ...evaluator.evaluator import evaluate
from ...ffi import registry
from ...ffi.calls import CallError
from ...formats.text.parser import parse_module
from ...hlo.ir import Module
from ...migration import Flags, compile_module
from ..cases.ffi_guide import OURS, REFUSALS, SNIPPETS, Snippet, program, source
from ..support.cpp import compile_cpp, need_cpp
from ..support.inputs import make_inputs

FORMS = [(stack, host) for stack in ("legacy", "mlir") for host in ("interpreted", "compiled")]


@pytest.fixture(scope="module")
def handlers():
    """The library of all handlers; its symbols are registered here, and with JAX where that is installed."""
    library = ctypes.CDLL(str(compile_cpp(source())))
    for snippet in (*SNIPPETS, *OURS, *REFUSALS):
        registry.register(f"guide.{snippet.name}", getattr(library, snippet.name))
    if installed():
        import jax

        for snippet in (*SNIPPETS, *REFUSALS):
            jax.ffi.register_ffi_target(f"guide.{snippet.name}", jax.ffi.pycapsule(getattr(library, snippet.name)))
    yield library
    for snippet in (*SNIPPETS, *OURS, *REFUSALS):
        registry.unregister(f"guide.{snippet.name}")


def on_xla(text: str):
    from ...backends.xla.executable import XlaExecutable

    return XlaExecutable(text)


def runs(module: Module):
    """The ways to run a module, by name."""
    yield "evaluator", lambda inputs: evaluate(module, inputs)
    for stack, host in FORMS:
        executable = compile_module(module, Flags.parse(stack), CompileOptions(host_program=host))
        yield f"{stack} {host}", executable.execute


def same(given, wanted) -> bool:
    return len(given) == len(wanted) and all(g.tobytes() == w.tobytes() for g, w in zip(given, wanted))


@pytest.mark.parametrize("snippet", [*SNIPPETS, *OURS], ids=lambda s: s.name)
def test_a_snippet_gives_the_same_everywhere(snippet: Snippet, handlers):
    text = program(snippet)
    module = parse_module(text)
    inputs = make_inputs(module, 1)
    results = {name: [np.asarray(r) for r in run(inputs)] for name, run in runs(module)}
    wanted = results["evaluator"]
    assert {name: same(r, wanted) for name, r in results.items()} == dict.fromkeys(results, True)
    if snippet.xla and installed():
        assert same([np.asarray(r) for r in on_xla(text).execute(inputs)], wanted)


@pytest.mark.parametrize("snippet", REFUSALS, ids=lambda s: s.name)
def test_a_refusal_has_the_words_of_the_cpp_layer(snippet: Snippet, handlers):
    text = program(snippet)
    module = parse_module(text)
    inputs = make_inputs(module, 1)
    messages = set()
    for _, run in runs(module):
        with pytest.raises(CallError) as error:
            run(inputs)
        assert error.value.instruction == "r"
        messages.add(f"{error.value.code.name}: {error.value.text}")
    (message,) = messages
    assert snippet.error in message
    if installed():
        with pytest.raises(Exception) as given:
            on_xla(text).execute(inputs)
        assert message.strip() in str(given.value)


def test_the_program_runs_again_after_a_failure(handlers):
    """One call of three fails: nothing behind it runs, and the next run is a whole one."""
    need_cpp()
    text = program(next(s for s in REFUSALS if s.name == "throws"))
    text = text.replace("ROOT r =", "q =").replace("\n}", "\n  ROOT r = f32[4]{0} add(q, q)\n}")
    executable = compile_module(parse_module(text), Flags.parse("legacy"))
    for _ in range(3):
        with pytest.raises(CallError, match="thrown by a test"):
            executable.execute([np.ones(4, np.float32)])
