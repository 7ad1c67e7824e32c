"""Properties of the legacy stack's IR: determinism, vectors, no recursion, strict mode, unsupported ops."""

import itertools
import re

import numpy as np
import pytest

from ... import legacy
from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.errors import UnsupportedError
from ...hlo.opcodes import Op
from ...migration import Flags, compile_module
from ...planning.plan import KernelRequest
from ...planning.planner import plan
from ..support.passes import agree

CHAIN = """HloModule m
ENTRY e {
  a = f32[4096] parameter(0)
  b = f32[4096] parameter(1)
  c = f32[4096] multiply(a, b)
  d = f32[4096] add(c, a)
  t = f32[4096] tanh(d)
  ROOT r = f32[4096] exponential(t)
}
"""

SUM = """HloModule m
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y) }
ENTRY e {
  a = f32[64,4096] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[64] reduce(a, z), dimensions={1}, to_apply=add
}
"""


def requests(text: str) -> tuple[KernelRequest, ...]:
    return plan(parse_module(text)).kernels


def emitted(text: str, *, strict: bool = False) -> str:
    return legacy.emit(requests(text), EmitOptions.host(strict)).llvm_ir


def test_rotated_rows_are_read_without_branches():
    text = emitted("""HloModule m
ENTRY e {
  x = u8[32,32] parameter(0)
  a = u8[31,32] slice(x), slice={[1:32], [0:32]}
  b = u8[1,32] slice(x), slice={[0:1], [0:32]}
  c = u8[32,32] concatenate(a, b), dimensions={0}
  d = u8[32,2] slice(c), slice={[0:32], [30:32]}
  e = u8[32,30] slice(c), slice={[0:32], [0:30]}
  f = u8[32,32] concatenate(d, e), dimensions={1}
  ROOT r = u8[32,32] add(f, c)
}
""")
    assert "then" not in text and text.count("select") >= 2


def test_the_same_request_gives_the_same_text():
    assert emitted(CHAIN) == emitted(CHAIN)
    assert emitted(SUM) == emitted(SUM)


def test_pointers_carry_their_promises():
    text = emitted(CHAIN)
    define = next(line for line in text.splitlines() if line.startswith("define"))
    assert define.count("noalias") == len(requests(CHAIN)[0].arguments)
    assert "align 64" in define and "dereferenceable(16384)" in define and "readonly" in define


UNARY = (
    "exponential",
    "exponential-minus-one",
    "log",
    "log-plus-one",
    "tanh",
    "logistic",
    "sine",
    "cosine",
    "tan",
    "erf",
    "sqrt",
    "rsqrt",
    "cbrt",
    "asin",
    "acos",
    "asinh",
    "acosh",
    "atanh",
    "sinh",
    "cosh",
    "floor",
    "round-nearest-even",
    "sign",
)


@pytest.mark.skipif(Target.host().vector_bits < 256, reason="this machine has no wide vectors")
@pytest.mark.parametrize("op", UNARY)
def test_functions_of_floats_vectorise(op: str):
    text = f"HloModule m\nENTRY e {{\n  p = f32[4096] parameter(0)\n  ROOT r = f32[4096] {op}(p)\n}}\n"
    assert " x float>" in optimize(emitted(text), EmitOptions.host())


def test_short_sums_and_products_reassociate_unless_strict():
    for text in (SUM.replace("4096", "32"), SUM.replace("add(x, y)", "multiply(x, y)")):
        assert re.search("f(add|mul) reassoc", emitted(text))
        assert "reassoc" not in emitted(text, strict=True)


def test_strict_mode_keeps_subnormals_of_log():
    text = "HloModule m\nENTRY e {\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] log(p)\n}\n"
    assert emitted(text) != emitted(text, strict=True)


@pytest.mark.parametrize("count", [200, 1500])
def test_long_chains_need_no_recursion(count: int):
    """One fusion that alternates elementwise ops and data movement."""
    lines = ["  v0 = f32[4,4] parameter(0)"]
    for i in range(1, count):
        lines.append(
            f"  v{i} = f32[4,4] transpose(v{i - 1}), dimensions={{1,0}}"
            if i % 2
            else f"  v{i} = f32[4,4] subtract(v{i - 1}, v{i - 2})"
            if i > 2
            else f"  v{i} = f32[4,4] negate(v{i - 1})"
        )
    lines[-1] = lines[-1].replace("  v", "  ROOT v", 1)
    body = "\n".join(lines)
    text = (
        f"HloModule m\nf {{\n{body}\n}}\nENTRY e {{\n  p = f32[4,4] parameter(0)\n"
        "  ROOT r = f32[4,4] fusion(p), kind=kLoop, calls=f\n}\n"
    )
    x = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    module = parse_module(text)
    agree(module, evaluate(module, [x]), compile_module(module, Flags.parse("legacy")).execute([x]))


