"""--without-form and --without-rewrite of `bisect` and `reduce`: known names, and a fault that goes away with them."""

import click
import pytest

from ...cli.main import main
from ...cli.switches import forms_named, switched
from ...differential.finding import case_of, read_finding, write_finding
from ...differential.setting import Setting
from ...formats.program import Program
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError

TEXT = "HloModule m\n\nENTRY e {\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] negate(p)\n}\n"


def test_a_form_of_both_stacks_and_of_one():
    assert forms_named("dot/tiled") == ["legacy:dot/tiled", "mlir:dot/tiled"]
    assert forms_named("mlir:dot/tiled") == ["mlir:dot/tiled"] and forms_named("nest/blocks") == ["mlir:nest/blocks"]
    for name, hint in (
        ("dot/tile", "'dot/tiled'"),
        ("legacy:nest/block", "did you mean"),
        ("nothing", "testbed forms"),
    ):
        with pytest.raises(click.UsageError, match=hint):
            forms_named(name)


def test_switches_are_added_to_those_of_a_setting():
    made = switched(Setting(without_forms=("mlir:scatter",)), ("mlir:scatter", "mlir:sort/merge"), ("cse", "cse"))
    assert made.without_forms == ("mlir:scatter", "mlir:sort/merge") and made.without_rewrites == ("cse",)
    with pytest.raises(InputError, match="no rewrite named 'css'"):
        switched(Setting(), (), ("css",))


def test_a_finding_keeps_its_switches(tmp_path):
    case = case_of(Program("m", TEXT, parse_module(TEXT)), ("evaluator", "mlir"))
    write_finding(tmp_path / "f", switch(case), stages={})
    assert read_finding(tmp_path / "f").setting == switch(case).setting


def switch(case):
    from dataclasses import replace

    return replace(case, setting=switched(case.setting, ("nest/linear",), ("algebra/add_zero",)))


def test_bisect_and_reduce_take_them(tmp_path, capsys):
    file = tmp_path / "m.hlo"
    file.write_text(TEXT)
    off = [
        "--without-form",
        "mlir:nest/linear",
        "--without-form",
        "mlir:nest/plain",
        "--without-form",
        "mlir:nest/tiles",
    ]
    given = [str(file), "--stacks", "evaluator:mlir"]
    assert main(["bisect", *given, "--without-form", "nest/linear", "--without-rewrite", "cse"]) == 1
    assert main(["bisect", *given, *off]) == 0  # no form is left: mlir refuses
    assert main(["reduce", *given, *off, "-o", str(tmp_path / "small"), "--seconds", "5"]) == 0
    assert "mlir:nest/plain" in (tmp_path / "small/case.json").read_text()
    assert main(["bisect", *given, "--without-rewrite", "nothing"]) == 2
