"""Targets by the words of a command line: names, levels, features, and what LLVM does not know."""

import pytest

from ...codegen.options import Target
from ...codegen.targets import BASELINES, target_of
from ...hlo.errors import InputError


@pytest.mark.parametrize(
    ("words", "cpu", "bits"),
    [
        (("x86_64",), "x86-64-v2", 128),
        (("x86_64", "x86-64-v3"), "x86-64-v3", 256),
        (("x86_64", "x86-64-v4"), "x86-64-v4", 512),
        (("x86_64", "x86-64-v4", "-avx512f"), "x86-64-v4", 256),
        (("x86_64", None, "+avx2,+avx"), "x86-64-v2", 256),
        (("x86_64", "skylake"), "skylake", 128),
        (("aarch64", "cortex-a72"), "cortex-a72", 128),
        (("riscv64",), "generic-rv64", 64),
        (("riscv64", None, "+v"), "generic-rv64", 128),
    ],
)
def test_processor_and_width_of_vectors(words, cpu, bits):
    target = target_of(*words)
    assert (target.architecture, target.cpu, target.vector_bits) == (words[0], cpu, bits)


def test_a_triple_is_kept():
    assert target_of("aarch64-unknown-linux-musl").triple == "aarch64-unknown-linux-musl"


def test_the_host_is_the_machine():
    machine = Target.machine()
    assert target_of(machine.architecture, "host").features == machine.features
    (other, *_) = [name for name in BASELINES if name != machine.architecture]
    with pytest.raises(InputError, match=f"this machine is no {other}"):
        target_of(other, "host")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("sparc",), "unknown target 'sparc'"),
        (("x86_64-pc-windows-msvc",), "unknown target"),
        (("aarch64", "x86-64-v2"), "LLVM knows no processor 'x86-64-v2'"),
        (("riscv64", None, "+avx2"), "LLVM knows no feature 'avx2'"),
        (("x86_64", None, "+avx2 +fma"), "are no list of LLVM's"),
    ],
)
def test_what_llvm_does_not_know(words, message):
    with pytest.raises(InputError, match=message):
        target_of(*words)
