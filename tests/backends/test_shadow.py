"""Shadow kernels: results are the first stack's, bit by bit; the other stack's are compared, on copies, and a pair that
differs is kept with what the kernel read.
"""

import re
from dataclasses import replace

import numpy as np
import pytest

from ...backends.base import CompileOptions, Emitter
from ...backends.host.compiler import HostCompiler
from ...backends.host.loader import deserialize_and_load
from ...differential.corpus import load_case, read_suite
from ...differential.fake_inputs import fake_inputs
from ...differential.finding import read_finding
from ...differential.shadow import judged, tolerances, write_mismatch
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError
from ...hlo.opcodes import Op
from ...migration import Flags, compile_module
from ...migration.choose import emitter
from ...thunks import from_text, to_text
from ...thunks import shadow as thunk_shadow
from ..support.corpus import SMALL, some

HOSTS = ("interpreted", "compiled")
SWAPPED = {Op.TANH: Op.SINE, Op.ADD: Op.SUBTRACT}


def wrong(only: frozenset[Op]) -> Emitter:
    """mlir, which takes some opcodes for others."""
    mlir = emitter("mlir")

    def emit(requests, options):
        changed = []
        for request in requests:
            i = request.instruction
            swap = i.opcode in only
            changed.append(replace(request, instruction=i.replace(opcode=SWAPPED[i.opcode])) if swap else request)
        return mlir.emit(changed, options)

    return Emitter("shadow", emit, mlir.unsupported)


def compiled(text: str, host: str, *only: Op, **options):
    options = CompileOptions(cache=None, host_program=host, tolerances=tolerances, **options)
    compiler = HostCompiler()
    stack = replace(emitter("legacy"), shadow=wrong(frozenset(only)))
    return compiler.compile(compiler.run_hlo_passes(parse_module(text), options), lambda request: stack, options)


LOOP = """HloModule loop
body { s = (s32[], f32[40000]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[40000] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[40000] tanh(x)
  ROOT t = (s32[], f32[40000]) tuple(j, y) }
more { s = (s32[], f32[40000]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(9)
  ROOT l = pred[] compare(i, n), direction=LT }
ENTRY e { i = s32[] parameter(0)
  x = f32[40000] parameter(1)
  t = (s32[], f32[40000]) tuple(i, x)
  w = (s32[], f32[40000]) while(t), condition=more, body=body
  ROOT o = f32[40000] get-tuple-element(w), index=1 }
"""
X = np.tile(np.float32([1, -2, 0.5, 3]), 10000)


@pytest.mark.parametrize("host", HOSTS)
def test_the_first_pair_that_differs_is_kept_and_the_others_are_counted(host):
    right = compile_module(parse_module(LOOP), Flags.parse("legacy")).execute([np.int32(2), X])
    made = compiled(LOOP, host, Op.TANH)
    for _ in range(2):
        (result,) = made.execute([np.int32(2), X])
        assert result.tobytes() == right[0].tobytes()
        report = made.shadow_report()
        found = report.first
        assert report.pairs == 7 and found is not None and (found.element, found.count) == (0, 40000)
        assert found.kernel.instruction.opcode is Op.TANH and np.array_equal(found.operands[0], X)
        np.testing.assert_allclose(found.ours[0], np.tanh(X), rtol=1e-6)
        np.testing.assert_allclose(found.theirs[0], np.sin(X), rtol=1e-6)


@pytest.mark.parametrize("host", HOSTS)
def test_a_right_stack_is_no_finding(host):
    made = compiled(LOOP, host)
    made.execute([np.int32(0), X])
    report = made.shadow_report()
    assert (report.pairs, report.first, dict(report.alone)) == (0, None, {}) and len(report.shadowed) >= 3
    assert report.bytes > 0


def test_a_mismatch_is_written_once_as_a_finding_that_blames_the_stack(tmp_path):
    made = compiled(LOOP, "compiled", Op.TANH)
    made.execute([np.int32(8), X])
    mismatch = made.shadow_report().first
    outcome, place = write_mismatch(tmp_path / "new" / "findings", mismatch)
    again = write_mismatch(tmp_path / "new" / "findings", mismatch)[1]
    finding = read_finding(place)
    assert place == again and outcome.blamed == finding.blamed == ("mlir",) and np.array_equal(finding.inputs[0], X)
    assert "tanh" in finding.text and (place / "test_case.py").exists()


