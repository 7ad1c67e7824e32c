"""Emitters with a planted fault: the new stack's `emit`, wrapped."""

import re
import time
from dataclasses import replace

import numpy as np

from ... import mlir_emitters

REPEATS = 20
_DEFINE = re.compile(r"^define void @([\w.\"-]+)\((.*)\)([^\n]*)\{$", re.M)


def slow(text: str) -> str:
    """Each kernel is computed REPEATS times."""

    def wrapped(found: re.Match) -> str:
        name, parameters, rest = found.groups()
        names = [f"{p.split()[0]} {p.split()[-1]}" for p in re.sub(r"\([^()]*\)", "", parameters).split(", ")]
        inner = f"{name}.inner"
        calls = f"  call void @{inner}({', '.join(names)})\n" * REPEATS
        outer = f"define void @{name}({parameters}){rest}{{\n{calls}  ret void\n}}\n\n"
        return f"{outer}define internal void @{inner}({parameters}) noinline{rest}{{"

    changed, count = _DEFINE.subn(wrapped, text)
    assert count
    return changed


def wrong(text: str) -> str:
    """Sums are differences."""
    return text.replace("fadd", "fsub")


def slow_to_compile(text: str) -> str:
    """Takes 0.3 seconds of the processor."""
    start = time.process_time()
    while time.process_time() - start < 0.3:
        pass
    return text


def hungry(text: str) -> str:
    """Takes 96 MiB while it emits."""
    return text if np.ones(96 << 17).sum() else ""


def plant(monkeypatch, fault) -> None:
    """Let the new stack's emitters have a fault until the test ends, or until the next one is planted."""
    monkeypatch.undo()
    emit = mlir_emitters.emit

    def planted(requests, options):
        emitted = emit(requests, options)
        return replace(emitted, llvm_ir=fault(emitted.llvm_ir))

    monkeypatch.setattr(mlir_emitters, "emit", planted)
