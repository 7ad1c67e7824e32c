"""Targets of code that runs elsewhere, by the words of a command line. This machine need not be able to run it."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass

from ..hlo.errors import InputError
from .options import LEVELS, Target
from .processors import vector_bits_of


@dataclass(frozen=True, slots=True)
class Baseline:
    """What every processor of an architecture has. triple: of its Linux; cpu, features: in LLVM's names."""

    triple: str
    cpu: str
    features: str


BASELINES = {
    "x86_64": Baseline("x86_64-unknown-linux-gnu", "x86-64-v2", Target.level("x86-64-v2").features),
    "aarch64": Baseline("aarch64-unknown-linux-gnu", "generic", "+neon"),
    "riscv64": Baseline("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c"),
}
"""Architecture → its baseline."""

_TRIPLE = re.compile(r"(\w+)-\w+-linux-\w+")
_FEATURES = re.compile(r"[+-][\w.-]+(?:,[+-][\w.-]+)*")

_PROBE = """
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu=sys.argv[2], features=sys.argv[3]).target_data
"""


def target_of(name: str, cpu: str | None = None, features: str | None = None) -> Target:
    """The target of an architecture of BASELINES, or of its triple of Linux. cpu: a level of LEVELS, a name of LLVM, or
    'host'; features: '+avx2,-sse4a', added to those of the baseline or the level.

    Raises InputError for what LLVM does not know.
    """
    match = _TRIPLE.fullmatch(name)
    base = BASELINES.get(match[1] if match else name)
    if base is None:
        remedy = f"choose from {', '.join(BASELINES)}, or give a triple such as {BASELINES['aarch64'].triple}"
        raise InputError(f"unknown target {name!r}", remedy=remedy)
    if features and not _FEATURES.fullmatch(features):
        raise InputError(f"the features {features!r} are no list of LLVM's", remedy="write them as +avx2,-sse4a")
    triple = name if match else base.triple
    chosen, known = cpu or base.cpu, base.features
    if cpu == "host":
        host = Target.machine()
        if host.architecture != triple.partition("-")[0]:
            raise InputError(f"this machine is no {triple.partition('-')[0]}", remedy="name a processor of the target")
        chosen, known = host.cpu, host.features
    elif cpu in LEVELS and base is BASELINES["x86_64"]:
        known = Target.level(cpu).features
    wanted = ",".join(filter(None, (known, features)))
    if features or cpu not in (None, "host", *LEVELS) or (cpu in LEVELS and base is not BASELINES["x86_64"]):
        _ask(triple, chosen, wanted)
    return Target(triple, chosen, wanted, vector_bits_of(wanted))


def _ask(triple: str, cpu: str, features: str) -> None:
    """Raises InputError for a processor or a feature that LLVM does not know: it says so on the error stream only."""
    command = [sys.executable, "-c", _PROBE, triple, cpu, features]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    unknown = re.search(r"'\+?-?([^']+)' is not a recognized (processor|feature)", done.stderr)
    if unknown:
        raise InputError(
            f"LLVM knows no {unknown[2]} {unknown[1]!r} of {triple}", remedy="use a name of llc -mattr=help"
        )
    if done.returncode:
        raise InputError(f"LLVM makes no code for {triple} with {cpu} {features}", remedy="leave out --cpu, --features")
