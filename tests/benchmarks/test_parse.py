"""The parse benchmark: what it generates is a module, and it prints its figures and judges them."""

from ...benchmarks import parse
from ...formats.text.parser import parse_module
from ...hlo.verify.verifier import verify


def test_the_generated_module_is_valid_and_has_the_size():
    module = parse_module(parse.generate(400))
    verify(module)
    assert sum(1 for _ in module.instructions()) == 400


def test_both_figures_are_printed_and_judged(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(parse, "INSTRUCTIONS", 400)
    monkeypatch.setattr(parse, "generate", lambda real=parse.generate: real(400))
    (tmp_path / "a.hlo").write_text("HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n")
    (tmp_path / "bad.hlo").write_text("nonsense")
    monkeypatch.setattr(parse, "BYTES", 1 << 40)
    assert parse.main(["--corpus", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "400 instructions" in out and "peak memory" in out and "1 modules of" in out
    monkeypatch.setattr(parse, "SECONDS", 0.0)
    assert parse.main([]) == 1
