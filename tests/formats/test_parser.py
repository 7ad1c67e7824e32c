"""HLO text → values: every form of shapes, constants, attributes, instructions and modules; and the corpora."""

# ruff: noqa: E501 - tables are read by line

import subprocess
import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ...differential.roundtrip import roundtrip
from ...evaluator import evaluator, reference, rules
from ...formats.proto.proto import module_from_proto, module_to_proto
from ...formats.text.parse_attributes import ATTRIBUTES
from ...formats.text.parser import Parser, parse_module
from ...formats.text.printer import print_module
from ...hlo.attributes import (
    Alias,
    ComputationLayout,
    ConvolutionDims,
    Donor,
    OutputAlias,
    PadDim,
    Raw,
    SliceDim,
    Window,
    WindowDim,
)
from ...hlo.dtypes import DType
from ...hlo.equality import difference
from ...hlo.errors import InputError
from ...hlo.ir import Literal
from ...hlo.opcodes import Op
from ...hlo.shapes import TOKEN, UNBOUNDED, Layout, Shape, array, tuple_shape
from ..support.corpus import sample


def entry(*lines: str):
    return parse_module("HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}\n")


def shape_of(text: str) -> Shape:
    return entry(f"ROOT p = {text} parameter(0)").entry.root.shape


def literal_of(shape: str, value: str):
    return entry(f"ROOT c = {shape} constant({value})").entry.root.literal


def attribute_of(text: str):
    """The value of `name=value`, parsed to its end, with an instruction 'p' in scope."""
    name, value = text.split("=", 1)
    parser = Parser(value, "text")
    parser.scopes.append({"p": entry("p = f32[2] parameter(0)").entry.root})
    found = ATTRIBUTES[name](parser, name)
    assert parser.lexer.ended
    return found


def plain(literal: Literal):
    """A literal as numbers and lists."""
    elements = literal.value
    return [plain(e) for e in elements] if isinstance(elements, tuple) else literal.array.tolist()


# -- shapes ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("f32[]", array(DType.F32)),
        ("f32[]{}", array(DType.F32)),
        ("s4[2,3]", array(DType.S4, 2, 3)),
        ("f32[2,3]{0,1}", Shape(DType.F32, (2, 3), Layout((0, 1)))),
        ("f32[ 2 , /*x*/ 3 ]{ 0 , 1 }", Shape(DType.F32, (2, 3), Layout((0, 1)))),
        ("bf16[8]{0:T(8,128)(2,1)S(5)}", Shape(DType.BF16, (8,), Layout((0,), ((8, 128), (2, 1)), 5))),
        ("f32[2]{0:T(*,2)E(32)}", Shape(DType.F32, (2,), Layout((0,), ((-1, 2),), 0, "E(32)"))),
        ("f32[2]{0:S(1)SC(0:1)}", Shape(DType.F32, (2,), Layout((0,), (), 1, "SC(0:1)"))),
        ("f32[]{:T(256)}", Shape(DType.F32, (), Layout((), ((256,),)))),
        ("f32[<=4,3]", Shape(DType.F32, (4, 3), None, (True, False))),
        ("f32[?]", Shape(DType.F32, (UNBOUNDED,), None, (True,))),
        ("()", tuple_shape()),
        ("(f32[], (token[], s32[2]{0}))", tuple_shape(array(DType.F32), tuple_shape(TOKEN, array(DType.S32, 2).with_layout((0,))))),
        ("b(f32[4])", Shape(DType.F32, (4,), wrapper="b")),
        ("f8e4m3b11fnuz[1]", array(DType.F8E4M3B11FNUZ, 1)),
    ],
)  # fmt: skip
def test_shape(text, shape):
    assert shape_of(text) == shape


