"""Bad LHLO is refused with a rule's label or MLIR's message, and its line; nothing aborts, nothing passes."""

import pytest

from ...hlo.errors import ParseError, VerificationError
from ...lhlo import parse_bytecode, parse_text
from ...lhlo.guard import MAX_NESTING, seal

F4 = "memref<4xf32>"


def function(body: str, arguments: str = f"%a: {F4}, %b: {F4}, %o: {F4}, %p: memref<i1>", attributes: str = "") -> str:
    return f"func.func @f({arguments}) {attributes} {{\n{body}\nreturn\n}}"


def fusion(
    body: str, arguments: str = f"%x: {F4}, %r: {F4}", operands: str = f"%a, %o : {F4}, {F4}", tail: str = ""
) -> str:
    region = f"{{\n^bb0({arguments}):\n{body}\nvector.yield\n}}"
    return f'"lhlo.fusion"() ({region}, {{\nvector.yield {operands}\n}}) {{{tail}}} : () -> ()'


def op(name: str, *values: str, attributes: str = "", types: str = "") -> str:
    types = types or ", ".join([F4] * len(values))
    return f'"lhlo.{name}"({", ".join(values)}) {{{attributes}}} : ({types}) -> ()'


RULES = {
    "TOP1": "builtin.module {\n}\n" + function(""),
    "FUNC1": "func.func private @f()",
    "FUNC1-result": "func.func @f(%i: i32) -> i32 { return %i : i32 }",
    "CONST1": function('"lhlo.constant"(%o) {value = dense<1> : tensor<4xi32>} : (memref<4xf32>) -> ()'),
    "FUNC2": function("", "%a: memref<?xf32>"),
    "FUNC2-layout": function("", "%a: memref<4x5xf32, strided<[0, 0]>>"),
    "FUNC2-type": function("", "%a: i32"),
    "FUNC3": function("", f"%a: {F4} {{lhlo.alignment = 3 : i64}}"),
    "FUNC3-slice": function("", f"%a: {F4} {{lhlo.slice = array<i64: 0, 1>}}"),
    "FUNC5": function("", f"%a: {F4} {{lhlo.number = 1.5 : f32}}"),
    "FUNC5-name": function("", f"%a: {F4} {{lhlo.allignment = 16 : i64}}"),
    "FUNC5-function": function("", attributes="attributes {lhlo.program, lhlo.parameters = [3 : i64]}"),
    "FUNC5-elsewhere": function("", attributes="attributes {lhlo.program, lhlo.elsewhere = [array<i64: 0, 1>]}"),
    "OP1": function("%x = memref.cast %a : memref<4xf32> to memref<?xf32>"),
    "VIEW2": function('%v = "lhlo.view"(%a) {offset = 8 : i64} : (memref<4xf32>) -> memref<4xi32>'),
    "VIEW2-negative": function('%v = "lhlo.view"(%a) {offset = -4 : i64} : (memref<4xf32>) -> memref<2xi32>'),
    "WHILE1": function('"lhlo.while"(%a) ({ vector.yield }, { vector.yield }) : (memref<4xf32>) -> ()'),
    "WHILE2": function('"lhlo.while"(%p) ({ vector.yield %a : memref<4xf32> }, { vector.yield }) : (memref<i1>) -> ()'),
    "WHILE3": function(
        '"lhlo.while"(%p) ({ vector.yield }, { vector.yield }) {trip_count = -1 : i64} : (memref<i1>) -> ()'
    ),
    "CASE1": function('"lhlo.case"(%a) ({ vector.yield }) : (memref<4xf32>) -> ()'),
    "CASE2": function(
        '"lhlo.case"(%p) ({ "lhlo.branch"() ({ vector.yield }) : () -> ()\n vector.yield }) : (memref<i1>) -> ()'
    ),
    "CASE3": function('"lhlo.branch"() ({ vector.yield }) : () -> ()'),
    "ALLOC1": function("%t = memref.alloca() : memref<4xf32>"),
    "COPY1": function(
        "memref.copy %a, %s : memref<4xf32> to memref<4xf32, strided<[1]>>",
        "%a: memref<4xf32>, %s: memref<4xf32, strided<[1]>>",
    ),
    "GLOBAL1": "memref.global @g : memref<4xf32>",
    "KERNEL1": function(
        '%v = "lhlo.view"(%a) {offset = 8 : i64} : (memref<4xf32>) -> memref<2xf32>\n'
        '"lhlo.negate"(%v, %q) : (memref<2xf32>, memref<2xf32>) -> ()',
        f"%a: {F4}, %q: memref<2xf32>",
        "attributes {lhlo.kernel}",
    ),
    "SCRATCH1": function(op("negate", "%a", "%o", attributes="scratch = array<i64: 0, 64>")),
    "SCRATCH1-kernel": function(
        op("negate", "%a", "%o", attributes='scratch = "x"'), f"%a: {F4}, %o: {F4}", "attributes {lhlo.kernel}"
    ),
    "SCRATCH2": function(
        op("negate", "%a", "%o"), f"%s: memref<8xi8> {{lhlo.scratch}}, %a: {F4}, %o: {F4}", "attributes {lhlo.kernel}"
    ),
    "SCRATCH2-used": function(
        op("negate", "%a", "%o"), f"%a: {F4}, %o: {F4} {{lhlo.scratch}}", "attributes {lhlo.kernel}"
    ),
    "REGION1": function('"lhlo.concatenate"() ({}) {dimensions = array<i64: 0>} : () -> ()'),
    "REGION2": function(
        '"lhlo.concatenate"() ({ ^bb0(%x: memref<4xf32>): vector.yield }) {dimensions = array<i64: 0>} : () -> ()'
    ),
    "OUT1": function(op("negate", "%a", "%o", attributes="outputs = 3 : i64")),
    "DEST1": function(op("topk", "%a", "%o", "%o", attributes="k = 4 : i64, largest = true")),
    "DEST2": function(fusion(f"%t = memref.alloca() : {F4}\n" + op("negate", "%r", "%r"))),
    "ATTR1": function(op("negate", "%a", "%o", attributes="name = 3 : i64")),
    "ATTR1-copy": function(f"memref.copy %a, %o {{name = dense<1> : tensor<1xi32>}} : {F4} to {F4}"),
    "ATTR1-while": function('"lhlo.while"(%p) ({ vector.yield }, { vector.yield }) {name} : (memref<i1>) -> ()'),
    "ATTR1-case": function(
        '"lhlo.case"(%i) ({ "lhlo.branch"() ({ vector.yield }) : () -> ()\n vector.yield }) {name = 3 : i64} '
        ": (memref<i32>) -> ()",
        "%i: memref<i32>",
    ),
    "ATTR1-function": function(
        '"lhlo.while"(%p) ({ vector.yield }, { vector.yield }) {lhlo.kernel} : (memref<i1>) -> ()'
    ),
    "ATTR1-branch": function(
        '"lhlo.case"(%i) ({ "lhlo.branch"() ({ vector.yield }) {lhlo.kernel} : () -> ()\n vector.yield }) '
        ": (memref<i32>) -> ()",
        "%i: memref<i32>",
    ),
    "ATTR1-symbol": function(op("negate", "%a", "%o", attributes='kernel = "neg\\00ate"')),
    "ATTR1-computations": function(fusion(op("negate", "%x", "%r"), tail='computations = [["a"]]')),
    "NAME1": function(
        fusion(
            f"%t = memref.alloca() : {F4}\n"
            + op("negate", "%x", "%t", attributes='name = "n"')
            + op("negate", "%t", "%r", attributes='name = "n"')
        )
    ),
    "NAME1-parameter": function(fusion(op("negate", "%x", "%r", attributes='name = "x"'), tail='parameters = ["x"]')),
    "ATTR2": function(op("negate", "%a", "%o", attributes='shape = "f32[4"')),
    "ATTR2-class": function(op("negate", "%a", "%o", attributes='x = {class = "PadDim", low = 1 : i64}')),
    "ATTR2-value": function(fusion(op("negate", "%x", "%r"), tail="kind = {}")),
    "ATTR2-word": function(fusion(op("negate", "%x", "%r"), tail='kind = "kOther"')),
    "ATTR1-exact": function(op("negate", "%a", "%o", attributes="exact = {operand0 = 1 : i64}")),
    "EXACT1": function(op("negate", "%a", "%o", attributes='exact = {operand0 = "f32[4000]"}')),
    "EXACT1-shape": function(op("iota", "%o", attributes='iota_dimension = 0 : i64, shape = "f32[4000]"')),
    "EXACT1-body": function(fusion(op("negate", "%x", "%r"), tail='exact = {body0_parameter0 = "(f32[4], f32[4])"}')),
    "EXACT1-places": function(fusion(op("negate", "%x", "%r"), tail="exact = {body0_places = array<i64: 0, 1>}")),
    "BODY1": function(
        fusion(op("negate", "%x", "%r")).replace("vector.yield\n}, {", f"vector.yield %x : {F4}\n}}, {{")
    ),
    "BODY2": function(fusion("", "", tail="outputs = 2 : i64").replace("^bb0():\n", "")),
    "BODY3": function(fusion(f"%g = arith.constant 1 : i32\n{op('negate', '%x', '%r')}")),
    "BODY4": function(fusion(op("negate", "%b", "%r"))),
    "BODY4-order": function(
        fusion(f"%t = memref.alloca() : {F4}\n{op('negate', '%t', '%r')}\n{op('negate', '%x', '%t')}")
    ),
    "BODY5": function(fusion(f"{op('negate', '%x', '%r')}\n{op('negate', '%x', '%r')}")),
    "BODY5-parameter": function(fusion(f"{op('negate', '%x', '%r')}\n{op('negate', '%r', '%x')}")),
    "BODY6": function(fusion("")),
    "BODY6-temporary": function(fusion(f"%t = memref.alloca() : {F4}\n{op('negate', '%x', '%r')}")),
    "SHAPE1": function(op("negate", "%a", "%o", types=f"{F4}, memref<5xf32>"), f"%a: {F4}, %o: memref<5xf32>"),
    "FUSION1": function(
        fusion(op("negate", "%x", "%r", types="memref<5xf32>, memref<5xf32>"), "%x: memref<5xf32>, %r: memref<5xf32>")
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule):
    with pytest.raises(VerificationError) as caught:
        parse_text(RULES[rule], "bad.mlir")
    label = rule.partition("-")[0]
    assert f"[{label}]" in str(caught.value)
    assert caught.value.location is not None and caught.value.location.file == "bad.mlir"


PARSE = {
    "unknown op": (function('"lhlo.nope"() : () -> ()'), 2, "lhlo.nope"),
    "IRDL: operand count": (
        function('"lhlo.add"(%a, %o) : (memref<4xf32>, memref<4xf32>) -> ()'),
        2,
        "exactly 3 operands",
    ),
    "IRDL: attribute": (
        function('"lhlo.iota"(%o) : (memref<4xf32>) -> ()'),
        2,
        'attribute "iota_dimension" is expected',
    ),
    "IRDL: attribute kind": (
        function('"lhlo.iota"(%o) {iota_dimension = "x"} : (memref<4xf32>) -> ()'),
        2,
        "builtin.integer",
    ),
    "IRDL: operand type": (
        function('%c = arith.constant 1 : i32\n"lhlo.negate"(%c, %o) : (i32, memref<4xf32>) -> ()'),
        3,
        "memref",
    ),
    "syntax": (function('"lhlo.add"(%a'), 2, "expected"),
    "undefined value": (function('"lhlo.negate"(%zz, %o) : (memref<4xf32>, memref<4xf32>) -> ()'), 2, "undeclared"),
    "no text at all": ("garbage", 1, "garbage"),
    "NUL": ("module {\n\0}", 2, "NUL"),
    "lone surrogate": ("module {\n\ud800}", 2, "Unicode"),
    "complex attribute": (
        function(
            '"lhlo.constant"(%c) {value = dense<(1.0, 2.0)> : tensor<4xcomplex<f32>>} : (memref<4xcomplex<f32>>) -> ()',
            "%c: memref<4xcomplex<f32>>",
        ),
        1,
        "complex",
    ),
    "complex attribute behind an alias": (
        "!c = tensor<4xcomplex<f32>>\n"
        + function(
            '"lhlo.constant"(%c) {value = dense<(1.0, 2.0)> : !c} : (memref<4xcomplex<f32>>) -> ()',
            "%c: memref<4xcomplex<f32>>",
        ),
        1,
        "complex",
    ),
    "a name that is no UTF-8": (function(op("negate", "%a", "%o", attributes='x = {"\\FF" = 1 : i64}')), 2, "UTF-8"),
    "a value that is no UTF-8": (function(op("negate", "%a", "%o", attributes='name = "\\FF"')), 2, "UTF-8"),
    "a symbol that is no UTF-8": (function("").replace("@f", '@"\\FF"'), 1, "UTF-8"),
    "an integer of 128 bits": (function("", f"%a: {F4} {{lhlo.number = {2**100} : i128}}"), 1, "i128"),
    "an array of index": (function("", attributes="attributes {x = array<index: 1>}"), 1, "array<index"),
    "an array behind an alias": (
        "!i = i48\n" + function("", attributes="attributes {x = array<!i: 1>}"),
        2,
        "array<!i",
    ),
    "an array of a width of its own": (
        function(op("negate", "%a", "%o", attributes="x = array // i64\n < i664: 1>")),
        2,
        "array<i664",
    ),
    "deep nesting": ("module {\n" + "(" * 100_000, 2, str(MAX_NESTING)),
    "deep types": (function("", f"%a: {'tuple<' * 50_000}"), 1, str(MAX_NESTING)),
}


@pytest.mark.parametrize("case", PARSE)
def test_parse_error(case):
    text, line, words = PARSE[case]
    with pytest.raises(ParseError) as caught:
        parse_text(text, "bad.mlir")
    assert words in str(caught.value)
    assert caught.value.location is not None and (caught.value.location.line, caught.value.location.file) == (
        line,
        "bad.mlir",
    )


def test_huge_splat_needs_no_memory():
    huge = "1000000x1000000x4xf32"
    module = parse_text(
        function(
            f'"lhlo.constant"(%h) {{value = dense<1.0> : tensor<{huge}>}} : (memref<{huge}>) -> ()',
            f"%h: memref<{huge}>",
        )
    )
    assert huge in module.to_text()


@pytest.mark.parametrize("damage", ["cut", "flip", "magic", "empty", "mlir"])
def test_damaged_bytecode_is_refused(damage):
    good = parse_text(function(op("negate", "%a", "%o"))).to_bytecode()
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    bad = {
        "cut": good[:-3],
        "flip": bytes(flipped),
        "magic": b"X" + good[1:],
        "empty": b"",
        "mlir": good[good.index(b"ML\xefR") :],
    }[damage]
    with pytest.raises(ParseError):
        parse_bytecode(bad)
    assert parse_bytecode(good).to_bytecode() == good


def test_bytecode_that_ends_mlirs_reader_is_refused_by_a_child():
    good = parse_text(function(op("negate", "%a", "%o"))).to_bytecode()
    payload = good[good.index(b"ML\xefR") :]
    ends = 0
    for cut in range(8, len(payload), len(payload) // 4):
        with pytest.raises(ParseError) as caught:
            parse_bytecode(seal(payload[:cut] + bytes(8)), "cut.mlirbc", isolate=True)
        assert caught.value.location is not None and caught.value.location.file == "cut.mlirbc"
        ends += 1
    assert ends >= 4
    assert parse_bytecode(good, isolate=True).to_text() == parse_bytecode(good).to_text()
