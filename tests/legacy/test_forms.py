"""The table of forms, and the choice among them: which form some kernels get, and what is said of the others."""

import pytest
from llvmlite import ir

from ... import legacy
from ...backends.accelerator.targets import SPIRV
from ...codegen.forms import ChosenForms
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...legacy import forms
from ...legacy.kernel import Kernel
from ...planning.plan import KernelRequest
from ...planning.planner import plan, plan_scheduled
from ..support.check import check

AVX2, AVX512 = (EmitOptions(Target.level(f"x86-64-{level}"), ranges=True) for level in ("v3", "v4"))
ELEMENTS = EmitOptions(SPIRV.target, strict=True, by_element=True, ranges=True)
GROUPS = EmitOptions(SPIRV.target, strict=True, by_element=True, group=SPIRV.groups)

REGIONS = """add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
halves { a = f16[] parameter(0)
  b = f16[] parameter(1)
  ROOT c = f16[] add(a, b) }
max { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b) }
second { a = f32[] parameter(0)
  ROOT b = f32[] parameter(1) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
negations { a = f32[0,5] parameter(0)
  b = f32[8] parameter(1)
  c = f32[0,5] negate(a)
  d = f32[8] negate(b)
  ROOT e = (f32[0,5], f32[8]) tuple(c, d) }
sums { a = f32[] parameter(0)
  b = f32[] parameter(1)
  k = f32[] constant(1)
  c = f32[] add(a, k)
  ROOT d = pred[] compare(c, b), direction=LT }
"""


def softmax(rows: int, length: int) -> str:
    shape, row = f"f32[{rows},{length}]", f"f32[{rows}]"
    return f"""x = {shape} parameter(0); low = f32[] constant(-inf); z = f32[] constant(0);
m = {row} reduce(x, low), dimensions={{1}}, to_apply=max; mb = {shape} broadcast(m), dimensions={{0}};
y = {shape} subtract(x, mb); p = {shape} exponential(y); s = {row} reduce(p, z), dimensions={{1}}, to_apply=add;
sb = {shape} broadcast(s), dimensions={{0}}; ROOT r = {shape} divide(p, sb)"""


def reduction(shape: str, result: str, dimensions: str, dtype: str = "f32", region: str = "add") -> str:
    return f"""x = {dtype}[{shape}] parameter(0); z = {dtype}[] constant(0);
ROOT r = {dtype}[{result}] reduce(x, z), dimensions={{{dimensions}}}, to_apply={region}"""


def dot(rows: int, depth: int, columns: int, dtype: str = "f32") -> str:
    return f"""x = {dtype}[{rows},{depth}] parameter(0); y = {dtype}[{depth},{columns}] parameter(1);
ROOT r = {dtype}[{rows},{columns}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"""


def convolution(image: str, kernel: str, result: str, labels: str, window: str, more: str = "", dtype="f32") -> str:
    return f"""x = {dtype}[{image}] parameter(0); k = {dtype}[{kernel}] parameter(1);
ROOT r = {dtype}[{result}] convolution(x, k), window={{{window}}}, dim_labels={labels}{more}"""


def sort(shape: str, dimension: int, less: str = "less") -> str:
    return f"x = f32[{shape}] parameter(0); ROOT r = f32[{shape}] sort(x), dimensions={{{dimension}}}, to_apply={less}"


WITHOUT_COLUMNS = convolution(
    "1,16,16,32",
    "32,3,3,2",
    "1,16,16,32",
    "b01f_o01i->b01f",
    "size=3x3 pad=1_1x1_1",
    ", feature_group_count=16",
    "f8e4m3fn",
)

