"""The suite's command: a tiny workload through all of it, and what becomes of crashes, time-outs and Ctrl-C."""

import json
import subprocess
import sys
from dataclasses import asdict

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...benchmarks.suite import command, processes
from ...benchmarks.suite.child import Request
from ...benchmarks.suite.command import main
from ...benchmarks.suite.machine import cpus, machine
from ...benchmarks.suite.results import Report, read_reports
from ...codegen.options import EmitOptions, Target
from ...formats.program import save_io
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module

TINY = """HloModule tiny

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY e {
  x = f32[40,25]{1,0} parameter(0)
  zero = f32[] constant(0)
  t = f32[40,25]{1,0} tanh(x)
  r = f32[40]{0} reduce(t, zero), dimensions={1}, to_apply=sum
  ROOT both = (f32[40,25]{1,0}, f32[40]{0}) tuple(t, r)
}
"""

QUICK = ["--quick", "--seconds", "0.001", "--no-limits"]


@pytest.fixture
def tiny(tmp_path):
    """A folder with a module and its inputs."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "module.hlo").write_text(TINY)
    x = np.random.RandomState(0).uniform(-1, 1, (40, 25)).astype(np.float32)
    save_io(folder / "io.npz", [x], [np.tanh(x), np.tanh(x).sum(1)])
    return folder


WARM = """
from testbed.benchmarks.suite.child import _warm_up
from testbed.codegen import pool
from testbed.migration.api import compile
def libraries():
    with open("/proc/self/maps") as lines:
        return {line.split()[-1] for line in lines if "llvm" in line.lower() or "mlir" in line.lower()}
_warm_up("legacy")
before = libraries()
compile(LOOP, emitters="legacy")
print(pool._pool is not None, libraries() - before)
"""
LOOP = """HloModule loop
more { k = s32[] parameter(0)
  zero = s32[] constant(0)
  ROOT r = pred[] compare(k, zero), direction=GT }
half { k = s32[] parameter(0)
  two = s32[] constant(2)
  ROOT r = s32[] divide(k, two) }
ENTRY e { n = s32[] parameter(0)
  ROOT w = s32[] while(n), condition=more, body=half }
"""


def test_what_is_compiled_or_loaded_once_a_machine_counts_for_no_workload():
    given = f"import json, sys; sys.path[:] = json.loads({json.dumps(sys.path)!r}); LOOP = {LOOP!r}"
    command = [sys.executable, "-c", f"{given}\n{WARM}"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "True set()\n"


def test_a_workload_through_the_whole_command(tiny, tmp_path, capsys):
    files = {name: str(tmp_path / name) for name in ("now.json", "history.jsonl", "ratios.svg")}
    options = ["--json", files["now.json"], "--history", files["history.jsonl"], "--plot", files["ratios.svg"]]
    assert main([str(tiny), "--columns", "legacy,mlir,numpy", *QUICK, *options]) == 0
    out = capsys.readouterr().out
    assert "Run time, 1 thread" in out and "Relative error" in out and "numpy: the workload has no form for" in out
    assert max(map(len, out.splitlines())) <= 80 and out.isascii()

    written = json.loads((tmp_path / "now.json").read_text())
    assert {"schema", "when", "machine", "versions", "commit", "limits", "workloads"} <= written.keys()
    (row,) = written["workloads"]
    assert row["name"] == "tiny" and row["threads"] == 1 and row["bytes_touched"] == 4 * (1000 + 1000 + 40)
    for stack in ("legacy", "mlir"):
        figures = row["columns"][stack]
        assert figures["status"] == "ok" and 1 <= len(figures["rounds"]) <= 3 and figures["run_minimum"] > 0
        assert figures["compile_median"] > 0 and figures["temporary_bytes"] is not None
        assert figures["error"] == pytest.approx(error_by_hand(stack, tiny), rel=1e-3) and 0 < figures["error"] < 1e-6
    assert row["columns"]["numpy"]["status"] == "absent"
    (report,) = read_reports(tmp_path / "history.jsonl")
    assert report.as_json() == Report.from_json(written).as_json() == written
    assert "<svg" in (tmp_path / "ratios.svg").read_text()[:1000]


def error_by_hand(stack, folder):
    """The larger of both leaves' relative 2-norm errors against NumPy in f64, of code for the machine itself."""
    x = np.load(folder / "io.npz")["in0"]
    exact = np.tanh(x.astype(np.float64))
    options = CompileOptions(emit=EmitOptions(Target.machine()))
    results = compile_module(parse_module(TINY), Flags.parse(stack), options).execute([x])
    wanted = [exact, exact.sum(1)]
    return max(np.linalg.norm(r - e) / np.linalg.norm(e) for r, e in zip(results, wanted, strict=True))


