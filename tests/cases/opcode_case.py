"""A case of one opcode: an entry computation, its inputs and its results; computations that cases apply."""

from typing import NamedTuple

from ...hlo.opcodes import Op


class Case(NamedTuple):
    """body: an entry computation (operands p0, p1, … are added by `on`). results: lists of numbers, one per leaf."""

    body: str
    results: tuple
    inputs: tuple = ()
    computations: str = ""
    options: dict = {}  # noqa: RUF012 (never changed)


def on(shape: str, instruction: str, *operands: tuple[str, object], to: object) -> Case:
    """`ROOT r = shape instruction` on parameters p0, p1, … of given shapes and values."""
    lines = [f"p{n} = {kind} parameter({n})" for n, (kind, _) in enumerate(operands)]
    body = "\n".join([*lines, f"ROOT r = {shape} {instruction}"])
    return Case(body, (to,), tuple(value for _, value in operands))


def unary(opcode: Op, dtype: str, x: list, to: list, result: str = "") -> Case:
    return on(f"{result or dtype}[{len(x)}]", f"{opcode.value}(p0)", (f"{dtype}[{len(x)}]", x), to=to)


def binary(opcode: Op, dtype: str, x: list, y: list, to: list, more: str = "", result: str = "") -> Case:
    kind = f"{dtype}[{len(x)}]"
    return on(f"{result or dtype}[{len(x)}]", f"{opcode.value}(p0, p1){more}", (kind, x), (kind, y), to=to)


def real(opcode: Op, function, *x: float) -> Case:
    return unary(opcode, "f64", list(x), [function(v) for v in x])


ADD = """add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y) }
"""
GE = """ge { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = pred[] compare(x, y), direction=GE }
"""
TWICE = """twice { x = f32[2] parameter(0)
  ROOT z = f32[2] add(x, x) }
"""