# -- constants ---------------------------------------------------------------------------------------------------------
NUMBERS = {
    DType.PRED: ("{true, false, 1, 0, 7}", [True, False, True, False, True]),
    DType.S4: ("{-8, 7}", [-8, 7]),
    DType.U4: ("{0, 15}", [0, 15]),
    DType.S8: ("{-128, 127}", [-128, 127]),
    DType.S64: ("{-9223372036854775808, 9223372036854775807}", [-(2**63), 2**63 - 1]),
    DType.U64: ("{18446744073709551615, -1, 0}", [2**64 - 1, 2**64 - 1, 0]),
    DType.F16: ("{65504, -1e-7, inf}", [65504, -1e-7, np.inf]),
    DType.BF16: ("{1.5, -inf, 3e38}", [1.5, -np.inf, 3e38]),
    DType.F32: ("{1, 2.5, .5, 3., -1e-3, 1E5, -0, 0x1.8p1}", [1, 2.5, 0.5, 3, -1e-3, 1e5, -0.0, 3]),
    DType.F64: ("{0.1, 1e400, -0.0}", [0.1, np.inf, -0.0]),
    DType.F8E5M2: ("{1.5, 57344}", [1.5, 57344]),
    DType.F8E4M3FN: ("{448, -448}", [448, -448]),
    DType.F4E2M1FN: ("{6, -0.5}", [6, -0.5]),
}


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_constant_numbers(dtype):
    text, values = NUMBERS[dtype]
    found = literal_of(f"{dtype.value}[{len(values)}]", text).array
    kind = np.uint64 if dtype.is_unsigned else np.int64 if dtype.is_integer or dtype is DType.PRED else np.float64
    expected = np.array(values, kind).astype(dtype.numpy)
    assert found.dtype == dtype.numpy
    assert found.tobytes() == expected.tobytes()
    assert not found.flags.writeable


@pytest.mark.parametrize(
    ("dtype", "text", "bits"),
    [
        ("f32", "nan", 0x7FC00000),
        ("f32", "-nan", 0xFFC00000),
        ("f32", "nan(0x12)", 0x7F800012),
        ("f32", "-nan(0x7fffff)", 0xFFFFFFFF),
        ("f64", "nan(0xfffffffffffff)", 0x7FFFFFFFFFFFFFFF),
        ("f16", "nan(0x1)", 0x7C01),
        ("bf16", "-nan", 0xFFC0),
        ("f8e5m2", "nan(0x1)", 0x7D),
        ("f8e4m3fn", "-nan", 0xFF),
        ("f8e4m3b11fnuz", "nan", 0x80),
    ],
)
def test_nan_bits(dtype, text, bits):
    value = literal_of(f"{dtype}[1]", "{" + text + "}").array
    assert int(value.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[value.itemsize])[0]) == bits


def test_complex_constants():
    found = literal_of("c64[2,2]", "{ {(1, 2), (-0.5, nan)}, {3, (inf, -0)} }").array
    assert found[0, 0] == 1 + 2j and found[1, 0] == 3
    assert np.isnan(found[0, 1].imag) and np.signbit(found[1, 1].imag)


def test_nested_constants_with_comments():
    found = literal_of("s32[2,3]", "{ { /*i0=0*/ 1, 2, 3 }, /*i0=1*/ { 4, 5, 6 } }").array
    assert found.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert literal_of("s32[2,2]", "{ {1, 2} {3, 4} }").array.tolist() == [[1, 2], [3, 4]], "XLA takes commas for blanks"
    assert literal_of("f32[2,0]", "{ {}, {} }").array.shape == (2, 0)


def test_tuple_constants():
    found = literal_of("(f32[2], (s32[], pred[]), ())", "( {1, 2}, ( 3, true ), ( ) )")
    assert found.value[0].array.tolist() == [1, 2]
    assert found.value[1].value[0].array.item() == 3
    assert literal_of("(f32[2], s32[])", "( f32[2] {1, 2}, s32[] 3 )").value[1].array.item() == 3, (
        "older text repeats shapes"
    )


def test_elided_constants_have_no_value():
    literal = literal_of("f32[1000]", "{...}")
    assert literal.is_elided
    with pytest.raises(InputError, match="elided"):
        literal.array  # noqa: B018


