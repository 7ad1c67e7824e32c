"""Faults of the new stack's emitters that only one check of a row's gate can see each, and how to plant one.

A fault is a function (requests, options, emitted) → emitted. It is planted in this process; `plant_in_child` does the
same in a process of cases.
"""

import re
import time
from dataclasses import replace
from functools import partial

from ... import mlir_emitters
from ...benchmarks.rounds import Settings
from ...hlo.opcodes import Op

QUICK = Settings(width=0.2, seconds=0.3, sample=1e-3, rounds=4, compiles=1)
"""A race that takes a second and decides little."""

USUAL_EMIT = mlir_emitters.emit


def flipped(emitted):
    """Sums are differences."""
    return replace(emitted, llvm_ir=emitted.llvm_ir.replace("fadd", "fsub"))


def wrong_with_many_ops(requests, options, emitted):
    """Wrong where a kernel has a reduction and an op that no fixed case has next to one."""
    kinds = {i.opcode for r in requests for c in r.instruction.called() for i in c.instructions}
    return flipped(emitted) if kinds & {Op.MULTIPLY, Op.SUBTRACT, Op.SELECT, Op.TRANSPOSE, Op.SLICE} else emitted


def wrong_in_place(requests, options, emitted):
    """Wrong where a result lies on an operand."""
    return flipped(emitted) if any(set(r.results) & set(r.operands) for r in requests) else emitted


def wrong_on_level_3(requests, options, emitted):
    return flipped(emitted) if options.target.cpu == "x86-64-v3" else emitted


def wrong_on_level_4(requests, options, emitted):
    return flipped(emitted) if options.target.cpu == "x86-64-v4" else emitted


def rank_of(requests):
    return max((leaf.rank for r in requests for o in r.instruction.operands for _, leaf in o.shape.leaves()), default=0)


def slow_by_rank(requests, options, emitted):
    """Compiling takes five times as long for each dimension but two more."""
    _busy(0.5 * 5 ** (rank_of(requests) / 2) / 625)
    return emitted


def slow_by_length(requests, options, emitted):
    """Compiling takes time by the square of the number of instructions."""
    count = sum(len(c.instructions) for r in requests for c in r.instruction.called())
    _busy(2e-4 * count**2)
    return emitted


def _busy(seconds):
    start = time.process_time()
    while time.process_time() - start < seconds:
        pass


INEXACT = re.compile(r"fadd (?:\w+ )*(float|<\d+ x float>) (%[\w.\"-]+), (%[\w.\"-]+)")


def inexact(requests, options, emitted):
    """The first operand of each f32 sum is scaled by 1 + 2**-20: within the bounds of a sum, but no rounding."""
    count = 0
    lines = []
    for line in emitted.llvm_ir.splitlines():
        found = INEXACT.search(line)
        if found and line.strip().startswith("%"):
            count += 1
            kind, a, _ = found.groups()
            lanes = re.match(r"<(\d+)", kind)
            one = "0x3FF0000100000000"
            factor = f"<{', '.join([f'float {one}'] * int(lanes[1]))}>" if lanes else one
            lines.append(f"  %inexact.{count} = fmul {kind} {a}, {factor}")
            line = line.replace(f" {a},", f" %inexact.{count},", 1)
        lines.append(line)
    return replace(emitted, llvm_ir="\n".join(lines) + "\n")


LOOPED = re.compile(r"^define void @([\w.\"-]+)\((.*)\)([^\n]*)\{$", re.M)


def quadratic(requests, options, emitted):
    """Each kernel is computed once for every 8 KiB of its first operand."""
    size = max(
        (leaf.bytes for r in requests for o in r.instruction.operands for _, leaf in o.shape.leaves()), default=0
    )
    repeats = max(1, size >> 13)

    def wrapped(found):
        name, parameters, rest = found.groups()
        names = [f"{p.split()[0]} {p.split()[-1]}" for p in re.sub(r"\([^()]*\)", "", parameters).split(", ")]
        calls = f"  call void @{name}.inner({', '.join(names)})\n" * repeats
        outer = f"define void @{name}({parameters}){rest}{{\n{calls}  ret void\n}}\n\n"
        return f"{outer}define internal void @{name}.inner({parameters}) noinline{rest}{{"

    return replace(emitted, llvm_ir=LOOPED.sub(wrapped, emitted.llvm_ir))


def planted(fault, requests, options):
    return fault(requests, options, USUAL_EMIT(requests, options))


def plant_in_child(fault):
    """Runs in a process of cases, which is this test's own: the fault stays there."""
    mlir_emitters.emit = partial(planted, fault)


def plant(monkeypatch, fault):
    monkeypatch.setattr(mlir_emitters, "emit", partial(planted, fault))
