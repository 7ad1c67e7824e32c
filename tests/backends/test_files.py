"""Programs as files: the same bits after loading; what cannot run here is refused before anything runs."""

import importlib.util
import random
import subprocess
import sys
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...backends.host import loader
from ...backends.host.loader import deserialize_and_load, inspect_file, load_executable
from ...codegen import features
from ...codegen.mlir import MlirError, lower_text, text_of
from ...codegen.options import EmitOptions, Target
from ...differential.corpus import load_case, read_suite, select
from ...differential.fake_inputs import fake_inputs
from ...hlo.errors import InputError, TestbedError
from ...migration.api import compile, parse
from ...migration.compile import compile_program
from ...migration.flags import Flags
from ...thunks.host_build import PASSES
from ...thunks.wire.container import Section, SectionKind, pack, unpack
from ...thunks.wire.program import TreeBytes, read_program, write_program
from ..cases.modules import ADD
from ..support.corpus import SMALL

CONSTANT = """HloModule c
ENTRY e {
  x = f32[3] parameter(0)
  k = f32[3] constant({1, 2, 3})
  y = f32[3] multiply(x, k)
  i = s32[2,2]{0,1} constant({{1, 2}, {3, 4}})
  ROOT t = (f32[3], s32[2,2]{1,0}, f32[3]) tuple(y, i, x)
}
"""
LOOP = """HloModule loop
next {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[4] tanh(x)
  ROOT t = (s32[], f32[4]) tuple(j, y)
}
more {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(9)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  i = s32[] parameter(0)
  x = f32[4] parameter(1)
  s = (s32[], f32[4]) tuple(i, x)
  ROOT w = (s32[], f32[4]) while(s), condition=more, body=next
}
"""
ALIASED = """HloModule a, input_output_alias={ {0}: (0, {}, may-alias) }
ENTRY e { x = f32[8] parameter(0)
 y = f32[8] negate(x)
 z = f32[] constant(4)
 ROOT t = (f32[8], f32[]) tuple(y, z) }
"""
DYNAMIC = """HloModule d
ENTRY e { x = f32[<=8] parameter(0)
 ROOT y = f32[<=8] negate(x) }
"""
SOLVED = """HloModule s
ENTRY e { a = f32[3,3] parameter(0)
 ROOT c = f32[3,3] cholesky(a), lower=true }
"""
FOURIER = """HloModule f
ENTRY e { x = c64[16] parameter(0)
 ROOT y = c64[16] fft(x), fft_type=FFT, fft_length={16} }
"""
LABELLED = """HloModule l
ENTRY e { Arg_0.1 = f32[2] parameter(0), metadata={op_name="params[\\'w\\']"}
 ROOT y = f32[2] negate(Arg_0.1) }
"""


def bits(arrays):
    return [(a.dtype, a.shape, a.tobytes()) for a in arrays]


@pytest.fixture(scope="module")
def program():
    """A program that runs on every x86-64 machine, or on this one where it is another."""
    levels = Target.levels()
    target = Target.level(levels[0]) if levels else Target.host()
    return compile(ADD, options=CompileOptions(EmitOptions(target), cache=None))


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_programs_of_the_small_corpus_give_the_same_bits(stack):
    for case in select(read_suite(SMALL), None, 12, 5):
        source = load_case(case)
        made = compile_program(source, Flags.parse(stack))
        data = made.serialize()
        loaded = deserialize_and_load(data)
        inputs = source.inputs or fake_inputs(source.module)
        assert bits(loaded.execute(inputs)) == bits(made.execute(inputs)), case.id
        assert loaded.serialize() == data, case.id


@pytest.mark.parametrize("text", [CONSTANT, LOOP, ALIASED, DYNAMIC, SOLVED, FOURIER, LABELLED])
def test_every_part_of_a_program_survives(text, tmp_path):
    made = compile(text)
    made.save(tmp_path / "p.tbx")
    loaded = load_executable(tmp_path / "p.tbx")
    inputs = fake_inputs(parse(text), 1)
    if text is SOLVED:
        inputs = [np.eye(3, dtype=np.float32) * 4]
    assert bits(loaded.execute([x.copy() for x in inputs])) == bits(made.execute([x.copy() for x in inputs]))
    assert (loaded.thunks, loaded.kernels, loaded.image.seconds) == (
        made.thunks,
        made.kernels,
        pytest.approx(made.image.seconds, abs=1e-9),
    )
    assert loaded.__signature__ == made.__signature__ and loaded.__doc__ == made.__doc__
    assert (tmp_path / "p.tbx").read_bytes() == loaded.serialize() == compile(text).serialize()


