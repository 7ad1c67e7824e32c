"""The MLIR stack as a whole: stages, determinism, errors, deep fusions, strict mode, and one module's text."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from mlir import ir

from ... import mlir_emitters
from ...benchmarks.memory import resident_bytes
from ...codegen.options import EmitOptions, EmittedModule, Target
from ...differential.corpus import Case, compare_leaves, load_case, read_suite
from ...formats.text.parser import parse_module
from ...hlo.errors import UnsupportedError
from ...hlo.opcodes import Op
from ...migration import Flags, compile_module
from ...mlir_emitters.core import pipeline
from ...mlir_emitters.core.builder import Builder
from ...mlir_emitters.core.facts import Facts
from ...planning.plan import KernelRequest
from ...planning.planner import plan
from ..support.check import check
from ..support.corpus import shared_root, suite_cases

GOLDEN = Path(__file__).parents[1] / "golden" / "mlir_softmax_numerator.hlo"
HOST = EmitOptions.host()
FIXED = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+fma", 512))


def requests_of(text: str) -> tuple[KernelRequest, ...]:
    return plan(parse_module(text)).kernels


def stage(text: str, name: str, options: EmitOptions = FIXED) -> str:
    return dict(mlir_emitters.emit(requests_of(text), replace(options, keep_stages=True)).stages)[name]


def test_the_text_of_a_module_is_freed():
    """MLIR's own binding of the translation keeps a copy of each text for ever."""
    with pipeline.LOCK, pipeline.session().context, ir.Location.unknown():
        lines = "\n".join(f'llvm.mlir.global internal @"{"x" * 200}{n}"(0 : i32) : i32' for n in range(2_000))
        module = ir.Module.parse(f"module {{\n{lines}\n}}")
        text = pipeline.translate(module)
        before = resident_bytes()
        assert all(pipeline.translate(module) == text for _ in range(60))
        assert text.count("= internal global i32 0") == 2_000
        assert resident_bytes() - before < 20 * len(text)


def test_same_request_same_text():
    requests, keep = requests_of(GOLDEN.read_text()), replace(HOST, keep_stages=True)
    first, second = mlir_emitters.emit(requests, keep), mlir_emitters.emit(requests, keep)
    assert first == second
    assert [name for name, _ in first.stages] == ["lhlo.mlir", "mlir", "llvm.mlir"]
    assert mlir_emitters.emit(requests, HOST) == EmittedModule(first.llvm_ir, forms=first.forms)


CLASSES = """import sys
from pathlib import Path
from testbed import mlir_emitters
from testbed.codegen.options import EmitOptions
from testbed.formats.text.parser import parse_module
from testbed.planning.planner import plan
mlir_emitters.emit(plan(parse_module(Path(sys.argv[1]).read_text())).kernels, EmitOptions.host())
print(sorted(m for m in sys.modules if m.startswith("mlir.dialects._") and m.endswith("_ops_gen")))
from mlir import ir
from mlir.dialects import func
with ir.Context(), ir.Location.unknown():
    print([type(op).__name__ for op in ir.Module.parse("func.func private @f()").body.operations])
"""


