"""The compiled host program on whole modules: bit-identical to the interpreted one, cached, chosen by a rule."""

import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...backends.host import compiler
from ...backends.host.compiler import HostCompiler
from ...backends.host.executable import HostExecutable
from ...backends.host.program import WORTH
from ...codegen import inline
from ...codegen.cache import ObjectCache
from ...codegen.contract import ARCHITECTURES
from ...codegen.inline import inlinable
from ...codegen.mlir import MlirError, lower_text
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError
from ...migration import Flags, compile_module
from ...migration.choose import emit_for
from ...planning.planner import plan
from ...thunks import CopyThunk, KernelThunk, SequentialThunk, host_build, host_module, host_program
from ...thunks.host_build import PASSES, build_host, module_of
from ..support.hlo_corpus import each, whole

ROOT = Path(__file__).parents[2]


def kinds_agree(module, inputs, stack):
    """Both host programs, twice on one executable: the second run finds other bytes in the arena."""
    results = []
    for kind in ("interpreted", "compiled"):
        executable = compile_module(module, Flags.parse(stack), CompileOptions(host_program=kind))
        assert executable.host_program == kind
        results += [[r.tobytes() for r in executable.execute(inputs)] for _ in range(2)]
    assert results == results[:1] * 4


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@each("jax_programs", 4, biggest=60_000, where=whole)
def test_jax_programs(case, stack):
    kinds_agree(case.module(), case.inputs(), stack)


@each("op_cases", 12, where=whole)
def test_ops(case):
    kinds_agree(case.module(), case.inputs(), "legacy")


@each("xla_modules", 8, biggest=30_000, where=lambda c: whole(c) and (" while(" in c.text or " conditional(" in c.text))
def test_control_flow(case):
    kinds_agree(case.module(), case.inputs(), "legacy")


NESTED = """HloModule nested
small { t = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(LIMIT)
  ROOT c = pred[] compare(i, n), direction=LT }
few { t = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT }
halve { t = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[4] get-tuple-element(t), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[4] tanh(x)
  ROOT r = (s32[], f32[4]) tuple(j, y) }
even { x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x) }
odd { x = f32[4] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[4]) tuple(zero, x)
  w = (s32[], f32[4]) while(t), condition=few, body=halve
  ROOT r = f32[4] get-tuple-element(w), index=1 }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
wide { x = f32[4] parameter(0)
  ROOT r = f32[4] sort(x), dimensions={0}, to_apply=less }
step { t = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[4] get-tuple-element(t), index=1
  y = f32[4] get-tuple-element(t), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  three = s32[] constant(5)
  k = s32[] remainder(i, three)
  two = s32[] constant(2)
  s = s32[] subtract(k, two)
  z = f32[4] add(x, y)
  u = f32[4] conditional(s, z, z, z), branch_computations={even, odd, wide}
  ROOT r = (s32[], f32[4], f32[4]) tuple(j, u, x) }
ENTRY e { x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[4], f32[4]) tuple(zero, x, y)
  ROOT w = (s32[], f32[4], f32[4]) while(t), condition=small, body=step }
"""
"""A conditional, with selectors from -2 to 2, and a loop in one of its branches, in a loop of LIMIT iterations."""


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("limit", [0, 1, 5, 23])
def test_loops_in_branches_in_loops(limit, stack):
    module = parse_module(NESTED.replace("LIMIT", str(limit)))
    kinds_agree(module, [np.float32([1, -2, 3, 0.5]), np.float32([0.25, 2, -1, 4])], stack)


def test_threads_run_one_host_program_at_once():
    executable = compile_module(
        parse_module(NESTED.replace("LIMIT", "500")), options=CompileOptions(cache=None, host_program="compiled")
    )
    inputs = [[np.full(4, n, np.float32), np.linspace(-n, n, 4, dtype=np.float32)] for n in range(16)]

    def one(arrays):
        return [r.tobytes() for r in executable.execute(arrays)]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, inputs)) == [one(arrays) for arrays in inputs]


def chain(length):
    """A module of `length` kernels in a row."""
    lines = [f"x{n + 1} = f32[8,8] dot(x{n}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
             for n in range(length)]  # fmt: skip
    lines = ["x0 = f32[8,8] parameter(0)", "w = f32[8,8] parameter(1)", *lines]
    lines[-1] = "ROOT " + lines[-1]
    return parse_module("HloModule chain\nENTRY e { " + "\n ".join(lines) + " }")