def test_one_number_for_an_array_is_its_first_element_as_in_xla():
    assert literal_of("f32[2,2]", "15").array.tolist() == [[15, 0], [0, 0]]
    assert roundtrip("ENTRY e { ROOT c = f32[64,64] constant(15) }") is None
    zero = literal_of("f32[100000,100000,100]", "0")
    assert zero.is_splat and zero.array.shape == (100000, 100000, 100)


def test_large_constant_goes_through_numpy():
    values = np.random.default_rng(0).standard_normal((500, 200)).astype(np.float32)
    text = "{" + ", ".join("{" + ", ".join(map(str, row)) + "}" for row in values) + "}"
    start = time.perf_counter()
    found = literal_of("f32[500,200]", text).array
    assert found.tobytes() == values.tobytes()
    assert time.perf_counter() - start < 2, "100,000 numbers take some 0.05 s; token by token it would be minutes"


# -- attributes --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("dimensions={}", ()),
        ("dimensions={0, 2,-1}", (0, 2, -1)),
        ("dimensions={ /*a*/ 1, 2 }", (1, 2)),
        ("slice={[0:4], [1:8:2]}", (SliceDim(0, 4), SliceDim(1, 8, 2))),
        ("padding=0_1x-2_3_1", (PadDim(0, 1), PadDim(-2, 3, 1))),
        ('padding=""', ()),
        ("window={}", Window(())),
        (
            "window={size=2x3 stride=1x2 pad=0_1x-1_2 lhs_dilate=1x4 rhs_dilate=5x1 rhs_reversal=0x1}",
            Window((WindowDim(2, 1, 0, 1, 1, 5), WindowDim(3, 2, -1, 2, 4, 1, True))),
        ),
        ("dim_labels=b01f_01io->bf01", ConvolutionDims(0, 3, (1, 2), 2, 3, (0, 1), 0, 1, (2, 3))),
        ("dim_labels=bf_io->bf", ConvolutionDims(0, 1, (), 0, 1, (), 0, 1, ())),
        ("dim_labels=b01f?_01i?o->b01f?", Raw("b01f?_01i?o->b01f?")),
        ("replica_groups={{0,1},{2,3}}", ((0, 1), (2, 3))),
        ("replica_groups={}", ()),
        ("replica_groups=[2,4]<=[4,2]T(1,0)", Raw("[2,4]<=[4,2]T(1,0)")),
        ("replica_groups=mesh['a'=2,'b'=2] {'b'}", Raw("mesh['a'=2,'b'=2] {'b'}")),
        ("source_target_pairs={{0,1},{1,0}}", ((0, 1), (1, 0))),
        ("operand_precision={highest,default}", ("highest", "default")),
        ("custom_call_has_side_effect=true", True),
        ("epsilon=1e-3", 1e-3),
        ("direction=LT", "LT"),
        ("api_version=API_VERSION_TYPED_FFI", "API_VERSION_TYPED_FFI"),
        (r'infeed_config="a\"b\n\x41\101"', 'a"b\nAA'),
        ("infeed_config='x'", "x"),
        ("parameter_replication={true,false}", (True, False)),
        ("output_to_operand_aliasing={{0}: (1, {}), {1,2}: (0, {3})}", (OutputAlias((0,), 1, ()), OutputAlias((1, 2), 0, (3,)))),
        ("operand_layout_constraints={f32[2]{0}}", (array(DType.F32, 2).with_layout((0,)),)),
        ("control-predecessors={%p}", ("p",)),
        ('backend_config="{\\"a\\": 1}"', '{"a": 1}'),
        ('backend_config={"a": {"b": "}"}}', Raw('{"a": {"b": "}"}}')),
        ("backend_config={diag = 0 : ui8, f = [1, 2]}", Raw("{diag = 0 : ui8, f = [1, 2]}")),
        ('metadata={op_type="a" op_name="b}c" source_line=3}', Raw('{op_type="a" op_name="b}c" source_line=3}')),
        ("sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}", Raw("{devices=[2,1,2]<=[4] last_tile_dim_replicate}")),
        ("sharding={{maximal device=0}, {replicated}}", Raw("{{maximal device=0}, {replicated}}")),
        ('frontend_attributes={a="1",b={"c":2}}', Raw('{a="1",b={"c":2}}')),
        ('origin={({"a" {0}}, {"b"})}', Raw('{({"a" {0}}, {"b"})}')),
        ("statistics={visualizing_index=1,a=0.5}", Raw("{visualizing_index=1,a=0.5}")),
        ("literal=s32[2]{0} {1, 2}", [1, 2]),
        ("literal=( s32[] 5, ( s32[2]{0} {1, 2} ) )", [5, [[1, 2]]]),
        ("literal=()", []),
    ],
)  # fmt: skip
def test_attribute(text, value):
    found = attribute_of(text)
    if isinstance(found, Literal):
        assert plain(found) == value
    else:
        assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("dtype", "order", "kept"),
    [
        ("f32", "TOTAL", "TOTALORDER"),
        ("f32", "PARTIAL", None),
        ("c64", "PARTIAL", None),
        ("s32", "TOTAL", None),
        ("pred", "TOTAL", None),
        ("u8", "PARTIAL", "FLOAT"),  # the verifier refuses it
    ],
)
def test_the_order_of_newer_text_is_a_type(dtype, order, kept):
    module = parse_module(
        f"HloModule m\nENTRY e {{ p = {dtype}[2] parameter(0)\n ROOT r = pred[2] compare(p, p), direction=EQ, order={order} }}"
    )
    assert module.entry.root.attributes.get("type") == kept
    assert "order" not in module.entry.root.attributes
    assert difference(parse_module(print_module(module)), module) is None


