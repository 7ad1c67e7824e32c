"""Equal machine code on two stacks: what the gate takes for a proof."""

from ...benchmarks.rounds import Settings
from ...cli.toggles_gate import run_gate
from ...differential.same_code import same_code
from ...formats.text.parser import parse_module
from ...migration.ledger import new_ledger
from ...migration.parity import Parity

TANH = """
HloModule m
ENTRY e {
  p = f32[100] parameter(0)
  ROOT r = f32[100] tanh(p)
}
"""
QUICK = Settings(width=0.2, seconds=0.1, sample=1e-3, rounds=4, compiles=1)


def test_a_stack_has_the_code_of_itself_and_not_of_the_other():
    module = parse_module(TANH)
    assert same_code(module, ("mlir", "mlir")) and same_code(module, ("mlir", "mlir,sort=legacy"))
    assert not same_code(module, ("legacy", "mlir"))


def test_a_gate_between_equal_stacks_is_proved():
    limits = Parity(cases=4, compile=9, memory=9)
    evidence, speeds = run_gate(
        new_ledger().row("concatenate.float"), 4, [], limits, settings=QUICK, stacks=("mlir", "mlir")
    )
    assert (evidence.kind, evidence.cases, evidence.worst_ulp, evidence.refused) == ("proved", 4, 0, "")
    assert {(s.ratio, s.low, s.high) for s in speeds} == {(1.0, 1.0, 1.0)} and len(speeds) == evidence.workloads


def test_a_gate_between_the_stacks_is_sampled():
    evidence, _ = run_gate(new_ledger().row("sort.float"), 1, [], Parity(1, 9, 9, 9, 9), settings=QUICK)
    assert evidence.kind == "sampled"
