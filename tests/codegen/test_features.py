"""What code needs of a processor: Linux is asked first, LLVM for the rest, and both say the same."""

import pytest

from ...codegen import features
from ...codegen.features import KNOWN, lacking, needed_features
from ...codegen.options import Target

MACHINE = Target.machine()


@pytest.mark.skipif(MACHINE.architecture != "x86_64", reason="names x86 features")
def test_linux_finds_no_feature_that_llvm_does_not():
    present = {name for name, flags in KNOWN.items() if features._flags().issuperset(flags)}
    assert {"sse2", "cx8"} <= present <= set(needed_features(MACHINE)) | {"avx10.1"}
    assert set(KNOWN["avx10.1"]) == {"avx512_bf16", "avx512_bitalg", "avx512bw", "avx512cd", "avx512dq", "avx512f"} | {
        *("avx512_fp16", "avx512ifma", "avx512vbmi", "avx512_vbmi2", "avx512vl", "avx512_vnni", "avx512_vpopcntdq")
    }


@pytest.mark.skipif(MACHINE.architecture != "x86_64", reason="names x86 features")
def test_linux_knows_all_that_code_for_this_machine_may_need():
    """Otherwise each start on such a processor imports llvmlite."""
    assert set(needed_features(MACHINE)) <= set(KNOWN)


def test_the_features_of_other_processors_are_known_by_linuxs_names():
    level = set(needed_features(Target.level("x86-64-v4")))
    server = {"avx512bf16", "avx512bitalg", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512vpopcntdq"}
    amd = level | server | {"sse4a", "avxvnni", "avx512vp2intersect"}  # znver5
    bulldozer = {"avx", "bmi", "f16c", "fma", "fma4", "lzcnt", "popcnt", "sse4.2", "sse4a", "xop"}
    intel = level | server | {"avxvnni", "avx512fp16", "avx10.1"}  # graniterapids
    for features_of in (amd, bulldozer, intel):
        assert features_of <= set(KNOWN)


@pytest.mark.skipif(MACHINE.architecture != "x86_64", reason="names x86 features")
def test_llvm_is_asked_only_for_what_linux_does_not_say(monkeypatch):
    def never() -> Target:
        raise AssertionError("LLVM was asked")

    level = needed_features(Target.level("x86-64-v2"))
    with monkeypatch.context() as patched:
        patched.setattr(Target, "machine", never)
        assert lacking("x86_64-pc-linux-gnu", level) == ""
        with pytest.raises(AssertionError, match="LLVM was asked"):
            lacking("x86_64-pc-linux-gnu", (*level, "zfast"))
        with pytest.raises(AssertionError, match="LLVM was asked"):
            lacking("riscv64-unknown-linux-gnu", level)
    assert lacking("x86_64-pc-linux-gnu", (*level, "zfast")) == "this machine lacks zfast"
    assert lacking(MACHINE.triple, needed_features(MACHINE)) == ""


def test_a_machine_that_lists_nothing_is_asked_through_llvm(monkeypatch):
    monkeypatch.setattr(features, "_flags", frozenset)
    assert lacking(MACHINE.triple, needed_features(MACHINE)) == ""