def test_a_stable_topk_stays_stable_in_text_and_proto():
    text = "HloModule m\nENTRY e { p = f32[4] parameter(0)\n ROOT r = (f32[2], s32[2]) topk(p), k=2, largest=true, is_stable=true }"
    module = parse_module(text)
    assert module.entry.root.attributes["is_stable"] is True
    assert "is_stable=true" in print_module(module)
    assert module_from_proto(module_to_proto(module)).entry.root.attributes == module.entry.root.attributes


def test_header_attributes():
    module = parse_module(
        "HloModule m, is_scheduled=true, replica_count=2, entry_computation_layout={(f32[2]{0})->f32[2]{0}}, "
        "input_output_alias={ {}: (0, {}, must-alias) }, buffer_donor={ (0, {}) }, "
        'allow_spmd_sharding_propagation_to_output={true,false}, frontend_attributes={a="b"}\n'
        "ENTRY e { ROOT p = f32[2]{0} parameter(0) }"
    )
    row = array(DType.F32, 2).with_layout((0,))
    assert dict(module.attributes) == {
        "is_scheduled": True,
        "replica_count": 2,
        "entry_computation_layout": ComputationLayout((row,), row),
        "input_output_alias": (Alias((), 0, (), "must-alias"),),
        "buffer_donor": (Donor(0, ()),),
        "allow_spmd_sharding_propagation_to_output": (True, False),
        "frontend_attributes": Raw('{a="b"}'),
    }


def test_stack_frames_are_kept():
    text = (
        'HloModule m\n\nFileNames\n1 "a b.py"\n\nFunctionNames\n1 "f"\n\nFileLocations\n1 {file_name_id=1 line=2}\n\n'
        "StackFrames\n1 {file_location_id=1}\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"
    )
    module = parse_module(text)
    assert module.attributes["FileNames"] == Raw('1 "a b.py"')
    assert module.attributes["StackFrames"] == Raw("1 {file_location_id=1}")
    assert roundtrip(text) is None


# -- instructions ------------------------------------------------------------------------------------------------------
def test_long_and_short_form_are_one():
    long = parse_module(
        "HloModule m\n%add (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n"
        "  ROOT %r = f32[] add(f32[] %a, f32[] %b)\n}\nENTRY %e (p: f32[2]) -> f32[] {\n  %p = f32[2]{0} parameter(0)\n"
        "  %z = f32[] constant(0)\n  ROOT %s = f32[] reduce(f32[2]{0} %p, f32[] %z), dimensions={0}, to_apply=%add\n}\n"
    )
    assert [i.name for i in long.entry.instructions] == ["p", "z", "s"]
    assert long.entry.root.attributes["to_apply"] is long.computations[0]
    assert [o.name for o in long.entry.root.operands] == ["p", "z"]
    assert long.entry.root.location.line == 10 and long.entry.root.location.column == 8


