"""What a family of programs is: HLO whose measured quantity is n, with everything else comfortably inside a form.

form_programs.py has the table of all; tests/migration/test_form_limits.py goes through it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ...codegen.options import EmitOptions, GroupShape, Target

REGIONS = """add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
halves { p = f16[] parameter(0)
  q = f16[] parameter(1)
  ROOT s = f16[] add(p, q) }
integers { p = s32[] parameter(0)
  q = s32[] parameter(1)
  ROOT s = s32[] add(p, q) }
max { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] maximum(p, q) }
less { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT c = pred[] compare(p, q), direction=LT }
less_s8 { p = s8[] parameter(0)
  q = s8[] parameter(1)
  ROOT c = pred[] compare(p, q), direction=LT }
nearer { p = s32[] parameter(0)
  q = s32[] parameter(1)
  s = s32[] abs(p)
  t = s32[] abs(q)
  a = pred[] compare(s, t), direction=LT
  b = pred[] compare(s, t), direction=EQ
  c = pred[] compare(p, q), direction=LT
  d = pred[] and(b, c)
  ROOT e = pred[] or(a, d) }
"""

PROCESSORS = ("x86-64-v3", "x86-64-v4")
SHAPE = GroupShape(lanes=64, across=16, down=16, columns=4, rows=4, depth=16, memory=1 << 15)


def module(body: str, more: str = "") -> str:
    """The text of a module. body: statements of its entry, a line or the end of a `;` each; more: computations."""
    lines = [line.strip() for line in body.replace("\n", ";").split(";") if line.strip()]
    return f"HloModule m\n{REGIONS}{more}ENTRY e {{\n  " + "\n  ".join(lines) + "\n}\n"


def fused(lines: list[str], root: str, shape: str = "") -> str:
    """A module of one fusion. root: its result, which has this shape; by default, with which `root` begins."""
    given = [line for line in lines if " parameter(" in line]
    names, shape = ", ".join(line.split(" = ")[0] for line in given), shape or root.split(" ")[0]
    body = "\n".join(f"  {line}" for line in lines)
    called = f"fused {{\n{body}\n  ROOT r = {root}\n}}\n"
    return module("\n".join([*given, f"ROOT f = {shape} fusion({names}), kind=kLoop, calls=fused"]), called)


def whole(n: int, unit: int) -> int:
    """How many whole units n has: of what is at least n of them, one less misses the limit."""
    return n // unit


def begun(n: int, unit: int) -> int:
    """How many units hold n: of what is at most n of them, one more misses the limit."""
    return -(-n // unit)


@dataclass(frozen=True)
class Case:
    """What a family is asked for. lanes: 32-bit elements of a vector of the processor."""

    options: EmitOptions

    @property
    def lanes(self) -> int:
        return self.options.target.vector_bits // 32


Bound = Literal["at least", "at most"]


@dataclass(frozen=True)
class Family:
    """form: what all of its programs have, while n is on the limit's side. limits: by stack, the limit's name; None: of
    a form without one, n is 1. program: n, and lanes of f32 → the module. side: on which side of the limit the form
    fits. unit: what one of the limit's measure is in n, from the case.

    unsaid: stacks whose reason to decline has no number: what the form is for is decided before it is asked. strict:
    whether the form is chosen of strict sums only. device: for a device's items; their values are not compared here.
    processors: on others the form does not exist. runs: whether values are compared. scheduled: whether no passes run,
    which would leave nothing.
    """

    form: str
    limits: dict[str, str | None]
    program: Callable[[int, int], str]
    side: Bound = "at least"
    unit: Callable[[Case], int] = lambda case: 1
    unsaid: tuple[str, ...] = ()
    strict: bool = False
    device: bool = False
    processors: tuple[str, ...] = PROCESSORS
    runs: bool = True
    scheduled: bool = False

    def options(self, processor: str) -> EmitOptions:
        """How a stack is asked for the form."""
        if not self.device:
            return EmitOptions(Target.level(processor), strict=self.strict, ranges=True)
        group = SHAPE if self.form.startswith("groups/") else None
        return EmitOptions(Target.level("x86-64-v2"), strict=True, by_element=True, ranges=not group, group=group)

    def last(self, value: int, case: Case) -> int:
        """The last n that fits, of a limit's value."""
        return value * self.unit(case)

    @property
    def outwards(self) -> int:
        """From the last n that fits to the next one, which does not."""
        return -1 if self.side == "at least" else 1


def both(
    form: str, legacy: str | None, mlir: str | None, program: Callable[..., str], side: Bound = "at least", **more
):
    """A family of a limit that both stacks have, each with its own value."""
    return Family(form, {"legacy": legacy, "mlir": mlir}, _with_lanes(program), side, **more)


def one(stack: str, form: str, limit: str | None, program: Callable[..., str], side: Bound = "at least", **more):
    """A family of one stack."""
    return Family(form, {stack: limit}, _with_lanes(program), side, **more)


def _with_lanes(program: Callable[..., str]) -> Callable[[int, int], str]:
    """Most programs are the same for each processor."""
    wanted = program.__code__.co_argcount - len(program.__defaults__ or ())
    return program if wanted == 2 else lambda n, lanes: program(n)
