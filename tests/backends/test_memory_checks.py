"""The checking mode: kernels that read foreign or unwritten memory, or leave elements unwritten, are named."""

import time

import ml_dtypes
import numpy as np
import pytest

from ... import ffi
from ...backends.base import BackendError, CompileOptions, Emitter, MemoryFault
from ...backends.host.compiler import HostCompiler
from ...backends.host.memory_areas import FIRST, SECOND, junk_of
from ...backends.host.memory_blame import MemoryCheckError
from ...backends.host.red_zones import RedZoneError
from ...backends.registry import platform
from ...cli.main import main
from ...codegen.options import EmittedModule
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...hlo.errors import InputError
from ...migration import Flags, compile_module
from ...migration.checked import run_plain
from ...thunks.kinds import KernelThunk, SequentialThunk
from ..support.corpus import SMALL
from ..support.hlo_corpus import each
from ..support.passes import agree

CHECKED = CompileOptions(cache=None, debug="memory")
TEXT = """HloModule m
ENTRY e { x = f32[10] parameter(0)
  ROOT negated = f32[10] negate(x) }
"""
X = np.arange(1, 11, dtype=np.float32)


def emitter(body: str) -> Emitter:
    """Kernels of (in, out) that negate ten elements. body: instructions before that; %x is the element, %i its number,
    and what they call %y is written where %keep holds.
    """
    text = f"""
define void @NAME(ptr %in, ptr %out) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %after ]
{body}
  br i1 %keep, label %store, label %after
store:
  %to = getelementptr float, ptr %out, i64 %i
  store float %y, ptr %to
  br label %after
after:
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, 10
  br i1 %done, label %exit, label %loop
exit:
  ret void
}}"""
    return Emitter(
        "fake", lambda requests, options: EmittedModule("\n".join(text.replace("NAME", r.name) for r in requests))
    )


def reading(offset: int, last: int = 9) -> Emitter:
    """Element i is -x[i + offset], and those up to `last` are written."""
    return emitter(f"""
  %at = add i64 %i, {offset}
  %from = getelementptr float, ptr %in, i64 %at
  %x = load float, ptr %from
  %y = fneg float %x
  %keep = icmp ule i64 %i, {last}""")


READS_RESULT = emitter("""
  %from = getelementptr float, ptr %in, i64 %i
  %x = load float, ptr %from
  %before = getelementptr float, ptr %out, i64 %i
  %z = load float, ptr %before
  %negative = fneg float %x
  %big = fcmp ogt float %z, 1.0
  %y = select i1 %big, float 1.0, float %negative
  %keep = icmp ule i64 %i, 9""")


def run(stack: Emitter, text: str = TEXT, optimized: bool = True):
    compiler = HostCompiler()
    plan = compiler.run_hlo_passes(parse_module(text), CHECKED)
    return compiler.compile(plan, lambda request: stack, CHECKED).execute([X])


def test_a_kernel_that_reads_and_writes_its_own_runs_as_ever():
    np.testing.assert_array_equal(run(reading(0))[0], -X)


NAMED = {
    "before": (
        reading(-1),
        "element [0] of argument 1 (f32[10], 40 bytes) depends on the byte at offset -1 of argument 0 (f32[10], 40",
    ),
    "behind": (
        reading(2),
        "element [8] of argument 1 (f32[10], 40 bytes) and 1 more elements depend on the byte at offset ",
    ),
    "far behind": (reading(900), "and 9 more elements depend on the byte at offset 36"),
    "unwritten": (
        reading(0, last=7),
        "stay as they were behind kernel negated_kernel (negated): element [8] of argument 1 (f32[10], 40 bytes) and 1",
    ),
    "read before it is written": (
        READS_RESULT,
        "element [0] of argument 1 (f32[10], 40 bytes) and 9 more elements depend on what was in argument 1 (f32[10],",
    ),
}


@pytest.mark.parametrize(("stack", "words"), NAMED.values(), ids=NAMED)
def test_what_it_reads_or_leaves_is_named(stack, words):
    with pytest.raises(MemoryCheckError) as caught:
        run(stack)
    assert words in str(caught.value)
    assert (caught.value.kernel, caught.value.instruction) == ("negated_kernel", "negated")
    assert "the stack that emitted it is at fault" in str(caught.value)