@pytest.mark.parametrize(
    "module, straight", [(chain(WORTH), True), (parse_module(NESTED.replace("LIMIT", "2")), False)]
)
def test_a_straight_line_is_compiled_the_fast_way_and_written_once(monkeypatch, module, straight):
    """Registers for a thousand calls took most of the time that such a program takes to compile."""
    used, written = [], []
    build, write = host_build.build_object, host_module.host_module
    monkeypatch.setattr(
        host_build, "build_object", lambda text, options, cache: used.append(options) or build(text, options, cache)
    )
    for room in (host_build, host_program):
        monkeypatch.setattr(room, "host_module", lambda *a, **k: written.append(0) or write(*a, **k))
    executable = compile_module(module, options=CompileOptions(cache=None, host_program="compiled"))
    assert executable.host_program == "compiled"
    assert [options.straight for options in used] == [straight] and len(written) == (1 if straight else 2)


@pytest.mark.parametrize("length, threads, aside", [(WORTH - 1, 2, False), (WORTH, 2, True), (WORTH, 1, False)])
def test_few_kernels_are_compiled_beside_a_long_host_program(monkeypatch, length, threads, aside):
    made, make = [], compiler._objects
    monkeypatch.setattr(compiler, "_objects", lambda *a: made.append(threading.current_thread()) or make(*a))
    compile_module(chain(length), options=CompileOptions(cache=None, threads=threads))
    assert [thread is not threading.main_thread() for thread in made] == [aside]


@pytest.mark.parametrize(
    "module, kind",
    [
        (chain(WORTH - 1), "interpreted"),
        (chain(WORTH), "compiled"),
        (parse_module(NESTED.replace("LIMIT", "2")), "compiled"),
    ],
)
def test_which_programs_are_compiled(module, kind):
    assert compile_module(module).host_program == kind


def test_what_is_observed_is_interpreted():
    options = CompileOptions(red_zones=True, host_program="compiled")
    executable = compile_module(chain(2), options=options)
    assert executable.host_program == "interpreted"
    seen = []

    def observe(thunk, run):
        seen.append(thunk)
        run()

    executable = compile_module(chain(3), options=CompileOptions(host_program="compiled"))
    x = np.eye(8, dtype=np.float32)
    (result,) = executable.execute([2 * x, x], observer=observe)
    assert sum(isinstance(thunk, KernelThunk) for thunk in seen) == 3 and (result == 2 * x).all()


def test_an_unknown_host_program_is_refused():
    with pytest.raises(InputError, match=r"unknown host program 'fast'.*choose from auto, compiled, interpreted"):
        CompileOptions(host_program="fast")


CACHED = """
import pathlib, sys
root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root / "tools/python"))
from pytest_names import import_root
import_root(root)
import numpy as np
import testbed
from testbed.codegen.cache import ObjectCache
options = testbed.CompileOptions(cache=ObjectCache(pathlib.Path(sys.argv[2])), host_program="compiled")
executable = testbed.compile(sys.argv[3], "legacy", options)
x = np.eye(8, dtype=np.float32)
print(executable.host_program, float(executable.execute([x, x])[0].sum()), "mlir" in sys.modules)
"""

SQUARE = (
    "HloModule square\nENTRY e { x = f32[8,8] parameter(0)\n y = f32[8,8] parameter(1)\n"
    " ROOT d = f32[8,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"
)


def test_the_second_process_needs_no_mlir(tmp_path):
    """For the host program, that is: kernels on legacy."""

    def one():
        command = [sys.executable, "-c", CACHED, str(ROOT), str(tmp_path), SQUARE]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert [one(), one()] == ["compiled 8.0 True\n", "compiled 8.0 False\n"]


def test_what_matters_is_in_the_key(tmp_path):
    """Thunks, target, strictness."""
    cache, host = ObjectCache(tmp_path), EmitOptions.host()
    none, two = SequentialThunk(()), SequentialThunk((SequentialThunk((KernelThunk("k", "k", ()),)),))
    narrow = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64", "", 128))
    for root, options in ((none, host), (two, host), (none, EmitOptions.host(strict=True)), (none, narrow)):
        module = module_of(root, options)
        assert [build_host(module, options, cache).cached for _ in range(2)] == [False, True]


def test_a_wrong_module_is_an_error_of_one_line():
    with pytest.raises(MlirError, match="MLIR refuses a module"):
        lower_text("module { func.func @f() -> i64 { return } }", PASSES)


