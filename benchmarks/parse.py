"""Times the parser on a generated module of 40,000 instructions (time, peak memory) and on a corpus (median).

`python -m testbed.benchmarks.parse [--corpus DIR]`; exits 1 if a figure exceeds its limit.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import sys
import time
from pathlib import Path

from ..formats.text.parser import parse_module
from ..hlo.errors import TestbedError

INSTRUCTIONS = 40_000
SECONDS, BYTES, MEDIAN = 4.0, 1 << 30, 1e-3
"""Limits: seconds for the large module, peak bytes of the process, median seconds per module of the corpus."""

OPS = ("add", "multiply", "maximum", "subtract", "divide")
METADATA = ', metadata={op_type="mul" op_name="jit(step)/layer/mul" source_file="model.py" source_line=12}'


def generate(instructions: int = INSTRUCTIONS, seed: int = 0) -> str:
    """A module like a large training step: elementwise ops, dots, reduces, constants, calls, tuples, metadata."""
    rng = random.Random(seed)
    lines = [
        "HloModule big, entry_computation_layout={(f32[128,256]{1,0}, f32[256,256]{1,0})->(f32[128,256]{1,0}, f32[])}",
        "",
        "%sum (a: f32[], b: f32[]) -> f32[] {",
        "  %a = f32[] parameter(0)",
        "  %b = f32[] parameter(1)",
        "  ROOT %c = f32[] add(f32[] %a, f32[] %b)",
        "}",
        "",
        "ENTRY %main (x: f32[128,256], w: f32[256,256]) -> (f32[128,256], f32[]) {",
        "  %x = f32[128,256]{1,0} parameter(0)",
        "  %w = f32[256,256]{1,0} parameter(1)",
        "  %zero = f32[] constant(0)",
    ]
    live = ["x"]
    while len(lines) < instructions + 4:
        lines.append(_instruction(f"v.{len(lines)}", len(lines), live, rng))
        live = live[-50:]
    shape = "f32[128,256]{1,0}"
    lines.append(f"  %last = f32[] reduce({shape} %{live[-1]}, f32[] %zero), dimensions={{0,1}}, to_apply=%sum")
    lines.append(f"  ROOT %out = ({shape}, f32[]) tuple({shape} %{live[-1]}, f32[] %last)")
    return "\n".join([*lines, "}", ""])


def _instruction(name: str, number: int, live: list[str], rng: random.Random) -> str:
    """One more line of the module. Its name is added to `live` if later lines may use it."""
    shape, a, b = "f32[128,256]{1,0}", rng.choice(live), rng.choice(live)
    kind = number % 20
    if kind == 3:
        values = ", ".join(f"{rng.uniform(-1, 1):.6g}" for _ in range(16))
        return f"  %{name} = f32[16]{{0}} constant({{{values}}})"
    if kind == 7:
        return f"  %{name} = f32[128]{{0}} reduce({shape} %{a}, f32[] %zero), dimensions={{1}}, to_apply=%sum{METADATA}"
    live.append(name)
    if kind == 11:
        contracting = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
        return f"  %{name} = {shape} dot({shape} %{a}, f32[256,256]{{1,0}} %w), {contracting}{METADATA}"
    if kind == 15:
        return f"  %{name} = {shape} tanh({shape} %{a})"
    metadata = METADATA if kind % 2 else ""
    return f"  %{name} = {shape} {rng.choice(OPS)}({shape} %{a}, {shape} %{b}){metadata}"


def seconds_of(text: str) -> float:
    start = time.perf_counter()
    parse_module(text)
    return time.perf_counter() - start


def corpus_seconds(folder: Path, rounds: int = 3) -> list[float]:
    """For each .hlo file, the seconds of the fastest of `rounds` parses. Files that do not parse are left out."""
    out = []
    for path in sorted(folder.glob("*.hlo")):
        text = path.read_text(encoding="utf-8")
        try:
            out.append(min(seconds_of(text) for _ in range(rounds)))
        except TestbedError:
            continue
    return out


def peak_bytes() -> int:
    """The peak memory of this process, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, help="folder of .hlo files for the median, such as parse_only")
    corpus = parser.parse_args(argv).corpus
    text = generate()
    seconds = min(seconds_of(text) for _ in range(3))
    peak = peak_bytes()
    print(f"{INSTRUCTIONS} instructions, {len(text) / 1e6:.1f} MB of text: {seconds:.2f} s (limit {SECONDS:g} s)")
    print(f"peak memory of the process: {peak / 2**20:.0f} MiB (limit {BYTES >> 20} MiB)")
    good = seconds <= SECONDS and peak <= BYTES
    if corpus is not None:
        times = corpus_seconds(corpus)
        if not times:
            print(f"{corpus}: no .hlo file that parses", file=sys.stderr)
            return 2
        median = statistics.median(times)
        print(
            f"{len(times)} modules of {corpus}: median {median * 1e3:.3f} ms (limit {MEDIAN * 1e3:g} ms), "
            f"largest {max(times) * 1e3:.0f} ms"
        )
        good = good and median <= MEDIAN
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
