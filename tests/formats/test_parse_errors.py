"""Malformed HLO text: every error path of the parser, with the place, the words and the remedy; and nothing else escapes."""

# ruff: noqa: E501 - tables are read by line

import ast
import os
import random
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ...differential.roundtrip import roundtrip
from ...formats.text import lexer as lexer_module
from ...formats.text.lexer import Lexer
from ...formats.text.parse_value import parse_value
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...hlo.errors import ParseError, TestbedError
from ...hlo.opcodes import BY_NAME
from ...hlo.shapes import array
from ...hlo.verify.verifier import verify
from ..support.corpus import sample


def entry(*lines: str) -> str:
    """A module whose entry holds these lines: the first one is line 3, column 3."""
    return "HloModule m\nENTRY e {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


CALLS = {"dimensions": "sort(p)", "padding": "pad(p, p)", "replica_groups": "all-gather(p)"}


def one(attributes: str) -> str:
    """An instruction with these attributes, which begin at line 4, column 35. It is usually a custom call."""
    call = CALLS.get(attributes.split("=")[0], "custom-call(p)")
    return entry("p = f32[2] parameter(0)", f"ROOT r = f32[2] {call},".ljust(32) + attributes)


P = "p = f32[2] parameter(0)"
DEEP = 70

# (name, text, line, column, part of the message, part of the remedy or None)
CASES = [
    # module and computations
    ("empty", " \n ", 2, 2, "the text is empty", "HloModule"),
    ("module name", "HloModule {", 1, 11, "expected the module's name, found '{'", None),
    ("header attribute twice", "HloModule m, is_scheduled=true, is_scheduled=true", 1, 33, "'is_scheduled' is given twice", None),
    ("header unknown", "HloModule m, is_schedulled=true", 1, 14, "unexpected attribute 'is_schedulled' of the module", "'is_scheduled'"),
    ("header of computations", "HloModule m, foo={1}", 1, 14, "unexpected attribute 'foo' of the module", "attributes of the module are"),
    ("attribute of computations", "e { p = f32[] parameter(0) }, thread=\"x\"", 1, 31, "unexpected attribute 'thread' of a computation", "are execution_thread"),
    ("attribute of computations twice", "e { p = f32[] parameter(0) }, execution_thread=\"x\", execution_thread=\"x\"", 1, 53, "'execution_thread' is given twice", None),
    ("header junk", "HloModule m, 5", 1, 14, "expected an attribute of the module, found '5'", "name=value"),
    ("no computation", "HloModule m\n", 2, 1, "expected a computation's name, found the end of the text", None),
    ("computation body", "HloModule m\ne x", 2, 3, "expected '{' before the instructions of 'e'", None),
    ("unclosed body", "HloModule m\ne { p = f32[] parameter(0) ", 2, 28, "expected an instruction's name, found the end", None),
    ("body junk", "HloModule m\ne { p = f32[] parameter(0) , }", 2, 30, "expected an attribute of parameter, found '}'", None),
    ("no instructions", "HloModule m\ne { }", 2, 5, "'e' has no instructions", None),
    ("two entries", "ENTRY a { p = f32[] parameter(0) }\nENTRY b { p = f32[] parameter(0) }", 2, 1, "a second ENTRY", "one"),
    ("same computation", "a { p = f32[] parameter(0) }\na { p = f32[] parameter(0) }", 2, 1, "'a' is defined twice", "rename"),
    ("two roots", entry("ROOT a = f32[] parameter(0)", "ROOT b = f32[] parameter(1)"), 4, 3, "a second ROOT", "mark one"),
    ("parameter numbers", entry("a = f32[] parameter(0)", "b = f32[] parameter(2)"), 6, 1, "are numbered [0, 2]", "from 0"),
    ("signature result", "HloModule m\ne (p: f32[]) -> f32[3] { p = f32[] parameter(0) }", 2, 3, "declares the result f32[3]", None),
    ("signature name", "HloModule m\ne (5: f32[]) -> f32[] {", 2, 4, "expected a parameter's name", None),
    ("signature end", "HloModule m\ne (p: f32[] ; q) {", 2, 13, "expected ')' after the parameters", None),
    ("signature arrow", "HloModule m\ne (p: f32[]) f32[] {", 2, 14, "expected '->' before the result's shape", None),
    ("deep computations", "HloModule m\ne {" + "c = f32[] call(), to_apply={" * DEEP, 2, 1795, "computations nested deeper", None),
    # instructions
    ("instruction name", entry("5 = f32[] parameter(0)"), 3, 3, "expected an instruction's name, found '5'", None),
    ("equal sign", entry("p f32[] parameter(0)"), 3, 5, "expected '=' after 'p', found 'f32'", None),
    ("attribute-like name", entry("p=f32[] parameter(0)"), 3, 4, "'p=' reads as an attribute", "blank"),
    ("opcode missing", entry("p = f32[] (0)"), 3, 13, "expected an opcode, found '('", None),
    ("opcode unknown", entry("p = f32[] paramter(0)"), 3, 13, "unknown opcode 'paramter'", "'parameter'"),
    ("opcode parenthesis", entry("p = f32[] parameter 0"), 3, 23, "expected '(' before the operands of parameter", None),
    ("parameter number", entry("p = f32[] parameter(x)"), 3, 23, "expected a parameter number, found 'x'", None),
    ("constant shape", entry("c = constant(1)"), 3, 3, "a constant needs its shape", None),
    ("constant end", entry("c = f32[] constant(1 2)"), 3, 24, "expected ')' after the value of a constant", None),
    ("same instruction", entry(P, P), 4, 3, "instruction 'p' is defined twice", "3:3"),
    ("no shape", entry(P, "ROOT r = convert(p)"), 4, 8, "convert needs its shape", "name = shape opcode"),
    ("cannot infer", entry(P, "q = f32[3] parameter(1)", "ROOT r = add(p, q)"), 5, 8, "cannot infer the shape", "broadcast"),
    ("operand unknown", entry("pear = f32[] parameter(0)", "ROOT r = f32[] abs(pea)"), 4, 22, "no instruction 'pea'", "'pear'"),
    ("operand later", entry("r = f32[] abs(q)", "q = f32[] parameter(0)"), 3, 17, "no instruction 'q'", "before its use"),
    ("operand missing", entry(P, "ROOT r = f32[2] add(p, )"), 4, 8, "add takes 2 operands, not 1", None),
    ("operand", entry(P, "ROOT r = f32[2] add(p, =)"), 4, 26, "expected an operand of add, found '='", None),
    ("operands unclosed", entry(P, "ROOT r = f32[2] add(p p)"), 4, 25, "expected ')' after the operands of add", None),
    ("operand shape", entry(P, "ROOT r = f32[2] abs(f32[3] p)"), 4, 23, "declared f32[3] but has shape f32[2]", None),
    ("operand shape, slow", entry(P, "ROOT r = f32[2] abs((f32[]) p)"), 4, 23, "declared (f32[]) but has shape", None),
    ("arity", entry(P, "ROOT r = f32[2] add(p)"), 4, 8, "add takes 2 operands, not 1", None),
    ("nested opcode", entry(P, "ROOT r = f32[2] abs(f32[2] foo(p))"), 4, 30, "unknown opcode 'foo'", "did you mean"),
    ("nested attribute", entry(P, "ROOT r = f32[2] abs(f32[2] iota())"), 4, 23, "iota needs the attribute 'iota_dimension'", "add"),
    ("nested async", entry(P, "ROOT r = f32[2] abs(f32[2] add-start(p, p))"), 4, 23, "cannot be nested", None),
    ("deep operands", entry(P, "ROOT r = f32[2] " + "abs(" * DEEP), 4, 275, "instructions nested deeper", None),
    ("nested paren", entry(P, "ROOT r = f32[2] abs(f32[2] sqrt p)"), 4, 30, "no instruction 'sqrt'", None),
    ("nested name", entry(P, "ROOT r = f32[2] abs(f32[2] sqrt.1(p))"), 4, 34, "expected '(' before the operands of sqrt", None),
    ("computation unknown", entry(P, "ROOT r = f32[2] call(p), to_apply=foo"), 4, 37, "no computation 'foo'", None),
    (
        "computation later",
        "ENTRY e { p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=f }\nf { p = f32[] parameter(0) }",
        1, 67, "no computation 'f'", "before its use",
    ),
    ("async shape", entry(P, "r = add-start(p, p)"), 4, 3, "add-start needs its shape", None),
    ("async form", entry(P, "r = f32[2] add-start(p, p)"), 4, 3, "must be ((operands), result, state…)", None),
    (
        "async mismatch",
        entry(P, "s = ((f32[2], f32[2]), f32[2]) add-start(p, p)", "ROOT r = f32[2] abs-done(s)"),
        5, 8, "ends a abs, but its start wraps a add", None,
    ),
    # attributes in general
    ("attribute missing", entry("ROOT r = s32[2] iota()"), 3, 8, "iota needs the attribute 'iota_dimension'", "add iota_dimension="),
    ("attribute misspelt", entry("ROOT r = s32[2] iota(), iota_dimensions=0"), 3, 27, "unexpected attribute 'iota_dimensions' of iota", "'iota_dimension'"),
    ("attribute unknown", entry(P, "ROOT r = f32[2] abs(p), foo={1}"), 4, 27, "unexpected attribute 'foo' of abs", "are: none of its own"),
    ("attribute of all misspelt", entry(P, "ROOT r = f32[2] abs(p), shardin={replicated}"), 4, 27, "'shardin' of abs", "'sharding'"),
    ("attribute of another opcode", entry(P, "ROOT r = f32[2] sort(p), slice={[0:1]}"), 4, 28, "unexpected attribute 'slice' of sort", "dimensions, to_apply, is_stable; and"),
    ("attribute of start", entry(P, "ROOT s = ((f32[2]), f32[2], u32[]) abs-start(p), kind=kLoop"), 4, 52, "unexpected attribute 'kind' of abs", "none"),
    ("attribute of parameter", entry("p = f32[2] parameter(0), dimensions={0}"), 3, 28, "unexpected attribute 'dimensions' of parameter", "none"),
    ("result accuracy", entry(P, "ROOT r = f32[2] abs(p), result_accuracy={mode=highest}"), 4, 27, "'result_accuracy' of abs", "none"),
    ("attribute twice", entry("ROOT r = s32[2] iota(), iota_dimension=0, iota_dimension=0"), 3, 45, "is given twice", None),
    ("attribute form", entry("ROOT r = s32[2] iota(), 7"), 3, 27, "expected an attribute of iota, found '7'", "name=value"),
    ("integer", entry("ROOT r = s32[2] iota(), iota_dimension=x"), 3, 42, "expected an integer for 'iota_dimension', found 'x'", None),
    ("64 bits", entry("ROOT r = s32[2] iota(), iota_dimension=" + "9" * 30), 3, 42, "does not fit in 64 bits", None),
    ("boolean", one("custom_call_has_side_effect=maybe"), 4, 63, "expected true or false", None),
    ("real", entry(P, "ROOT r = f32[2] batch-norm-training(p, p, p), epsilon=x"), 4, 57, "expected a number for 'epsilon'", None),
    ("string", one("custom_call_target=foo"), 4, 54, "expected a quoted string for 'custom_call_target'", None),
    ("string unclosed", one('custom_call_target="foo'), 4, 54, "unterminated string", "same quote"),
    ("string escape", one(r'custom_call_target="\q"'), 4, 54, "unknown escape \\q", r"\\"),
    ("string code", one(r'custom_call_target="\U00ffffff"'), 4, 54, "is no character", None),
    ("word", one("api_version=5"), 4, 47, "expected a word for 'api_version'", None),
    ("one of", entry(P, "ROOT r = pred[2] compare(p, p), direction=LX"), 4, 45, "expected one of EQ, NE, GE, GT, LE, LT for 'direction', found 'LX'", None),
    ("integers open", one("dimensions=5"), 4, 46, "expected '{' before the integers of 'dimensions'", None),
    ("integers inside", one("dimensions={a}"), 4, 47, "expected an integer in 'dimensions'", None),
    ("integers comma", one("dimensions={1,}"), 4, 49, "expected an integer in 'dimensions'", None),
    ("integers close", one("dimensions={1;2}"), 4, 48, "expected '}' after the integers of 'dimensions'", None),
    ("groups", one("replica_groups=5"), 4, 50, "expected device groups", "[2,2]<=[4]"),
    ("group lists", one("replica_groups={{0},1}"), 4, 55, "expected '{' before the integers", None),
    ("booleans", one("parameter_replication={true;}"), 4, 62, "expected '}' after the values", None),
    ("words open", one("operand_precision=high"), 4, 53, "expected '{' before the words", None),
    ("words inside", one("operand_precision={5}"), 4, 54, "expected a word in 'operand_precision'", None),
    ("ranges", entry(P, "ROOT r = f32[1] slice(p), slice={0:1}"), 4, 36, "expected a range in 'slice', found '0'", "[start:limit"),
    ("padding", one("padding=3"), 4, 43, "expected low_high", "padding=0_1x2_2_1"),
    ("window open", one("window=3"), 4, 42, "expected '{' before the fields of 'window'", None),
    ("window field", one("window={5}"), 4, 43, "expected a field of 'window'", None),
    ("window unknown", one("window={sizes=3}"), 4, 43, "unknown field 'sizes'", "'size'"),
    ("window twice", one("window={size=3 size=3}"), 4, 50, "'size' is given twice", None),
    ("window equal", one("window={size 3}"), 4, 48, "expected '=' after 'size'", None),
    ("window value", one("window={size=x}"), 4, 48, "expected numbers like 2x3 for 'size'", None),
    ("window ranks", one("window={size=3x3 stride=1}"), 4, 60, "2 sizes and 1 values of 'stride'", "joined by x"),
    ("dim labels", one("dim_labels=b01f"), 4, 46, "expected dimension labels", "b01f_01io->b01f"),
    ("dim labels side", one("dim_labels=b01f_01ii->b01f"), 4, 46, "kernel labels '01ii' must be 0, 1, i, o, each once", None),
    ("dim labels many", one("dim_labels=b01234567890f_01io->b01f"), 4, 46, "more than ten spatial dimensions", None),
    ("computation name", entry("ROOT r = f32[] call(), to_apply=5"), 3, 35, "expected a computation for 'to_apply'", None),
    ("computations", one("called_computations={5}"), 4, 56, "expected a computation for 'called_computations'", None),
    ("predecessor", one("control-predecessors={5}"), 4, 57, "expected an instruction in 'control-predecessors'", None),
    ("predecessor unknown", one("control-predecessors={q}"), 4, 57, "no instruction 'q'", None),
    ("shapes", one("operand_layout_constraints={5}"), 4, 63, "expected a shape, found '5'", "f32[2,3]{1,0}"),
    ("value", one("sharding="), 5, 1, "expected a value for 'sharding', found '}'", None),
    ("value open", one("sharding={(}"), 4, 46, "'sharding' has unbalanced brackets", "partner"),
    ("value unclosed", "e { p = f32[] parameter(0), origin={[1]", 1, 36, "'origin' opens '{' and never closes it", None),
    ("value pair", one("sharding={("), 5, 1, "'sharding' has unbalanced brackets", "partner"),
    ("string in value", one('sharding={"x'), 4, 45, "a string without an end", "same quote"),
    # header attributes
    ("layout open", "HloModule m, entry_computation_layout=f32[]", 1, 39, "expected '{' before 'entry_computation_layout'", None),
    ("layout paren", "HloModule m, entry_computation_layout={f32[]}", 1, 40, "expected '(' before the parameter shapes", None),
    ("layout arrow", "HloModule m, entry_computation_layout={(f32[])}", 1, 47, "expected '->' before the result shape", None),
    ("layout close", "HloModule m, entry_computation_layout={()->f32[];", 1, 49, "expected '}' after 'entry_computation_layout'", None),
    ("alias rows", "HloModule m, input_output_alias=3", 1, 33, "expected '{' before the rows", None),
    ("alias index", "HloModule m, input_output_alias={ {x}: (0, {}) }", 1, 36, "expected an integer in a tuple index", None),
    ("alias colon", "HloModule m, input_output_alias={ {} (0, {}) }", 1, 38, "expected ':' after an output", "{output}:"),
    ("alias paren", "HloModule m, input_output_alias={ {}: 0 }", 1, 39, "expected '(' before the parameter", "(parameter, {index})"),
    ("alias number", "HloModule m, input_output_alias={ {}: (x, {}) }", 1, 40, "expected an integer for the parameter", None),
    ("alias comma", "HloModule m, input_output_alias={ {}: (0 {}) }", 1, 42, "expected ',' after the parameter", None),
    ("alias kind", "HloModule m, input_output_alias={ {}: (0, {}, will-alias) }", 1, 47, "expected one of may-alias", "'may-alias'"),
    ("alias close", "HloModule m, input_output_alias={ {}: (0, {}; }", 1, 45, "expected ')' after the parameter", None),
    ("donor close", "HloModule m, buffer_donor={ (0, {}; }", 1, 35, "expected ')' after the parameter", None),
    ("operand alias colon", one("output_to_operand_aliasing={{} (0, {})}"), 4, 66, "expected ':' after an output", None),
    ("operand alias close", one("output_to_operand_aliasing={{}: (0, {}}"), 4, 73, "expected ')' after the operand", None),
    # shapes
    ("dtype unknown", entry("p = f31[] parameter(0)"), 3, 7, "unknown primitive type 'f31'", "'f32'"),
    ("bracket", entry("p = f32 parameter(0)"), 3, 11, "expected '[' after the primitive type 'f32'", "f32[]"),
    ("bracket close", entry("p = f32[2 parameter(0)"), 3, 13, "expected ']' at the end of the dimensions", None),
    ("dimension", entry("p = f32[x] parameter(0)"), 3, 11, "expected a dimension size, found 'x'", "bound"),
    ("dimension size", entry("p = f32[9999999999999999999] parameter(0)"), 3, 11, "is too large", None),
    ("dimension bits", entry("p = f32[" + "9" * 30 + "] parameter(0)"), 3, 41, "does not fit in 64 bits", None),
    ("token rank", entry("p = token[2] parameter(0)"), 3, 7, "token has no dimensions", None),
    ("tuple close", entry("p = (f32[] parameter(0)"), 3, 14, "expected ')' at the end of a tuple shape", None),
    ("tuple element", entry("p = (5) parameter(0)"), 3, 8, "expected a shape, found '5'", None),
    ("deep tuple", entry("p = " + "(" * DEEP + ")" * DEEP + " parameter(0)"), 3, 72, "tuples nested deeper", None),
    ("deep literal", entry('r = f32[] custom-call(), custom_call_target="t", literal=' + "(" * DEEP), 3, 125, "tuples nested deeper", None),
    ("buffer close", entry("p = b(f32[] parameter(0)"), 3, 15, "expected ')' at the end of a buffer shape", None),
    ("layout order", entry("p = f32[2,3]{0,0} parameter(0)"), 3, 15, "layout {0,0} is no order of the 2 dimensions", "once"),
    ("layout property", entry("p = f32[2]{0:Q(1)} parameter(0)"), 3, 16, "expected a layout property, found 'Q'", "T(8,128)"),
    ("layout property twice", entry("p = f32[2]{0:S(1)S(1)} parameter(0)"), 3, 20, "S is given twice", None),
    ("layout value", entry("p = f32[2]{0:E(} parameter(0)"), 3, 17, "E is malformed", None),
    ("layout space", entry("p = f32[2]{0:S(x)} parameter(0)"), 3, 20, "a memory space is a number, not 'x'", None),
    ("layout end", entry("p = f32[2]{0 parameter(0)"), 3, 16, "expected '}' at the end of a layout", None),
    ("tile end", entry("p = f32[2]{0:T(2;)} parameter(0)"), 3, 19, "expected ')' at the end of a tile", None),
    # constants
    ("number", entry("c = f32[] constant(x)"), 3, 22, "expected a f32 number, found 'x'", None),
    ("number for pred", entry("c = pred[] constant(1.5)"), 3, 23, "expected true or false, found '1.5'", None),
    ("number for s32", entry("c = s32[] constant(1.5)"), 3, 22, "expected an integer for s32, found '1.5'", None),
    ("true for f32", entry("c = f32[] constant(true)"), 3, 22, "expected a f32 number, found 'true'", None),
    ("s8 range", entry("c = s8[] constant(128)"), 3, 21, "128 is out of range for s8, which holds -128 to 127", None),
    ("u8 range", entry("c = u8[2] constant({1,-1})"), 3, 25, "-1 is out of range for u8", None),
    ("s64 range", entry("c = s64[] constant(99999999999999999999)"), 3, 22, "does not fit in 64 bits", None),
    ("f16 range", entry("c = f16[] constant(70000)"), 3, 22, "70000 is out of range for f16", None),
    ("hex range", entry("c = f64[] constant(0x1p5000)"), 3, 22, "is out of range for f64", None),
    ("nan payload", entry("c = f16[] constant(nan(0x1000))"), 3, 22, "NaN payload 0x1000 is outside", None),
    ("nan without payload", entry("c = f8e4m3fn[] constant(nan(0x1))"), 3, 27, "has no payload", "write nan"),
    ("complex comma", entry("c = c64[] constant((1 2))"), 3, 25, "expected ',' between the parts", None),
    ("complex close", entry("c = c64[] constant((1, 2)"), 4, 1, "expected ')' after the value", None),
    ("complex close 2", entry("c = c64[] constant((1, 2 3))"), 3, 28, "expected ')' after a complex number", None),
    ("few elements", entry("c = f32[3] constant({1, 2})"), 3, 28, "has 2 elements, not 3", None),
    ("many elements", entry("c = f32[1] constant({1, 2})"), 3, 27, "has more than 1 elements", None),
    ("brace", entry("c = f32[2,1] constant({1, 2})"), 3, 26, "expected '{' to open dimension 1", None),
    ("brace close", "HloModule m\ne { c = f32[1] constant({1", 2, 27, "expected '}' to close dimension 0", None),
    ("too large", entry("c = f32[99999999,99999999] constant({1})"), 3, 39, "is too large to read", None),
    ("one number for much", entry("c = f32[99999,9999] constant(1)"), 3, 32, "is too large to fill", None),
    ("one number too large", entry("c = f32[0,99999999999,99999999] constant(0)"), 3, 44, "is too large", None),
    ("unbounded", entry("c = f32[?] constant({1})"), 3, 23, "dimension 0 of f32[?] is unbounded", None),
    ("opaque", entry("c = opaque[] constant(1)"), 3, 25, "a constant cannot have the shape opaque[]", None),
    ("tuple open", entry("c = (f32[]) constant(1)"), 3, 24, "expected '(' before the elements", None),
    ("tuple comma", entry("c = (f32[], f32[]) constant((1 2))"), 3, 34, "expected ',' between the elements", None),
    ("tuple end", entry("c = (f32[]) constant((1, 2))"), 3, 26, "expected ')' after the 1 elements", None),
    # orders of compare, operands without a name
    ("order twice", entry(P, "ROOT r = pred[2] compare(p, p), direction=LT, type=FLOAT, order=TOTAL"), 4, 8, "both 'order' and 'type'", "leave one"),
    ("weak order", entry(P, "ROOT r = pred[2] compare(p, p), direction=LT, order=WEAK"), 4, 8, "order=WEAK of compare is not supported", "order=TOTAL"),
    ("no order", entry(P, "ROOT r = pred[2] compare(p, p), direction=LT, order=ANY"), 4, 55, "expected one of TOTAL, PARTIAL, WEAK", None),
    ("order of add", entry(P, "ROOT r = f32[2] add(p, p), order=TOTAL"), 4, 30, "unexpected attribute 'order' of add", None),
    ("shape alone", entry(P, "ROOT r = f32[2] negate(f32[2])"), 4, 8, "negate takes 1 operand, not 0", None),
    # sizes
    ("2^63 bytes", entry("ROOT p = f32[2305843009213693952] parameter(0)"), 3, 12, "has 9.22e+18 bytes, more than 2^63 - 1", "smaller"),
    ("1e24 bytes", entry("ROOT p = u8[1000000,1000000,1000000,<=1000000] parameter(0)"), 3, 12, "has 1e+24 bytes", "smaller"),
    # comments, strings and characters
    ("comment", "HloModule m\n/* x", 2, 1, "expected a computation's name, found a comment without an end", None),
    ("quote", "HloModule m\n'x", 2, 1, "found a string without an end", None),
    ("character", "HloModule m\nπ { }", 2, 1, "expected a computation's name, found 'π'", None),
    ("nul", "HloModule m\0", 1, 12, "expected a computation's name, found '\\x00'", None),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[c[0] for c in CASES])
