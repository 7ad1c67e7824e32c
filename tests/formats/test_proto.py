"""HloModuleProto: our own way out and in, and comparison with jaxlib's."""

import importlib.metadata

import pytest

from ...formats.proto import schema
from ...formats.proto.proto import (
    module_from_proto,
    module_from_text_proto,
    module_to_proto,
    module_to_text_proto,
)
from ...formats.text.parser import parse_module
from ...formats.text.printer import print_module
from ...hlo.attributes import OutputAlias
from ...hlo.equality import difference
from ...hlo.errors import InputError, TestbedError
from ..support.corpus import DEEP, sample
from ..support.hlo_canonical import canonical
from ..support.protos import MANY, xla_hlo


@pytest.fixture(scope="module")
def many():
    return parse_module(MANY)


@pytest.fixture(scope="module")
def xla():
    return xla_hlo()


def test_binary_round_trip_loses_nothing(many):
    assert difference(many, module_from_proto(module_to_proto(many))) is None


def test_text_round_trip_loses_nothing(many):
    text = module_to_text_proto(many)
    assert 'custom_call_target: "t"' in text
    assert difference(many, module_from_text_proto(text)) is None


def test_repeated_names_become_unique():
    module = parse_module(
        "HloModule m\n\nf {\n ROOT p = f32[] parameter(0)\n}\n\nENTRY e {\n p = f32[] parameter(0)\n"
        " ROOT c = f32[] call(p), to_apply=f\n}\n"
    )
    again = module_from_proto(module_to_proto(module))
    assert sorted(i.name for i in again.instructions()) == ["c", "p", "p.1"]
    assert difference(canonical(again), canonical(module_from_proto(module_to_proto(again)))) is None


RECENT = """HloModule m

work {
  a = f32[2]{0} parameter(0)
  ROOT n = f32[2]{0} negate(a)
}

ENTRY e {
  x = f32[1,4,2]{2,1,0} parameter(0)
  k = f32[2,2,3]{2,1,0} parameter(1)
  p = f32[2]{0} parameter(2)
  c = f32[1,3,3]{2,1,0} convolution(x, k), window={size=2}, dim_labels=b0f_0io->b0f, algorithm=dot_bf16_bf16_f32
  s = ((f32[2]{0}), f32[2]{0}, u32[]) async-start(p), calls=work
  u = ((f32[2]{0}), f32[2]{0}, u32[]) async-update(s), output_to_operand_aliasing={{1}: (0, {1})}
  d = f32[2]{0} async-done(u)
  ROOT t = (f32[1,3,3]{2,1,0}, f32[2]{0}) tuple(c, d)
}
"""
"""Attributes that jaxlib 0.12 writes, and 0.10 does not read."""


def test_attributes_of_newer_xla_are_kept_in_protos_and_in_text():
    module = parse_module(RECENT)
    again = module_from_proto(module_to_proto(module))
    for there in (again, parse_module(print_module(again))):
        names = there.entry.by_name
        assert names["c"].attributes["algorithm"] == "dot_bf16_bf16_f32"
        assert names["u"].attributes["output_to_operand_aliasing"] == (OutputAlias((1,), 0, (1,)),)


@pytest.mark.xla
def test_attributes_of_newer_xla_are_read_from_its_protos():
    hlo = pytest.importorskip("jaxlib._hlo", reason="needs jaxlib")
    if tuple(map(int, importlib.metadata.version("jaxlib").split(".")[:2])) < (0, 12):
        pytest.skip("needs jaxlib 0.12")
    module = parse_module(RECENT)
    theirs = hlo.hlo_module_from_text(print_module(module)).as_serialized_hlo_module_proto()
    names = module_from_proto(theirs).entry.by_name
    for name in ("c", "u"):
        own = module.entry.by_name[name].attributes
        for key in ("algorithm", "output_to_operand_aliasing"):
            assert names[name].attributes.get(key) == own.get(key)


def test_what_has_no_field_is_refused():
    module = parse_module(
        "f {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n"
        "ENTRY e {\n p = f32[] parameter(0)\n ROOT a = f32[] all-reduce(p), to_apply=f, mode=flattened_id\n}\n"
    )
    with pytest.raises(InputError, match="a: the attribute mode has no field"):
        module_to_proto(module)


def test_an_elided_constant_is_refused():
    module = parse_module("HloModule m\n\nENTRY e {\n ROOT p = f32[2]{0} constant({...})\n}\n")
    with pytest.raises(InputError, match="elided"):
        module_to_proto(module)


@pytest.mark.parametrize(
    ("suite", "count"), [("op_cases/*.hlo", 40), ("xla_modules/*.hlo", 60), ("jax_programs/*/module.hlo", 6)]
)
def test_protos_are_xlas(xla, suite, count):
    """XLA's proto read by us, and ours read by XLA, equal the module that both read from text."""
    hlo, options = xla
    for path in sample(suite, None if DEEP else count, seed=7):
        text = path.read_text()
        if "sparsity_config" in text:
            continue
        theirs = hlo.hlo_module_from_text(text)
        printed = theirs.to_string(options)
        want = canonical(parse_module(printed))
        assert difference(want, canonical(module_from_proto(theirs.as_serialized_hlo_module_proto()))) is None, path
        back = hlo.HloModule.from_serialized_hlo_module_proto(module_to_proto(parse_module(printed)))
        assert difference(want, canonical(parse_module(back.to_string(options)))) is None, path


@pytest.mark.parametrize(
    ("dtype", "order", "wanted"),
    [("f32", "TOTAL", "TOTALORDER"), ("f32", "PARTIAL", None), ("s32", "TOTAL", None), ("f32", "", None)],
)
def test_the_order_of_a_comparison_is_read_as_its_type(dtype, order, wanted):
    text = f"ENTRY e {{\n  x = {dtype}[2] parameter(0)\n  ROOT c = pred[2] compare(x, x), direction=LT\n}}"
    proto = schema.message("HloModuleProto").FromString(module_to_proto(parse_module(text)))
    compare = proto.computations[0].instructions[1]
    compare.comparison_type, compare.comparison_order = "", order
    assert module_from_proto(proto.SerializeToString()).entry.root.attributes.get("type") == wanted
    compare.comparison_order = "WEAK"
    with pytest.raises(TestbedError, match="comparison_order: 'WEAK' is not supported"):
        module_from_proto(proto.SerializeToString())