CASES = {
    "rows/abreast": reduction("20000,16", "20000", "1", "f16", "halves"),
    "rows/softmax": softmax(64, 1024),
    "rows/walks": softmax(7, 33),
    "nest/empty": """x = f32[0,5] parameter(0); y = f32[8] parameter(1);
ROOT r = (f32[0,5], f32[8]) fusion(x, y), kind=kLoop, calls=negations""",
    "update/in_place": """x = s8[512,512] parameter(0); u = s8[256,300] parameter(1); i = s32[] parameter(2);
ROOT r = s8[512,512] dynamic-update-slice(x, u, i, i)""",
    "window/running": """x = f32[16384] parameter(0); z = f32[] constant(0);
ROOT r = f32[16384] reduce-window(x, z), window={size=16384 pad=16383_0}, to_apply=add""",
    "window/phases": """x = f32[128,128] parameter(0); z = f32[] constant(0);
ROOT r = f32[63,63] reduce-window(x, z), window={size=3x3 stride=2x2}, to_apply=max""",
    "window/pool": """x = f32[128,128] parameter(0); z = f32[] constant(0);
ROOT r = f32[98,98] reduce-window(x, z), window={size=31x31}, to_apply=max""",
    "scatter": """x = f32[100] parameter(0); i = s32[40,1] parameter(1); u = f32[40] parameter(2);
ROOT r = f32[100] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},
index_vector_dim=1, to_apply=add""",
    "sort/abreast": sort("1000,20", 1),
    "sort/insertion": sort("1000,8", 1, "sums"),
    "sort/select": "x = f32[64,1000] parameter(0); ROOT r = (f32[64,1], s32[64,1]) topk(x), k=1, largest=true",
    "sort/radix": sort("4,30000", 1),
    "sort/merge": sort("4,3000", 1, "sums"),
    "reduce/run": reduction("128,2048,8", "128,8", "1"),
    "reduce/columns": reduction("64,4096", "4096", "0"),
    "dot/narrow": dot(40, 50, 3),
    "dot/tiled": dot(128, 64, 96),
    "dot/columns": dot(8, 20, 8, "s64"),
    "convolution/deep": convolution("2,64,64,16", "3,3,16,1", "2,64,64,1", "b01f_01io->b01f", "size=3x3 pad=1_1x1_1"),
    "convolution/channels": convolution(
        "4,512,64", "4,1,64", "4,512,64", "b0f_0io->b0f", "size=4 pad=3_0", ", feature_group_count=64", "f64"
    ),
    "convolution/held": convolution("2,64,64,16", "3,3,16,32", "2,62,62,32", "b01f_01io->b01f", "size=3x3"),
    "convolution/columns": convolution("1,50000,1", "65,1,1", "1,49936,1", "b0f_0io->b0f", "size=65"),
    "repeated/rows": "ROOT r = bf16[512,512] iota(), iota_dimension=1",
    "regions": """x = f32[512,512] parameter(0); z = f32[] constant(0);
ROOT r = f32[514,514] pad(x, z), padding=1_1x1_1""",
    "padded/rows": """x = s8[10000,3] parameter(0); z = s8[] constant(0);
ROOT r = s8[10000,4] pad(x, z), padding=0_0x0_1""",
    "padded/pieces": """x = s8[512,512] parameter(0); z = s8[] constant(0);
ROOT r = s8[1023,1023] pad(x, z), padding=0_0_1x0_0_1""",
    "concatenate/abreast": """x = f32[1000,1] parameter(0); y = f32[1000,2] parameter(1);
ROOT r = f32[1000,3] concatenate(x, y), dimensions={1}""",
    "concatenate/pieces": """x = s8[512,512] parameter(0); y = s8[512,512] parameter(1);
ROOT r = s8[1024,512] concatenate(x, y), dimensions={0}""",
    "nest/linear": "x = s8[262144] parameter(0); ROOT r = s8[262144] abs(x)",
    "nest/elements": "x = f32[40,5] parameter(0); ROOT r = f32[5,40] transpose(x), dimensions={1,0}",
    "nest/channels": "x = s8[100000,3] parameter(0); ROOT r = s8[3,100000] transpose(x), dimensions={1,0}",
    "nest/tiles": "x = f32[512,300] parameter(0); ROOT r = f32[300,512] transpose(x), dimensions={1,0}",
    "nest/plain": "x = f32[12,5] parameter(0); ROOT r = f32[5,12] transpose(x), dimensions={1,0}",
    "groups/rows": softmax(64, 1024),
    "groups/columns": reduction("640,4096", "4096", "0"),
    "groups/dot": dot(128, 64, 96),
    "groups/convolution": convolution("2,64,64,16", "3,3,16,32", "2,62,62,32", "b01f_01io->b01f", "size=3x3"),
    "groups/squares": "x = f32[512,300] parameter(0); ROOT r = f32[300,512] transpose(x), dimensions={1,0}",
}
"""Form → a program whose last kernel has it. The names are all there are: this stack gets no new form (ADR 91)."""