def test_error(case):
    _, text, line, column, message, remedy = case
    with pytest.raises(ParseError) as raised:
        parse_module(text, "file.hlo")
    error = raised.value
    assert (error.location.line, error.location.column) == (line, column), str(error)
    assert message in error.message
    assert remedy is None or remedy in (error.remedy or ""), error.remedy
    assert str(error).startswith(f"file.hlo:{line}:{column}: ")


SHARDINGS = [
    ("sharding word", 'replicated', "expected '{' before the words of 'sharding'"),
    ("sharding end", '{replicated}x', "expected the end of 'sharding'"),
    ("sharding comma", '{{replicated} {manual}}', "expected ',' between the shardings"),
    ("sharding last", '{{replicated},}', 'expected another sharding'),
    ("sharding element", '{{replicated}, x}', "expected '{' before the words"),
    ("sharding kind", '{replicate}', "expected a word of 'sharding', found 'replicate'"),
    ("sharding device", '{maximal device 0}', "expected '=' after 'device'"),
    ("sharding device number", '{maximal device=x}', 'expected an integer for the device'),
    ("sharding devices", '{devices [2]0,1}', "expected '=' after 'devices'"),
    ("sharding tiles", '{devices=2}', "expected '[' before the tile dimensions"),
    ("sharding no tiles", '{devices=[]0}', 'expected an integer for the tile dimensions'),
    ("sharding more tiles", '{devices=[2,]0}', 'expected an integer for the tile dimensions'),
    ("sharding open tiles", '{devices=[2 0]}', "expected ']' after the tile dimensions"),
    ("sharding zero", '{devices=[0]0}', "the tile dimensions of 'sharding' are [0]"),
    ("sharding list", '{devices=[2]{0,1}}', 'expected an integer for a device'),
    ("sharding long list", '{devices=[2]0,}', 'expected an integer for a device'),
    ("sharding order", '{devices=[4]<=[2,2]T(0)}', 'T(0) does not order 2 dimensions'),
    ("sharding group", '{replicated shard_as}', "expected an integer for the group of 'shard_as'"),
    ("sharding dims", '{devices=[2,2]<=[4] last_tile_dims}', "expected '=' after 'last_tile_dims'"),
    ("sharding dims list", '{devices=[2,2]<=[4] last_tile_dims=x}', "expected '{' after 'last_tile_dims='"),
    ("sharding dims kind", '{devices=[2,2]<=[4] last_tile_dims={x}}', 'expected a kind of dimension'),
    ("sharding metadata", '{replicated metadata}', "expected '=' after 'metadata'"),
    ("sharding maximal", '{maximal}', "a maximal sharding in 'sharding' needs one device"),
    ("sharding with devices", '{manual device=0}', "a manual sharding in 'sharding' has no devices"),
    ("sharding nothing", '{device=0}', "'sharding' says neither a kind nor devices"),
    ("sharding few", '{devices=[2]0}', "'sharding' has 2 tiles and 1 devices"),
    ("sharding axis", "{mesh['x'=2] [{'z'}]}", "the mesh of 'sharding' has no axis 'z'"),
]  # fmt: skip
GOOD_SHARDINGS = (
    "{}", "{replicated}", "{ manual }", "{maximal device=3}", "{{replicated}, {maximal device=1}}", "{devices=[2]0,1}",
    "{devices=[4]<=[2,2]T(1,0) last_tile_dims={manual, replicated}}", "{devices=[2,2]<=[4] last_tile_dim_replicate}",
    '{unreduced shard_like 2 metadata={op_name="x"}}', "{mesh['x'=2,'y'=2] [{'x':(1)2}, {?}], replicated={'y'}}",
)  # fmt: skip


