"""Whether both stacks emit the same LLVM IR as in another checkout, kernel by kernel: the proof of a pure refactoring.

Run: .venv/bin/python3 tools/same_ir.py --against REV|FOLDER [PATH…] [--every N] [--processors v2,v3,v4,aarch64,devices]
     .venv/bin/python3 tools/same_ir.py --write FILE [PATH…]; … --against FILE [PATH…]
PATH: folders or files of HLO text; by default examples and tests/corpus. Each module is planned as for the host, and
each distinct kernel is emitted alone, on each stack, for each processor; `devices` stands for emission by element and
for groups of a device's items. Prints the kernels whose text differs, one a line, and exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).absolute().parents[1]
PROCESSORS = ("v2", "v3", "v4", "aarch64", "riscv64", "devices")
STACKS = ("legacy", "mlir")
SHOWN = 40
"""Kernels that are printed, at most."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--against", help="a revision of git, the folder of a checkout, or a file of --write")
    parser.add_argument("--write", type=Path, help="write the digests of this checkout to a file")
    parser.add_argument("--every", type=int, default=1, help="only each N-th module")
    parser.add_argument("--processors", default=",".join(PROCESSORS[:4] + PROCESSORS[5:]))
    parser.add_argument("--stacks", default=",".join(STACKS))
    parser.add_argument("--checkout", type=Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--emit", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    paths = [p.absolute() for p in given.paths] or [ROOT / "examples", ROOT / "tests" / "corpus"]
    if given.emit:
        for key, digest in _digests(given.checkout, paths, given.every, given.processors, given.stacks):
            print(json.dumps([key, digest]), flush=True)
        return 0
    if given.write is None and given.against is None:
        parser.error("give --against REV, or --write FILE")
    options = ["--every", str(given.every), "--processors", given.processors, "--stacks", given.stacks]
    options += map(str, paths)
    here = _emitted(ROOT, options)
    if given.write is not None:
        given.write.write_text(json.dumps(here, indent=0))
        print(f"{len(here)} texts of kernels: {given.write}")
        return 0
    there = _other(given.against, options)
    return _report(here, there)


def _report(here: dict[str, str], there: dict[str, str]) -> int:
    different = [key for key in here if key in there and here[key] != there[key]]
    only = [f"{key}  (here only)" for key in here if key not in there]
    only += [f"{key}  (there only)" for key in there if key not in here]
    for line in [*different, *only][:SHOWN]:
        print(line)
    more = len(different) + len(only) - SHOWN
    if more > 0:
        print(f"… and {more} more")
    same = len(here.keys() & there.keys()) - len(different)
    print(f"{same} same, {len(different)} different, {len(only)} in one checkout only")
    return int(bool(different or only))


def _other(against: str, options: Sequence[str]) -> dict[str, str]:
    if Path(against).is_file():
        return dict(json.loads(Path(against).read_text()))
    if Path(against).is_dir():
        return _emitted(Path(against).absolute(), options)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "checkout"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", "--quiet", str(place), against], check=True)
        try:
            return _emitted(place, options)
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], check=True)


def _emitted(checkout: Path, options: Sequence[str]) -> dict[str, str]:
    """The digests of a checkout, made by a process that imports its rooms."""
    command = [sys.executable, "-P", str(ROOT / "tools" / "same_ir.py"), "--emit", "--checkout", str(checkout)]
    done = subprocess.run([*command, *options], stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(line) for line in done.stdout.splitlines())


def _modules(paths: Sequence[Path]) -> list[tuple[str, Path]]:
    """(Its name in the list, a file of HLO text) of all modules, in order."""
    found = []
    for path in paths:
        files = [path] if path.is_file() else sorted(path.rglob("*.hlo"))
        found += [(str(file.relative_to(path.parent)), file) for file in files]
    return found


def _digests(
    checkout: Path, paths: Sequence[Path], every: int, processors: str, stacks: str
) -> Iterator[tuple[str, str]]:
    spec = importlib.util.spec_from_file_location(
        "testbed", checkout / "__init__.py", submodule_search_locations=[str(checkout)]
    )
    assert spec is not None and spec.loader is not None
    testbed = sys.modules["testbed"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(testbed)
    from testbed.backends.base import CompileOptions
    from testbed.backends.host.compiler import HostCompiler
    from testbed.hlo.errors import TestbedError
    from testbed.hlo.library.calls import LIBRARY
    from testbed.hlo.verify.verifier import verify

    emitters = {stack: importlib.import_module(_ROOMS[stack]).emit for stack in stacks.split(",")}
    options = [(name, made) for p in processors.split(",") for name, made in _options(p)]
    seen: set[Any] = set()
    for name, file in _modules(paths)[::every]:
        try:
            module = testbed.load(file)
            verify(module)
            kernels = HostCompiler().run_hlo_passes(module, CompileOptions()).emitted
        except (TestbedError, RecursionError, MemoryError) as error:
            print(f"{name}: {type(error).__name__}", file=sys.stderr)
            continue
        for kernel in kernels:
            key = _key(kernel)
            if kernel.instruction.opcode in LIBRARY or key in seen:
                continue
            seen.add(key)
            for stack, emit in emitters.items():
                for target, made in options:
                    yield f"{name} {kernel.name} {stack} {target}", _digest(emit, kernel, made)


_ROOMS = {"legacy": "testbed.legacy", "mlir": "testbed.mlir_emitters"}


def _digest(emit: Any, kernel: Any, options: Any) -> str:
    from testbed.hlo.errors import TestbedError

    try:
        made = emit([kernel], options)
    except TestbedError as error:
        return str(error)
    told = repr((made.llvm_ir, made.helpers, sorted(made.ranged), sorted(made.glue), sorted(made.lean)))
    grouped = sorted((name, repr(shape)) for name, shape in made.grouped.items())
    return sha256((told + repr(grouped)).encode()).hexdigest()[:20]


def _key(kernel: Any) -> Any:
    """What makes a kernel another one, but for its name."""
    from testbed.hlo.fingerprint import instruction_key

    i = kernel.instruction
    given = tuple((o.shape, n) for o, n in zip(i.operands, kernel.operands, strict=True))
    arguments = tuple((a.slice.size, a.alignment, a.written) for a in kernel.arguments)
    return instruction_key(i, given), kernel.results, kernel.scratch, arguments


def _options(processor: str) -> list[tuple[str, Any]]:
    from testbed.backends.accelerator.targets import GPU_GROUPS, SPIRV
    from testbed.codegen.options import EmitOptions, Target
    from testbed.codegen.targets import target_of

    if processor == "devices":
        elements = EmitOptions(SPIRV.target, strict=True, by_element=True, ranges=True)
        shapes = (SPIRV.groups, GPU_GROUPS)
        groups = [EmitOptions(SPIRV.target, strict=True, by_element=True, group=shape) for shape in shapes]
        return [("elements", elements), ("groups", groups[0]), ("gpu_groups", groups[1])]
    target = Target.level(f"x86-64-{processor}") if processor.startswith("v") else target_of(processor)
    return [(processor, EmitOptions(target, ranges=True))]


if __name__ == "__main__":
    sys.exit(main())
