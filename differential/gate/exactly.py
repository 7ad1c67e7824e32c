"""A row's kernels compared without tolerances: by which method each form was, and what differs."""

from __future__ import annotations

from collections import defaultdict

from ...codegen.errors import CodegenError
from ...codegen.options import Target, assume_host, assumed_host
from ...hlo.errors import UnsupportedError
from ..exact.check import Status
from ..exact.evidence import Method, evidence_of
from .code import forms_of_kernel, row_kernels
from .processors import LEVELS, runnable

WEAKEST_FIRST = (Method.SAMPLED, Method.EXACT, Method.EXHAUSTIVE, Method.PROVED)


def compared_exactly(unit: str, dtypes: str, stacks: tuple[str, str]) -> tuple[dict[str, str], list[str]]:
    """('STACK FORM' → the weakest method by which a kernel of it was compared, a phrase for each kernel that differs).

    For each of LEVELS that this machine runs.
    """
    methods: defaultdict[str, list[Method]] = defaultdict(list)
    found: list[str] = []
    before = assumed_host()
    try:
        for level in filter(runnable, LEVELS):
            assume_host(level)
            for kernel in row_kernels(unit, dtypes):
                method = Method.SAMPLED
                try:
                    evidence = evidence_of(kernel, target=Target.level(level))
                except (UnsupportedError, CodegenError):
                    continue  # of a stack that refuses it, or code that no field has
                if evidence.row.status is Status.DIFFER:
                    found.append(f"{evidence.row.opcode} on {level}: {evidence.row.reason}")
                elif evidence.row.is_equal:
                    method = evidence.method
                for stack in stacks:
                    for form in forms_of_kernel(stack, kernel):
                        methods[f"{stack} {form}"].append(method)
    finally:
        assume_host(before)
    return {key: min(given, key=WEAKEST_FIRST.index).value for key, given in methods.items()}, found