def sharded(text: str) -> str:
    return entry(P, f"ROOT r = f32[2] copy(p), sharding={text}")


@pytest.mark.parametrize("case", SHARDINGS, ids=[case[0] for case in SHARDINGS])
def test_error_in_a_sharding(case):
    with pytest.raises(ParseError) as raised:
        parse_module(sharded(case[1]))
    assert case[2] in raised.value.message and raised.value.location.line == 4
    assert raised.value.location.column > len("  ROOT r = f32[2] copy(p), sharding=")


@pytest.mark.parametrize("text", GOOD_SHARDINGS)
def test_shardings_are_kept_as_text(text):
    module = parse_module(sharded(text))
    assert module.entry.root.attributes["sharding"].text == text
    assert roundtrip(sharded(text)) is None


VALUES = [
    ("s32[2] {1, 2}", 1, "s32[2] does not match f32[2]", "give a value of f32[2]"),
    ("{1, 2} {3, 4}", 8, "expected the end of the value", "give one value"),
    ("f32[2] {...}", 1, "the value is elided as {...}", "write its elements"),
]


@pytest.mark.parametrize("case", VALUES, ids=[case[0] for case in VALUES])
def test_error_in_a_value(case):
    text, column, message, remedy = case
    with pytest.raises(ParseError) as raised:
        parse_value(text, array(DType.F32, 2), "--input 1")
    error = raised.value
    assert str(error.location) == f"--input 1:1:{column}" and message in error.message and remedy in error.remedy