def test_a_profile_survives():
    made = compile(LOOP, options=CompileOptions(profile=True))
    loaded, inputs = deserialize_and_load(made.serialize()), [np.int32(0), np.ones(4, np.float32)]
    assert loaded.thunks == made.thunks
    for executable in (loaded, made):
        executable.execute(inputs)
    assert [(r.name, r.calls) for r in loaded.profile().rows] == [(r.name, r.calls) for r in made.profile().rows]
    assert max(r.calls for r in loaded.profile().rows) > 8


def test_a_donated_input_becomes_its_result():
    loaded, x = deserialize_and_load(compile(ALIASED).serialize()), np.ones(8, np.float32)
    result, _ = loaded.execute([x], donated=(0,))
    assert result is x and (x == -1).all()


def test_sizes_stay_dynamic():
    loaded = deserialize_and_load(compile(DYNAMIC).serialize())
    assert loaded(np.ones(5, np.float32)).shape == (5,)


def test_arguments_keep_their_names():
    loaded = deserialize_and_load(compile(LABELLED).serialize())
    assert "params['w']" in loaded.__doc__
    with pytest.raises(InputError, match=r"argument params\['w'\]: expected f32\[2\]"):
        loaded(np.ones(3, np.float32))


def test_constants_are_mapped_read_only_and_aligned(tmp_path):
    compile(CONSTANT).save(tmp_path / "c.tbx")
    blocks = [np.asarray(b) for b in load_executable(tmp_path / "c.tbx").image.constants.values()]
    assert blocks and all(not b.flags.writeable and b.ctypes.data % 64 == 0 for b in blocks)
    mapped = [line.split() for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith("c.tbx")]
    spans = [tuple(int(end, 16) for end in words[0].split("-")) for words in mapped]
    assert all(any(low <= b.ctypes.data < high for low, high in spans) for b in blocks)


def test_native_calls_are_prepared_on_request_only(program, tmp_path):
    program.save(tmp_path / "p.tbx")
    x = np.ones(2, np.float32)
    for wanted in (False, True):
        loaded = load_executable(tmp_path / "p.tbx", native_calls=wanted)
        assert bits([loaded(x)]) == bits(program.execute([x])) == bits(loaded.execute([x]))
        assert (loaded._contexts.native is not None) == (wanted and program._contexts.native is not None)


def test_a_program_from_a_file_has_no_plan_and_says_what_it_is(program):
    loaded = deserialize_and_load(program.serialize())
    with pytest.raises(InputError, match="an executable from a file has no plan"):
        assert loaded.plan
    assert loaded.program.entry.root.attributes["custom_call_target"] == "testbed_executable"
    assert repr(loaded) == "<LoadedExecutable m(p: f32[2]) -> f32[2]>"


@pytest.mark.xla
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs ./testbed setup --xla")
class TestTreesOfJax:
    ARGUMENTS = ({"w": np.ones((2, 3), np.float32), "u": np.ones(5, np.float32)}, np.arange(3, dtype=np.float32))

    @pytest.fixture
    def made(self):
        import jax

        def step(params, x, *, k):
            return {"y": params["w"] @ x + k, "s": (x.sum(), None)}

        return compile(jax.jit(step).lower(*self.ARGUMENTS, k=np.float32(2)))

    def test_they_are_as_they_were(self, made):
        loaded = deserialize_and_load(made.serialize())
        ours, theirs = (executable(*self.ARGUMENTS, k=np.float32(2)) for executable in (loaded, made))
        assert list(ours) == list(theirs) == ["s", "y"] and ours["s"][1] is None
        np.testing.assert_array_equal(ours["y"], theirs["y"])
        assert loaded.__signature__ == made.__signature__ and loaded.serialize() == made.serialize()

    def test_trees_with_other_classes_are_not_saved(self):
        import jax

        lowered = jax.jit(lambda pair: pair.first).lower(Pair(*self.ARGUMENTS[1:] * 2))
        with pytest.raises(InputError, match="the trees of the program cannot be written: User-defined nodes"):
            compile(lowered).serialize()

    @pytest.mark.parametrize(
        "change", [{"kept": (0, 1, 99)}, {"kept": ()}, {"arguments": b"\xff\xff"}, {"results": b""}], ids=str
    )
    def test_other_trees_are_refused(self, made, change):
        entry = read_program(made.serialize())[0].entry
        wrong = deserialize_and_load(rewritten(made, entry=replace(entry, trees=replace(entry.trees, **change))))
        with pytest.raises(InputError, match="the program's trees are "):
            wrong(*self.ARGUMENTS, k=np.float32(2))


