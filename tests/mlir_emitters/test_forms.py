"""The table of forms, and which one is chosen for a kernel: one place decides, and says why others do not fit."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest

from ... import mlir_emitters
from ...codegen.forms import ChosenForms
from ...codegen.options import EmitOptions, GroupShape, Target
from ...formats.text.parser import parse_module
from ...lhlo.from_hlo import from_kernels
from ...mlir_emitters import choice, forms
from ...mlir_emitters.core import pipeline
from ...mlir_emitters.core.facts import Facts
from ...mlir_emitters.core.graph import graphs
from ...mlir_emitters.loops.view import View
from ...planning import partition
from ...planning.plan import KernelRequest
from ...planning.planner import plan
from ..support.ranges import check_ranges_alone, check_threads, number_of_threads

HEAD = """HloModule m
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
integer_add { p = s32[] parameter(0)
  q = s32[] parameter(1)
  ROOT s = s32[] add(p, q) }
max { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] maximum(p, q) }
second { p = f32[] parameter(0)
  ROOT q = f32[] parameter(1) }
less { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT c = pred[] compare(p, q), direction=LT }
running { x = f32[400,50] parameter(0)
  z = f32[] constant(0)
  w = f32[400,50] reduce-window(x, z), window={size=1x50 pad=0_0x49_0}, to_apply=add
  r = f32[400,50] reverse(x), dimensions={1}
  ROOT t = (f32[400,50], f32[400,50]) tuple(w, r) }
crossed { x = f32[200,100] parameter(0)
  y = f32[100,200] parameter(1)
  t = f32[100,200] transpose(x), dimensions={1,0}
  ROOT s = f32[100,200] add(t, y) }
turned { x = f32[64,100] parameter(0)
  z = f32[] constant(0)
  r = f32[100] reduce(x, z), dimensions={0}, to_apply=add
  ROOT v = f32[100] reverse(r), dimensions={0} }
