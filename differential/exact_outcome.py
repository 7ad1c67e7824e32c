"""What became of a case over finite fields, as an Outcome: fuzz, reduce and bisect judge by it where a setting says so.

No bound hides a term, and the inputs of the case play no part: its draws are made from the module alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ..hlo.errors import OutOfMemoryError
from ..hlo.ir import Module
from ..hlo.verify.verifier import verify
from . import outcome as usual
from .exact.check import HLO, STACKS, Row, Status
from .exact.program import PASSES, check_all
from .outcome import Outcome, OutcomeKind, Run, RunKind, confirmed
from .patience import Patience, TooLong, clock
from .setting import USUAL, Setting, plan_of_setting

BLAMED = {HLO: STACKS, PASSES: ("optimized",)}
"""Whom a row blames → the stacks that an outcome does: both, where they agree with each other and not with the HLO."""


def exact_outcome(module: Module, stacks: Sequence[str], setting: Setting, patience: Patience | None = None) -> Outcome:
    """The outcome of a verified module: its kernels one by one, then the program and its passes."""
    start, rows = time.perf_counter(), list[Row]()

    def ended(kind: OutcomeKind, blamed: Sequence[str], sentence: str, how: RunKind = RunKind.RAN) -> Outcome:
        seconds, names = time.perf_counter() - start, dict.fromkeys((*stacks, *blamed))
        reason = sentence if how is not RunKind.RAN else ""
        forms = frozenset(form for row in rows for form in row.forms)
        runs = {n: Run(RunKind.RAN, forms=forms) for n in names}
        runs |= {n: Run(how, reason=reason, seconds=seconds, forms=forms) for n in blamed}
        return Outcome(kind, tuple(sorted(blamed)), sentence, runs)

    try:
        with clock() as limited:
            if patience is not None:
                limited.allow(patience.whole)
            rows += check_all(module, plan_of_setting(module, setting))
    except TooLong as late:
        return ended(OutcomeKind.ALL_REFUSE, (), f"over a field: {late.reason}")
    except (MemoryError, OutOfMemoryError):
        return ended(OutcomeKind.ALL_REFUSE, (), "over a field: out of memory")
    except Exception as error:  # a bug of the testbed, which is what cases are run for
        return ended(OutcomeKind.CRASH, STACKS, f"over a field: {type(error).__name__}: {error}", RunKind.FAILED)
    wrong = next((r for r in rows if r.status is Status.DIFFER), None)
    if wrong is not None:
        blamed = {name for who in wrong.blamed for name in BLAMED.get(who, (who,))}
        return ended(OutcomeKind.DIFFER, tuple(blamed), f"{wrong.kernel}, over a field: {wrong.reason}")
    return _without_fault(rows, ended)


def _without_fault(rows: Sequence[Row], ended: Callable[..., Outcome]) -> Outcome:
    ran = [r for r in rows if r.status is Status.EQUAL]
    if not ran:
        return ended(OutcomeKind.ALL_REFUSE, (), f"over a field: {rows[0].reason if rows else 'no kernels'}")
    return ended(OutcomeKind.AGREE, (), f"equal over a field: {', '.join(r.kernel for r in ran)}")


def outcome(
    module: Module,
    inputs: Sequence[np.ndarray],
    stacks: Sequence[str] = usual.STACKS,
    setting: Setting = USUAL,
    *,
    again: bool = False,
    patience: Patience | None = None,
) -> Outcome:
    """As `outcome.outcome`, and over fields if the setting says so."""
    if not setting.exact:
        return usual.outcome(module, inputs, stacks, setting, again=again, patience=patience)
    verify(module)
    once = partial(exact_outcome, module, stacks, setting, patience)
    return confirmed(once(), once) if again else once()