# -- every place that can fail is reached by some case -----------------------------------------------------------------
TEXT = Path(lexer_module.__file__).parent
FAILING = ("fail", "expect", "name", "integer", "string")
NEVER = {
    "lexer.name('a primitive type')",
    "p.lexer.name(name)",
    "p.lexer.integer(f\"for '{name}'\")",
}  # cannot fail: the parser looked ahead


def failing_calls() -> dict[tuple[str, int], str]:
    """(file, line) -> source of every call in the parser that may raise a ParseError."""
    calls = {}
    for path in [*TEXT.glob("parse*.py"), TEXT / "lexer.py"]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FAILING:
                source = ast.unparse(node)
                if source.startswith(("lexer.", "p.lexer.", "self.lexer.", "self.")) and source not in NEVER:
                    calls[path.name, node.lineno] = source
    return calls


def test_every_error_path_has_a_case(monkeypatch):
    fail, seen = Lexer.fail, set()

    def recording_fail(self, *args, **kwargs):
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_name in (*FAILING, "number", "unescape", "resolve"):
            seen.add((Path(frame.f_code.co_filename).name, frame.f_lineno))
            frame = frame.f_back
        seen.add((Path(frame.f_code.co_filename).name, frame.f_lineno))
        fail(self, *args, **kwargs)

    monkeypatch.setattr(Lexer, "fail", recording_fail)
    for case in CASES:
        with pytest.raises(ParseError):
            parse_module(case[1])
    for case in SHARDINGS:
        with pytest.raises(ParseError):
            parse_module(sharded(case[1]))
    for case in VALUES:
        with pytest.raises(ParseError):
            parse_value(case[0], array(DType.F32, 2))
    missed = {place: source for place, source in failing_calls().items() if place not in seen}
    assert not missed, "\n".join(f"{place}: {source}" for place, source in missed.items())


