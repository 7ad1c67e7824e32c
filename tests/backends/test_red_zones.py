"""Red zones: kernels that write out of bounds are reported with kernel, argument and offset; correct ones pass."""

import numpy as np
import pytest

from ...backends.base import CompileOptions, Emitter
from ...backends.host.compiler import HostCompiler
from ...backends.host.red_zones import ZONE, Overrun, RedZoneError
from ...cli.main import main
from ...codegen.options import EmittedModule
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module
from ..support.hlo_corpus import each
from ..support.passes import agree

GUARDED = CompileOptions(cache=None, red_zones=True)
TEXT = """HloModule m
ENTRY e { x = f32[10] parameter(0)
  ROOT negated = f32[10] negate(x) }
"""
X = np.arange(10, dtype=np.float32)


def emitter(first: int, count: int, target: str = "out") -> Emitter:
    """Kernels of (in, out) that negate elements [first, first + count) and write them to `target`."""

    def emit(requests, options):
        return EmittedModule("\n".join(text(r.name) for r in requests))

    def text(name):
        return f"""
define void @{name}(ptr %in, ptr %out) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ {first}, %entry ], [ %next, %loop ]
  %from = getelementptr float, ptr %in, i64 %i
  %to = getelementptr float, ptr %{target}, i64 %i
  %x = load float, ptr %from
  %y = fneg float %x
  store float %y, ptr %to
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, {first + count}
  br i1 %done, label %exit, label %loop
exit:
  ret void
}}"""

    return Emitter("fake", emit)


def run(stack: Emitter, text: str = TEXT):
    compiler = HostCompiler()
    plan = compiler.run_hlo_passes(parse_module(text), GUARDED)
    return compiler.compile(plan, lambda request: stack, GUARDED).execute([X])


def test_a_kernel_that_keeps_its_bounds_runs_as_ever():
    np.testing.assert_array_equal(run(emitter(0, 10))[0], -X)


@pytest.mark.parametrize(
    ("first", "count", "expected"),
    [
        (0, 11, Overrun(1, 40, True, 40, 43)),
        (0, 16, Overrun(1, 40, True, 40, 63)),
        (-2, 12, Overrun(1, 40, True, -8, -1)),
    ],
)
def test_bytes_outside_the_result_are_named(first, count, expected):
    with pytest.raises(RedZoneError) as caught:
        run(emitter(first, count))
    assert caught.value.overruns == (expected,)
    assert caught.value.kernel == "negated_kernel" and caught.value.instruction == "negated"
    assert "negated_kernel" in str(
        caught.value
    ) and f"argument 1 (40 bytes, written) at offsets {expected.first}" in str(caught.value)


def test_a_written_operand_is_named():
    with pytest.raises(RedZoneError, match=r"argument 0 \(40 bytes, read only\) at offsets"):
        run(emitter(0, 10, "in"))


def test_the_last_byte_of_a_zone_is_watched():
    with pytest.raises(RedZoneError) as caught:
        run(emitter(10 + ZONE // 4 - 1, 1))
    assert caught.value.overruns[0].last >= 40 + ZONE - 4


def test_without_red_zones_nothing_is_guarded():
    executable = compile_module(parse_module(TEXT), Flags.parse("legacy"), CompileOptions(cache=None))
    np.testing.assert_array_equal(executable.execute([X])[0], -X)


@pytest.mark.parametrize("flags", ["legacy", "mlir"])
@each("jax_programs", 3, biggest=12_000, seed=2)
def test_both_stacks_keep_their_bounds(case, flags):
    module, inputs = case.module(), case.inputs()
    results = compile_module(module, Flags.parse(flags), CompileOptions(red_zones=True)).execute(inputs)
    agree(module, evaluate(module, inputs), results)


def test_the_command(tmp_path, capsys):
    (tmp_path / "m.hlo").write_text(TEXT)
    assert main(["run", str(tmp_path / "m.hlo"), "--seed", "1", "--red-zones"]) == 0
    assert "out0 float32[10]" in capsys.readouterr().out
    assert main(["run", str(tmp_path / "m.hlo"), "--seed", "1", "--red-zones", "--emitters", "evaluator"]) == 2
    assert "--red-zones needs compiled kernels" in capsys.readouterr().err


def findings(stack: Emitter, host: str):
    options = CompileOptions(cache=None, debug="redzone", host_program=host)
    compiler = HostCompiler()
    made = compiler.compile(compiler.run_hlo_passes(parse_module(TEXT), options), lambda request: stack, options)
    made.execute([X])
    return [(f.thunk.name.partition(": ")[2], f.number) for f in made.findings().found]


@pytest.mark.parametrize("host", ["interpreted", "compiled"])
def test_thunks_find_them_too(host):
    assert findings(emitter(0, 10), host) == []
    assert findings(emitter(0, 11), host) == [("behind argument 1", 0)]
    assert findings(emitter(-1, 3), host) == [("behind argument 0", 276)]  # of 280: the next argument begins a line
    assert findings(emitter(1, 2, "in"), host) == [("argument 0, which it only reads", 7)]