SCRIPT = """
import json, os, signal, sys, time
request = json.loads(sys.stdin.readline())
for column in request["columns"]:
    print(json.dumps({"stage": column}), flush=True)
    if column == "legacy" and request["workload"] == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if column == "legacy" and request["workload"] == "hang":
        time.sleep(600)
    if column == "legacy" and request["workload"] == "hungry":
        hoard = bytearray(1 << 29)
        hoard[::4096] = b"x" * len(hoard[::4096])
        time.sleep(600)
    print(json.dumps({"column": column, "set": {"status": "ok", "rounds": [request["seconds"]] * 3}}), flush=True)
if request["workload"] == "exact":
    print(json.dumps({"stage": "exact"}), flush=True)
    sys.exit("no reference")
print(json.dumps({"stage": "done"}))
"""


@pytest.fixture
def scripted(monkeypatch):
    """Children that run SCRIPT instead of a measurement; workloads are named after what goes wrong."""
    monkeypatch.setattr(processes, "command", lambda module, arguments=(): [sys.executable, "-c", SCRIPT])
    names = ("crash", "hang", "hungry", "exact", "fine")
    monkeypatch.setattr(command, "WORKLOADS", {n: command.Workload(n, "scripted") for n in names})
    return ["--columns", "legacy,mlir", "--no-limits", "--seconds", "1", "--limit", "2", "--memory", "0.25"]


def test_a_crash_and_a_time_out_are_lines_and_the_others_go_on(scripted, tmp_path, capsys):
    assert main([*scripted, "--json", str(tmp_path / "r.json")]) == 0
    captured = capsys.readouterr()
    flat = " ".join(captured.out.split())
    assert "crash: legacy: killed by signal 11 (SIGSEGV)" in flat
    assert "hang: legacy: no answer within 2 s" in flat
    assert "hungry: legacy: took more than 0.25 GiB of memory" in flat
    assert "exact: no error: exited with status 1: no reference" in flat
    rows = {row["name"]: row["columns"] for row in json.loads((tmp_path / "r.json").read_text())["workloads"]}
    assert list(rows) == ["crash", "hang", "hungry", "exact", "fine"]
    assert all(columns["mlir"]["run_median"] == 1.0 for columns in rows.values())
    assert [name for name, columns in rows.items() if columns["legacy"]["status"] == "failed"] == list(rows)[:3]
    assert captured.err.count("\n") == 5  # a line of progress each


def test_a_later_run_is_compared_and_fails_where_it_is_surely_slower(scripted, tmp_path, capsys):
    kept = [*scripted, "--only", "fine", "--history", str(tmp_path / "history.jsonl")]
    again = [*kept, "--against", "LAST", "--fail-above", "1.5"]
    assert main(kept) == 0 and main(again) == 0
    assert "1.00 [1.00, 1.00]" in capsys.readouterr().out
    assert main([*again, "--seconds", "2"]) == 1
    captured = capsys.readouterr()
    assert "slower: fine: mlir: 2.00 [2.00, 2.00]*" in captured.err and "Change since" in captured.out
    assert main([*again, "--seconds", "2"]) == 0  # the slow run was added, and is the last one now
    assert len((tmp_path / "history.jsonl").read_text().splitlines()) == 4


