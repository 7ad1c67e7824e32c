"""A finding on disk: a folder with the module, its inputs, what became of them, the IR of each stack, the verdict, a
command that repeats it and a unit test that fails until it is mended. `testbed diff`, `reduce` and `bisect` take it.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from ..backends.base import CompileOptions
from ..codegen.open_module import versions
from ..codegen.options import Target
from ..formats.documents import json_of
from ..formats.program import Program, read_text, save_io
from ..formats.text.printer import print_module
from ..formats.whole_files import write_folder
from ..hlo.errors import InputError, TestbedError
from ..hlo.ir import Module
from ..migration.compile import compile_module, compile_program
from ..migration.flags import Flags
from ..migration.programs import load_program
from ..migration.stacks import STACKS as KNOWN
from ..migration.xla_programs import XlaProgram, as_program
from ..xla_kernels.folder import is_dump
from .outcome import STACKS, Outcome, OutcomeKind
from .setting import USUAL, Setting, is_compiled, xla_of_setting

CASE_FILE = "case.json"
SCHEMA = 1
"""Version of case.json. It grows when a key goes or changes its meaning."""

Stage = tuple[str, str]
"""File name and text of an IR stage."""


@dataclass(frozen=True)
class Finding:
    """A case and what became of it. kind: None for a case that was not judged yet. seed: of its inputs, if known."""

    text: str
    module: Module
    inputs: tuple[np.ndarray, ...]
    stacks: tuple[str, ...] = STACKS
    kind: OutcomeKind | None = None
    blamed: tuple[str, ...] = ()
    sentence: str = ""
    setting: Setting = USUAL
    seed: int | None = None
    flaky: bool = False

    def concluded(self, found: Outcome) -> Finding:
        """The same case with this outcome."""
        return replace(
            self, kind=found.kind, blamed=found.blamed, sentence=found.sentence, flaky=found.flaky or self.flaky
        )


def finding_of(
    module: Module,
    inputs: Sequence[np.ndarray],
    found: Outcome,
    *,
    setting: Setting = USUAL,
    seed: int | None = None,
    text: str | None = None,
) -> Finding:
    """A judged case. text: of the module, if it is to stay as it was written."""
    case = Finding(text or print_module(module), module, tuple(inputs), tuple(found.runs), setting=setting, seed=seed)
    return case.concluded(found)


def write_finding(
    folder: Path,
    finding: Finding,
    *,
    stages: Mapping[str, Iterable[Stage]] | None = None,
    expected: Sequence[np.ndarray] = (),
    verdict: str = "",
    more: Mapping[str, str] = {},
) -> Path:
    """Write a finding into a new folder, which appears complete or not at all; returns the folder.

    stages: by stack; None compiles each in this process, which a module that crashes must not (child.py's `call` of
    `stages_of` does not). expected: the results that belong, if known. verdict: more than the sentence. more: other
    files by name.
    """
    if stages is None:
        compiled = [name for name in finding.stacks if is_compiled(name)]
        stages = {name: stages_of(finding.module, name, finding.setting) for name in compiled}

    def fill(work: Path) -> None:
        files = {
            "module.hlo": finding.text,
            CASE_FILE: json.dumps(_to_json(finding), indent=1) + "\n",
            "verdict.txt": (verdict or finding.sentence) + "\n",
            "rerun": rerun_of(finding, folder) + "\n",
            "test_case.py": unit_test(finding),
            **more,
        }
        for name, text in files.items():
            (work / name).write_text(text, encoding="utf-8")
        save_io(work / "io.npz", finding.inputs, expected)
        for stack, texts in stages.items():
            (work / "stages" / stack).mkdir(parents=True)
            for name, text in texts:
                (work / "stages" / stack / name).write_text(text, encoding="utf-8")

    write_folder(folder, fill)
    return folder


def stages_of(module: Module, stack: str, setting: Setting = USUAL) -> tuple[Stage, ...]:
    """Every IR stage of a compiled stack; an error of the stack is the only stage, error.txt. setting: whose dump may
    hold XLA's kernels.
    """
    try:
        flags, options = Flags.parse(stack), replace(CompileOptions(cache=None), keep_stages=True)
        if flags.xla and setting.dump:
            program = as_program(xla_of_setting(module, flags, setting))
            return tuple(compile_program(program, flags, options).stages)
        return tuple(compile_module(module, flags, options).stages)
    except Exception as error:  # what a stack fails with is what the finding may be about
        kind = "" if isinstance(error, TestbedError) else f"{type(error).__name__}: "
        return (("error.txt", f"{kind}{error}\n"),)


def read_finding(folder: Path) -> Finding:
    """Read a finding. Raises InputError for a folder that is none, and the errors of reading its module."""
    file = folder / CASE_FILE
    if not file.is_file():
        raise InputError(
            f"{folder}: no finding: {CASE_FILE} is missing", remedy="give a folder of testbed fuzz or reduce"
        )
    try:
        stored = json_of(read_text(file))
        if stored["schema"] != SCHEMA:
            raise InputError(f"{file}: schema {stored['schema']}, not {SCHEMA}", remedy="use the testbed that wrote it")
        case = case_of(load_program(str(folder)), tuple(map(str, stored["stacks"])))
        setting = Setting(**stored["setting"])
        if setting.dump:
            _check_dump(folder, setting.dump)
        return replace(
            case,
            kind=OutcomeKind(stored["kind"]) if stored["kind"] is not None else None,
            blamed=tuple(map(str, stored["blamed"])),
            sentence=str(stored["sentence"]),
            setting=setting,
            seed=stored["seed"],
            flaky=bool(stored["flaky"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file}: not a case: {error!r}", remedy="write the finding again") from None


def _check_dump(folder: Path, dump: str) -> None:
    if not is_dump(Path(dump)):
        raise InputError(
            f"{folder}: it runs on XLA's kernels in {dump}, which is not there",
            remedy=f'bring that folder back; for jaxlib\'s kernels, set "dump" to "" in its {CASE_FILE}',
        )


def case_of(program: Program, stacks: Sequence[str] = STACKS, seed: int | None = None) -> Finding:
    """A program as a case that was not judged yet; its inputs are made from a seed if none came with it.

    A folder of XLA's kernels runs on these, too. Raises InputError for a program in LHLO, whose plan no other module
    has.
    """
    from .fake_inputs import fake_inputs

    setting = USUAL
    if isinstance(program.plan, XlaProgram):
        files = program.plan.files
        setting = Setting(dump=str(files.folder.absolute() / files.prefix))
        stacks = (*stacks, f"xla-{program.plan.generation or 'new'}")
    elif program.plan is not None:
        remedy = "write its HLO with testbed convert, or compare it with testbed diff"
        raise InputError(f"{program.name}: a program in LHLO is no case", remedy=remedy)
    if program.inputs is not None and seed is None:
        return Finding(program.text, program.module, program.inputs, tuple(stacks), setting=setting)
    made = fake_inputs(program.module, seed or 0)
    return Finding(program.text, program.module, tuple(made), tuple(stacks), setting=setting, seed=seed or 0)


def _to_json(finding: Finding) -> dict[str, Any]:
    target = Target.host()
    return {
        "schema": SCHEMA,
        "stacks": list(finding.stacks),
        "kind": finding.kind,
        "blamed": list(finding.blamed),
        "sentence": finding.sentence,
        "flaky": finding.flaky,
        "seed": finding.seed,
        "setting": asdict(finding.setting),
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "llvm": versions(),
        },
        "target": {"triple": target.triple, "cpu": target.cpu},
    }


def rerun_of(finding: Finding, folder: Path) -> str:
    """The command that repeats a finding: diff, or bisect for a setting that diff does not have. A second mixture of
    stacks needs a command of its own.
    """
    if finding.setting.exact:
        return f"./testbed diff {quote(str(folder))} --exact"
    if not finding.setting.optimized or finding.setting.dump:
        mode = f"  # in the checking mode, as {CASE_FILE} says" if finding.setting.memory else ""
        return f"./testbed bisect {quote(str(folder))}{mode}"
    plain = [s for s in finding.stacks if s in KNOWN]
    mixed = [s for s in finding.stacks if s not in KNOWN]
    names = plain if "mlir" in plain or not mixed else [*plain, "mlir"]
    lines = []
    for flags in mixed or [""]:
        emitters = f" --emitters {quote(flags)}" if flags else ""
        host = f" --host-program {finding.setting.host_program}" if finding.setting.host_program != "auto" else ""
        threads = f" --threads {finding.setting.threads}" if finding.setting.threads > 1 else ""
        debug = " --debug memory" if finding.setting.memory else ""
        lines.append(f"./testbed diff {quote(str(folder))} --stacks {','.join(names)}{emitters}{host}{threads}{debug}")
    return "\n".join(lines)


# -- the unit test ----------------------------------------------------------------------------------------------------
_TEST = '''"""{sentence}

