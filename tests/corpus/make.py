"""Makes the small corpus in this folder: `.venv/bin/python -m testbed.tests.corpus.make [--check]`.

Needs JAX (`./testbed setup --xla`). Expected results are XLA:CPU's. `--check` writes nothing and fails if anything
would change: texts and inputs exactly, results by the comparison rule of the corpus (CPUs differ in the last bits).
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from platform import machine

import jax
import numpy as np

from ...backends.xla import XlaExecutable
from ...differential.comparison import compare
from ...examples.make import npz, raw, without_locations
from ...hlo.dtypes import FROM_NUMPY
from . import modules, one_op
from .programs import PROGRAMS, Program

HERE = Path(__file__).absolute().parent
XLA_OPTIONS = {"xla_cpu_max_isa": "AVX2"}
"""So that xla_optimized.hlo is the same on every x86-64 CPU of the last ten years; on others it is not compared."""


@dataclass
class Made:
    """One case: the row of the manifest, texts by path, and arrays of the golden."""

    row: dict[str, str]
    inputs: Sequence[np.ndarray]
    outputs: Sequence[np.ndarray]
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        named = {f"in{n}": x for n, x in enumerate(self.inputs)} | {f"out{n}": x for n, x in enumerate(self.outputs)}
        return {name: raw(np.asarray(x)) for name, x in named.items()}


def case(suite: str, name: str, text: str, inputs: list[np.ndarray]) -> Made:
    path = f"{suite}/{name}"
    row = {"id": name, "suite": suite, "hlo": f"{path}.hlo", "golden": f"{path}.npz"}
    return Made(row, inputs, XlaExecutable(text).execute(inputs), {row["hlo"]: text})


def jax_program(name: str, program: Program) -> Made:
    path = f"jax_programs/{name}"
    row = {"id": name, "suite": "jax_programs", "hlo": f"{path}/module.hlo", "golden": f"{path}/io.npz"}
    row["stablehlo"] = f"{path}/module.stablehlo.mlir"
    with jax.enable_x64(name.endswith("_f64")):
        lowered = jax.jit(program.function).lower(*program.inputs)
        compiled = lowered.compile(compiler_options=XLA_OPTIONS)
        outputs = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(compiled(*program.inputs))]
        texts = {
            row["hlo"]: without_locations(lowered.as_text("hlo")),
            row["stablehlo"]: lowered.as_text("stablehlo"),
            f"{path}/xla_optimized.hlo": optimised(compiled.as_text()),
        }
    return Made(row, program.inputs, outputs, {file: text.strip() + "\n" for file, text in texts.items()})


def optimised(text: str) -> str:
    """Without locations, and without what XLA notes for its back end, such as the number of this machine's cores."""
    return re.sub(r", backend_config=\{.*\}$", "", without_locations(text), flags=re.M)


def made() -> Iterator[Made]:
    for name, text, inputs in one_op.cases():
        yield case("op_cases", name, text, inputs)
    for name, text, inputs in modules.cases():
        yield case("modules", name, text, inputs)
    for name, program in PROGRAMS.items():
        yield jax_program(name, program)


def write(case: Made) -> None:
    for path, text in case.texts.items():
        (HERE / path).parent.mkdir(parents=True, exist_ok=True)
        (HERE / path).write_text(text, encoding="utf-8")
    (HERE / case.row["golden"]).write_bytes(npz(case.arrays))


def differences(case: Made) -> list[str]:
    """The differences between a case and its files."""
    texts = {p: t for p, t in case.texts.items() if machine() == "x86_64" or not p.endswith("/xla_optimized.hlo")}
    found = [f"{path} differs" for path, text in texts.items() if stored_text(path) != text]
    golden = HERE / case.row["golden"]
    if not golden.is_file():
        return [*found, f"{case.row['golden']} is missing"]
    with np.load(golden) as file:
        stored = dict(file)
    if [*stored] != [*case.arrays]:
        return [*found, f"{case.row['golden']} has other arrays: {[*stored]}"]
    one = case.row["id"].split(".")[0] if case.row["suite"] == "op_cases" else None
    for name, value in case.arrays.items():
        if name.startswith("in"):
            same = stored[name].dtype == value.dtype and stored[name].tobytes() == value.tobytes()
        else:
            dtype = case.outputs[int(name.removeprefix("out"))].dtype
            old, new = (np.atleast_1d(x).view(dtype) for x in (stored[name], value))
            same = compare(new, old, FROM_NUMPY[dtype], one_op=one).agrees
        found += [] if same else [f"{case.row['golden']}: {name} differs"]
    return found


def stored_text(path: str) -> str | None:
    file = HERE / path
    return file.read_text(encoding="utf-8") if file.is_file() else None


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with what is there; write nothing")
    options = parser.parse_args(argv)
    jax.config.update("jax_platforms", "cpu")
    cases = list(made())
    paths = {"manifest.jsonl", *(p for c in cases for p in (*c.texts, c.row["golden"]))}
    manifest = "".join(json.dumps(c.row) + "\n" for c in cases)
    files = [p.relative_to(HERE) for p in HERE.rglob("*") if p.is_file() and ".py" not in p.suffix]
    kept = {p.as_posix() for p in files if p.parts[0] != "found"}  # what fuzz found is not made here
    if not options.check:
        for extra in kept - paths:
            (HERE / extra).unlink()
        for each in cases:
            write(each)
        (HERE / "manifest.jsonl").write_text(manifest, encoding="utf-8")
        print(f"{len(cases)} cases, {sum((HERE / p).stat().st_size for p in paths) // 1024} KB")
        return 0
    wrong = [line for each in cases for line in differences(each)]
    wrong += [f"{extra} belongs to no case" for extra in sorted(kept - paths)]
    wrong += ["manifest.jsonl differs"] if stored_text("manifest.jsonl") != manifest else []
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        print("run testbed.tests.corpus.make and look at the change before committing it", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
