"""Reading StableHLO: text and portable bytecode, CHLO and Shardy, invalid modules, and a missing jaxlib."""

import builtins

import numpy as np
import pytest

from ...evaluator.evaluator import evaluate
from ...formats.files import STABLEHLO, format_of
from ...formats.program import load_program
from ...formats.stablehlo import stablehlo
from ...formats.stablehlo.stablehlo import parse_stablehlo
from ...hlo.errors import InputError, ParseError
from ...hlo.verify.verifier import verify
from ..support.corpus import sample
from ..support.passes import agree

ADD = b"""module @m {
  func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add %a, %a : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
"""


@pytest.fixture
def jaxlib():
    return pytest.importorskip("jaxlib", reason="needs jaxlib (./testbed setup --xla)")


def test_text_becomes_a_module(jaxlib):
    module = parse_stablehlo(ADD, "m.mlir")
    verify(module)
    assert module.name == "m"
    assert evaluate(module, [np.float32([1, 2])])[0].tolist() == [2, 4]


def test_portable_bytecode_is_the_same_module(jaxlib, tmp_path):
    from jaxlib._jax import mlir

    code = mlir.serialize_portable_artifact(ADD.decode(), "1.0.0")
    assert code.startswith(b"ML\xefR")
    (tmp_path / "m.bin").write_bytes(code)
    program = load_program(str(tmp_path / "m.bin"))
    assert evaluate(program.module, [np.float32([1, 2])])[0].tolist() == [2, 4]
    assert "add(" in program.text


@pytest.mark.parametrize(
    ("version", "reader"), [("1.18.0", "jaxlib 0.12 or newer"), ("9.2.1", "the jaxlib that wrote")]
)
def test_bytecode_of_a_newer_version_names_the_jaxlib_that_reads_it(jaxlib, version, reader, monkeypatch):
    from jaxlib.mlir.dialects import stablehlo as dialect

    monkeypatch.setattr(dialect, "get_current_version", lambda: "1.17.0")
    code = b"ML\xefR\x0dStableHLO_v" + version.encode() + b"\0\x01\xff"
    with pytest.raises(
        ParseError, match=f"bytecode of StableHLO {version}; jaxlib .* reads versions up to 1.17.0"
    ) as e:
        parse_stablehlo(code, "m.mlirbc")
    assert reader in e.value.remedy and "serialize it for version 1.17.0" in e.value.remedy


def test_chlo_and_shardy_are_lowered(jaxlib):
    code = b"""module @m {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
    %0 = chlo.erf_inv %a : tensor<4xf32> -> tensor<4xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
"""
    values = np.float32([-0.5, 0, 0.25, 0.9])
    scipy = pytest.importorskip("scipy.special")
    with np.errstate(all="ignore"):
        (found,) = evaluate(parse_stablehlo(code), [values])
    assert np.allclose(found, scipy.erfinv(values), rtol=1e-5)


@pytest.mark.parametrize(
    ("code", "line", "column", "message"),
    [
        (ADD.replace(b"stablehlo.add", b"stablehlo.addd"), 3, 10, "custom op 'stablehlo.addd' is unknown"),
        (ADD.replace(b"%a, %a", b"%a, %b"), 3, 28, "undeclared SSA value"),
        (ADD.replace(b"@main", b"@other"), 1, 1, "main"),
        (b"", 1, 1, "empty"),
        (b"  \n \n", 1, 1, "empty"),
        (b"nonsense", 1, 1, "unknown"),
        (b"module {\n \0 }", 2, 2, "neither MLIR text nor bytecode"),
        (b"module {\n \xff }", 2, 2, "neither MLIR text nor bytecode"),
        (b"ML\xefR\x01\x02", 1, 1, ""),
        (b"ML\xefR", 1, 1, ""),
    ],
)
def test_bad_stablehlo_is_a_located_error(jaxlib, code, line, column, message):
    with pytest.raises(ParseError) as caught:
        parse_stablehlo(code, "m.mlir")
    assert message in caught.value.message
    location = caught.value.location
    assert (location.file, location.line, location.column) == ("m.mlir", line, column)


def test_a_located_error_shows_the_line(jaxlib):
    with pytest.raises(ParseError) as caught:
        parse_stablehlo(ADD.replace(b"stablehlo.add", b"stablehlo.addd"), "m.mlir")
    assert caught.value.snippet().splitlines()[0].strip().startswith("%0 = stablehlo.addd")


def test_a_module_that_crashes_the_converter_is_an_error(jaxlib, monkeypatch, tmp_path):
    crash = tmp_path / "worker.py"
    crash.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    monkeypatch.setattr(stablehlo, "__file__", str(tmp_path / "stablehlo.py"))
    with pytest.raises(ParseError, match=r"m\.mlir:1:1: XLA's converter crashed on this module"):
        parse_stablehlo(ADD, "m.mlir", isolate=True)


def test_a_child_process_answers_the_same(jaxlib):
    assert stablehlo.stablehlo_to_hlo(ADD, isolate=True) == stablehlo.stablehlo_to_hlo(ADD)
    with pytest.raises(ParseError, match=r"m\.mlir:3:10: custom op 'stablehlo\.addd' is unknown"):
        parse_stablehlo(ADD.replace(b"stablehlo.add", b"stablehlo.addd"), "m.mlir", isolate=True)


def test_without_jaxlib_the_error_says_what_to_install(monkeypatch):
    genuine = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.split(".")[0] == "jaxlib":
            raise ImportError(name)
        return genuine(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(InputError, match=r"jaxlib is not installed \(run \./testbed setup --xla"):
        parse_stablehlo(ADD)


@pytest.mark.parametrize(
    ("data", "name", "kind"),
    [
        (ADD, "x", STABLEHLO),
        (b"ML\xefRabc", "x.hlo", STABLEHLO),
        (b"// a comment\n#loc = loc(unknown)\nmodule {}", "x", STABLEHLO),
        (b"func.func @main() { return }", "-", STABLEHLO),
        (b"HloModule module\n\nENTRY e { ROOT c = f32[] constant(1) }", "-", "HLO text"),
        (b"ENTRY e { ROOT c = f32[] constant(1) }", "-", "HLO text"),
        (b"\n\x01m\x12\x01e\x1a\x00", "-", "proto"),
        (b'name: "m"\n', "-", "text proto"),
        (b"hlo {\n hlo_module {", "-", "text proto"),
    ],
)
def test_the_format_is_seen(data, name, kind):
    assert format_of(data, name) == kind


def test_programs_of_the_corpus_give_their_results(jaxlib):
    for path in sample("jax_programs/*/module.stablehlo.mlir", 4, seed=2):
        module = parse_stablehlo(path.read_bytes(), str(path))
        verify(module)
        from ...formats.program import load_io, parameter_leaves, result_leaves

        inputs, expected = load_io(path.parent / "io.npz", parameter_leaves(module), result_leaves(module))
        with np.errstate(all="ignore"):
            agree(module, expected, evaluate(module, inputs))
