"""Every format that is written reads back to the same program, and what a format cannot express is refused by place."""

import pytest

from ...cli.main import main
from ...evaluator.evaluator import evaluate
from ...formats.files import load_module
from ...formats.text.parser import parse_module
from ...formats.writing import ENDINGS, module_to_bytes, output_format
from ...hlo.errors import InputError
from ..support.inputs import make_inputs
from ..support.passes import agree

TEXT = """HloModule loop, input_output_alias={ {}: (1, {}, may-alias) }

body {
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[4] tanh(x)
  ROOT t = (s32[], f32[4]) tuple(j, y)
}

cond {
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}

ENTRY e {
  a = f32[4,2] parameter(0)
  b = f32[4] parameter(1)
  v = f32[2] constant({1, -2})
  d = f32[4] dot(a, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[4] add(b, d)
  z = s32[] constant(0)
  t = (s32[], f32[4]) tuple(z, s)
  w = (s32[], f32[4]) while(t), condition=cond, body=body
  ROOT r = f32[4] get-tuple-element(w), index=1
}
"""
FUSED = """HloModule f
c {
  x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x)
}
ENTRY e {
  p = f32[4] parameter(0)
  ROOT %odd-name.7 = f32[4] fusion(p), kind=kLoop, calls=c, metadata={op_name="a/b" source_file="f.py" source_line=3}
}
"""


def needs_jaxlib(ending: str) -> None:
    if ending in (".mlir", ".mlirbc"):
        pytest.importorskip("jaxlib", reason="needs jaxlib (./testbed setup --xla)")


@pytest.mark.parametrize("ending", [".hlo", ".pb", ".pbtxt", ".mlir", ".mlirbc"])
def test_a_program_is_the_same_in_every_format(ending, tmp_path):
    needs_jaxlib(ending)
    source, target = tmp_path / "m.hlo", tmp_path / f"out{ending}"
    source.write_text(TEXT)
    assert main(["convert", str(source), str(target)]) == 0
    back = load_module(target.read_bytes(), target.name).module
    module = parse_module(TEXT)
    inputs = make_inputs(module)
    agree(module, evaluate(module, inputs), evaluate(back, inputs))
    assert back.attributes["input_output_alias"] == module.attributes["input_output_alias"]
    again = tmp_path / "again.hlo"
    assert main(["convert", str(target), str(again)]) == 0
    agree(module, evaluate(module, inputs), evaluate(parse_module(again.read_text()), inputs))


@pytest.mark.parametrize("ending", [".mlir", ".mlirbc"])
def test_what_stablehlo_cannot_express_is_refused_with_its_place(ending, tmp_path, capsys):
    needs_jaxlib(ending)
    source, target = tmp_path / "m.hlo", tmp_path / f"out{ending}"
    source.write_text(FUSED)
    assert main(["convert", str(source), str(target)]) == 2
    error = capsys.readouterr().err
    assert f"{source}:8:8: StableHLO cannot express odd-name.7 = fusion(...): XLA's mhlo.fusion is no" in error
    assert not target.exists()
    scheduled = parse_module(FUSED.replace("HloModule f", "HloModule f, is_scheduled=true"))
    with pytest.raises(InputError, match=r"StableHLO has no schedule \(remove is_scheduled=true"):
        module_to_bytes(scheduled, output_format(f"x{ending}"), "m.hlo")


@pytest.mark.parametrize("ending", [".pb", ".pbtxt", ".mlir", ".mlirbc"])
@pytest.mark.parametrize("key", ["replica_count", "num_partitions"])
def test_numbers_of_devices_are_not_dropped(ending, key):
    module = parse_module(FUSED.replace("HloModule f", f"HloModule f, {key}=2"))
    with pytest.raises(InputError, match=rf"^m\.hlo: .* has no field for {key}=2 of the header"):
        module_to_bytes(module, output_format(f"x{ending}"), "m.hlo")


def test_a_proto_names_the_instruction_that_it_has_no_field_for(tmp_path, capsys):
    source = tmp_path / "m.hlo"
    source.write_text(FUSED.replace("ROOT n = f32[4] negate(x)", "ROOT n = f32[4] constant({...})"))
    assert main(["convert", str(source), str(tmp_path / "m.pb")]) == 2
    assert "was elided as {...}" in capsys.readouterr().err and not (tmp_path / "m.pb").exists()


def test_a_converter_that_fails_otherwise_is_reported(monkeypatch):
    from ...formats import writing

    module = parse_module(FUSED.replace("fusion(p), kind=kLoop, calls=c", "negate(p)"))
    monkeypatch.setattr(writing, "export_in_child", lambda *_, **__: (b"", "INTERNAL: error: out of luck\nmore"))
    with pytest.raises(InputError, match=r"^m\.hlo: StableHLO cannot express this module: out of luck$"):
        module_to_bytes(module, "StableHLO", "m.hlo")
    monkeypatch.setattr(writing, "export_in_child", lambda *_, **__: (b"code", ""))
    monkeypatch.setattr(writing, "parse_stablehlo", lambda *_, **__: parse_module(TEXT))
    with pytest.raises(InputError, match=r"StableHLO does not keep the module's parameters"):
        module_to_bytes(module, "StableHLO", "m.hlo")


def test_the_command_prints_and_refuses(tmp_path, capsysbinary):
    source = tmp_path / "m.hlo"
    source.write_text(FUSED)
    assert main(["convert", str(source), "-", "--to", "hlo"]) == 0
    assert parse_module(capsysbinary.readouterr().out.decode()).name == "f"
    for arguments, words in (
        (["-"], b"- as OUT needs --to"),
        ([str(tmp_path / "x.onnx")], b"x.onnx: no format has this ending (end it in one of .hlo, "),
        ([str(tmp_path / "x.hlo"), "--to", "onnx"], b"'onnx' is not one of 'hlo'"),
        ([str(tmp_path / "no" / "x.hlo")], b"cannot write"),
    ):
        assert main(["convert", str(source), *arguments]) == 2
        assert words in capsysbinary.readouterr().err
    assert set(ENDINGS) > {".hlo", ".pb", ".pbtxt", ".mlir", ".mlirbc"}
