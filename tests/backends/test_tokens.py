"""Tokens among the parameters and results: callers pass no array for one and get none, however a program is run."""

import itertools

import numpy as np
import pytest

import testbed

from ...backends.base import CompileOptions
from ...backends.xla import XlaExecutable, installed
from ...codegen.targets import target_of
from ...differential.fake_inputs import fake_inputs
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError
from ...hlo.verify.verifier import verify
from ...lhlo import from_plan, parse_text
from ...lhlo.to_plan import to_plan
from ...migration import Flags, compile_module
from ...planning.assignment_checker import check_assignment
from ...planning.planner import plan
from ..support.ahead import compile_there, lacking, run_there
from ..support.entry_programs import end_first_run
from ..support.lhlo_programs import run
from ..support.token_programs import DYNAMIC, TOKENS

STACKS = ("legacy", "mlir")
OPTIONS = [{}, {"host_program": "compiled"}, {"red_zones": True}, {"profile": True}, {"debug": "nan"}]


def program(name: str):
    module = parse_module(TOKENS[name])
    verify(module)
    inputs = fake_inputs(module, 0)
    return module, inputs, evaluate(module, inputs)


def flat(value) -> list[np.ndarray]:
    """The arrays of a call's result."""
    if value is None:
        return []
    return list(itertools.chain(*map(flat, value))) if isinstance(value, tuple) else [value]


def assert_same(given, wanted) -> None:
    assert len(given) == len(wanted)
    for a, b in zip(given, wanted, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("stack", [*STACKS, "shadow"])
@pytest.mark.parametrize("name", TOKENS)
def test_arrays_alone_are_given_and_returned(name, stack, tmp_path):
    module, inputs, wanted = program(name)
    end_first_run()
    executable = compile_module(module, Flags.parse(stack))
    check_assignment(executable.plan)
    assert_same(executable.execute(inputs), wanted)
    result = executable(*inputs)
    assert_same(flat(result), wanted)
    for _ in range(2):  # by the native entry, where it takes such a program
        again = executable(*inputs)
        assert repr(again) == repr(result)
    assert_same(executable.execute(inputs, outputs=executable.execute(inputs)), wanted)
    executable.save(tmp_path / "program.tbx")
    loaded = testbed.load_executable(tmp_path / "program.tbx")
    assert_same(loaded.execute(inputs), wanted)
    assert repr(loaded(*inputs)) == repr(result)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", ["a token goes through", "tokens are between", "a loop carries one"])
def test_forms_of_runs(name, options):
    module, inputs, wanted = program(name)
    for stack in STACKS:
        given = compile_module(module, Flags.parse(stack), CompileOptions(**options)).execute(inputs)
        assert_same(given, wanted)


@pytest.mark.parametrize("name", TOKENS)
def test_lhlo_numbers_arrays(name):
    module, inputs, wanted = program(name)
    again = to_plan(parse_text(from_plan(plan(module)).to_text()))
    assert_same(evaluate(again.module, inputs), wanted)
    for stack in STACKS:
        assert_same(run(again, stack, inputs), wanted)


@pytest.mark.skipif(bool(lacking(None)), reason=f"needs {lacking(None)}")
@pytest.mark.parametrize("name", ["tokens are between", "in nested tuples", "results take over inputs"])
def test_ahead_of_time(name, tmp_path):
    module, inputs, wanted = program(name)
    target = target_of("x86_64", "x86-64-v2")
    folder = compile_there(module, target, tmp_path / "made", "mlir")
    assert_same(run_there(folder, target, inputs, wanted), wanted)


@pytest.mark.skipif(not installed(), reason="needs jaxlib (./testbed setup --xla)")
@pytest.mark.parametrize("name", ["a token goes through", "a token is made", "tokens are between", "in nested tuples"])
def test_xla(name):
    _, inputs, wanted = program(name)
    assert_same(XlaExecutable(TOKENS[name]).execute(inputs), wanted)


def test_arguments_may_be_named_and_none_may_stand_for_a_token():
    executable, x = testbed.compile(TOKENS["a token goes through"]), np.float32(3)
    for result in (executable(x), executable(x=x), executable(None, x), executable(3.0)):
        assert result == (None, 4)
    assert str(executable.calling.signature()) == "(x: 'f32[]') -> '(token[], f32[])'"
    (out,) = executable.execute([np.float32(0)])
    token, y = executable(x, out=(None, out))
    assert token is None and y is out and out == 4
    nested = testbed.compile(TOKENS["in nested tuples"])
    a, b = np.arange(4, dtype=np.float32), np.arange(3, dtype=np.float32)
    for given in ((a, b), ((None, (a, None, (None, b))),), ((a, b),)):
        m, (token, n), (_, y) = nested(*given)
        assert token is None and m.tolist() == [0, 2, 4] and n.tolist() == [0, -1, -2, -3] and y.tolist() == [0, 1, 2]


def test_an_array_for_a_token_is_refused():
    executable, x = testbed.compile(TOKENS["a token goes through"]), np.float32(3)
    with pytest.raises(InputError, match="takes 1 argument"):
        executable(np.zeros(0, bool), x)
    with pytest.raises(InputError, match="takes 1 inputs, given 2"):
        executable.execute([np.zeros(0, bool), x])
    with pytest.raises(InputError, match="takes 1 inputs, given 2"):
        executable.execute([None, x])
    with pytest.raises(InputError, match=r"out\[0\] is a token"):
        executable(x, out=(x, None))


def test_sizes_stay_dynamic_beside_a_token():
    for stack in STACKS:
        executable = testbed.compile(DYNAMIC, stack)
        token, y = executable(np.arange(3, dtype=np.float32))
        assert token is None and y.tolist() == [0, -1, -2]
        loaded = testbed.deserialize_and_load(executable.serialize())
        assert loaded(np.arange(2, dtype=np.float32))[1].tolist() == [0, -1]


def test_a_donated_input_behind_a_token_becomes_its_result():
    executable = testbed.compile(TOKENS["results take over inputs"])
    x, y = (np.ones(n, np.float32) for n in (4, 3))
    kept, _, _, _ = x.copy(), *executable(x, (None, y))[1:]
    assert np.array_equal(x, kept)
    _, n, _, m = executable(x, (None, y), donate=("x", "p"))
    assert n.tolist() == [-1] * 4 and m.tolist() == [2] * 3 and n.ctypes.data == x.ctypes.data


def test_a_file_that_lists_tokens_is_read(monkeypatch):
    """As those of earlier versions, whose tokens are behind the arrays."""
    from ...thunks.wire import memory

    module, inputs, wanted = program("tokens are last")
    executable = compile_module(module, Flags.parse("mlir"))
    token = parse_module(TOKENS["nothing else"]).entry.root.shape
    written = memory.buffer_values

    def with_tokens(image):
        values, constants = written(image)
        more = {k: [*values[k], memory.shape_values(token)] for k in ("parameters", "results")}
        return {**values, **more}, constants

    monkeypatch.setattr("testbed.thunks.wire.program.buffer_values", with_tokens)
    loaded = testbed.deserialize_and_load(executable.serialize())
    assert_same(loaded.execute(inputs), wanted)