def test_a_write_outside_is_named_as_red_zones_name_it():
    with pytest.raises(RedZoneError, match=r"argument 1 \(40 bytes, written\) at offsets 40 to 43"):
        run(
            emitter("""
  %behind = getelementptr float, ptr %out, i64 10
  store float 1.0, ptr %behind
  %y = fneg float 1.0
  %keep = icmp ule i64 %i, 9""")
        )


def test_the_call_stack_holds_junk_too():
    with pytest.raises(MemoryCheckError, match="depend on what was on its call stack before"):
        run(
            emitter("""
  %room = alloca [64 x float]
  %place = getelementptr float, ptr %room, i64 %i
  %y = load volatile float, ptr %place
  %keep = icmp ule i64 %i, 9""")
        )


@pytest.mark.parametrize("dtype", [d for d in DType if d.is_array])
def test_junk_is_nan_where_there_is_one_and_differs(dtype):
    first, second = junk_of(dtype)
    assert first != second
    values = [np.full(dtype.bytes, byte, np.uint8).view(dtype.numpy) for byte in (first, second)]
    if dtype.is_float and dtype is not DType.F4E2M1FN:
        assert np.isnan(values[FIRST].astype(np.float64)).all() and np.isfinite(values[SECOND].astype(np.float64)).all()
    elif dtype.is_complex:
        assert np.isnan(values[FIRST].real).all() and np.isnan(values[FIRST].imag).all()
    elif dtype.is_integer and dtype.bits >= 8:
        assert (values[FIRST] != values[SECOND]).all() and abs(int(values[SECOND][0])) > 100
    elif dtype is DType.PRED:
        assert first not in (0, 1) and second == 0


def test_a_step_that_reads_what_nobody_wrote_is_named():
    """A thunk is taken out of the program: what the next one reads is junk."""
    text = """HloModule m
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[16,16] parameter(0)
  s = f32[16,16] sort(x), dimensions={0}, to_apply=less
  ROOT r = f32[16,16] dot(s, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
"""
    executable = compile_module(parse_module(text), Flags.parse("legacy"), CHECKED)
    kernels = [t for t in executable.thunks.thunks if isinstance(t, KernelThunk)]
    executable._executor.root = SequentialThunk(tuple(kernels[1:]))
    with pytest.raises(MemoryCheckError, match=r"that no step has written is read by r\w* \(r\w*\): argument \d"):
        executable.execute([np.ones((16, 16), np.float32)])


LOOP = """HloModule m
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=LT }
left { a = f32[64] parameter(0)
  ROOT b = f32[64] sort(a), dimensions={0}, to_apply=less }
right { a = f32[64] parameter(0)
  ROOT b = f32[64] negate(a) }
body { s = (s32[], f32[64], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64] get-tuple-element(s), index=1
  y = f32[64] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  two = s32[] constant(2)
  r = s32[] remainder(i, two)
  z = s32[] constant(0)
  even = pred[] compare(r, z), direction=EQ
  c = f32[64] conditional(even, x, y), true_computation=left, false_computation=right
  n = f32[64] reverse(c), dimensions={0}
  ROOT t = (s32[], f32[64], f32[64]) tuple(j, y, n) }
cond { s = (s32[], f32[64], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(9)
  ROOT l = pred[] compare(i, n), direction=LT }
ENTRY e { x = f32[64] parameter(0)
  y = f32[64] cosine(x)
  k = s32[] constant(0)
  t = (s32[], f32[64], f32[64]) tuple(k, x, y)
  w = (s32[], f32[64], f32[64]) while(t), condition=cond, body=body
  a = f32[64] get-tuple-element(w), index=1
  b = f32[64] get-tuple-element(w), index=2
  ROOT r = f32[64] multiply(a, b) }
"""


def checked_and_plain(text, flags, inputs, **options):
    """What the checking mode computes, after a comparison with a usual run: the bits are the same."""
    module = parse_module(text)
    executable = compile_module(module, Flags.parse(flags), CompileOptions(cache=None, **options))
    checked, plain = executable.execute_checked(inputs), executable.execute(inputs)
    assert [x.tobytes() for x in checked] == [x.tobytes() for x in plain]
    agree(module, evaluate(module, inputs), checked)
    return checked