OTHERS = [
    ("dot/narrow", dot(3, 50, 40).replace("f32[50,40]", "f32[50,40]{0,1}"), AVX2),
    ("dot/tiled", dot(128, 64, 96, "s32"), AVX2),
    ("dot/columns", dot(128, 64, 96, "s64"), AVX2),
    ("dot/tiled", dot(128, 64, 96, "s64"), AVX512),
    ("sort/radix", sort("5000,2", 0), AVX2),
    ("sort/radix", sort("3,50", 1), AVX2),
    ("rows/walks", softmax(64, 500), AVX2),
    ("rows/walks", reduction("200,16", "200", "1", "f16", "halves").replace("ROOT r", "s")
     + "; b = f16[200,16] broadcast(s), dimensions={0}; ROOT r = f16[200,16] add(x, b)", AVX2),
    ("nest/plain", reduction("20000,8", "20000", "1", "f16", "halves"), AVX2),
    ("nest/plain", WITHOUT_COLUMNS, AVX2),
    ("nest/elements", dot(128, 64, 96), ELEMENTS),
    ("nest/linear", "x = f32[40] parameter(0); ROOT r = f32[40] negate(x)", ELEMENTS),
]  # fmt: skip
"""(The form, a program, options) beside the limits of forms."""


def module(body: str) -> str:
    lines = "\n".join(f"  {line.strip()}" for line in body.replace("\n", " ").split(";"))
    return f"HloModule m\n{REGIONS}ENTRY e {{\n{lines}\n}}\n"


def kernel_of(body: str) -> KernelRequest:
    parsed = parse_module(module(body))
    return (plan_scheduled(parsed) if "negations" in body else plan(parsed)).kernels[-1]  # passes leave nothing of it


def options_for(form: str) -> EmitOptions:
    return GROUPS if form.startswith("groups/") else ELEMENTS if form == "nest/elements" else AVX2


def chosen(body: str, options: EmitOptions) -> ChosenForms:
    found = legacy.forms_of(kernel_of(body), options)
    assert found is not None
    return found


def test_the_table_is_closed():
    names = [form.name for form in legacy.form_table()]
    assert len(set(names)) == len(names)
    assert names == list(CASES), "legacy is the way back (ADR 91): it gets corrections, and no new form"


def test_each_form_says_what_it_is_for_and_what_bounds_it():
    for form in legacy.form_table():
        assert form.why.endswith(".") and "\n" not in form.why, form
        for limit in form.limits:
            assert limit.name.isupper() and limit.measure and limit.value > 0, (form.name, limit)
        assert len({limit.name for limit in form.limits}) == len(form.limits)
    assert sum(len(form.limits) for form in legacy.form_table()) > 40


@pytest.mark.parametrize("form", CASES)
def test_a_program_has_the_form(form):
    assert chosen(CASES[form], options_for(form)).parts[0].form == form


@pytest.mark.parametrize(("form", "body", "options"), OTHERS)
def test_a_program_beside_a_limit_has_the_form(form, body, options):
    assert chosen(body, options).names == (form,)


@pytest.mark.parametrize("form", CASES)
def test_each_earlier_form_says_why_it_declined(form):
    part = chosen(CASES[form], options_for(form)).parts[0]
    tables = (forms.GROUP_FORMS, (*forms.ROW_FORMS, *forms.RESULT_FORMS))
    asked = next(names for table in tables if form in (names := [row.name for row in table]))
    assert [line.form for line in part.declined] == asked[: asked.index(form)]
    assert all(line.reason and "\n" not in line.reason and "None" not in line.reason for line in part.declined)