def test_without_jax_its_trees_are_named(program, monkeypatch):
    entry = read_program(program.serialize())[0].entry
    loaded = deserialize_and_load(rewritten(program, entry=replace(entry, trees=TreeBytes(b"", None, (0,)))))
    monkeypatch.setitem(sys.modules, "jax.tree_util", None)
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    with pytest.raises(InputError, match=r"takes and returns trees of JAX, which is not installed \(install jax"):
        loaded(np.ones(2, np.float32))
    assert len(loaded.execute([np.ones(2, np.float32)])) == 1


Pair = namedtuple("Pair", "first second")


# -- refusals ----------------------------------------------------------------------------------------------------------
def refusal(data, key=None):
    with pytest.raises(TestbedError) as caught:
        deserialize_and_load(data, key)
    text = str(caught.value)
    assert text.startswith("the program: ") and "\n" not in text
    return text


def rewritten(program, **changes):
    """The file with another value for a part of it, with right checksums."""
    file = read_program(program.serialize())[0]
    return b"".join(write_program(replace(file, **changes)))


def test_another_processor_or_system_is_refused_by_name(program, monkeypatch):
    file = read_program(program.serialize())[0]
    more = rewritten(program, needs=replace(file.needs, features=(*file.needs.features, "avx9000", "zfast")))
    assert "its code cannot run here: this machine lacks avx9000, zfast (compile it with --cpu" in refusal(more)
    other = rewritten(program, needs=replace(file.needs, triple="riscv64-unknown-linux-gnu"))
    assert "it is for riscv64-unknown-linux-gnu, and this is" in refusal(other)
    old = Target.level("x86-64-v2")
    monkeypatch.setattr(features, "_flags", frozenset)
    monkeypatch.setattr(Target, "machine", lambda: replace(old, features=old.features.replace("+popcnt,", "")))
    if file.needs.triple.startswith("x86_64"):
        assert "this machine lacks popcnt" in refusal(program.serialize())


def test_a_vendor_in_the_triple_does_not_count(program):
    file = read_program(program.serialize())[0]
    triple = file.needs.triple.replace("-unknown-", "-pc-")
    data = rewritten(program, needs=replace(file.needs, triple=triple))
    assert deserialize_and_load(data).target.triple == triple


def test_symbols_are_checked_before_linking(program, monkeypatch):
    solved = compile(SOLVED)
    assert any(name.startswith("scipy_") for name in read_program(solved.serialize())[0].needs.symbols)
    monkeypatch.setattr(loader, "missing_symbols", lambda names: [n for n in names if n.startswith("scipy_")])
    assert "its code needs symbols that this process does not have: scipy_" in refusal(solved.serialize())


def test_code_that_is_not_that_of_the_program_is_refused(program):
    file = read_program(program.serialize())[0]
    assert "its code does not define the kernel" in refusal(rewritten(program, objects=()))
    assert "not a 64-bit little-endian ELF object" in refusal(rewritten(program, objects=(b"MZ" * 40,)))
    assert "two objects define" in refusal(rewritten(program, objects=file.objects * 2))
    needs = replace(file.needs, symbols=("system",))
    assert "its list of symbols is not that of its code" in refusal(rewritten(program, needs=needs))


def test_a_signature_is_of_its_key(program):
    data = program.serialize(b"k" * 32)
    assert deserialize_and_load(data, b"k" * 32) and deserialize_and_load(data)
    assert "the signature is not of this key" in refusal(data, b"x" * 32)
    assert "the file is not signed" in refusal(program.serialize(), b"k" * 32)


