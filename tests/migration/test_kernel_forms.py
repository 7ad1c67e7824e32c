"""The contract of kernels at its limits: passes go that far and no further, and both stacks keep its promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from ... import legacy, mlir_emitters
from ...codegen.forms import Part
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...hlo.analysis import kernel_forms
from ...hlo.analysis.rows import rows_of_body
from ...planning.plan import KernelRequest
from ...planning.planner import plan
from ..support.check import check
from ..support.corpus import sample

STACKS = {"legacy": legacy, "mlir": mlir_emitters}
HEAD = """HloModule m
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
max { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] maximum(p, q) }
ENTRY e { zero = f32[] constant(0)
"""


def operands(count: int) -> str:
    lines = [f"p{n} = f32[7,1000] parameter({n})" for n in range(count)]
    sums = [f"s{n} = f32[7,1000] add({f's{n - 1}' if n > 1 else 'p0'}, p{n})" for n in range(1, count)]
    sums[-1] = "ROOT " + sums[-1]
    return "\n".join(lines + sums)


def results(count: int) -> str:
    """Each result reads the one array that all share."""
    made = [f"k{n} = f32[] constant({n}) b{n} = f32[2000] broadcast(k{n}), dimensions={{}}" for n in range(count)]
    sums = [f"s{n} = f32[2000] add(x, b{n})" for n in range(count)]
    shapes, names = ", ".join(["f32[2000]"] * count), ", ".join(f"s{n}" for n in range(count))
    lines = ["x = f32[2000] parameter(0)", *(line.replace(" b", "\nb", 1) for line in made), *sums]
    return "\n".join([*lines, f"ROOT t = ({shapes}) tuple({names})"])


def tokens(count: int) -> str:
    lines = ["x = f32[40] parameter(0)", "y = f32[40] parameter(1)", "d = f32[40] divide(x, y)"]
    lines += [f"c{n} = f32[8] slice(d), slice={{[{n}:{n + 8}]}}" for n in range(count)]
    lines += [f"s{n} = f32[8] add({f's{n - 1}' if n > 1 else 'c0'}, c{n})" for n in range(1, count)]
    return "\n".join([*lines[:-1], "ROOT " + lines[-1]])


def element_reduction(size: int) -> str:
    return f"""x = f32[9,{size}] parameter(0)
y = f32[21,{size}] parameter(1)
xb = f32[9,21,{size}] broadcast(x), dimensions={{0,2}}
yb = f32[9,21,{size}] broadcast(y), dimensions={{1,2}}
d = f32[9,21,{size}] subtract(xb, yb)
e = f32[9,21] reduce(d, zero), dimensions={{2}}, to_apply=add
m = f32[9] reduce(e, zero), dimensions={{1}}, to_apply=max
mb = f32[9,21] broadcast(m), dimensions={{0}}
ROOT r = f32[9,21] subtract(e, mb)"""


def row_bytes(size: int) -> str:
    shape = f"f32[4,{size // 4}]"
    return f"""x = {shape} parameter(0)
y = {shape} parameter(1)
d = {shape} divide(x, y)
m = f32[4] reduce(d, zero), dimensions={{1}}, to_apply=max
mb = {shape} broadcast(m), dimensions={{0}}
ROOT r = {shape} subtract(d, mb)"""


def column_reductions(count: int, columns: int = 8) -> str:
    lines = [f"x = f32[500,{columns}] parameter(0)"]
    for n in range(count):
        lines += [f"k{n} = f32[] constant({n})", f"b{n} = f32[500,{columns}] broadcast(k{n}), dimensions={{}}"]
        lines += [f"a{n} = f32[500,{columns}] add(x, b{n})"]
        lines += [f"r{n} = f32[{columns}] reduce(a{n}, zero), dimensions={{0}}, to_apply=add"]
    shapes, names = ", ".join([f"f32[{columns}]"] * count), ", ".join(f"r{n}" for n in range(count))
    return "\n".join([*lines, f"ROOT t = ({shapes}) tuple({names})"])


def columns(size: int) -> str:
    return column_reductions(2, size)


def epilogue(depth: int) -> str:
    return f"""p = f32[20,{depth}] parameter(0)
q = f32[{depth},70] parameter(1)
d = f32[20,70] dot(p, q), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
ROOT t = f32[20,70] tanh(d)"""


def chain(size: int) -> str:
    return f"""x = f32[{size}] parameter(0)
l = f32[{size}] tanh(x)
ROOT r = f32[{size}] reduce-window(l, zero), window={{size={size} pad={size - 1}_0}}, to_apply=add"""


def abreast(count: int) -> str:
    lines = ["x = f32[3000] parameter(0)", "y = f32[3000] parameter(1)", "d = f32[3000] divide(x, y)"]
    for n in range(count):
        lines += [
            f"k{n} = f32[] constant({n}) b{n} = f32[3000] broadcast(k{n}), dimensions={{}}".replace(" b", "\nb", 1)
        ]
        lines += [f"a{n} = f32[3000] add(d, b{n})", f"c{n} = f32[3000,1] reshape(a{n})"]
    names = ", ".join(f"c{n}" for n in range(count))
    return "\n".join([*lines, f"ROOT r = f32[3000,{count}] concatenate({names}), dimensions={{1}}"])


# What a stack shows of a promise --------------------------------------------------------------------------------------


def emitted(stack: str, kernel: KernelRequest) -> str:
    return STACKS[stack].emit([kernel], EmitOptions(Target.host())).llvm_ir


def takes(stack: str, kernel: KernelRequest) -> None:
    emitted(stack, kernel)


def divides_once_a_token(stack: str, kernel: KernelRequest) -> None:
    assert emitted(stack, kernel).count("fdiv ") == kernel_forms.MOST_TOKENS


def divides_once(stack: str, kernel: KernelRequest) -> None:
    """Both walks over a row want the quotient; the second one reads it."""
    assert goes_by_rows(stack, kernel) and emitted(stack, kernel).count("fdiv ") == 1


def divides_in_one_place(stack: str, kernel: KernelRequest) -> None:
    assert emitted(stack, kernel).count("fdiv ") == 1


def is_rows(stack: str, kernel: KernelRequest) -> None:
    assert goes_by_rows(stack, kernel)


def goes_by_rows(stack: str, kernel: KernelRequest) -> bool:
    """Whether a stack emits a kernel row by row."""
    parts = STACKS[stack].forms_of(kernel, EmitOptions(Target.host())).parts
    return all(part.form.startswith("rows/") for part in parts)


def part_of(stack: str, kernel: KernelRequest) -> Part:
    """The form of all results of a kernel, as the stack tells it."""
    (part,) = STACKS[stack].forms_of(kernel, EmitOptions(Target.host())).parts
    assert part.results == tuple(range(len(kernel.results)))
    return part


def reduces_columns_together(stack: str, kernel: KernelRequest) -> None:
    assert part_of(stack, kernel).form == "reduce/columns"


def hands_sums_on(stack: str, kernel: KernelRequest) -> None:
    """The tiled product passes each sum on to the rest of the kernel, instead of storing it."""
    part = part_of(stack, kernel)
    assert part.form == "dot/tiled" and {("hands_on", "True"), ("narrow", "yes")} & {*part.parameters}


@dataclass(frozen=True)
class Case:
    """text: a program by its size, which is one kernel up to the limit and several from `beyond` on."""

    text: Callable[[int], str]
    promise: Callable[[str, KernelRequest], None]
    beyond: int = 1


CASES = {
    "MOST_OPERANDS": Case(operands, takes),
    "MOST_RESULTS": Case(results, takes),
    "MOST_TOKENS": Case(tokens, divides_once_a_token),
    "ELEMENT_REDUCTION": Case(element_reduction, is_rows),
    "ROW_BYTES": Case(row_bytes, divides_once, beyond=4),
    "SHORTEST_COLUMNS": Case(columns, reduces_columns_together, beyond=-1),
    "COLUMN_REDUCTIONS": Case(column_reductions, reduces_columns_together),
    "EPILOGUE_DEPTH": Case(epilogue, hands_sums_on),
    "CHAINED": Case(chain, takes),
    "ABREAST": Case(abreast, divides_in_one_place),
}


def kernels(body: str) -> tuple[KernelRequest, ...]:
    return plan(parse_module(HEAD + body + " }")).kernels


def test_every_limit_has_a_case():
    assert set(CASES) == {name for name in vars(kernel_forms) if name.isupper()}


@pytest.mark.parametrize("name", CASES)
def test_passes_form_kernels_up_to_the_limit(name):
    case, limit = CASES[name], getattr(kernel_forms, name)
    assert len(kernels(case.text(limit))) == 1
    steps = list(plan(parse_module(HEAD + case.text(limit + case.beyond) + " }")).walk())
    assert len(steps) > 1


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("name", CASES)
def test_a_stack_keeps_the_promise_at_the_limit(name, stack):
    case = CASES[name]
    (kernel,) = kernels(case.text(getattr(kernel_forms, name)))
    assert STACKS[stack].unsupported([kernel]) == []
    case.promise(stack, kernel)


def positions(count: int) -> str:
    """A quotient that is read at its own position, and as the index of `count` gathers."""
    lines = ["x = f32[3000] parameter(0)", "y = f32[3000] parameter(1)", "d = f32[3000] divide(x, y)"]
    lines += ["i = s32[3000] convert(d)", "c = s32[3000,1] reshape(i)"]
    for n in range(count):
        lines += [f"t{n} = f32[16] parameter({n + 2})"]
        windows = "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}"
        lines += [f"g{n} = f32[3000] gather(t{n}, c), {windows}"]
        lines += [f"s{n} = f32[3000] add({f's{n - 1}' if n else 'd'}, g{n})"]
    return "\n".join([*lines[:-1], "ROOT " + lines[-1]])


@pytest.mark.parametrize("stack", STACKS)
def test_gathers_that_share_their_indices_compute_them_once(stack):
    (kernel,) = kernels(positions(kernel_forms.MOST_TOKENS + 2))
    assert emitted(stack, kernel).count("fdiv ") == 1


def test_results_of_gathers_that_share_their_indices():
    check(HEAD + positions(kernel_forms.MOST_TOKENS + 2) + " }")


@pytest.mark.parametrize("name", CASES)
def test_results_at_the_limit(name):
    check(HEAD + CASES[name].text(getattr(kernel_forms, name)) + " }")


@pytest.mark.parametrize("stack", STACKS)
def test_what_the_passes_form_row_by_row_each_stack_emits_so(stack):
    """Results in place count on it (planning/inplace.py). A reduction alone has a form of its own, and with legacy each
    that ends a kernel.
    """
    found = 0
    for path in sample("jax_programs/*/module.hlo", 25, seed=3):
        for kernel in plan(parse_module(path.read_text(), str(path))).kernels:
            body = kernel.body
            if body is None or rows_of_body(body) is None:
                continue
            count = sum(i.opcode.value == "reduce" for i in body.instructions)
            ends = body.root.opcode.value == "reduce"
            if count > ends and not (ends and stack == "legacy"):
                found += 1
                assert goes_by_rows(stack, kernel), f"{path}: {kernel.name}"
    assert found >= 3  # the number in the small corpus alone


FARTHEST = """x = f32[9,3000] parameter(0)
m = f32[9] reduce(x, zero), dimensions={1}, to_apply=max
b = f32[9,3000] broadcast(m), dimensions={0}
d = f32[9,3000] subtract(b, x)
ROOT r = f32[9] reduce(d, zero), dimensions={1}, to_apply=add }"""


def test_a_reduction_of_what_another_one_made_of_its_row_is_a_row_kernel():
    """Element by element, each would walk over its whole row: MLIR's values are known in one loop."""
    (kernel,) = kernels(FARTHEST[:-2])
    assert goes_by_rows("mlir", kernel)


def test_values_of_a_reduction_of_what_another_one_made_of_its_row():
    check(HEAD + FARTHEST)


SQUARE = """x = f32[40,40] parameter(0)
v = f32[40] parameter(1)
n = f32[40] broadcast(zero), dimensions={}
e = pred[40] is-finite(v)
c = f32[40] select(e, v, n)
k = f32[40,40] broadcast(c), dimensions={1}
s = f32[40,40] subtract(x, k)
p = f32[40,40] exponential(s)
m = f32[40] reduce(x, zero), dimensions={1}, to_apply=max
f = pred[40] is-finite(m)
o = f32[40] select(f, m, n)
b = f32[40,40] broadcast(o), dimensions={0}
t = f32[40,40] subtract(x, b)
q = f32[40,40] exponential(t)
ROOT r = (f32[40,40], f32[40,40]) tuple(p, q) }"""


def test_what_rows_and_columns_of_a_square_both_read_is_in_a_row_kernel():
    """The zeros, which two shapes of other matrices keep apart: MLIR found the maximum again for each element."""
    (kernel,) = kernels(SQUARE[:-2])
    assert goes_by_rows("mlir", kernel)


def test_values_of_what_rows_and_columns_of_a_square_both_read():
    check(HEAD + SQUARE)
