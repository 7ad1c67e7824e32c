"""What families of processors have: each family's facts, by the words of a target."""

import pytest

from ...codegen.options import EmitOptions, Target
from ...codegen.processors import FAMILIES, Processor, present_features, processor_of, vector_bits_of
from ...codegen.targets import target_of
from ...formats.text.parser import parse_module
from ...legacy.kernel import Kernel
from ...mlir_emitters.core.facts import Facts
from ...planning.planner import plan

WITH_AVX512 = Processor(
    32, masks=True, gathers=True, narrow_shuffle_bytes=64, long_conversions=True, long_products=True
)
WITH_V = Processor(32, masks=True, gathers=True, long_conversions=True, long_products=True)


@pytest.mark.parametrize(
    ("words", "bits", "processor"),
    [
        (("x86_64",), 128, Processor(16)),
        (("x86_64", "x86-64-v3"), 256, Processor(16)),
        (("x86_64", "x86-64-v4"), 512, WITH_AVX512),
        (("x86_64", "x86-64-v4", "-avx512f"), 256, Processor(16)),
        (("x86_64", "x86-64-v3", "+avx512f"), 512, WITH_AVX512),
        (("aarch64",), 128, Processor(32, long_conversions=True)),
        (("aarch64", "neoverse-v1", "+neon,+sve"), 128, Processor(32, long_conversions=True)),
        (("riscv64",), 64, Processor(32)),
        (("riscv64", None, "+v"), 128, WITH_V),
    ],
)
def test_facts_of_a_family(words, bits, processor):
    target = target_of(*words)
    assert (target.vector_bits, target.processor) == (bits, processor)


def test_a_family_is_found_by_its_features_before_its_architecture():
    assert processor_of("aarch64", "") == processor_of("aarch64", "+neon")
    assert processor_of("pdp11", "") == processor_of("spirv64v1.4", "") == Processor()
    assert processor_of("powerpc64le", "+altivec").vector_registers == 32


def test_the_host_is_of_the_widest_family_that_it_has():
    machine = Target.machine()
    present = present_features(machine.features)
    family = next((f for f in FAMILIES if f.feature in present), None)
    assert family is None or (machine.vector_bits, machine.processor) == (family.vector_bits, family.processor)


def test_families_of_an_architecture_are_listed_from_the_widest_on():
    """The first one that fits is taken, and x86-64-v4 has the features of all three of x86-64."""
    widths = [family.vector_bits for family in FAMILIES if family.feature in ("avx512f", "avx", "sse2")]
    assert widths == sorted(widths, reverse=True) == [512, 256, 128]
    assert len({family.feature for family in FAMILIES}) == len(FAMILIES)


def test_a_feature_that_is_switched_off_is_absent():
    assert present_features("+avx,+fma,-fma") == {"avx"}
    assert vector_bits_of("+avx512f,+avx,-avx512f") == 256
    assert target_of("x86_64", "x86-64-v3").has_fma and not target_of("x86_64", "x86-64-v3", "-fma").has_fma


def test_units_of_the_caches_fit_each_other():
    for processor in (Processor(), *(family.processor for family in FAMILIES)):
        assert processor.first_cache_bytes == processor.first_cache_ways * processor.way_bytes
        assert processor.line_bytes <= processor.way_bytes <= processor.first_cache_bytes
        assert processor.first_cache_bytes < processor.second_cache_bytes < processor.last_cache_bytes
        assert processor.page_bytes % processor.line_bytes == 0


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v4"])
def test_both_stacks_see_the_processor_of_the_target(level):
    options = EmitOptions(Target.level(level))
    (request,) = plan(
        parse_module("HloModule m\nENTRY e { x = f32[8] parameter(0)\n ROOT n = f32[8] negate(x) }")
    ).kernels
    assert Facts.of(options).processor is options.target.processor
    assert Kernel.of(request, options).view.processor is options.target.processor