ENTRY e { zero = f32[] constant(0)
"""

HOST = EmitOptions(Target.level("x86-64-v4"), ranges=True)
STRICT = EmitOptions(Target.level("x86-64-v4"), strict=True, ranges=True)
ELEMENTS = EmitOptions(Target.level("x86-64-v2"), strict=True, by_element=True, ranges=True)
SHAPE = GroupShape(lanes=64, across=16, down=16, columns=4, rows=4, depth=16, memory=1 << 15)
ITEMS = EmitOptions(Target.level("x86-64-v2"), strict=True, by_element=True, group=SHAPE)


def dot(m: int, k: int, n: int, dtype: str = "f32", after: str = "") -> str:
    root = "" if after else "ROOT "
    return f"""x = {dtype}[{m},{k}] parameter(0)
y = {dtype}[{k},{n}] parameter(1)
{root}d = {dtype}[{m},{n}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
{after}"""


def convolution(size: int, inputs: int, features: int, labels: str = "b01f_01io->b01f", groups: int = 1) -> str:
    out = size - 2
    kernel = {"io": f"3,3,{inputs // groups},{features}", "oi": f"3,3,{features},{inputs // groups}"}[labels[7:9]]
    grouped = f", feature_group_count={groups}" if groups > 1 else ""
    return f"""x = f32[2,{size},{size},{inputs}] parameter(0)
k = f32[{kernel}] parameter(1)
ROOT c = f32[2,{out},{out},{features}] convolution(x, k), window={{size=3x3}}, dim_labels={labels}{grouped}"""


def columns(rows: int, count: int, operand: str = "f32") -> str:
    to, zero = ("add", "zero") if operand == "f32" else ("integer_add", "none")
    return f"""x = {operand}[{rows},{count}] parameter(0)
none = s32[] constant(0)
ROOT r = {operand}[{count}] reduce(x, {zero}), dimensions={{0}}, to_apply={to}"""


def softmax(rows: int, length: int) -> str:
    shape = f"f32[{rows},{length}]"
    return f"""x = {shape} parameter(0)
low = f32[] constant(-inf)
m = f32[{rows}] reduce(x, low), dimensions={{1}}, to_apply=max
mb = {shape} broadcast(m), dimensions={{0}}
d = {shape} subtract(x, mb)
e = {shape} exponential(d)
s = f32[{rows}] reduce(e, zero), dimensions={{1}}, to_apply=add
sb = {shape} broadcast(s), dimensions={{0}}
ROOT r = {shape} divide(e, sb)"""


def window(size: int, window: str, length: int) -> str:
    return f"""x = f32[40,{size}] parameter(0)
ROOT r = f32[40,{length}] reduce-window(x, zero), window={{{window}}}, to_apply=max"""


def sort(rows: int, length: int, taken: int = 0) -> str:
    root = "" if taken else "ROOT "
    cut = f"ROOT c = f32[{rows},{taken}] slice(s), slice={{[0:{rows}], [0:{taken}]}}" if taken else ""
    return f"""x = f32[{rows},{length}] parameter(0)
{root}s = f32[{rows},{length}] sort(x), dimensions={{1}}, to_apply=less
{cut}"""


CASES: dict[str, tuple[str, EmitOptions]] = {
    "rows/abreast": (softmax(400, 10), HOST),
    "rows/softmax": (softmax(40, 1024), HOST),
    "rows/walks": (softmax(40, 100), HOST),
    "reduce/run": (columns(4000, 4), HOST),
    "reduce/columns": (columns(400, 100), HOST),
    "convolution/deep": (convolution(20, 16, 3, "b01f_01oi->b01f"), HOST),
    "convolution/channels": (convolution(40, 128, 128, groups=128), HOST),
    "convolution/held": (convolution(20, 16, 32), HOST),
    "convolution/columns": (convolution(20, 4, 8).replace("f32", "s32"), HOST),
    "dot/narrow": (dot(200, 100, 3), HOST),
    "dot/tiled": (dot(64, 100, 64), HOST),
    "dot/columns": (dot(12, 3, 16, "c64"), STRICT),
    "concatenate/abreast": (
        """x = f32[2000,1] parameter(0)
y = f32[2000,1] parameter(1)
ROOT c = f32[2000,2] concatenate(x, y), dimensions={1}""",
        HOST,
    ),
    "concatenate/pieces": (
        """x = f32[20,100] parameter(0)
y = f32[20,100] parameter(1)
ROOT c = f32[40,100] concatenate(x, y), dimensions={0}""",
        HOST,
    ),
    "update/in_place": (
        """x = f32[20,100] parameter(0)
y = f32[2,100] parameter(1)
i = s32[] parameter(2)
j = s32[] constant(0)
ROOT c = f32[20,100] dynamic-update-slice(x, y, i, j)""",
        HOST,
    ),
    "padded/gaps": ("x = f32[40,100] parameter(0)\nROOT p = f32[40,199] pad(x, zero), padding=0_0x0_0_1", HOST),
    "window/running": (window(50, "size=1x50 pad=0_0x49_0", 50), HOST),
    "window/phases": (window(51, "size=1x3", 49), HOST),
    "window/pool": (window(51, "size=3x1 pad=1_1x0_0", 51), HOST),
    "scatter": (
        """x = f32[200] parameter(0)
i = s32[50,1] parameter(1)
u = f32[50] parameter(2)
ROOT s = f32[200] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},
 index_vector_dim=1, to_apply=add""",
        HOST,
    ),
    "sort/abreast": (sort(100, 20), HOST),
    "sort/select": (sort(4, 4000, taken=10), HOST),
    "sort/insertion": (sort(4, 30), HOST),
    "sort/radix": (sort(4, 4000), HOST),
    "sort/merge": (sort(4, 39), HOST),
    "nest/linear": ("x = f32[40,100] parameter(0)\nROOT t = f32[40,100] tanh(x)", HOST),
    "nest/elements": (
        "x = f32[40,100] parameter(0)\nROOT t = f32[100,40] transpose(x), dimensions={1,0}",
        ELEMENTS,
    ),
    "padded/rows": ("x = f32[4000,3] parameter(0)\nROOT p = f32[4000,4] pad(x, zero), padding=0_0x0_1", HOST),
    "repeated/rows": ("x = f32[10] parameter(0)\nROOT b = f32[4000,10] broadcast(x), dimensions={1}", HOST),
    "nest/channels": (
        "x = f32[4,40,40,3] parameter(0)\nROOT t = f32[4,3,40,40] transpose(x), dimensions={0,3,1,2}",
        HOST,
    ),
    "nest/blocks": ("x = f32[200,100] parameter(0)\nROOT t = f32[100,200] transpose(x), dimensions={1,0}", HOST),
    "nest/tiles": (
        """x = f32[200,100] parameter(0)
y = f32[100,200] parameter(1)
ROOT s = f32[100,200] fusion(x, y), kind=kLoop, calls=crossed""",
        HOST,
    ),
    "regions": (
        """x = f32[200,100] parameter(0)
y = f32[200,100] parameter(1)
c = f32[200,200] concatenate(x, y), dimensions={1}
ROOT t = f32[200,200] tanh(c)""",
        HOST,
    ),
    "nest/plain": ("x = f32[40,100] parameter(0)\nROOT r = f32[40,100] reverse(x), dimensions={0}", HOST),
    "groups/rows": (softmax(40, 100), ITEMS),
    "groups/dot": (dot(64, 100, 64), ITEMS),
    "groups/convolution": (convolution(20, 16, 32), ITEMS),
    "groups/columns": (columns(400, 100), ITEMS),
    "groups/squares": ("x = f32[200,100] parameter(0)\nROOT t = f32[100,200] transpose(x), dimensions={1,0}", ITEMS),
}
"""Form → a program with one kernel that it emits, and how it is asked for."""


def kernel_of(body: str) -> KernelRequest:
    (kernel,) = plan(parse_module(HEAD + body + " }")).kernels
    return kernel


def forms_of(name: str) -> ChosenForms:
    body, options = CASES[name]
    return mlir_emitters.forms_of(kernel_of(body), options)


def test_names_are_unique_and_each_form_says_what_it_is_for():
    table = mlir_emitters.form_table()
    names = [form.name for form in table]
    assert len(names) == len(set(names)) and all(form.why for form in table)


def test_limits_name_constants_of_the_stack():
    """Not copies of them: a limit that moves in its file moves in the table."""
    source = importlib.util.find_spec(forms.__name__).loader.get_source(forms.__name__)
    for form in mlir_emitters.form_table():
        for limit in form.limits:
            assert f"{limit.name}=" in source and limit.measure and limit.value, (form.name, limit)


def test_each_form_has_a_case():
    assert list(CASES) == [form.name for form in forms.FORMS]


@pytest.mark.parametrize("name", CASES)
def test_which_form_is_chosen(name):
    assert forms_of(name).names == (name,)


@pytest.mark.parametrize("name", CASES)
def test_each_earlier_form_says_why_it_does_not_fit(name):
    names = [form.name for form in forms.FORMS]
    for part in forms_of(name).parts:
        assert [declined.form for declined in part.declined] == names[: names.index(part.form)]
        assert all(declined.reason and "\n" not in declined.reason for declined in part.declined)


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("groups/")])
def test_choosing_twice_is_choosing_the_same(name):
    body, options = CASES[name]
    kernel = kernel_of(body)
    with pipeline.LOCK:
        (graph,) = graphs(from_kernels([kernel], pipeline.session().context))
    view = View.of(graph, Facts.of(options), kernel.partition)
    assert choice.choose(view) == choice.choose(view)


@pytest.mark.parametrize("name", CASES)
def test_what_is_chosen_is_emitted(name):
    body, options = CASES[name]
    kernel = kernel_of(body)
    made, chosen = mlir_emitters.emit([kernel], options), forms_of(name)
    assert made.forms == {kernel.name: chosen}
    assert (kernel.name in made.ranged) is chosen.ranged
    assert [kernel.name in made.glue, kernel.name in made.lean] == [chosen.passes == "glue", chosen.passes == "lean"]


def reason(name: str, form: str, change: Callable[[str], str] = str) -> str:
    body, options = CASES[name]
    (part,) = mlir_emitters.forms_of(kernel_of(change(body)), options).parts
    return next(declined.reason for declined in part.declined if declined.form == form)


def test_reasons_have_the_numbers():
    assert reason("dot/tiled", "dot/narrow") == "left: 64 columns, more than 8; right: rows do not lie along memory"
    assert reason("rows/walks", "rows/softmax") == "rows of 100 elements, not 512 to 16,384"
    assert reason("sort/radix", "sort/abreast") == "4000 positions of a row, not 2 to 256"
    assert reason("nest/plain", "regions") == "nothing is concatenated or padded"
    assert reason("sort/merge", "sort/abreast") == "4 rows, fewer than 8"


def test_a_kernel_that_cannot_be_computed_in_steps_is_chosen_for_all_of_them():
    """Steps are over rows of 40,000; its update lies anywhere."""
    body = """x = f32[40000,100] parameter(0)
y = f32[30000,100] parameter(1)
i = s32[] parameter(2)
j = s32[] constant(0)
ROOT c = f32[40000,100] dynamic-update-slice(x, y, i, j)"""
    kernel = kernel_of(body)
    assert not mlir_emitters.forms_of(kernel, HOST).ranged


IN_STEPS = {
    "a convolution without an axis for lanes": (
        """x = f8e4m3fn[1,16,16,32] parameter(0)
k = f8e4m3fn[32,3,3,2] parameter(1)
ROOT c = f8e4m3fn[1,16,16,32] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f,
 feature_group_count=16""",
        ("nest/plain",),
    ),
    "windows of few neighbours": (
        """x = f32[400,9,4] parameter(0)
ROOT r = f32[400,7,4] reduce-window(x, zero), window={size=1x3x1}, to_apply=add""",
        ("nest/plain",),
    ),
    "a root with loops of its own, and a nest": (
        """x = f32[400,50] parameter(0)
ROOT f = (f32[400,50], f32[400,50]) fusion(x), kind=kLoop, calls=running""",
        ("window/running", "nest/plain"),
    ),
}
"""What takes steps, as each of its parts does."""


@pytest.mark.parametrize("name", IN_STEPS)
def test_results_in_steps(name, monkeypatch):
    monkeypatch.setattr(partition, "CHUNK", 1)
    body, names = IN_STEPS[name]
    kernel = kernel_of(body)
    chosen = mlir_emitters.forms_of(kernel, HOST)
    assert kernel.partition is not None and chosen.ranged and chosen.names == names
    with number_of_threads():
        check_ranges_alone(check_threads(parse_module(HEAD + body + " }"), "mlir"))


REDUCED = "x = f32[64,100] parameter(0)\nr = f32[{kept}] reduce(x, zero), dimensions={{{d}}}, to_apply=add\n"


@pytest.mark.parametrize(
    "body, options, said",
    [
        (REDUCED.format(kept=64, d=1) + "ROOT c = f32[64] copy(r)", HOST, "what is reduced lies along memory"),
        (
            "x = f32[64,100] parameter(0)\nROOT v = f32[100] fusion(x), kind=kLoop, calls=turned",
            HOST,
            "read at other places",
        ),
        (REDUCED.format(kept=100, d=0) + "ROOT c = f32[100] copy(r)", ELEMENTS, "elements are computed each by itself"),
    ],
)
def test_a_reduction_that_is_not_computed_in_blocks_says_why(body, options, said):
    """It is one: that the form is for reductions would be no reason."""
    kernels = plan(parse_module(HEAD + body + " }")).kernels
    reasons = {
        declined.form: declined.reason
        for kernel in kernels
        for part in mlir_emitters.forms_of(kernel, options).parts
        for declined in part.declined
        if kernel.instruction.opcode.value in ("reduce", "fusion")
    }
    assert said in reasons["reduce/run"] and said in reasons["reduce/columns"]
    assert reasons["dot/tiled"] == "it is for a dot"