def barred(body, iterations):
    """A loop whose body is `body`, on x0 and k, a kernel per line; the last one makes x."""
    return parse_module(f"""HloModule barred
c {{ t = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant({iterations})
  ROOT r = pred[] compare(i, n), direction=LT }}
b {{ t = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x0 = f32[8] get-tuple-element(t), index=1
  k = f32[8] get-tuple-element(t), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  {body}
  ROOT r = (s32[], f32[8], f32[8]) tuple(j, x, k) }}
ENTRY e {{ x = f32[8] parameter(0)
  k = f32[8] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[8], f32[8]) tuple(zero, x, k)
  ROOT w = (s32[], f32[8], f32[8]) while(t), condition=c, body=b }}
""")


PRODUCTS = """p = f32[8] multiply(x0, k)
  p0 = f32[8] opt-barrier(p)
  s = f32[8] subtract(p0, x0)
  s0 = f32[8] opt-barrier(s)
  q = f32[8] multiply(s0, s0)
  q0 = f32[8] opt-barrier(q)
  x = f32[8] add(q0, k)"""
"""Products that one kernel stores and another one adds to: in one function they would round once instead of twice."""


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_inlined_kernels_round_as_they_do_by_themselves(stack):
    inputs = [np.linspace(0.3, 0.9, 8, dtype=np.float32), np.linspace(-1.7, 0.2, 8, dtype=np.float32)]
    module = barred(PRODUCTS, 300)
    kinds_agree(module, inputs, stack)
    options = CompileOptions(cache=None, keep_stages=True, host_program="compiled")
    stages = dict(compile_module(module, Flags.parse(stack), options).stages)
    assert "_kernel(" in stages["host.ll"]
    if EmitOptions.host().target.architecture in ARCHITECTURES:
        assert "_kernel(" not in stages["host.optimized.ll"]


@pytest.mark.skipif(EmitOptions.host().target.architecture not in ARCHITECTURES, reason="kernels are not inlined here")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_kernels_of_a_loop_are_emitted_and_optimised_once(stack, threads, tmp_path, monkeypatch):
    """But where their objects are found in the cache and the host program is not: then they are optimised for it."""
    emitted, prepared = Counter(), []

    def counting(request):
        emitter = emit_for(Flags.parse(stack))(request)
        return replace(
            emitter, emit=lambda given, how: emitted.update(r.name for r in given) or emitter.emit(given, how)
        )

    def preparing(kernels, options):
        prepared.extend(kernels)
        return inlinable(prepared, options)

    monkeypatch.setattr(host_build, "inlinable", preparing)
    options = CompileOptions(cache=ObjectCache(tmp_path), threads=threads, host_program="compiled")
    planned = plan(barred(PRODUCTS, 300))
    first = HostCompiler().compile(planned, counting, options)
    assert set(emitted.values()) == {1} and len(emitted) > 4 and prepared == []
    monkeypatch.setattr(inline, "SETTINGS", "others")  # a part of the host program's key
    second = HostCompiler().compile(planned, counting, options)
    assert set(emitted.values()) == {2} and prepared != []
    inputs = [np.linspace(0.3, 0.9, 8, dtype=np.float32), np.linspace(-1.7, 0.2, 8, dtype=np.float32)]
    assert [r.tobytes() for r in first.execute(inputs)] == [r.tobytes() for r in second.execute(inputs)]


def test_short_loops_and_profiles_inline_nothing():
    for iterations, profile in ((3, False), (300, True)):
        options = CompileOptions(cache=None, keep_stages=True, host_program="compiled", profile=profile)
        executable = compile_module(barred(PRODUCTS, iterations), options=options)
        assert "_kernel(" in dict(executable.stages)["host.optimized.ll"]


def test_other_thunks_with_the_same_code_run_as_the_thunks_say():
    text = """HloModule m
ENTRY e { x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT t = (f32[4], f32[4]) tuple(x, y) }"""
    made = compile_module(parse_module(text), None, CompileOptions(host_program="compiled"))
    inputs = [np.full(4, n, np.float32) for n in (1, 2)]
    first, second = made.thunks.thunks
    assert isinstance(first, CopyThunk) and isinstance(second, CopyThunk)
    turned = (replace(first, source=second.source), replace(second, source=first.source))
    image = replace(made.image, thunks=replace(made.thunks, thunks=turned))
    other = HostExecutable(image, made.program, made.code, made.target, {})
    assert [r.tolist() for r in made.execute(inputs)] == [[1] * 4, [2] * 4]
    assert [r.tolist() for r in other.execute(inputs)] == [[2] * 4, [1] * 4]
    assert (made.host_program, other.host_program) == ("compiled", "interpreted")