def test_ctrl_c_ends_with_what_was_measured(scripted, monkeypatch, tmp_path, capsys):
    run = processes.run

    def interrupted(arguments, request, limit, memory, *environ):
        if json.loads(request)["workload"] == "exact":
            raise KeyboardInterrupt
        return run(arguments, request, limit, memory)

    monkeypatch.setattr(processes, "run", interrupted)
    history = tmp_path / "history.jsonl"
    asked = ["--only", "^(fine|crash|exact)$", "--json", str(tmp_path / "r.json"), "--history", str(history)]
    assert main([*scripted, *asked]) == 130
    written = json.loads((tmp_path / "r.json").read_text())
    assert written["interrupted"] and [row["name"] for row in written["workloads"]] == ["crash"]
    assert "(interrupted)" in capsys.readouterr().out and not history.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "no such workload"], "matches no workload (--list prints them)"),
        (["--only", "("], "not a regular expression"),
        (["--columns", "cray"], "unknown contestant 'cray'"),
        (["--threads", "4096"], "this process may use"),
        (["--threads", "x"], "not a list of numbers"),
        (["--plot", "a.bmp"], "let the name end in .svg, .png, .pdf"),
        (["--against", "LAST"], "add --history FILE"),
        (["--against", "gone.json"], "gone.json: no such file"),
        (["no/such/folder"], "no/such/folder: no such file"),
    ],
)
def test_one_line_and_status_2_for_bad_usage(arguments, message, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1 and captured.out == ""


def test_a_module_without_inputs_is_a_line(tmp_path, capsys):
    (tmp_path / "bare.hlo").write_text(TINY)
    assert main([str(tmp_path / "bare.hlo"), "--columns", "legacy", *QUICK]) == 0
    assert "has no inputs (give a folder" in " ".join(capsys.readouterr().out.split())


def test_the_list_names_workloads_and_what_needs_jaxlib(capsys):
    assert main(["--list", "--only", "^(sum_2|conv_gradient$)"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["sum_2^10", "reductions"] and lines[-2].split()[-2:] == ["needs", "jaxlib"]
    assert lines[-1] == f"{len(lines) - 1} workloads"


# -- another processor ------------------------------------------------------------------------------------------------
def test_a_run_as_on_another_processor(tiny, tmp_path, capsys, monkeypatch):
    """Children get the level and the libraries' settings; its records are not compared with the machine's own."""
    seen, run = [], processes.run

    def spied(arguments, request, limit, memory, environ=None):
        seen.append((json.loads(request), environ))
        return run(arguments, request, limit, memory, environ)

    monkeypatch.setattr(processes, "run", spied)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    file = tmp_path / "r.json"
    assert main([str(tiny), *QUICK, "--cpu", "x86-64-v2", "--columns", "legacy,mlir", "--json", str(file)]) == 0
    ((request, environ),) = seen
    assert request["level"] == "x86-64-v2" and environ["OPENBLAS_CORETYPE"] == "Nehalem"
    assert environ["XLA_FLAGS"] == "--xla_cpu_enable_fast_math=false --xla_cpu_max_isa=SSE4_2"
    assert "GiB, as x86-64-v2" in capsys.readouterr().out
    found = json.loads(file.read_text())
    assert found["machine"]["level"] == "x86-64-v2"
    assert found["machine"]["fingerprint"] != machine()["fingerprint"]
    assert all(c["status"] == "ok" for c in found["workloads"][0]["columns"].values())


def test_a_child_makes_code_for_the_level(tiny):
    request = Request(str(tiny), tuple(cpus()[:1]), ("legacy",), 1, 0.001, exact=False, level="x86-64-v9")
    outcome = processes.run(processes.command(command.CHILD), json.dumps(asdict(request)), 60.0, 1 << 33)
    assert "unknown processor 'x86-64-v9'" in outcome.events[-1]["set"]["failure"]


def test_an_unknown_processor_is_refused(tiny, capsys):
    assert main([str(tiny), *QUICK, "--cpu", "x86-64-v9"]) == 2
    assert "--cpu x86-64-v9: not a level of this machine" in capsys.readouterr().err