@pytest.mark.parametrize("host_program", ["interpreted", "compiled"])
@pytest.mark.parametrize("flags", ["legacy", "mlir"])
def test_loops_and_branches(flags, host_program):
    checked_and_plain(LOOP, flags, [np.linspace(-1, 1, 64, dtype=np.float32)], host_program=host_program)


@pytest.mark.parametrize("flags", ["legacy", "mlir"])
@pytest.mark.parametrize(
    "text",
    [
        "x = s4[7] parameter(0)\n  ROOT r = s4[7] negate(x)",
        "x = pred[7] parameter(0)\n  ROOT r = pred[7] not(x)",
        "x = f32[] parameter(0)\n  ROOT r = f32[] negate(x)",
        "x = f32[0,3] parameter(0)\n  ROOT r = f32[0,3] negate(x)",
        "x = bf16[33,5] parameter(0)\n  ROOT r = bf16[5,33] transpose(x), dimensions={1,0}",
        "x = c64[3,9] parameter(0)\n  ROOT r = c64[3,9] multiply(x, x)",
        "x = f8e4m3fnuz[9] parameter(0)\n  ROOT r = f8e4m3fnuz[9] negate(x)",
        "x = f32[4,4] parameter(0)\n  ROOT r = f32[4,4] cholesky(x), lower=true",
        "x = f32[16] parameter(0)\n  ROOT r = c64[9] fft(x), fft_type=RFFT, fft_length={16}",
        "x = f32[700,300] parameter(0)\n  e = f32[700,300] exponential(x)\n  ROOT r = f32[700,300] add(e, x)",
        "x = f32[<=9] parameter(0)\n  ROOT r = f32[<=9] negate(x)",
    ],
)
def test_kinds_of_memory_give_no_alarm(text, flags):
    module = f"HloModule m\nENTRY e {{ {text} }}\n"
    (shape,) = [p.shape for p in parse_module(module).entry.parameters]
    dtype = shape.dtype.numpy
    values = np.arange(shape.size).reshape(shape.dims) % 3
    x = (np.eye(4, dtype=np.float32) * 3 + 0.1) if "cholesky" in text else values.astype(dtype)
    if shape.is_dynamic:
        x = x[:5]
    checked_and_plain(module, flags, [x])


def test_ranges_are_run_one_after_the_other():
    text = "HloModule m\nENTRY e { x = f32[1024,512] parameter(0)\n  ROOT r = f32[1024,512] exponential(x) }\n"
    executable = compile_module(parse_module(text), Flags.parse("mlir"), CHECKED)
    assert any(isinstance(t, KernelThunk) and t.split is not None for t in executable.thunks.walk())
    x = np.linspace(-1, 1, 1024 * 512, dtype=np.float32).reshape(1024, 512)
    np.testing.assert_allclose(executable.execute([x])[0], np.exp(x), rtol=1e-6)


def test_a_handler_is_called_once():
    calls = []

    def negated(x: ffi.BufferR1[ffi.F32], y: ffi.Result[ffi.BufferR1[ffi.F32]]):
        calls.append(x.shape)
        y[...] = -x

    ffi.register("testbed_once_in_the_checking_mode", ffi.handler(negated))
    text = """HloModule m
ENTRY e { x = f32[10] parameter(0)
  ROOT r = f32[10] custom-call(x), custom_call_target="testbed_once_in_the_checking_mode",
    api_version=API_VERSION_TYPED_FFI }
"""
    executable = compile_module(parse_module(text), Flags.parse("legacy"), CHECKED)
    np.testing.assert_array_equal(executable.execute([X])[0], -X)
    assert calls == [(10,)]


def test_donated_inputs_become_results():
    text = TEXT.replace("HloModule m", "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }")
    executable = compile_module(parse_module(text), Flags.parse("legacy"), CHECKED)
    x = X.copy()
    np.testing.assert_array_equal(executable.execute([x], donated=[0])[0], -X)


def test_runs_of_files_are_refused(tmp_path):
    executable = compile_module(parse_module(TEXT), Flags.parse("legacy"), CompileOptions(cache=None))
    executable.save(tmp_path / "m.tbx")
    loaded = HostCompiler().load_executable((tmp_path / "m.tbx").read_bytes())
    with pytest.raises(InputError, match=r"an executable from a file, which has no plan \(compile the module"):
        loaded.execute_checked([X])