def test_shapes_that_text_leaves_out_are_inferred():
    module = entry(
        "p = f32[2,3] parameter(0)", "q = f32[3,4] parameter(1)",
        "d = dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "ROOT t = tuple(d, abs(p))",
    )  # fmt: skip
    assert module.result_shape == tuple_shape(array(DType.F32, 2, 4), array(DType.F32, 2, 3))


def test_nested_operands():
    module = entry("ROOT r = f32[2] add(f32[2] parameter(0), f32[2] broadcast(f32[] constant(1)))")
    assert [i.opcode for i in module.entry.instructions] == [Op.PARAMETER, Op.CONSTANT, Op.BROADCAST, Op.ADD]


@pytest.mark.parametrize(
    "operands", ["f32[], p, q", "p, f32[], q", "p, q, f32[]", "p,, q,", "f32[] %p, (f32[], s32[]), q"]
)
def test_a_shape_or_nothing_between_commas_is_no_operand_as_in_xla(operands):
    text = (
        f"HloModule m\nENTRY e {{ p = f32[] parameter(0) q = f32[] parameter(1) ROOT r = f32[] subtract({operands}) }}"
    )
    assert [o.name for o in parse_module(text).entry.root.operands] == ["p", "q"]


def test_inline_computations():
    module = entry(
        "p = f32[4] parameter(0)",
        "ROOT f = f32[4] fusion(p), kind=kLoop, calls={ p = f32[4] parameter(0) ROOT n = f32[4] negate(p) }",
    )
    assert [i.opcode for i in module.entry.root.called()[0].instructions] == [Op.PARAMETER, Op.NEGATE]
    assert module.computations[-1] is module.entry, "callees come first"


def test_async_sugar():
    module = entry(
        "p = f32[4] parameter(0)",
        's = ((f32[4]), f32[2], u32[]) slice-start(p), slice={[0:2]}, async_execution_thread="t", metadata={op_name="x"}',
        "u = ((f32[4]), f32[2], u32[]) slice-update(s)",
        "ROOT d = f32[2] slice-done(u)",
    )
    start = module.entry.by_name["s"]
    wrapped = start.called()[0]
    assert [i.opcode for i in module.entry.instructions[1:]] == [Op.ASYNC_START, Op.ASYNC_UPDATE, Op.ASYNC_DONE]
    assert wrapped.root.opcode is Op.SLICE and wrapped.root.attributes["slice"] == (SliceDim(0, 2),)
    assert start.attributes["async_execution_thread"] == "t" and "metadata" in start.attributes


def test_async_sugar_reads_attributes_as_the_plain_form_does():
    started = "s = ((f32[2], f32[2]), pred[2], s32[]) compare-start(p, p), direction=LT, order=TOTAL"
    module = entry("p = f32[2] parameter(0)", started, "ROOT d = pred[2] compare-done(s)")
    assert module.entry.by_name["s"].called()[0].root.attributes["type"] == "TOTALORDER"
    started = "s = ((f32[]), f32[3], s32[]) broadcast-start(p)"
    module = entry("p = f32[] parameter(0)", started, "ROOT d = f32[3] broadcast-done(s)")
    assert module.entry.by_name["s"].called()[0].root.dimensions == ()


def test_real_starts_are_no_sugar():
    module = entry(
        "p = f32[4] parameter(0)", "s = (f32[4], f32[4], u32[]) copy-start(p)", "ROOT d = f32[4] copy-done(s)"
    )
    assert [i.opcode for i in module.entry.instructions[1:]] == [Op.COPY_START, Op.COPY_DONE]


