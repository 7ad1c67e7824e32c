"""`testbed profile`: tables, files, pictures, comparisons, programs from files, and what it refuses."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from ...cli.main import main
from ...cli.profile import WAYS
from ...display import roofline_plot
from ...display.graph_theme import theme_of
from ...mlir_emitters import form_table
from ...profiling import groups
from ...profiling.report import from_json
from ..profiling.reports import loop, made, step
from ..support.lhlo_programs import SMALL_LOOP

FUSED = """HloModule fused
ENTRY e { x = f32[16,16] parameter(0)
  y = f32[16,16] tanh(x), metadata={op_name="jit(f)/tanh" source_file="model.py" source_line=3}
  z = f32[16,16] add(y, x), metadata={op_name="jit(f)/add" source_file="model.py" source_line=4}
  ROOT d = f32[16,16] dot(z, z), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""

FAST = ("--iterations", "2", "--seed", "1")


@pytest.fixture
def fused(tmp_path):
    (tmp_path / "fused.hlo").write_text(FUSED)
    return str(tmp_path / "fused.hlo")


@pytest.fixture
def looping(tmp_path):
    (tmp_path / "loop.hlo").write_text(SMALL_LOOP)
    np.savez(tmp_path / "in.npz", in0=np.int32(2), in1=np.ones(8, np.float32))
    return [str(tmp_path / "loop.hlo"), "--inputs", str(tmp_path / "in.npz"), "--iterations", "2"]


def profiles(path):
    return json.loads(path.read_text())["profiles"]


def test_the_ways_are_those_of_the_groups():
    assert sorted(WAYS) == sorted(groups.WAYS)


def test_steps_of_a_loop(looping, capsys):
    assert main(["profile", *looping]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("loop, ledger, compiled host program, ")
    rows = {" ".join(line.split()[:2]): line.split() for line in lines}
    assert rows["w while"][2] == "1" and rows["an iteration"][2] == "5"
    assert rows["between steps"] and any(line.startswith("entry ") for line in lines)
    assert any(line.startswith("  ") and " mlir" in line for line in lines)
    assert max(map(len, lines)) <= 80 and all(line.isascii() for line in lines)


def test_parts_of_fusions_are_marked_as_estimates(fused, capsys):
    assert main(["profile", fused, *FAST]) == 0
    out = capsys.readouterr().out
    parts = [line for line in out.splitlines() if line.lstrip().startswith("~ ")]
    assert any("tanh" in line and "~0." in line for line in parts)
    assert "~ and estimated: a fusion's time" in out


@pytest.mark.parametrize(
    "way, wanted", [("opcode", "tanh"), ("family", "unary"), ("stack", "mlir"), ("source", "model.py:3")]
)
def test_groups(fused, way, wanted, capsys):
    assert main(["profile", fused, *FAST, "--emitters", "mlir", "--by", way]) == 0
    lines = capsys.readouterr().out.splitlines()
    head = next(n for n, line in enumerate(lines) if line.split()[:2] == [way, "calls"])
    names = [line.split()[0] for line in lines[head + 1 :] if line]
    assert wanted in names and names[:-1].index("between") and "entry" in names


def test_a_module_without_metadata_says_so(looping, capsys):
    assert main(["profile", *looping, "--by", "source"]) == 0
    out = capsys.readouterr().out
    assert "no metadata: the module does not say what lines of source it is from" in out.replace("\n  ", " ")


def test_several_modules_and_stacks(fused, tmp_path, capsys):
    out = tmp_path / "out.json"
    assert main(["profile", fused, fused, *FAST, "--emitters", "legacy,mlir", "--json", str(out)]) == 0
    assert [(p["program"], p["emitters"]) for p in profiles(out)] == 2 * [("fused", "legacy"), ("fused", "mlir")]
    assert capsys.readouterr().out.count("accounted for: ") == 4


def test_a_module_that_fails_does_not_stop_the_others(fused, tmp_path, capsys):
    out, missing = tmp_path / "out.json", str(tmp_path / "none.hlo")
    assert main(["profile", missing, fused, *FAST, "--json", str(out)]) == 2
    assert [p["program"] for p in profiles(out)] == ["fused"]
    shown, err = capsys.readouterr()
    assert "accounted for: " in shown and "none.hlo: no such file" in err


def test_json_on_standard_output_is_all_of_it(fused, capsys):
    assert main(["profile", fused, *FAST, "--emitters", "mlir,dot=legacy", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    (profile,) = document["profiles"]
    assert document["kind"] == "testbed-profile" and profile["emitters"] == "mlir,dot=legacy" and profile["runs"] == 2
    assert any(part["facts"]["source"] == "model.py:3" for s in profile["steps"] for part in s["parts"])


def test_kernels_say_their_forms(fused, tmp_path, capsys):
    """A compiled program has none, and neither have profiles of versions that did not say them."""
    out = tmp_path / "out.json"
    assert main(["profile", fused, *FAST, "--emitters", "mlir", "--json", str(out)]) == 0
    (profile,) = profiles(out)
    forms = {s["form"] for s in profile["steps"] if s["kind"] == "kernel"}
    named = {row.name for row in form_table()}
    assert forms and all(set(form.split(" + ")) <= named for form in forms)
    printed = capsys.readouterr().out
    assert all(form in printed for form in forms)
    document = json.loads(out.read_text())
    for row in document["profiles"][0]["steps"]:
        del row["form"]
    (old,) = from_json(json.dumps(document), "old.json")
    assert {s.form for s in old.steps} == {""}


def test_lhlo(looping, tmp_path, capsys):
    lhlo, marked = str(tmp_path / "l.lhlo.mlir"), str(tmp_path / "marked.lhlo.mlir")
    assert main(["lhlo", looping[0], "-o", lhlo]) == 0
    assert main(["opt", lhlo, "--passes", "insert-profile", "-o", marked]) == 0
    found = []
    for name in (lhlo, marked):
        out = tmp_path / "out.json"
        assert main(["profile", name, *looping[1:], "--json", str(out)]) == 0
        (profile,) = profiles(out)
        found.append([(s["kind"], s["calls"], s["iterations"], s["opcode"]) for s in profile["steps"]])
    assert found[0] == found[1] and ("while", 1.0, 5.0, "while") in found[0]
    capsys.readouterr()


def test_a_compiled_program(looping, tmp_path, capsys):
    program, out = tmp_path / "p.tbx", tmp_path / "out.json"
    assert main(["compile", looping[0], "-o", str(program), "--emitters", "mlir"]) == 0
    renamed = tmp_path / "renamed"
    renamed.write_bytes(program.read_bytes())
    for name in (program, renamed):
        assert main(["profile", str(name), *looping[1:], "--json", str(out)]) == 0
        (profile,) = profiles(out)
        assert profile["emitters"] == "mlir" and {s["stack"] for s in profile["steps"] if s["kind"] == "kernel"} == {
            "mlir"
        }
        assert {s["calls"] for s in profile["steps"] if s["depth"]} == {5, 6}
    assert "unknown: a compiled program has names" in capsys.readouterr().out.replace("\n  ", " ")
    assert main(["profile", str(program), *looping[1:], "--emitters", "mlir"]) == 2
    assert "is compiled already: leave out its flags" in capsys.readouterr().err


def test_an_empty_program(tmp_path, capsys):
    (tmp_path / "empty.hlo").write_text("HloModule empty\nENTRY e { ROOT t = () tuple() }")
    pictures = ["--trace", str(tmp_path / "t.json"), "--flame", str(tmp_path / "f.svg")]
    assert main(["profile", str(tmp_path / "empty.hlo"), "--iterations", "2", *pictures]) == 0
    assert "entry" in capsys.readouterr().out
    assert [e["cat"] for e in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if e["ph"] == "X"][
        -1
    ] == "run"
    ET.fromstring((tmp_path / "f.svg").read_text())


def test_files_of_a_trace_and_of_a_flame_view(looping, tmp_path, capsys):
    names = {"--trace": tmp_path / "t.json", "--flame": tmp_path / "f.svg"}
    options = [word for name, file in names.items() for word in (name, str(file))]
    assert main(["profile", *looping, *options, "--theme", "dark"]) == 0
    assert main(["profile", *looping, "--flame", str(tmp_path / "f.folded")]) == 0
    events = [e for e in json.loads(names["--trace"].read_text())["traceEvents"] if e["ph"] == "X"]
    assert {"run", "while", "kernel"} <= {e["cat"] for e in events} <= {"run", "while", "kernel", "copy"}
    assert sum(e["name"] == "w" and e["cat"] == "while" for e in events) >= 1
    assert ET.fromstring(names["--flame"].read_text()).get("aria-label").startswith("loop, ledger: ")
    assert any(line.startswith("loop;w") for line in (tmp_path / "f.folded").read_text().splitlines())
    assert "drawn to" in capsys.readouterr().err


def test_counters_or_the_reason_why_not(looping, capsys):
    assert main(["profile", *looping, "--counters"]) == 0
    out = capsys.readouterr().out
    assert "counters of a call" in out or "no cycles" in out
    assert "cycles" in out  # as a column, or in the line that says why not


# -- comparisons ------------------------------------------------------------------------------------------------------
def test_stacks_against_each_other_and_a_saved_profile(fused, tmp_path, capsys):
    saved = tmp_path / "a.json"
    versus = ["--emitters", "legacy", "--against-emitters", "mlir"]
    assert main(["profile", fused, *FAST, *versus, "--json", str(saved)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("A: fused, legacy: ") and "\nB: fused, mlir: " in out and "B / A" in out
    assert [p["emitters"] for p in profiles(saved)] == ["legacy", "mlir"]
    assert main(["profile", fused, *FAST, "--json", str(saved)]) == 0
    capsys.readouterr()
    assert main(["profile", str(saved), "--against", str(saved)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all("+0.000" in line or "-0.000" in line for line in lines[5:])
    assert main(["profile", str(saved), "--against", fused, *FAST]) == 0
    assert "A: fused, ledger" in capsys.readouterr().out
    assert main(["profile", str(saved), "--by", "opcode"]) == 0
    assert "tanh" in capsys.readouterr().out


def test_a_file_with_two_profiles_is_compared_with_nothing(fused, tmp_path, capsys):
    saved = str(tmp_path / "a.json")
    assert main(["profile", fused, *FAST, "--emitters", "legacy,mlir", "--json", saved]) == 0
    capsys.readouterr()
    assert main(["profile", saved, "--against", saved]) == 2
    assert "holds fused on legacy, fused on mlir (compare files with one profile each)" in capsys.readouterr().err


# -- what is refused --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text, reason",
    [
        ("", "not JSON at line 1, column 1; the file may be cut off"),
        ('{"kind": "testbed-profile", "schema": 1, "profiles": [{"program": "p', "the file may be cut off"),
        ('{"traceEvents": []}', "JSON, but no profile"),
        ('{"kind": "testbed-profile", "schema": 2}', "a profile of schema 2"),
        ('{"kind": "testbed-profile", "schema": 1, "profiles": [{"steps": []}]}', "program is missing"),
    ],
)
def test_files_that_are_no_profile(text, reason, tmp_path, capsys):
    (tmp_path / "a.json").write_text(text)
    assert main(["profile", str(tmp_path / "a.json")]) == 2
    out, err = capsys.readouterr()
    assert not out and reason in err and err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (["--iterations", "0"], "0 is not in the range x>=1"),
        (["--by", "colour"], "'colour' is not one of"),
        (["--emitters", "xla"], "a profile needs compiled kernels, and xla has none"),
        (["--emitters", "evaluator"], "evaluator has none"),
        (["--emitters", "frobnicate"], "frobnicate"),
        (["--flame", "a.png"], "--flame a.png: give a name that ends in .svg or .folded or .txt"),
        (["--trace", "a.txt"], "give a name that ends in .json"),
        (["--roofline", "a.pdf"], "give a name that ends in .svg or .png"),
        (["--trace", "a.json", "--emitters", "legacy,mlir"], "--trace takes one MODULE on one stack"),
        (["--flame", "a.svg", "--against-emitters", "mlir"], "draws no pictures"),
        (["--emitters", "legacy,mlir", "--against-emitters", "mlir"], "a comparison takes one MODULE on one stack"),
    ],
)
def test_options_that_do_not_fit(arguments, reason, fused, capsys):
    assert main(["profile", fused, "--seed", "1", *arguments]) == 2
    out, err = capsys.readouterr()
    assert not out and reason in err and err.count("\n") == 1


def test_saved_profiles_have_no_flags_and_no_pictures(tmp_path, capsys):
    assert main(["profile", str(tmp_path / "none.json")]) == 2
    assert "no such file" in capsys.readouterr().err
    assert main(["profile", str(tmp_path / "none.json"), "--emitters", "mlir"]) == 2
    assert "is a saved profile: leave out its flags" in capsys.readouterr().err
    assert main(["profile", str(tmp_path / "none.json"), "--flame", "a.svg"]) == 2
    assert "that is measured now" in capsys.readouterr().err


def test_files_that_cannot_be_written(fused, tmp_path, capsys):
    for option, name in (("--json", "p.json"), ("--trace", "t.json"), ("--flame", "f.svg")):
        file = tmp_path / "none" / name
        assert main(["profile", fused, *FAST, option, str(file)]) == 2
        assert f"{file}: cannot write" in capsys.readouterr().err and not file.parent.exists()


# -- the roofline -----------------------------------------------------------------------------------------------------
@pytest.fixture
def limits():
    from ...benchmarks.suite.limits import Limits

    sizes = ((1 << 17, 100e9), (1 << 20, 80e9), (1 << 28, 20e9))
    return Limits(1, sizes, 15e9, {"f32": 200e9, "f64": 100e9})


def report():
    return made(
        step(own=1000.0, total=1000.0, flops=64e3, bytes=32e3),
        step(name="copy.1", kind="copy", opcode="copy", stack="", flops=0.0, own=50.0),
        loop(),
        step(name="never", calls=0.0, own=0.0),
        step(name="shorter than a mark", own=21.0),
        step(name="exp.1", stack="mlir", own=400.0, flops=0.0, transcendentals=8.0),
    )


def test_points_are_the_kernels_that_took_time():
    points = roofline_plot.points_of(report())
    assert [(p.name, p.stack) for p in points] == [("add.1", "legacy"), ("exp.1", "mlir"), ("copy.1", "copy")]
    assert (points[0].intensity, points[0].speed, points[0].bandwidth) == (2, pytest.approx(64e9), pytest.approx(32e9))
    assert points[1].intensity == 8 / 96 and points[2].intensity == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_roofline_has_limits_and_numbers(theme, limits):
    pytest.importorskip("matplotlib")
    figure = roofline_plot.figure_of(report(), limits, theme_of(theme))
    moving, roof = figure.axes
    texts = {t.get_text() for axes in figure.axes for t in axes.texts} | {t.get_text() for t in figure.texts}
    assert {"memory, 20.0 GB/s", "131 kB in caches, 100.0 GB/s", "f32, 200 GFLOP/s", "1", "2", "3"} <= texts
    assert any(t.endswith("add.1") for t in texts) and "69.0%, 64 GFLOP/s, 32 GB/s" in texts
    assert len(roof.collections) == 2 and len(moving.collections) == 1
    (low, high), (bottom, top) = roof.get_xlim(), roof.get_ylim()
    for p in roofline_plot.points_of(report())[:2]:
        assert low < p.intensity < high and bottom < p.speed < top


@pytest.mark.parametrize("kind, begin", [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_the_roofline_of_a_program(kind, begin, fused, tmp_path, limits, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("testbed.benchmarks.suite.limits.measure", lambda threads, launches: limits)
    file = tmp_path / f"r.{kind}"
    assert main(["profile", fused, *FAST, "--roofline", str(file)]) == 0
    assert file.read_bytes().startswith(begin) and f"drawn to {file}" in capsys.readouterr().err


def test_numbers_of_kernels_do_not_lie_on_each_other(limits):
    Text = pytest.importorskip("matplotlib.text").Text
    one = report()
    steps = [replace(s, name=f"{s.name}.{n}") for n in range(6) for s in one.steps]
    figure = roofline_plot.figure_of(replace(one, steps=tuple(steps)), limits, theme_of("light"))
    figure.canvas.draw()
    for axes in figure.axes:
        numbers = [t for t in axes.texts if t.get_text().isdigit()]
        boxes = [Text.get_window_extent(t, figure.canvas.get_renderer()) for t in numbers]  # without its line
        assert not [1 for n, a in enumerate(boxes) for b in boxes[:n] if a.overlaps(b)]
    assert sum(len([t for t in axes.texts if t.get_text().isdigit()]) for axes in figure.axes) == 12


def test_limits_that_nearly_meet_share_their_words(limits):
    near = replace(limits, flops={"f32": 1.00e11, "f64": 1.05e11, "bf16": 4e11})
    assert [words for _, words in roofline_plot._peaks(near)] == [
        "f32, 100 GFLOP/s; f64, 105 GFLOP/s",
        "bf16, 400 GFLOP/s",
    ]


def test_the_roofline_of_nothing(limits):
    pytest.importorskip("matplotlib")
    figure = roofline_plot.figure_of(made(), limits, theme_of("light"))
    assert not any(axes.collections for axes in figure.axes)
