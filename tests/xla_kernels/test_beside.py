"""XLA's kernels beside ours: as shadows, kernel by kernel in bisection, in profiles, by settings; without jaxlib."""

import dataclasses
import json

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...backends.host.profiled import profiled
from ...backends.xla import installed
from ...backends.xla.dump import version
from ...benchmarks.contestants import contestant
from ...cli.main import main
from ...differential import setting as settings
from ...differential.bisect import bisect, kernels_of
from ...differential.child import Child
from ...differential.execute import execute
from ...differential.finding import Finding, case_of, read_finding
from ...differential.outcome import outcome
from ...differential.setting import USUAL, Setting, is_compiled, xla_of_setting
from ...differential.shadow import judged, tolerances
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.errors import UnsupportedError
from ...hlo.opcodes import Op
from ...migration.choose import pair_of
from ...migration.compile import compile_program, emitters_of
from ...migration.flags import XLA_SHADOWS, FlagError, Flags
from ...migration.programs import load_program
from ...migration.xla_programs import read_program
from ...xla_kernels.folder import one_module
from ..support.xla_dump import PREFIX, write_dump

INPUTS = [np.array([1, -2, 0.5, -0.0], np.float32), np.array([9], np.float32)]
RESULT = np.array([2, -4, 9, -0.0], np.float32)
OBJECT = f"{PREFIX}.obj-file.add_fusion_kernel_module.o"


both_generations = pytest.mark.skipif(
    not installed() or version() != "0.10.2", reason="needs jaxlib 0.10.2 (./testbed setup --xla on Python 3.11)"
)


@pytest.fixture
def dump(tmp_path):
    return write_dump(tmp_path / "dump")


@pytest.fixture
def wrong(dump):
    """XLA's kernel of the sum multiplies by 2 instead of 1."""
    from ...codegen.optimize import compile_object
    from ...codegen.options import EmitOptions
    from ...xla_kernels.ir_text import adapted
    from ..support.xla_dump import KERNELS

    text = KERNELS["add_fusion"].replace("f0x3F800000", "f0x40000000")
    (dump / f"{PREFIX}.add_fusion_kernel_module.ir-no-opt.ll").write_text(text)
    (dump / OBJECT).write_bytes(compile_object(adapted(text), EmitOptions.host()))
    return dump


def compiled(dump, flags):
    return compile_program(load_program(str(dump)), Flags.parse(flags), CompileOptions(tolerances=tolerances))


@pytest.mark.parametrize("pair", [pair for pair in XLA_SHADOWS if "new" in pair])
def test_xlas_kernels_are_compared_with_ours(dump, pair):
    made = compiled(dump, pair)
    expected = evaluate(load_program(str(dump)).module, INPUTS)
    for _ in range(2):
        assert [r.tobytes() for r in made.execute(INPUTS)] == [e.tobytes() for e in expected]
    report = made.shadow_report()
    assert (len(report.shadowed), dict(report.alone), report.pairs) == (2, {}, 0)
    assert {stack for _, stack in made.kernels} == {XLA_SHADOWS[pair][0], "shadow"}


@pytest.mark.parametrize("pair", ["legacy+xla-new", "mlir+xla-new-ir"])
def test_a_wrong_kernel_of_xlas_is_found_and_blamed(wrong, pair):
    made = compiled(wrong, pair)
    expected = evaluate(load_program(str(wrong)).module, INPUTS)
    assert [r.tobytes() for r in made.execute(INPUTS)] == [e.tobytes() for e in expected], "the results are ours"
    first = made.shadow_report().first
    assert first is not None and first.kernel.instruction.name == "add_fusion"
    stacks = pair_of(Flags.parse(pair), first.kernel)
    assert stacks == XLA_SHADOWS[pair]
    assert judged(first, stacks)[2].blamed == (stacks[1],)


