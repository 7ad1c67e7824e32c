"""Runs of one program on several stacks: compiled once, by one plan; who refuses or is stopped is not asked again."""

import json
from contextlib import contextmanager

import numpy as np
import pytest

from ...backends.base import CompileOptions, MemoryFault
from ...backends.host.compiler import HostCompiler
from ...cli.main import main
from ...codegen.options import EmitOptions
from ...differential.conductor import Conductor, Refused
from ...formats.program import Program
from ...formats.text.parser import parse_module
from ...hlo.errors import UnsupportedError
from ...migration.compile import Plans
from ...migration.stacks import Prepared, prepare

TEXT = "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] negate(x)\n}\n"
MODULE = parse_module(TEXT)
PROGRAM = Program("m", TEXT, MODULE)
X = np.arange(4, dtype=np.float32)


@pytest.fixture
def planned(monkeypatch):
    """The modules that the host's compiler planned, in order."""
    found, plain = [], HostCompiler.run_hlo_passes

    def noting(self, module, options):
        found.append(module)
        return plain(self, module, options)

    monkeypatch.setattr(HostCompiler, "run_hlo_passes", noting)
    return found


@pytest.mark.parametrize("more", [[], ["--iterations", "2"], ["--debug", "memory"]])
def test_diff_plans_once(tmp_path, planned, capsys, more):
    (tmp_path / "m.hlo").write_text(TEXT)
    assert main(["diff", str(tmp_path / "m.hlo"), "--stacks", "evaluator,legacy,mlir", *more]) == 0
    assert len(planned) == 1


def test_each_module_of_diff_has_a_plan_of_its_own(tmp_path, planned, capsys):
    for name in ("a", "b"):
        (tmp_path / f"{name}.hlo").write_text(TEXT)
    command = ["diff", str(tmp_path / "a.hlo"), str(tmp_path / "b.hlo"), "--stacks", "legacy,mlir", "--json"]
    assert main(command) == 0
    assert len(planned) == 2
    json.loads(capsys.readouterr().out)


def test_a_plan_is_shared_by_those_who_plan_alike(planned):
    plans, usual = Plans(), CompileOptions()
    first = plans.plan(MODULE, usual)
    assert plans.plan(MODULE, CompileOptions(red_zones=True)) is first and len(planned) == 1
    assert plans.plan(MODULE, CompileOptions(EmitOptions.host(strict=True))) is not first
    assert plans.plan(parse_module(TEXT), usual) is not first
    assert len(planned) == 3


def test_the_seconds_of_a_stack_are_as_if_it_planned_itself(monkeypatch):
    plans = Plans()
    prepare("legacy", PROGRAM, plans=plans)
    module, options, plan, _ = plans._made[0]
    plans._made[0] = module, options, plan, 100.0
    assert 100.0 < prepare("mlir", PROGRAM, plans=plans).seconds < 200.0


def test_who_refuses_or_is_stopped_is_not_asked_again():
    asked, told = [], []

    def make(name, error):
        def prepared(program):
            asked.append(name)
            if error is not None:
                raise error
            return Prepared(lambda inputs: [-inputs[0]])

        return prepared

    @contextmanager
    def around(name):
        if name == "slow":
            asked.append(name)
            raise Refused("no answer")
        yield lambda step: told.append(f"{name} {step}")

    errors = {
        "good": None,
        "poor": UnsupportedError("poor", "negate"),
        "slow": None,
        "wild": MemoryFault("k", "y", "read beside x", "look"),
    }
    conductor = Conductor(PROGRAM, {name: make(name, error) for name, error in errors.items()}, around)
    for _ in range(2):
        runs = conductor.runs([X])
        assert list(runs) == ["good"]
        np.testing.assert_array_equal(runs["good"].results[0], -X)
    assert asked == list(errors)
    assert list(conductor.refusals) == ["poor", "slow"] and conductor.refusals["slow"] == "no answer"
    assert list(conductor.stopped) == ["wild"] and "read beside x" in conductor.stopped["wild"]
    assert told == ["good compiles", "good runs", "poor compiles", "wild compiles", "good runs"]