def test_shared_values_are_computed_once():
    """A chain of 40 doublings has 2^40 paths but needs only 40 additions."""
    lines = ["  v0 = f32[8] parameter(0)"] + [f"  v{i} = f32[8] add(v{i - 1}, v{i - 1})" for i in range(1, 41)]
    lines[-1] = lines[-1].replace("  v", "  ROOT v", 1)
    text = (
        "HloModule m\nf {\n"
        + "\n".join(lines)
        + ("\n}\nENTRY e {\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] fusion(p), kind=kLoop, calls=f\n}\n")
    )
    assert emitted(text).count("fadd") == 40


def test_gaps_are_listed_all_at_once():
    text = """HloModule m, num_partitions=2
ENTRY e {
  p = c64[8] parameter(0)
  f = c64[8] custom-call(p), custom_call_target="nobody_wrote_this"
  q = u32[4] parameter(1)
  g = u32[] custom-call(q), custom_call_target="nor_this"
  ROOT t = (c64[8], u32[]) tuple(f, g)
}
"""
    found = legacy.unsupported(requests(text))
    assert sorted(e.what for e in found) == ["custom-call(c64)", "custom-call(u32)"]
    assert all("RULES in the file of legacy for its family" in str(e) and e.location is not None for e in found)
    with pytest.raises(UnsupportedError, match="custom-call"):
        emitted(text)


def test_a_row_left_out_is_named_with_its_table(monkeypatch):
    from ...legacy.kernel import RULES
    from ...legacy.numerics.elementwise import EMIT

    monkeypatch.delitem(EMIT, Op.FLOOR)
    monkeypatch.delitem(RULES, Op.REVERSE)
    text = """HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  f = f32[8] floor(p)
  ROOT r = f32[8] reverse(f), dimensions={0}
}
"""
    found = {e.what: str(e) for e in legacy.unsupported(requests(text))}
    assert "(add Op.FLOOR to EMIT in legacy/numerics/elementwise.py)" in found["floor(f32)"]
    assert "(add Op.REVERSE to RULES in the file of legacy for its family)" in found["reverse(f32)"]


def test_no_opcode_has_two_rules():
    from ...legacy.kernel import RULES, merge
    from ...legacy.numerics.elementwise import EMIT

    assert not EMIT.keys() & RULES.keys()
    with pytest.raises(ValueError, match="two rules"):
        merge(*itertools.repeat(RULES, 2))


def test_each_root_that_is_whole_has_its_loops():
    from ...legacy import whole
    from ...legacy.loops import leaf

    families = {Op.REDUCE_WINDOW: "window", Op.SCATTER: "scatter", Op.SORT: "sort"}
    assert families.keys() == leaf.WHOLE.keys()
    assert set(families.values()) == {form.name.partition("/")[0] for form in whole.FORMS}


def test_strict_mode_flushes_nothing():
    from ...backends.base import CompileOptions

    x = np.array([1e-40, 3e-42, 1.0, 2.0], np.float32)
    for op, reference in (("log", np.log), ("sqrt", np.sqrt), ("cbrt", np.cbrt), ("log-plus-one", np.log1p)):
        text = f"HloModule m\nENTRY e {{\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] {op}(p)\n}}\n"
        options = CompileOptions(emit=EmitOptions.host(strict=True))
        result = compile_module(parse_module(text), Flags.parse("legacy"), options).execute([x])[0]
        np.testing.assert_allclose(result, reference(x.astype(np.float64)), rtol=3e-7, atol=1e-45)


def test_sums_of_few_columns_are_vectors_before_loops_are_unrolled():
    few = (
        SUM.replace("f32[64,4096]", "f32[4096,8]")
        .replace("f32[64]", "f32[8]")
        .replace("dimensions={1}", "dimensions={0}")
        .replace("reduce(a,", "reduce(b,")
        .replace("  z = f32[] constant(0)", "  b = f32[4096,8] abs(a)\n  z = f32[] constant(0)")
    )
    ir = legacy.emit(plan(parse_module(few)).kernels, EmitOptions(Target.level("x86-64-v4"))).llvm_ir
    assert "llvm.loop.vectorize.followup_vectorized" in ir