@pytest.mark.parametrize(
    ("body", "form", "reason"),
    [
        (dot(40, 20, 3), "dot/narrow", "left: rows of 20, shorter than 3 vectors of 8; right: 3 rows, fewer than 16"),
        (dot(8, 20, 8), "dot/tiled", "1280 multiplications, fewer than 4096"),
        (dot(128, 64, 96, "s64"), "dot/tiled", "no tiles of s64 with sums of s64"),
        (softmax(7, 33), "rows/abreast", "7 rows, fewer than 16"),
        (softmax(64, 500), "rows/softmax", "500 elements of a row, not 512 to 65536"),
        (sort("3,50", 1), "sort/abreast", "3 rows, fewer than 16"),
        (CASES["padded/pieces"], "padded/rows", "1023 elements of a row, more than 16"),
        (CASES["convolution/held"], "convolution/deep", "1 neighbours in both operands, fewer than 8"),
        (CASES["nest/plain"], "nest/channels", "60 elements, fewer than 4096"),
    ],
)
def test_a_reason_has_the_condition_with_its_value(body, form, reason):
    (part,) = chosen(body, AVX2).parts
    assert {line.form: line.reason for line in part.declined}[form] == reason


@pytest.mark.parametrize("form", CASES)
def test_what_is_told_is_what_is_emitted(form):
    options, kernel = options_for(form), kernel_of(CASES[form])
    found = legacy.emit([kernel], options)
    told = legacy.forms_of(kernel, options)
    assert found.forms == {kernel.name: told} and told is not None
    assert told.ranged == (kernel.name in found.ranged)
    passes = "glue" if kernel.name in found.glue else "lean" if kernel.name in found.lean else "full"
    assert told.passes == passes
    assert (kernel.name in found.grouped) == form.startswith("groups/")


@pytest.mark.parametrize("form", CASES)
def test_the_choice_is_a_value_that_needs_no_builder(form, monkeypatch):
    options, request = options_for(form), kernel_of(CASES[form])

    def fail(*arguments):
        raise AssertionError("the choice builds nothing")

    for name in ("Module", "Function", "IRBuilder"):
        monkeypatch.setattr(ir, name, fail)
    kernel = Kernel.of(request, options)
    if options.group is not None:
        first, second = (forms.choose_group(kernel.view, kernel.leaves, options.group) for _ in range(2))
    else:
        first, second = (kernel.choose(options) for _ in range(2))
    assert first == second and first is not None


def test_a_kernel_that_groups_cannot_compute_has_no_form_for_them():
    assert legacy.forms_of(kernel_of(CASES["nest/linear"]), GROUPS) is None


def test_parts_number_their_results():
    body = f"""{dot(128, 64, 96).replace("ROOT r", "d")}; n = f32[128,64] negate(x);
ROOT t = (f32[128,96], f32[128,64]) tuple(d, n)"""
    text = module(body).replace("ENTRY e", "fused").replace("}\n\n", "}\n")
    text += """ENTRY e { x = f32[128,64] parameter(0)
  y = f32[64,96] parameter(1)
  ROOT r = (f32[128,96], f32[128,64]) fusion(x, y), kind=kLoop, calls=fused }
"""
    (kernel,) = plan(parse_module(text)).kernels
    found = legacy.forms_of(kernel, AVX2)
    assert found is not None
    assert [(part.form, part.results) for part in found.parts] == [("dot/tiled", (0,)), ("nest/linear", (1,))]


def test_a_convolution_without_columns_is_split_over_threads():
    """A nest over elements can run over some of the steps, whatever it computes."""
    found = chosen(WITHOUT_COLUMNS, AVX2)
    assert found.ranged and found.names == ("nest/plain",)
    check(module(WITHOUT_COLUMNS), stacks=("evaluator", "legacy"))