It fails until that is mended.
"""

import ml_dtypes
import numpy as np

from testbed.differential.child import Child
from testbed.differential.setting import Setting

TEXT = r"""{text}"""
INPUTS = [{inputs}]


def test_the_stacks_agree():
    with Child() as child:
        found = child.outcome(TEXT, INPUTS, {stacks!r}, setting={setting})
    assert not found.is_finding, found.sentence
'''


def unit_test(finding: Finding) -> str:
    """A test of the case alone, without the folder's files."""
    inputs = ",\n    ".join(array_text(np.asarray(x)) for x in finding.inputs)
    setting = ", ".join(f"{k}={_plain(v)!r}" for k, v in asdict(finding.setting).items())
    return _TEST.format(
        sentence=finding.sentence.replace("\\", "/").replace('"', "'") or "A case.",
        text=finding.text.strip() + "\n",
        inputs=f"\n    {inputs},\n" if inputs else "",
        stacks=list(finding.stacks),
        setting=f"Setting({setting})",
    )


def _plain(value: object) -> object:
    return str(value) if isinstance(value, str) else value


def array_text(x: np.ndarray) -> str:
    """An array as Python: by its numbers where they say all of it, else by its bytes."""
    room = "np" if getattr(np, x.dtype.name, None) is not None else "ml_dtypes"
    kind = f"{room}.{x.dtype.name}" if x.dtype != np.bool_ else "np.bool_"
    if x.dtype.kind in "biuf" and np.isfinite(x).all():
        first = x.reshape(-1)[:1]
        if x.size > 1 and x.tobytes() == first.tobytes() * x.size:
            return f"np.full({x.shape}, {first[0].item()!r}, {kind})"
        return f"np.array({x.tolist()!r}, {kind}).reshape({x.shape})"
    return f'np.frombuffer(bytes.fromhex("{x.tobytes().hex()}"), {kind}).reshape({x.shape})'