def test_the_command_prints_the_wrong_kernel(wrong, tmp_path, capsys):
    folder = tmp_path / "findings"
    assert main(["run", str(wrong), "--emitters", "mlir+xla-new", "--findings", str(folder)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "add_fusion" in out and "xla-new" in out
    assert [p for p in folder.iterdir() if "add_fusion" in p.name]


def test_some_ops_in_shadow_of_xlas(dump):
    made = compiled(dump, "xla-new,add=mlir+xla-new")
    assert [r.tobytes() for r in made.execute(INPUTS)] == [RESULT.tobytes()]
    report = made.shadow_report()
    assert len(report.shadowed) == 1 and "xla-new by the flags" in " ".join(report.alone.values())


def test_a_request_that_xla_has_no_kernel_of_runs_alone(dump):
    (dump / OBJECT).unlink()
    (dump / f"{PREFIX}.add_fusion_kernel_module.ir-no-opt.ll").unlink()
    made = compiled(dump, "legacy+xla-new")
    assert made.execute(INPUTS)[0][2] == 9
    report = made.shadow_report()
    assert ["xla_kernels has no kernel of XLA's for add_fusion" in reason for reason in report.alone.values()] == [True]


@pytest.mark.parametrize("change", ["nothing", "a body that a pass simplifies", "another shape"])
def test_a_fusion_is_known_by_the_shapes_at_its_border(dump, change):
    """A pass of ours removes the bitcast-convert; XLA's kernel still computes what the fusion does."""
    file = dump / f"{PREFIX}.cpu_after_optimizations.txt"
    if change.startswith("a body"):
        body = "%same = f32[4]{0} bitcast-convert(%a)\n  ROOT %add = f32[4]{0} add(%same, %b)"
        file.write_text(file.read_text().replace("ROOT %add = f32[4]{0} add(%a, %b)", body))
    xla = read_program(one_module(dump))
    flags = Flags.parse("legacy+xla-new")
    kernel = xla.plan(flags, CompileOptions()).kernels[0]
    assert not any(i.opcode is Op.BITCAST_CONVERT for i in kernel.instruction.called()[0].instructions)
    if change == "another shape":
        shape = dataclasses.replace(kernel.instruction.shape, dims=(2, 2), layout=None)
        kernel = dataclasses.replace(kernel, instruction=kernel.instruction.replace(shape=shape))
    beside = xla.emit_for(flags)(kernel).shadow
    assert beside is not None
    reasons = [error.message for error in beside.unsupported([kernel])]
    refused = ["xla_kernels has no kernel of XLA's for add_fusion: a pass has changed it here"]
    assert reasons == (refused if change == "another shape" else [])


def test_where_no_kernel_is_of_xlas_nothing_was_compared(dump, capsys):
    """A report of none, rather than no report."""
    for name in ("add_fusion", "update_fusion"):
        (dump / f"{PREFIX}.obj-file.{name}_kernel_module.o").unlink()
        (dump / f"{PREFIX}.{name}_kernel_module.ir-no-opt.ll").unlink()
    assert main(["run", str(dump), "--emitters", "mlir+xla-new"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "shadow: 0 kernels ran on both stacks; 2 on one" in out and "shadow: nothing was compared" in out


def test_a_result_on_an_operand_that_xla_keeps_apart_is_refused(dump):
    """Its code was compiled for arrays that do not overlap."""
    xla = read_program(one_module(dump))
    flags = Flags.parse("legacy+xla-new")
    kernel = xla.plan(flags, CompileOptions()).kernels[0]
    beside = xla.emit_for(flags)(kernel).shadow
    assert beside is not None and not beside.unsupported([kernel])
    inplace = dataclasses.replace(kernel, results=(kernel.operands[0],))
    with pytest.raises(UnsupportedError, match="its result lies on an operand here, which XLA's code does not"):
        raise beside.unsupported([inplace])[0]


def test_two_stacks_of_xlas_in_shadow_are_refused():
    with pytest.raises(FlagError, match="names two stacks of XLA's"):
        Flags.parse("mlir+xla-new,reduce=xla-old")
    assert str(Flags.parse("mlir+xla-new,reduce=shadow").without_shadows) == "mlir,reduce=legacy"


def test_a_profile_names_xlas_kernels(dump):
    program = load_program(str(dump))
    for text in ("xla-new", "xla-new-ir,dynamic-update-slice=mlir", "mlir+xla-new"):
        flags, options = Flags.parse(text), CompileOptions(host_program="compiled")
        made = profiled(compile_program(program, flags, options), emitters_of(program, flags, options), options)
        assert [r.tobytes() for r in made.steps.execute(INPUTS)] == [RESULT.tobytes()]


def test_a_contestant_gets_arrays_that_are_not_copied(dump, monkeypatch):
    """XLA's kernels take multiples of 64 bytes: other arrays would be copied in each run, and timed."""
    from ...benchmarks import contestants

    seen = []
    real = contestants.recycled
    monkeypatch.setattr(contestants, "recycled", lambda e, inputs: seen.extend(inputs) or real(e, inputs))
    memory = np.zeros(8, np.float32)
    run = contestant("xla-new", load_program(str(dump)), [memory[3:7], INPUTS[1]]).run
    assert [x.ctypes.data % 64 for x in seen] == [0, 0] and run()[0][2] == 9


# -- settings and bisection, on the folder in place of what jaxlib would make ------------------------------------------
@pytest.fixture
def made_here(wrong, monkeypatch):
    asked = []

    def give(program, stack, cached=True, mlir=False):
        asked.append((stack, cached))
        return read_program(one_module(wrong))

    monkeypatch.setattr(settings, "xla_program", give)
    return load_program(str(wrong)), asked


@pytest.mark.parametrize(
    ("kernels", "expected"), [(None, [4, -8, 9, 0]), (0, [2, -4, 9, 0]), (1, [4, -8, 9, 0]), (2, [4, -8, 9, 0])]
)
def test_the_first_kernels_are_xlas_and_the_others_ours(made_here, kernels, expected):
    program, asked = made_here
    for stack in ("xla-new", "xla-new-ir", "xla-new,dynamic-update-slice=mlir"):
        (result,) = execute(program.module, INPUTS, stack, Setting(cache=False, kernels=kernels))
        assert list(result) == expected, stack
    assert {cached for _, cached in asked} == {False}


@pytest.mark.parametrize(
    "change",
    [{"threads": 2}, {"reuse": False}, {"host_program": "compiled"}, {"red_zones": True}, {"optimized": False}],
)
def test_settings_hold_for_xlas_programs(made_here, change):
    program, _ = made_here
    (result,) = execute(program.module, INPUTS, "xla-new-ir", Setting(cache=False, **change))
    assert list(result) == [4, -8, 9, 0]


class Here(Child):
    def outcome(self, module, inputs, stacks, limit=0.0, setting=USUAL, *, again=False):
        return outcome(module, inputs, stacks, setting, again=again)

    def call(self, function, *arguments, limit_s=0.0):
        return function(*arguments)


@pytest.mark.parametrize("stack", ["xla-new", "xla-new-ir", "xla-new,dynamic-update-slice=mlir"])
def test_bisection_names_the_kernel_of_xlas(made_here, stack):
    program, _ = made_here
    case = Finding(program.text, program.module, tuple(INPUTS), ("evaluator", stack), setting=Setting(cache=False))
    found = bisect(case, Here())
    assert found.culprit == f"{stack}: add of f32", found.sentence
    assert "kernel add_fusion" in found.sentence and found.toggles == f"--emitters {stack},add=legacy"


def test_kernels_are_named_by_xlas_instructions(made_here):
    program, _ = made_here
    names = [kernel.name for kernel in kernels_of(program.module, Setting(), "xla-new")]
    assert names == ["add_fusion", "update_fusion"]
    assert is_compiled("xla-old") and is_compiled("xla-new-ir,reduce=mlir") and not is_compiled("xla")


# -- a folder as the case ----------------------------------------------------------------------------------------------
def test_a_folder_is_a_case_on_its_kernels_and_ours(wrong):
    case = case_of(load_program(str(wrong)))
    assert case.stacks == ("evaluator", "legacy", "mlir", "xla-new")
    assert case.setting == Setting(dump=str(wrong / PREFIX))
    found = outcome(case.module, case.inputs, case.stacks, case.setting)
    assert found.blamed == ("xla-new",), found.sentence


@pytest.mark.parametrize("stacks", [None, "xla-new:mlir", "xla-new-ir:legacy"])
def test_bisect_names_the_kernel_of_a_folder(wrong, stacks, capsys):
    """Without the evaluator among the stacks, too: it is asked who is wrong."""
    assert main(["bisect", str(wrong), "--json", *(["--stacks", stacks] if stacks else [])]) == 0
    found = json.loads(capsys.readouterr().out)
    stack = stacks.split(":")[0] if stacks else "xla-new"
    assert (found["culprit"], found["blamed"]) == (f"{stack}: add of f32", [stack])
    assert "kernel add_fusion" in found["sentence"] and found["toggles"] == f"--emitters {stack},add=legacy"


@both_generations
def test_bisect_compares_a_folder_with_jaxlibs_other_generation(wrong, capsys):
    assert main(["bisect", str(wrong), "--json", "--stacks", "xla-old:xla-new"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["culprit"], found["blamed"]) == ("xla-new: add of f32", ["xla-new"])


@both_generations
def test_reduce_keeps_the_module_of_a_folder_whose_kernels_alone_are_wrong(wrong, tmp_path, capsys):
    """jaxlib makes right kernels of smaller modules; the inputs become small, and the finding runs on the folder."""
    small = tmp_path / "small"
    assert main(["reduce", str(wrong), "--stacks", "evaluator:xla-new", "-o", str(small), "--jobs", "1"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "the module stays: it runs on XLA's kernels in " in out and "suspect xla-new" in out
    kept = read_finding(small)
    assert kept.setting.dump == str(wrong / PREFIX) and "testbed bisect" in (small / "rerun").read_text()
    assert "f0x40000000" in "".join(p.read_text() for p in (small / "stages/xla-new").iterdir()), "the folder's code"
    assert outcome(kept.module, kept.inputs, kept.stacks, kept.setting).blamed == ("xla-new",)
    assert main(["bisect", str(small)]) == 0
    assert "kernel add_fusion" in " ".join(capsys.readouterr().out.split())
    wrong.rename(tmp_path / "elsewhere")
    assert main(["bisect", str(small)]) == 2
    assert "which is not there" in capsys.readouterr().err


def test_a_changed_module_of_a_folder_has_kernels_of_jaxlib(wrong, monkeypatch):
    """As candidates of a reduction; where XLA's object of the folder was wrong, jaxlib's need not be."""
    asked = []
    monkeypatch.setattr(settings, "xla_program", lambda program, stack, cached: asked.append(program.text))
    program, flags = load_program(str(wrong)), Flags.parse("xla-new")
    dump = Setting(dump=str(wrong))
    assert xla_of_setting(program.module, flags, dump).module.name == program.module.name and not asked
    changed = parse_module(program.text.replace("add(", "multiply("))
    xla_of_setting(changed, flags, dump)
    xla_of_setting(program.module, Flags.parse("xla-old"), dump)
    assert ["multiply(" in text for text in asked] == [True, False]


def test_stacks_with_commas_between_them_are_one_line(dump, capsys):
    for command in ("bisect", "reduce"):
        assert main([command, str(dump), "--stacks", "xla-old,xla-new"]) == 2
        assert "--stacks has colons between stacks here: xla-old:xla-new" in capsys.readouterr().err