def test_snippet_points_at_the_column():
    with pytest.raises(ParseError) as raised:
        parse_module(entry("p = f32[] paramter(0)"))
    assert raised.value.snippet() == "  p = f32[] paramter(0)\n            ^"


def test_snippet_keeps_tabs_and_cuts_long_lines():
    with pytest.raises(ParseError) as raised:
        parse_module("e {\n\tp = f32[] foo(" + "x" * 500 + ")")
    line, caret = raised.value.snippet(width=40).split("\n")
    assert len(line) == 40
    assert caret == "\t" + " " * 10 + "^"
    with pytest.raises(ParseError) as raised:
        parse_module("e { p = f32[] abs(" + " " * 500 + "5)")
    line, caret = raised.value.snippet(width=40).split("\n")
    assert line[len(caret) - 1] == "5"


# -- nothing but a TestbedError escapes ---------------------------------------------------------------------------------
SEEDS = [
    one('custom_call_target="f", window={size=3 pad=1_1}, backend_config={"a":[1,{}]}, metadata={op_name="x"}'),
    entry(
        "p = f32[2,3]{1,0:T(8,128)S(1)} parameter(0)", "c = f32[2,3] constant({{1,-2.5,nan},{inf,-inf,1e5}})",
        "d = f32[2,2] dot(p, c), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        "s = f32[1,3] slice(p), slice={[0:1], [0:3]}", "ROOT t = (f32[2,2], f32[1,3]) tuple(d, s)",
    ),
    "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
    + entry(
        P, "z = f32[] constant(0)", "r = f32[] reduce(p, z), dimensions={0}, to_apply=add",
        "w = f32[2] reduce-window(p, z), window={size=2 pad=0_1}, to_apply=add", "ROOT t = tuple(r, w)",
    ),
    entry("p = pred[] parameter(0)", "s = ((pred[]), pred[], u32[]) not-start(p)", "ROOT d = pred[] not-done(s)"),
    "HloModule m, input_output_alias={ {}: (0, {}, must-alias) }, entry_computation_layout={(f32[2]{0})->f32[2]{0}}\n"  # noqa: ISC004
    "ENTRY %e (p: f32[2]) -> f32[2] { %p = f32[2]{0} parameter(0)\n ROOT %n = f32[2]{0} negate(f32[2]{0} %p) }",
]  # fmt: skip
WORDS = [
    "{", "}", "(", ")", "[", "]", ",", "=", "->", "%", '"', "'", "/*", "*/", "//", "\\", "\x00", "\u2028", "é", "٣", "-1", "0",
    "9" * 25, "9223372036854775807", "1e400", "-nan(0x1)", "f32[", "f32[]", "s4[2]", "?", "<=", "{...}", "ROOT", "ENTRY",
    "HloModule", "to_apply=", "calls={", "window={size=", "b(", "T(8,128)", "0_0x1_1", "\n", "token[]", "opaque[]",
    "f32[99999999999,99999999999]", "dimensions={-1}", "index=99", "constant(", "{" * 99, "(" * 99, *sorted(BY_NAME),
]  # fmt: skip


