"""Makes the example folders from programs.py: `.venv/bin/python examples/make.py [--check] [NAME…]`.

Needs JAX (`./testbed setup --xla`). Each folder gets module.hlo (before optimisation), module.stablehlo.mlir, and
io.npz with in0…, out0… as computed by XLA:CPU. Arrays of dtypes that numpy lacks are stored as unsigned integers of
their size. `--check` writes nothing and fails if a file would change (outputs: beyond a tolerance, since CPUs differ in
last bits).
"""

import argparse
import io
import re
import sys
import zipfile
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).absolute().parent))
from programs import PROGRAMS, Program

HERE = Path(__file__).absolute().parent
NUMPY_KINDS = "biufc"


def raw(array: np.ndarray) -> np.ndarray:
    """The array in a dtype that npz supports: ml_dtypes become unsigned integers of their size, and their scalars shape
    (1,).
    """
    return array if array.dtype.kind in NUMPY_KINDS else np.atleast_1d(array).view(f"u{array.dtype.itemsize}")


def npz(arrays: dict[str, np.ndarray]) -> bytes:
    """As np.savez_compressed, but with a fixed date, so that equal arrays give equal bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array).reshape(array.shape), version=(1, 0))
            archive.writestr(zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0)), member.getvalue())
    return out.getvalue()


def without_locations(hlo: str) -> str:
    """Remove metadata={…} and the tables of files and stack frames, which contain paths of this machine."""
    hlo = re.sub(r", metadata=\{(?:[^{}\"]|\"(?:[^\"\\]|\\.)*\"|\{[^{}]*\})*\}", "", hlo)
    return re.sub(r"^(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:.+\n)*\n?", "", hlo, flags=re.M)


def render(program: Program) -> tuple[str, str, dict[str, np.ndarray]]:
    """The contents of module.hlo and module.stablehlo.mlir, and the arrays of io.npz."""
    lowered = jax.jit(program.function).lower(*program.inputs)
    outputs = jax.tree_util.tree_leaves(lowered.compile()(*program.inputs))
    arrays = {f"in{i}": raw(np.asarray(leaf)) for i, leaf in enumerate(jax.tree_util.tree_leaves(program.inputs))}
    arrays |= {f"out{i}": raw(np.asarray(leaf)) for i, leaf in enumerate(outputs)}
    return without_locations(lowered.as_text("hlo")).strip() + "\n", lowered.as_text("stablehlo").strip() + "\n", arrays


def differences(folder: Path, hlo: str, mlir: str, arrays: dict[str, np.ndarray]) -> list[str]:
    found = [
        f"{folder.name}/{name} differs"
        for name, text in (("module.hlo", hlo), ("module.stablehlo.mlir", mlir))
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text
    ]
    if not (folder / "io.npz").is_file():
        return [*found, f"{folder.name}/io.npz is missing"]
    stored = np.load(folder / "io.npz")
    if sorted(stored.files) != sorted(arrays):
        return [*found, f"{folder.name}/io.npz has other keys: {sorted(stored.files)}"]
    for key, array in arrays.items():
        exact = key.startswith("in") or array.dtype.kind != "f"
        same = np.array_equal if exact else lambda a, b: np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
        if array.dtype != stored[key].dtype or not same(stored[key], array):
            found.append(f"{folder.name}/io.npz: {key} differs")
    return found


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*PROGRAMS, []], metavar="NAME", help=", ".join(PROGRAMS))
    parser.add_argument("--check", action="store_true", help="compare with the existing files; write nothing")
    options = parser.parse_args(argv)
    jax.config.update("jax_platforms", "cpu")
    wrong = []
    for name in options.names or PROGRAMS:
        folder, (hlo, mlir, arrays) = HERE / name, render(PROGRAMS[name]())
        if options.check:
            wrong += differences(folder, hlo, mlir, arrays)
            continue
        folder.mkdir(exist_ok=True)
        (folder / "module.hlo").write_text(hlo, encoding="utf-8")
        (folder / "module.stablehlo.mlir").write_text(mlir, encoding="utf-8")
        (folder / "io.npz").write_bytes(npz(arrays))
        print(f"{name}: {sum(file.stat().st_size for file in folder.iterdir()) // 1024} KB")
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        print("run examples/make.py and look at the change before committing it", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