def test_what_is_within_the_bounds_is_judged_no_finding(tmp_path):
    made = compiled(LOOP, "compiled", Op.TANH)
    made.execute([np.int32(8), X])
    mismatch = made.shadow_report().first
    near = replace(mismatch, theirs=(np.nextafter(mismatch.ours[0], np.float32(9)),))
    assert write_mismatch(tmp_path, near)[1] is None and not judged(near)[2].is_finding
    assert list(tmp_path.iterdir()) == []


ALIASED = """HloModule aliased, input_output_alias={ {0}: (0, {}, must-alias) }
ENTRY e { x = s32[5] parameter(0)
  y = s32[5] parameter(1)
  a = s32[5] add(x, y)
  ROOT t = (s32[5]) tuple(a) }
"""


@pytest.mark.parametrize("host", HOSTS)
def test_a_donated_input_is_written_once_and_kept_as_it_was(host):
    made = compiled(ALIASED, host, Op.ADD)
    x, y = np.arange(5, dtype=np.int32), np.full(5, 10, np.int32)
    (result,) = made.execute([x, y], donated=[0])
    assert np.shares_memory(result, x) and result.tolist() == [10, 11, 12, 13, 14]
    found = made.shadow_report().first
    assert found is not None and sorted(a.tolist() for a in found.operands) == [[0, 1, 2, 3, 4], [10] * 5]
    assert found.ours[0].tolist() == [10, 11, 12, 13, 14] and found.theirs[0].tolist() == [-10, -9, -8, -7, -6]


def test_random_state_advances_once():
    text = """HloModule random
ENTRY e { s = u64[2] parameter(0)
  a = (u64[2], u32[4]) rng-bit-generator(s), algorithm=rng_philox
  t = u64[2] get-tuple-element(a), index=0
  b = (u64[2], u32[4]) rng-bit-generator(t), algorithm=rng_philox
  x = u32[4] get-tuple-element(a), index=1
  y = u32[4] get-tuple-element(b), index=1
  u = u64[2] get-tuple-element(b), index=0
  ROOT r = (u64[2], u32[4], u32[4]) tuple(u, x, y) }
"""
    state = np.uint64([1, 2])
    right = compile_module(parse_module(text), Flags.parse("legacy")).execute([state.copy()])
    made = compile_module(parse_module(text), Flags.parse("shadow"))
    given = made.execute([state.copy()])
    assert [g.tobytes() for g in given] == [r.tobytes() for r in right] and made.shadow_report().pairs == 0


def test_programs_of_the_small_corpus_keep_their_bits_and_give_no_findings(tmp_path):
    for case in some(read_suite(SMALL), 40, 41):
        module = load_case(case).module
        inputs = fake_inputs(module, 5)
        made = compile_module(module, Flags.parse("shadow"), CompileOptions(tolerances=tolerances))
        right = compile_module(module, Flags.parse("legacy")).execute([x.copy() for x in inputs])
        given = made.execute([x.copy() for x in inputs])
        assert [np.asarray(g).tobytes() for g in given] == [np.asarray(r).tobytes() for r in right], case.id
        assert from_text(to_text(made.thunks)) == made.thunks, case.id
        if made.has_shadows and (found := made.shadow_report().first) is not None:
            outcome, place = write_mismatch(tmp_path, found)
            assert place is None, f"{case.id}: {outcome.sentence}"


def test_a_file_holds_both_kernels():
    made = compiled(LOOP, "compiled", Op.TANH)
    loaded = deserialize_and_load(made.serialize())
    assert loaded.execute([np.int32(2), X])[0].tobytes() == made.execute([np.int32(2), X])[0].tobytes()
    assert [f.number for f in loaded.findings().found] == [0] * 7
    with pytest.raises(InputError, match="has no shadow kernels"):
        loaded.shadow_report()


def test_what_the_other_stack_does_not_support_runs_alone():
    mlir = emitter("mlir")
    refusing = Emitter("shadow", mlir.emit, lambda requests: [InputError("no tanh today")])
    stack = replace(emitter("legacy"), shadow=refusing)
    compiler, options = HostCompiler(), CompileOptions(cache=None)
    made = compiler.compile(compiler.run_hlo_passes(parse_module(LOOP), options), lambda request: stack, options)
    report = made.shadow_report()
    assert not report.shadowed and set(report.alone.values()) == {"no tanh today"}
    right = compile_module(parse_module(LOOP), Flags.parse("legacy")).execute([np.int32(2), X])
    assert made.execute([np.int32(2), X])[0].tobytes() == right[0].tobytes()