@pytest.mark.parametrize("flags", ["legacy", "mlir"])
@each("jax_programs", 3, biggest=12_000, seed=5)
def test_programs_give_no_alarm(case, flags):
    module, inputs = case.module(), case.inputs()
    results = compile_module(module, Flags.parse(flags), CompileOptions(debug="memory")).execute(inputs)
    agree(module, evaluate(module, inputs), results)


def test_a_run_takes_few_times_as_long():
    """Time of the processor, of a program whose kernels take some milliseconds; each runs twice, on copies."""
    text = """HloModule m
ENTRY e { x = f32[256,256] parameter(0)
  a = f32[256,256] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[256,256] tanh(a)
  ROOT r = f32[256,256] dot(b, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
"""
    executable = compile_module(parse_module(text), Flags.parse("legacy"))
    x = np.ones((256, 256), np.float32)

    def seconds(function):
        times = []
        for _ in range(7):
            start = time.process_time()
            function([x])
            times.append(time.process_time() - start)
        return min(times)

    assert seconds(executable.execute_checked) < 6 * seconds(executable.execute) + 0.005


def test_the_commands(tmp_path, capsys):
    file = tmp_path / "m.hlo"
    file.write_text(TEXT)
    assert main(["run", str(file), "--seed", "1", "--debug", "memory", "--emitters", "legacy"]) == 0
    assert "no kernel reads foreign or unwritten memory" in capsys.readouterr().out
    assert main(["diff", str(file), "--seed", "1", "--debug", "memory", "--stacks", "evaluator,legacy,mlir"]) == 0
    assert "verdict: evaluator, legacy, mlir agree" in capsys.readouterr().out
    assert main(["diff", str(file), "--debug", "memory", "--platforms", "host,interpreter"]) == 2
    assert "--debug memory checks kernels on the host only" in capsys.readouterr().err


def test_a_fault_is_named_by_the_commands(tmp_path, capsys):
    from ...differential.planted.fault import planted
    from ...differential.planted.table import FAULTS

    file = tmp_path / "m.hlo"
    fault = FAULTS["legacy-reverse-from-before"]
    file.write_text(fault.text)
    with planted(fault):
        assert main(["run", str(file), "--seed", "1", "--debug", "memory", "--emitters", "legacy"]) == 1
        assert "is read by kernel r_kernel (r)" in " ".join(capsys.readouterr().out.split())
        assert main(["run", str(file), "--seed", "1", "--debug", "memory", "--emitters", "legacy", "--json"]) == 1
        assert '"kernel": "r_kernel"' in capsys.readouterr().out
        stacks = ["--stacks", "evaluator,legacy,mlir"]
        assert main(["diff", str(file), "--seed", "1", "--debug", "memory", *stacks]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "legacy stopped by the checks" in out and "suspect legacy, stopped by the checks of memory" in out


def test_a_kernel_that_ends_its_process_is_named_where_llvm_did_not_optimise_it():
    compiler = HostCompiler()
    stack = emitter("""
  %nowhere = inttoptr i64 8 to ptr
  %y = load volatile float, ptr %nowhere
  %keep = icmp ule i64 %i, 9""")
    plan = compiler.run_hlo_passes(parse_module(TEXT), CHECKED)
    executable = compiler.compile(plan, lambda request: stack, CHECKED)
    with pytest.raises(MemoryFault, match=r"the kernel of negated: ended its process \(SIGSEGV\)"):
        run_plain(executable, [X])


def test_platforms_without_kernels_of_ours_refuse_it():
    compiler = platform("interpreter").compiler()
    module = compiler.run_hlo_passes(parse_module(TEXT), CHECKED)
    with pytest.raises(BackendError, match=r"platform interpreter has no checks in programs \(use the host\)"):
        compiler.compile(module, None, CHECKED)


def test_errors_have_one_class():
    assert issubclass(MemoryCheckError, MemoryFault) and issubclass(RedZoneError, MemoryFault)
    assert SMALL.is_dir() and np.isnan(np.full(1, 0xFF, np.uint8).view(ml_dtypes.float8_e5m2).astype(np.float32))[0]
