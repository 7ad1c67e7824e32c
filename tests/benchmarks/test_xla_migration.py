"""The run behind docs/xla-migration.md: rows that are kept, a run that goes on, figures with goals."""

import json
import math

import pytest

from ...benchmarks import xla_migration
from ...benchmarks.xla_kernels import METADATA, KernelRow, ProgramRow
from ...benchmarks.xla_migration import chosen, main
from ...benchmarks.xla_report import figures, report
from ...benchmarks.xla_rows import Rows, plain_of
from ...formats.program import load_program
from ...hlo.errors import InputError
from ...migration.xla_programs import read_program
from ...xla_kernels.folder import one_module
from ..support.xla_dump import SCHEDULED, write_dump

SETTINGS = {"kernels": 2, "rounds": 3, "seconds": 1e-5, "seed": 0}


def kernel_row(symbol="a", generation="new", **seconds):
    times = {f"xla-{generation}": 1e-6, **seconds}
    ulps, metadata = dict.fromkeys(times, 0.0), dict.fromkeys(METADATA, 0)
    return KernelRow("p", generation, symbol, "loop_fusion", "reduce", "key", times, ulps, {}, 9, metadata)


def test_rows_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = Rows(path, SETTINGS)
    program = ProgramRow("p", {"xla-new": 1e-6}, {"new": 0.5}, {"xla-new": 0.0}, {"new": (3, 2)}, {"mlir": "no row"})
    rows.add_program(program)
    rows.add_kernel(kernel_row(mlir=2e-6))
    again = Rows(path, SETTINGS)
    assert again.programs == {"p": program}
    assert again.kernel(("p", "new", "a"), "key") == kernel_row(mlir=2e-6)
    assert again.kernel(("p", "old", "a"), "key") is None
    assert "key" not in plain_of(kernel_row())


def test_a_line_that_was_cut_is_measured_again(tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = Rows(path, SETTINGS)
    rows.add_kernel(kernel_row("a"))
    rows.add_kernel(kernel_row("b"))
    path.write_text(path.read_text()[:-9])
    again = Rows(path, SETTINGS)
    assert set(again.kernels) == {("p", "new", "a")}
    again.add_kernel(kernel_row("c"))
    assert {symbol for _, _, symbol in Rows(path, SETTINGS).kernels} == {"a", "c"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "no rows of xla_migration"),
        ("{}\n", "no rows of xla_migration"),
        ('{"settings": {}}\n{"other": 1}\n', "no rows of xla_migration"),
        ('{"settings": {"seed": 7}}\n', "measured with other settings: {'seed': 7}"),
    ],
)
def test_another_file_is_refused(tmp_path, text, expected):
    (tmp_path / "rows").write_text(text)
    with pytest.raises(InputError, match=expected):
        Rows(tmp_path / "rows", SETTINGS)
    with pytest.raises(InputError, match="give a writable file"):
        Rows(tmp_path / "no" / "rows", SETTINGS)