@st.composite
def mutated(draw):
    text = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 20)))
        text = (
            text[:start]
            + draw(st.sampled_from(["", text[end:][:9]]) | st.sampled_from(WORDS) | st.text(max_size=3))
            + text[end:]
        )
    return text


@given(mutated())
def test_mutated_text_is_read_or_refused(text):
    check_mutant(text)


def check_mutant(text: str) -> None:
    """Check that a text is refused with a location, or is read such that its printed text reads back equal."""
    try:
        module = parse_module(text)
    except ParseError as error:
        assert error.location is not None and error.message
        error.snippet()
        return
    assert roundtrip(text) is None
    try:
        verify(module)
    except TestbedError as error:
        assert str(error)


WORD = re.compile(r"""[A-Za-z_%][\w.\-]*|-?\d+|"[^"]*"|\s+|.""", re.DOTALL)


def mutant(words: list[str], rng: random.Random) -> str:
    """One to four words deleted, inserted, moved or replaced by one of the same kind; sometimes the end is cut off."""
    words = list(words)
    for _ in range(rng.randint(1, 4)):
        i = rng.randrange(len(words))
        like = [w for w in words if w[0].isalpha() == words[i][0].isalpha() and w[0].isdigit() == words[i][0].isdigit()]
        change = rng.randrange(8)
        if change == 0:
            words.insert(i, rng.choice(WORDS))
        elif change == 1:
            words = words[: i + 1]
        elif change == 2:
            words[i] = rng.choice(words)
        elif change == 3:
            words[i] = ""
        else:
            words[i] = rng.choice(like)
        words = [w for w in words if w] or ["x"]
    return "".join(words)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(int(os.environ.get("TESTBED_FUZZ_SEEDS", "8"))))
def test_mutated_corpus_is_read_or_refused(seed):
    """25,000 mutants of real modules per seed."""
    rng = random.Random(seed)
    texts = [p.read_text() for p in sample("parse_only/*.hlo", 500, seed)]
    words = [WORD.findall(t) for t in texts if 0 < len(t) < 4000]
    for _ in range(25_000):
        check_mutant(mutant(rng.choice(words), rng))