def test_files_that_are_none(tmp_path):
    for name, content, message in (
        ("gone.tbx", None, "No such file or directory"),
        ("empty.tbx", b"", "not a .tbx file"),
        ("text.tbx", b"HloModule m\n", "not a .tbx file"),
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        for read in (load_executable, inspect_file):
            with pytest.raises(InputError) as caught:
                read(tmp_path / name)
            assert str(caught.value).startswith(f"{tmp_path / name}: {message}")
    with pytest.raises(InputError, match="a device, not a file"):
        load_executable("/dev/zero")
    with pytest.raises(InputError, match="Is a directory"):
        load_executable(tmp_path)


def test_a_newer_optional_section_is_skipped_and_sections_must_be_there(program):
    sections = list(unpack(program.serialize()).sections)
    more = b"".join(pack([*sections, Section(99, b"MLIR", required=False)]))
    assert deserialize_and_load(more).kernels == program.kernels
    assert "section kind 99 is not known" in refusal(b"".join(pack([*sections, Section(99, b"MLIR")])))
    for n, section in enumerate(sections):
        if section.kind not in (SectionKind.CODE, SectionKind.HOST):
            assert f"0 sections {section.name}" in refusal(b"".join(pack(sections[:n] + sections[n + 1 :])))
            assert f"2 sections {section.name}" in refusal(b"".join(pack([*sections, section])))


DAMAGE = """
import sys
from testbed.backends.host.loader import deserialize_and_load
from testbed.hlo.errors import TestbedError

def refused(data, key):
    try:
        deserialize_and_load(data, key)
    except TestbedError as error:
        return bool(str(error)) and "\\n" not in str(error)
    return False

data, key = open(sys.argv[1], "rb").read(), sys.argv[2].encode() or None
accepted = [n for n in range(len(data)) if not refused(data[:n], key)]
for n in range(len(data)):
    changed = data[:n] + bytes([data[n] ^ (1 << n % 8)]) + data[n + 1 :]
    accepted += [] if refused(changed, key) else [n]
print(len(data), accepted)
"""


@pytest.mark.parametrize("key", ["", "0123456789abcdef"])
def test_every_changed_byte_and_every_cut_is_refused(key, program, tmp_path):
    data = program.serialize(key.encode() or None)
    (tmp_path / "p.tbx").write_bytes(data)
    command = [sys.executable, "-c", DAMAGE, str(tmp_path / "p.tbx"), key]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{len(data)} []\n"), done.stderr


def test_changed_structures_with_right_checksums_are_refused_or_read():
    """What the verifier accepts of these is not run here: docs/files.md says what it cannot see."""
    rng, refused = random.Random(3), 0
    sections = list(unpack(compile(LOOP).serialize()).sections)
    for _ in range(1500):
        n = rng.randrange(4)  # one of the protos
        data = bytearray(sections[n].data)
        for _ in range(rng.choice([1, 1, 2, 4])):
            data[rng.randrange(len(data))] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        changed = [*sections[:n], replace(sections[n], data=bytes(data)), *sections[n + 1 :]]
        try:
            assert read_program(b"".join(pack(changed)))
        except TestbedError as error:
            refused += bool(str(error))
    assert refused > 500


LIGHT = """
import sys
before = set(sys.modules)
from testbed.cli.main import main
status = main(["exec", sys.argv[1], "--inputs", sys.argv[2], "-o", sys.argv[3]])
new = sorted(set(sys.modules) - before)
heavy = ("llvmlite", "mlir", "scipy", "jax", "google", "testbed.passes", "testbed.planning.planner",
         "testbed.evaluator", "testbed.formats.text.parser", "testbed.hlo.verify", "testbed.hlo.analysis",
         "testbed.legacy", "testbed.lhlo",
         "testbed.mlir_emitters", "testbed.migration", "testbed.hlo.opset", "testbed.planning.plan",
         "testbed.profiling", "testbed.thunks.parse", "importlib.metadata", "rich",
         "testbed.thunks.outside", "testbed.backends.host.outside", "testbed.hlo.replica_groups")
print(status, [m for m in new if any(m == h or m.startswith(h + ".") for h in heavy)])
"""


LOAD_ALONE = """
import sys
import testbed
before = set(sys.modules)
program = testbed.load_executable(sys.argv[1])
new = sorted(set(sys.modules) - before)
heavy = ("numpy", "ml_dtypes", "hmac", "_hashlib", "pathlib", "signal", "tempfile", "testbed.hlo.ir",
         "testbed.hlo.attributes", "testbed.hlo.metadata", "testbed.backends.calling", "testbed.backends.base",
         "testbed.backends.host.contexts", "testbed.backends.host.memory", "testbed.codegen.options",
         "testbed.codegen.mlir", "testbed.thunks.executor", "testbed.thunks.table", "testbed.thunks.host_module",
         "testbed.thunks.checks", "testbed.formats", "llvmlite", "mlir", "jax")
print([m for m in new if any(m == h or m.startswith(h + ".") for h in heavy)])
import numpy as np
print(program(np.float32([1, 2, 3]))[0].tolist(), program.host_program, hasattr(program, "nothing"))
"""


def test_loading_imports_nothing_that_only_a_run_needs(tmp_path):
    """NumPy's import alone takes longer than all else of loading. What a run needs comes with the first run."""
    compile(CONSTANT).save(tmp_path / "c.tbx")
    command = [sys.executable, "-c", LOAD_ALONE, str(tmp_path / "c.tbx")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == ["[]", "[1.0, 4.0, 9.0] interpreted False"], done.stdout + done.stderr


def test_many_threads_may_make_the_first_use_of_a_loaded_program(tmp_path):
    compile(LOOP).save(tmp_path / "l.tbx")
    wanted = bits(compile(LOOP).execute([np.int32(0), np.ones(4, np.float32)]))
    for _ in range(5):
        loaded = load_executable(tmp_path / "l.tbx")
        with ThreadPoolExecutor(8) as pool:
            runs = [pool.submit(loaded.execute, [np.int32(0), np.ones(4, np.float32)]) for _ in range(8)]
            assert all(bits(run.result()) == wanted for run in runs)


def test_the_host_program_is_kept_as_bytecode_that_lowers_to_the_same_code():
    compiled = compile(LOOP)
    data = compiled.serialize()
    file, container = read_program(data)
    assert file.host and [s.required for s in container.sections if s.kind == SectionKind.HOST] == [False]
    loaded = deserialize_and_load(data)
    assert loaded.serialize() == data == compile(LOOP).serialize()
    text = dict(compile(LOOP, options=CompileOptions(keep_stages=True)).stages)["host.mlir"]
    assert lower_text(text_of(file.host), PASSES) == lower_text(text, PASSES)
    interpreted = compile(LOOP, options=CompileOptions(host_program="interpreted"))
    assert read_program(interpreted.serialize())[0].host == b""


def test_a_run_does_not_read_the_host_program():
    compiled, inputs = compile(LOOP), [np.int32(0), np.ones(4, np.float32)]
    for changed in (b"no bytecode", b""):
        data = rewritten(compiled, host=changed)
        assert bits(deserialize_and_load(data).execute(inputs)) == bits(compiled.execute(inputs))
    with pytest.raises(MlirError, match="no bytecode that this MLIR reads"):
        text_of(b"no bytecode")
    sections = unpack(compiled.serialize()).sections
    host = next(s for s in sections if s.kind == SectionKind.HOST)
    assert "2 sections host" in refusal(b"".join(pack([*sections, host])))


def test_a_run_loads_nothing_that_compiles(program, tmp_path):
    program.save(tmp_path / "p.tbx")
    inputs = fake_inputs(program.program, 2)
    np.savez(tmp_path / "io.npz", **{f"in{n}": x for n, x in enumerate(inputs)})
    files = [str(tmp_path / name) for name in ("p.tbx", "io.npz", "out.npz")]
    for _ in range(2):  # the first may have to make the runtime's objects, which are kept in the cache
        done = subprocess.run([sys.executable, "-c", LIGHT, *files], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["0 []"], done.stdout + done.stderr
    with np.load(tmp_path / "out.npz") as saved:
        assert bits([saved["out0"]]) == bits(program.execute(inputs)[:1])
