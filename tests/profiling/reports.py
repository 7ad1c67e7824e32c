"""Reports of made-up programs, for tests of what is made of them."""

from ...profiling.report import Report, Step

KERNEL = {
    "name": "add.1",
    "kind": "kernel",
    "depth": 0,
    "opcode": "add",
    "family": "binary",
    "shape": "f32[8]",
    "stack": "legacy",
    "op_name": "jit(f)/add",
    "source": "f.py:3",
    "calls": 1.0,
    "total": 100.0,
    "own": 100.0,
    "least": 90.0,
    "bytes": 96.0,
    "flops": 8.0,
    "transcendentals": 0.0,
}
LOOP = {
    **KERNEL,
    "name": "while.1",
    "kind": "while",
    "opcode": "while",
    "family": "control",
    "shape": "(s32[], f32[8])",
    "stack": "",
    "op_name": "",
    "source": "",
    "calls": 2.0,
    "total": 500.0,
    "own": 60.0,
    "bytes": 0.0,
    "flops": 0.0,
    "iterations": 10.0,
}


def step(**changes):
    return Step(**{**KERNEL, **changes})


def loop(**changes):
    return Step(**{**LOOP, **changes})


def made(*steps, **changes):
    """A report of these steps."""
    values = {
        "program": "p",
        "emitters": "legacy",
        "host_program": "compiled",
        "threads": 1,
        "wall": 1000.0,
        "least": 900.0,
        "entry": 50.0,
        "run": 950.0,
        "between": 10.0,
        "overhead": 1.01,
        "event": 20.0,
        "marginal": 22.0,
        "scale": 1.0,
        "runs": 30,
        "lost": 0,
    }
    return Report(**{**values, **changes}, steps=tuple(steps))