def test_figures_stand_beside_their_goals():
    kernels = [kernel_row(legacy=5e-7, mlir=8e-7), kernel_row("b", legacy=5e-7, mlir=1.6e-6), kernel_row("c", "old")]
    programs = [
        ProgramRow("p", {"jaxlib-new": 1e-5, "jaxlib-old": 1e-5, "xla-new": 1e-6, "xla-old": 2e-5}),
        ProgramRow("q", {"jaxlib-new": 1e-5, "jaxlib-old": 1e-5, "xla-new": 1e-6}),
    ]
    for program in programs:
        program.compile_seconds = {"old": 1.0, "new": 1.5}
        program.kernels = {"old": (100, 100), "new": (100, 99)}
    found = {what.split(",")[0]: value for what, value, _, _ in figures(kernels, programs)}
    assert found["kernels matched with an instruction"] == 0.995
    assert math.isclose(found["XLA's new kernels in our runtime"], 0.1)
    assert math.isclose(found["XLA's old kernels in our runtime"], 2.0)
    assert math.isclose(found["legacy"], 0.5) and math.isclose(found["mlir"], math.sqrt(0.8 * 1.6))
    text = report(kernels, programs, "all")
    assert "| whole programs on XLA's old kernels, of all | 0.50 | ≥ 0.9 | no |" in text
    assert "| legacy, time as a multiple of XLA's new kernels on the same fusions | 0.50 | ≤ 0.8 | yes |" in text


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """A program with inputs, whose kernels are those of a folder; jaxlib's part is left out."""
    import numpy as np

    folder = tmp_path / "programs" / "tiny"
    folder.mkdir(parents=True)
    (folder / "module.hlo").write_text(SCHEDULED)
    np.savez(folder / "io.npz", in0=np.ones(4, np.float32), in1=np.ones(1, np.float32))
    write_dump(tmp_path / "dump")
    asked = []

    def whole(program, rounds, seconds):
        asked.append(program.name)
        return ProgramRow(program.name, {"jaxlib-new": 1.0, "jaxlib-old": 1.0}, {"old": 1.0, "new": 1.5})

    monkeypatch.setattr(xla_migration, "measure_program", whole)
    monkeypatch.setattr(xla_migration, "start_client", lambda: None)
    monkeypatch.setattr(
        xla_migration, "made_by_jaxlib", lambda text, generation: read_program(one_module(tmp_path / "dump"))
    )
    monkeypatch.setattr(xla_migration.os, "sched_setaffinity", lambda *_: None, raising=False)
    return tmp_path, asked


def test_a_run_that_was_cut_short_goes_on(corpus, monkeypatch, capsys):
    folder, asked = corpus
    rows, page = folder / "rows.jsonl", folder / "page.md"
    arguments = [
        str(folder / "programs"),
        "--kernels",
        "9",
        "--rounds",
        "3",
        "--seconds",
        "0.00001",
        "--rows",
        str(rows),
    ]
    real, measured = xla_migration.measure_kernel, []

    def stop_at_the_second(*arguments):
        if len(measured) == 1:
            raise KeyboardInterrupt
        measured.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(xla_migration, "measure_kernel", stop_at_the_second)
    assert main(arguments) == 130
    assert f"goes on from {rows}" in capsys.readouterr().err
    assert len(rows.read_text().splitlines()) == 3, "settings, a program, a kernel"
    monkeypatch.setattr(xla_migration, "measure_kernel", lambda *a: measured.append(a) or real(*a))
    assert main([*arguments, "--output", str(page), "--json", str(folder / "rows.json")]) == 0
    assert (len(asked), len(measured)) == (1, 2), "nothing is measured twice"
    assert "1 of 1 kernels to measure, 0.0 minutes left" in capsys.readouterr().err
    assert "## Figures" in page.read_text()
    assert len(json.loads((folder / "rows.json").read_text())["kernels"]) == 2
    assert main([*arguments, "--seed", "1"]) == 2
    assert "measured with other settings" in capsys.readouterr().err


def test_all_kernels_are_chosen_once(corpus):
    folder, _ = corpus
    import numpy as np

    xla = read_program(one_module(folder / "dump"))
    picked = chosen([("tiny", xla)], 2000, np.random.default_rng(0))
    assert sorted(i.name for _, _, i in picked) == ["add_fusion", "update_fusion"]
    assert load_program(str(folder / "programs" / "tiny")).inputs is not None


@pytest.mark.parametrize("rows, said", [((), "with --rows, a run can go on"), (("--rows", "r"), "goes on from r")])
def test_ctrl_c_is_a_line(monkeypatch, capsys, rows, said):
    def interrupted(options):
        raise KeyboardInterrupt

    monkeypatch.setattr(xla_migration, "_measure", interrupted)
    monkeypatch.setattr(xla_migration.os, "sched_setaffinity", lambda *given: None)
    assert main(["folder", *rows]) == 130
    assert capsys.readouterr().err.endswith(f"{said}\n")
