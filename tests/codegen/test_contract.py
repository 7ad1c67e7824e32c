"""What contracts in small kernels: the rule, and that they have the same bits by themselves and inlined."""

import ctypes
import random
import re

import numpy as np
import pytest

from ...codegen.inline import build_with_kernels, inlinable, with_kernels
from ...codegen.load import load
from ...codegen.optimize import compile_object, optimize
from ...codegen.options import EmitOptions, Target

FUSING = EmitOptions(Target.level("x86-64-v3"))
PLAIN = EmitOptions(Target.level("x86-64-v2"))
HERE = {name: EmitOptions(Target.level(name)) for name in Target.levels()}
"""What this processor runs; nothing elsewhere than on x86-64, where no kernel is inlined."""


def kernel(lines, name="k", kind="float"):
    """A kernel on four inputs %a to %d; %r is stored."""
    loads = [f"  %{v} = load {kind}, ptr %p{n}, align 4" for n, v in enumerate("abcd")]
    head = f"define void @{name}(" + ", ".join(f"ptr noalias align 4 %p{n}" for n in range(5)) + ") {"
    return "\n".join([head, *loads, *lines, f"  store {kind} %r, ptr %p4, align 4", "  ret void", "}", ""])


def decided(lines, options=FUSING, kind="float"):
    """The arithmetic of a kernel behind all passes, without names of types."""
    text = optimize(kernel([f"  {line}" for line in lines], kind=kind), options)
    found = re.findall(r"^  (%\S+ = (?:f\w+|call) .*)$", text, re.MULTILINE)
    return [re.sub(rf"@llvm\.fma\.\w+|(?<![\w%]){re.escape(kind)} ", "", line.replace("call ", "")) for line in found]


CASES = {
    "a product on the left": (
        ["%m = fmul float %a, %b", "%r = fadd float %m, %c"],
        ["%r = (%a, %b, %c)"],
    ),
    "two products: the left one": (
        ["%m = fmul float %a, %b", "%n = fmul float %c, %d", "%r = fadd float %m, %n"],
        ["%n = fmul %c, %d", "%r = (%a, %b, %n)"],
    ),
    "a product with two uses stays": (
        ["%m = fmul float %a, %b", "%s = fadd float %m, %c", "%r = fdiv float %s, %m"],
        ["%m = fmul %a, %b", "%s = fadd %m, %c", "%r = fdiv %s, %m"],
    ),
    "a difference from a product": (
        ["%m = fmul float %a, %b", "%r = fsub float %m, %c"],
        ['%r.negated = fneg %c', "%r = (%a, %b, %r.negated)"],
    ),
    "a product is taken away": (
        ["%m = fmul float %a, %b", "%r = fsub float %c, %m"],
        ["%r.negated = fneg %a", "%r = (%r.negated, %b, %c)"],
    ),
    "a chain": (
        ["%m = fmul float %a, %b", "%s = fadd float %m, %c", "%n = fmul float %s, %d", "%r = fadd float %n, %a"],
        ["%s = (%a, %b, %c)", "%r = (%s, %d, %a)"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("lines, wanted", CASES.values(), ids=CASES)
def test_the_rule(lines, wanted):
    assert decided(lines) == wanted
    wide = [line.replace("float", "<8 x double>") for line in lines]
    assert decided(wide, kind="<8 x double>") == wanted


def test_without_such_an_instruction_nothing_joins_and_nothing_may():
    lines, _ = CASES["a product on the left"]
    assert decided(lines, PLAIN) == ["%m = fmul %a, %b", "%r = fadd %m, %c"]


def test_strict_arithmetic_is_left_alone():
    lines, _ = CASES["a product on the left"]
    strict = EmitOptions(FUSING.target, strict=True)
    assert decided(lines, strict) == ["%m = fmul %a, %b", "%r = fadd %m, %c"]


def drawn(rng, name, kind):
    """A kernel of products, sums and differences of earlier values and of constants."""
    lines, values = list[str](), [f"%{v}" for v in "abcd"]
    vector = kind.startswith("<")
    numbers = ["5.000000e-01", "3.000000e+00", "-1.250000e+00", "1.000000e+00"]
    for n in range(rng.randrange(3, 14)):
        op, left = rng.choice(["fmul", "fmul", "fadd", "fsub"]), rng.choice(values[-4:])
        element = kind.split()[-1].rstrip(">")
        constant = rng.choice(numbers)
        right = rng.choice(values) if rng.random() < 0.8 else f"splat ({element} {constant})" if vector else constant
        lines.append(f"  %v{n} = {op} {kind} {left}, {right}")
        values.append(f"%v{n}")
    return kernel([*lines, f"  %r = fadd {kind} {values[-1]}, {values[-2]}"], name, kind)


CALLER = "\n".join(
    [
        *(f"declare void @k{n}(ptr, ptr, ptr, ptr, ptr)" for n in range(3)),
        "define void @run(ptr noalias %p) {",
        *(f"  %a{n} = getelementptr i8, ptr %p, i64 {64 * n}" for n in range(7)),
        "  call void @k0(ptr %a0, ptr %a1, ptr %a2, ptr %a3, ptr %a4)",
        "  call void @k1(ptr %a4, ptr %a1, ptr %a0, ptr %a3, ptr %a5)",
        "  call void @k2(ptr %a5, ptr %a4, ptr %a2, ptr %a1, ptr %a6)",
        "  ret void",
        "}",
        "",
    ]
)


@pytest.mark.parametrize("kind", ["float", "double", "<16 x float>", "<8 x double>"])
@pytest.mark.parametrize("options", HERE.values(), ids=HERE)
def test_kernels_have_the_same_bits_alone_and_inlined(kind, options):
    rng, fused, inside = random.Random(f"{kind}"), 0, 0
    dtype = np.float64 if "double" in kind else np.float32
    for _ in range(12):
        kernels = "".join(drawn(rng, f"k{n}", kind) for n in range(3))
        fused += optimize(kernels, options).count("call ")
        whole = with_kernels(CALLER, inlinable([kernels], options), options)
        inside += 3 - len(re.findall(r"call void @k\d", whole))
        apart = load([compile_object(CALLER, options, cache=None), compile_object(kernels, options, cache=None)])
        together = load([build_with_kernels(CALLER, inlinable([kernels], options), options).data])
        start = np.random.default_rng(rng.randrange(1 << 32)).normal(size=7 * 64 // dtype().itemsize).astype(dtype)
        results = []
        for code in (apart, together):
            memory = start.copy()
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("run"))(memory.ctypes.data)
            results.append(memory.tobytes())
        assert results[0] == results[1], kernels
    assert inside == 36 and (fused > 36) is options.target.has_fma