def test_lone_instruction_and_lone_body():
    module = parse_module("ROOT r = f32[2] add(f32[2] x, f32[2] y)")
    assert [p.name for p in module.entry.parameters] == ["x", "y"]
    module = parse_module("f = f32[2] add(f32[2], f32[2])")
    assert len(module.entry.parameters) == 2
    module = parse_module("p = f32[] parameter(0)\nROOT n = f32[] negate(p)")
    assert module.entry.root.name == "n"


def test_module_without_header_and_without_entry():
    module = parse_module(
        "a { p = f32[] parameter(0) }\nb { p = f32[] parameter(0) ROOT c = f32[] call(p), to_apply=a }"
    )
    assert module.entry.name == "b" and module.name == "module_b"


def test_comments_and_odd_blanks():
    module = parse_module(
        "// a\r\nHloModule m: /* x\ny */\r\n\tENTRY e { // z\n%p=f32[2]{0} parameter( 0 ) ROOT /*r*/ t = (f32[2]) tuple( /*index=0*/p )\r\n}"
    )
    assert module.entry.root.operands[0].name == "p"


def test_threads_and_control_predecessors():
    module = parse_module(
        'host { p = f32[] parameter(0) ROOT n = f32[] negate(p), control-predecessors={p} }, execution_thread="h"\n'
        "ENTRY e { p = f32[] parameter(0) ROOT c = f32[] call(p), to_apply=host }"
    )
    assert module.computations[0].attributes["execution_thread"] == "h"
    assert module.computations[0].root.attributes["control-predecessors"] == ("p",)


# -- corpora -----------------------------------------------------------------------------------------------------------
LOADED = """
import importlib, importlib.util, sys
spec = importlib.util.spec_from_file_location("testbed", sys.argv[1], submodule_search_locations=[sys.argv[2]])
module = sys.modules["testbed"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
importlib.import_module(sys.argv[3])
print("\\n".join(sys.modules))
"""


def loaded_by(module: str) -> set[str]:
    """The modules that are loaded in a fresh process after it imported `module`."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", LOADED, str(root / "__init__.py"), str(root), module]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_importing_the_parser_loads_no_numerics():
    numerics = {reference.__name__, rules.__name__, evaluator.__name__}
    assert numerics <= loaded_by(evaluator.__name__)
    loaded = loaded_by(Parser.__module__)
    assert Parser.__module__ in loaded and "numpy" in loaded  # numpy: for dtypes and literals
    heavy = numerics | {"scipy"}
    assert {name for name in loaded if any(name == h or name.startswith(f"{h}.") for h in heavy)} == set()


REFUSED = {"009fbcb121e89ae2": "one rhs_reversal for two dimensions: XLA reads past the end of its list"}
"""Text that XLA accepts and we refuse, with the reason."""


def corpus_misses(pattern: str, count: int | None) -> list[str]:
    files = sample(pattern, count)
    return [f"{p.stem}: {reason}" for p in files if (reason := roundtrip(p.read_text(), p.name)) is not None]


@pytest.mark.parametrize(
    ("pattern", "count"),
    [("parse_only/*.hlo", 400), ("xla_modules/*.hlo", 200), ("op_cases/*.hlo", 100), ("jax_programs/*/*.hlo", 20)],
)
def test_corpus_round_trip(pattern, count):
    assert [m for m in corpus_misses(pattern, count) if m.split(":")[0] not in REFUSED] == []


@pytest.mark.deep
@pytest.mark.parametrize("pattern", ["parse_only/*.hlo", "xla_modules/*.hlo", "op_cases/*.hlo", "jax_programs/*/*.hlo"])
def test_whole_corpus_round_trip(pattern):
    misses = {m.split(":")[0] for m in corpus_misses(pattern, None)}
    assert misses == (set(REFUSED) if pattern.startswith("parse_only") else set())


def test_small_floats_have_bits():
    """ml_dtypes rounds decimal text as XLA does: through double."""
    assert (
        literal_of("bf16[1]", "{1.00390625}").array.view(np.uint16)[0]
        == np.array([1.00390625]).astype(ml_dtypes.bfloat16).view(np.uint16)[0]
    )
