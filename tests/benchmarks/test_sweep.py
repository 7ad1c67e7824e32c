"""The sweep of single operations: its programs are valid, and what is printed follows from the times."""

import json
import os

import numpy as np
import pytest

from ...benchmarks.suite.machine import as_on, levels
from ...benchmarks.sweep import command
from ...benchmarks.sweep.suites import SUITES
from ...codegen import threads
from ...codegen.options import Target
from ...formats.text.parser import parse_module
from ...hlo.errors import TestbedError
from ...hlo.opcodes import Op
from ...hlo.verify.verifier import verify

PROGRAMS = SUITES["ops"].programs()


def test_every_program_is_valid_and_many_opcodes_have_one():
    opcodes = set()
    for name, text in PROGRAMS.items():
        module = parse_module(text(), name)
        verify(module)
        opcodes |= {i.opcode for i in module.entry.instructions}
    missing = {Op.DOT, Op.CONVOLUTION, Op.SORT, Op.GATHER, Op.SCATTER, Op.REDUCE_WINDOW, Op.WHILE, Op.FFT} - opcodes
    assert len(PROGRAMS) > 3000 and not missing


@pytest.fixture
def timed(monkeypatch):
    def measure(text: str, stacks, rounds, seconds, integers):
        if "negate" in text:
            raise TestbedError("refused\nat length")
        return {"xla": 100.0, "legacy": 250.0 if "abs" in text else 90.0, "mlir": 100.0}

    monkeypatch.setattr(command, "measure", measure)
    monkeypatch.setattr(command, "installed", lambda: True)
    monkeypatch.setattr(threads, "set_threads", lambda count: None)


def test_what_is_above_the_limit_is_told(timed, tmp_path, capsys):
    file = tmp_path / "times.json"
    assert command.main(["ops", "--only", "^(abs|ceil|negate) f32$", "--json", str(file)]) == 1
    told = capsys.readouterr()
    assert told.out.splitlines()[1].split() == ["abs", "f32", "100", "2.50", "1.00"]
    assert told.out.splitlines()[-1] == "2 programs, 1 above 2 times XLA's time"
    assert "negate f32: refused\n" in told.err
    assert json.loads(file.read_text())["ceil f32"]["legacy"] == 90.0
    assert command.main(["ops", "--only", "^ceil f32$"]) == 0


def test_a_call_of_a_few_microseconds_is_no_cliff():
    assert command.ratios({"xla": 1.0, "mlir": 4.0}, least=10.0) == {"mlir": 1.0}
    assert command.ratios({"xla": 1.0, "mlir": 40.0}, least=10.0) == {"mlir": 4.0}


def test_as_many_processors_as_threads_are_used_and_given_back(timed, monkeypatch):
    before, during, counts = os.sched_getaffinity(0), [], []
    monkeypatch.setattr(threads, "set_threads", counts.append)
    monkeypatch.setattr(
        command,
        "measure",
        lambda *rest: during.append(os.sched_getaffinity(0)) or dict.fromkeys(("xla", "mlir"), 1.0),
    )
    assert command.main(["ops", "--only", "^ceil f32$", "--stacks", "mlir", "--threads", "1"]) == 0
    assert counts == [1] and [len(d) for d in during] == [1] and os.sched_getaffinity(0) == before


def test_code_is_as_on_another_processor_and_all_is_as_before(timed, monkeypatch):
    level = next((name for name in ("x86-64-v3", "x86-64-v2") if name in levels()), "host")
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    seen, before = [], dict(os.environ)
    monkeypatch.setattr(
        command,
        "measure",
        lambda *rest: seen.append((Target.host(), dict(os.environ))) or dict.fromkeys(("xla", "mlir"), 1.0),
    )
    assert command.main(["ops", "--only", "^ceil f32$", "--stacks", "mlir", "--cpu", level]) == 0
    assert [target for target, _ in seen] == [Target.of(level)] and seen[0][1] == as_on(level, before)
    assert dict(os.environ) == before and Target.host() == Target.of("host")


def test_a_program_is_measured_on_all_stacks():
    pytest.importorskip("jaxlib")
    found = command.measure(PROGRAMS["reshape s8"](), ["legacy", "mlir"], 1, 0.001)
    assert set(found) == {"legacy", "mlir", "xla"} and all(np.isfinite(t) and t > 0 for t in found.values())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--only", "("], "unterminated subpattern"),
        (["--only", "nothing"], "matches no program"),
        (["--stacks", "llvm"], "unknown stack 'llvm'"),
        (["--threads", "0"], "--threads 0"),
        (["--cpu", "i386"], "invalid choice: 'i386'"),
        (["--threads", "100000"], "this process may use"),
    ],
)
def test_bad_arguments_end_with_2(timed, arguments, told, capsys):
    with pytest.raises(SystemExit, match="2"):
        command.main(["ops", *arguments])
    assert told in capsys.readouterr().err


def test_without_jaxlib_nothing_is_compared(timed, monkeypatch, capsys):
    monkeypatch.setattr(command, "installed", lambda: False)
    with pytest.raises(SystemExit, match="2"):
        command.main(["ops"])
    assert "./testbed setup --xla" in capsys.readouterr().err