def test_emission_imports_no_classes_of_operations():
    """Those of eight dialects took 70 ms of a process's first compile. Who imports a dialect has its classes."""
    command = [sys.executable, "-c", CLASSES, str(GOLDEN)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["['mlir.dialects._irdl_ops_gen']", "['FuncOp']"], done.stderr


@pytest.mark.parametrize("name", ["mlir", "llvm"])
def test_golden_text(name):
    """The expectations are comments in the module itself, with one prefix per stage."""
    import llvm  # the package with FileCheck in its bin folder

    tool = Path(next(iter(llvm.__path__))) / "bin" / "FileCheck"
    emitted = mlir_emitters.emit(requests_of(GOLDEN.read_text()), replace(FIXED, keep_stages=True))
    text = emitted.llvm_ir if name == "llvm" else dict(emitted.stages)[name]
    command = [str(tool), f"--check-prefix={name.upper()}", str(GOLDEN)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def chain(length: int) -> str:
    lines = [
        "  p = f32[100] parameter(0)",
        "  half = f32[] constant(0.5)",
        "  h = f32[100] broadcast(half), dimensions={}",
    ]
    last = "p"
    for i in range(length):
        lines.append(f"  v{i} = f32[100] {('add', 'multiply', 'subtract')[i % 3]}({last}, h)")
        last = f"v{i}"
    body = "\n".join(lines).replace(f"  {last} =", f"  ROOT {last} =")
    return (
        f"HloModule m\nbody {{\n{body}\n}}\nENTRY e {{\n  a = f32[100] parameter(0)\n"
        "  ROOT f = f32[100] fusion(a), kind=kLoop, calls=body\n}\n"
    )


@pytest.mark.parametrize("length", [200, 1500])
def test_deep_fusions_need_no_recursion(length):
    check(chain(length), stacks=("evaluator", "mlir"))


def test_unsupported_ops_are_all_named_with_a_remedy():
    requests = requests_of(
        """HloModule m
ENTRY e {
  p = f32[4,4] parameter(0)
  c = f32[4,4] custom-call(p), custom_call_target="nobody_wrote_this"
  x = c64[4,4] complex(c, c)
  s = c64[4,4] multiply(x, x)
  ROOT t = (f32[4,4], c64[4,4]) tuple(c, s)
}
"""
    )
    missing = mlir_emitters.unsupported(requests)
    assert [error.what for error in missing] == ["custom-call"]
    assert "Op.CUSTOM_CALL" in str(missing[0]) and "mlir_emitters" in str(missing[0])
    with pytest.raises(UnsupportedError, match="custom-call"):
        mlir_emitters.emit(requests, HOST)


def test_a_row_left_out_is_named_with_its_table(monkeypatch):
    from ...mlir_emitters.kernel import RULES
    from ...mlir_emitters.numerics.elementwise import EMIT

    monkeypatch.delitem(EMIT, Op.FLOOR)
    monkeypatch.delitem(RULES, Op.REVERSE)
    requests = requests_of(
        """HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  f = f32[8] floor(p)
  ROOT r = f32[8] reverse(f), dimensions={0}
}
"""
    )
    found = {e.what: str(e) for e in mlir_emitters.unsupported(requests)}
    assert "(add Op.FLOOR to EMIT in mlir_emitters/numerics/elementwise.py)" in found["floor"]
    assert "(add Op.REVERSE to RULES in the file of mlir_emitters for its family)" in found["reverse"]


def test_a_wrong_module_is_an_error_and_no_crash():
    from mlir import ir

    from ...mlir_emitters.core import pipeline

    session = pipeline.Session()
    with session.context, ir.Location.unknown():
        module = ir.Module.parse("func.func @f(%a: f32) -> f32 { return %a : f32 }")
        function = module.body.operations[0].operation
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([], []))
        with pytest.raises(pipeline.LoweringError, match="refuses"):
            pipeline.lower(module, session, {"vector.transpose"})


@pytest.mark.parametrize(("of_vector", "rank", "plain"), [(False, 1, True), (True, 1, False), (False, 2, False)])
def test_only_plain_operations_of_vectors_need_no_pass(of_vector, rank, plain):
    """A broadcast of a vector that stays would end the process in MLIR's translation."""
    with pipeline.LOCK, pipeline.session().context, ir.Location.unknown():
        b = Builder(ir.Module.create(), pipeline.session().types, Facts(512, fma=True))
        f32 = b.types.f32
        with b.function("f", [ir.VectorType.get([1], f32) if of_vector else f32], [], {}) as (value,):
            b.op("vector.broadcast", value, type=ir.VectorType.get([4] * rank, f32))
    assert len(b.vectors) == 1 and pipeline.DIRECT.issuperset(b.vectors) == plain


@pytest.mark.parametrize(
    ("op", "passes"),
    [
        ("negate(x)", "scalar_passes"),
        ("transpose(x), dimensions={1,0}", "passes"),
        ("sort(x), dimensions={1}, to_apply=less", "direct_passes"),
    ],
)
def test_modules_are_lowered_by_the_passes_that_their_operations_of_vectors_need(monkeypatch, op, passes):
    lowered = []
    run = pipeline._run
    monkeypatch.setattr(pipeline, "_run", lambda given, module: lowered.append(given) or run(given, module))
    text = f"""HloModule m
less {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }}
ENTRY e {{ x = f32[64,64] parameter(0)
  ROOT r = f32[64,64] {op} }}
"""
    mlir_emitters.emit(plan(parse_module(text)).kernels, EmitOptions(Target.level("x86-64-v4")))
    session = pipeline._current[0]
    assert lowered[-1] is getattr(session, passes)


def test_strict_neither_contracts_nor_reassociates():
    text = """HloModule m
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8,64] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[8] reduce(p, z), dimensions={1}, to_apply=add
}
"""
    assert "reassoc" in stage(text, "mlir")
    strict = stage(text, "mlir", EmitOptions(FIXED.target, strict=True))
    assert "reassoc" not in strict and "contract" not in strict


def test_every_opcode_stands_in_one_table():
    from ...mlir_emitters.kernel import RULES, merge
    from ...mlir_emitters.numerics.elementwise import EMIT

    assert not EMIT.keys() & RULES.keys()
    with pytest.raises(ValueError, match="two rules for"):
        merge({Op.DOT: RULES[Op.DOT]}, {Op.DOT: RULES[Op.DOT]})


DIVERGENCES = {
    "cbrt.bf16": "XLA:CPU gives -5.6e-16 for the cube root of every subnormal",
}
"""One-op cases that differ from XLA. A case that agrees must be removed from this table."""


def disagreement(case: Case) -> str | None:
    """The difference between this stack and the golden result of a one-op case; None if they agree."""
    program = load_case(case)
    assert program.inputs is not None and program.expected is not None
    results = compile_module(program.module, Flags.parse("mlir")).execute(program.inputs)
    bad = [d for d in compare_leaves(case, results, program.expected) if not d.agrees]
    return f"{case.id}: {bad[0]}" if bad else None


def test_sampled_op_cases():
    wanted = [c for c in suite_cases("op_cases", 40, seed=3) if c.id not in DIVERGENCES]
    assert [found for found in map(disagreement, wanted) if found] == []


def test_declared_divergences_still_diverge():
    declared = [c for c in read_suite(shared_root() / "op_cases") if c.id in DIVERGENCES]
    assert [c.id for c in declared if not disagreement(c)] == [] and len(declared) == len(DIVERGENCES)


def test_a_bitcast_that_changes_the_number_of_elements_is_refused():
    requests = requests_of("""HloModule m
body {
  p = f32[4] parameter(0)
  b = bf16[8] bitcast(p)
  ROOT r = bf16[8] negate(b)
}
ENTRY e {
  a = f32[4] parameter(0)
  ROOT f = bf16[8] fusion(a), kind=kLoop, calls=body
}
""")
    with pytest.raises(UnsupportedError, match=r"bitcast\(f32 as bf16\)"):
        mlir_emitters.emit(requests, HOST)