@pytest.mark.parametrize("options", [{"profile": True}, {"debug": "nan"}])
def test_other_rewrites_need_a_program_of_their_own(options):
    with pytest.raises(InputError, match="shadow kernels need a program of their own"):
        compiled(LOOP, "auto", **options)


@pytest.mark.parametrize(("flags", "tanh", "others"), [
    ("shadow", True, True),
    ("shadow,tanh=legacy", False, True),
    ("legacy,tanh=shadow", True, False),
    ("mlir,tanh=shadow", True, False),
])  # fmt: skip
def test_flags_say_which_kernels_have_shadows(flags, tanh, others):
    assert str(Flags.parse(str(Flags.parse(flags)))) == str(Flags.parse(flags)) and Flags.parse(flags).has_shadows
    made = compile_module(parse_module(LOOP), Flags.parse(flags))
    report = made.shadow_report()
    stacks = dict(made.kernels)
    for kernel in made.plan.kernels:
        assert (kernel.name in report.shadowed) == (tanh if kernel.instruction.opcode is Op.TANH else others)
    assert all(stacks[name] == "legacy" for name in report.shadowed)


TWO = """HloModule two
body { s = (s32[], f32[100], f32[100]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[100] get-tuple-element(s), index=1
  z = f32[100] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[100] tanh(x)
  r = f32[100] reverse(z), dimensions={0}
  w = f32[100] add(r, x)
  ROOT t = (s32[], f32[100], f32[100]) tuple(j, y, w) }
more { s = (s32[], f32[100], f32[100]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(7)
  ROOT l = pred[] compare(i, n), direction=LT }
ENTRY e { x = f32[100] parameter(0)
  i = s32[] constant(0)
  t = (s32[], f32[100], f32[100]) tuple(i, x, x)
  w = (s32[], f32[100], f32[100]) while(t), condition=more, body=body
  a = f32[100] get-tuple-element(w), index=1
  b = f32[100] get-tuple-element(w), index=2
  ROOT o = (f32[100], f32[100]) tuple(a, b) }
"""


def differing(host: str, monkeypatch, most_bytes: int | None = None):
    """The report of a loop in which every float kernel of the other stack stores 100 instead of its results."""
    if most_bytes is not None:
        monkeypatch.setattr(thunk_shadow, "MOST_BYTES", most_bytes)
    mlir = emitter("mlir")

    def broken(requests, options):
        emitted = mlir.emit(requests, options)
        stored = re.sub(r"store float [^,]+,", "store float 1.000000e+02,", emitted.llvm_ir)
        return replace(emitted, llvm_ir=stored)

    stack = replace(emitter("legacy"), shadow=Emitter("shadow", broken, mlir.unsupported))
    compiler, options = HostCompiler(), CompileOptions(cache=None, host_program=host, tolerances=tolerances)
    made = compiler.compile(compiler.run_hlo_passes(parse_module(TWO), options), lambda request: stack, options)
    made.execute([np.float32(range(100)) / 100])
    return made.shadow_report()


@pytest.mark.parametrize("host", HOSTS)
def test_pairs_of_each_kernel_are_kept_up_to_the_limit(host, monkeypatch):
    report = differing(host, monkeypatch)
    floats = [k for k, calls in report.calls.items() if calls == 7]
    assert floats and set(report.calls) <= set(report.shadowed)
    for kernel in floats:
        kept = [m for m in report.mismatches if m.kernel.name == kernel]
        assert len(kept) == report.limit == 4
        assert all(any((theirs == 100).any() for theirs in m.theirs) for m in kept)
        assert all(any((a != b).any() for a, b in zip(m.ours, m.theirs)) for m in kept)
        states = [b"".join(x.tobytes() for x in m.operands) for m in kept]
        assert len(set(states)) == 4, "each is of an iteration of its own"
    assert report.first is report.mismatches[0]


@pytest.mark.parametrize("host", HOSTS)
def test_kernels_without_room_share_one_place(host, monkeypatch):
    whole, less = differing(host, monkeypatch), differing(host, monkeypatch, 0)
    assert less.calls == whole.calls and less.bytes < whole.bytes
    (kept,) = less.mismatches
    first = whole.mismatches[0]
    assert kept.kernel.name == first.kernel.name
    assert [x.tobytes() for x in (*kept.operands, *kept.ours)] == [x.tobytes() for x in (*first.operands, *first.ours)]
