"""Requests → LHLO text → parsed → requests: equal in names, order, shapes, layouts, attributes, aliasing."""

import re
from pathlib import Path

import pytest

from ...formats.text.parser import parse_module
from ...hlo.errors import TestbedError, UnsupportedError
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...lhlo import LhloModule, from_kernels, parse_bytecode, parse_text, to_kernels
from ...planning.plan import BufferSlice, KernelArgument, KernelRequest
from ...planning.planner import plan
from ..support.corpus import suite_cases
from ..support.lhlo_requests import assert_same_request


def request(text: str, alias: dict[int, int] | None = None) -> KernelRequest:
    """A request for the root of the entry; alias: result leaf → operand whose argument it shares."""
    root = parse_module(text).entry.root
    arguments: list[KernelArgument] = []
    place: dict[Instruction, int] = {}
    for o in root.operands:
        if o not in place:
            place[o] = len(arguments)
            arguments.append(KernelArgument(BufferSlice(len(arguments), 64, o.shape.bytes), 16, False))
    operands, results = tuple(place[o] for o in root.operands), []
    for i, (_, leaf) in enumerate(root.shape.leaves()):
        shared = (alias or {}).get(i)
        results.append(len(arguments) if shared is None else operands[shared])
        if shared is None:
            arguments.append(KernelArgument(BufferSlice(len(arguments), 0, leaf.bytes), 64, True))
        else:
            old = arguments[operands[shared]]
            arguments[operands[shared]] = KernelArgument(old.slice, old.alignment, True)
    return KernelRequest("kernel", root, tuple(arguments), operands, tuple(results))


def round_trip(requests: list[KernelRequest]) -> LhloModule:
    made = from_kernels(requests)
    text = made.to_text()
    for module in (made, parse_text(text), parse_bytecode(made.to_bytecode())):
        assert module.to_text() == text
        for a, b in zip(requests, to_kernels(module), strict=True):
            assert_same_request(a, b)
    return made


FUSION = """HloModule m
f {
  p1 = s8[3,4]{1,0} parameter(1)
  c = f32[] constant(-0)
  p0 = f32[3,4]{0,1} parameter(0)
  b = f32[3,4]{0,1} broadcast(c), dimensions={}
  k = f32[3,4]{0,1} convert(p1)
  a = f32[3,4]{0,1} add(p0, b)
  dead = f32[3,4]{0,1} negate(a)
  m = f32[3,4]{0,1} multiply(a, k)
  ROOT r = ROOT_VALUE
}
ENTRY e {
  x = f32[3,4]{0,1} parameter(0)
  y = s8[3,4]{1,0} parameter(1)
  ROOT z = ROOT_SHAPE fusion(x, y), kind=kLoop, calls=f
}"""


def fusion(root: str) -> str:
    """A module whose fused root reads `root`, a shape and an operation."""
    shape = re.match(r"(.*) (?:tuple|subtract)\(", root)
    assert shape is not None
    return FUSION.replace("ROOT_VALUE", root).replace("ROOT_SHAPE", shape[1])


ONE = """HloModule m
sum {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }}
ENTRY e {{
{}
}}"""


@pytest.mark.parametrize(
    "root",
    [
        "f32[3,4]{0,1} subtract(m, a)",
        "(f32[3,4]{0,1}, f32[3,4]{0,1}) tuple(m, a)",
        "(f32[3,4]{0,1}, f32[3,4]{0,1}, s8[3,4]{1,0}) tuple(m, m, p1)",
        "(f32[3,4]{0,1}) tuple(m)",
        "(f32[3,4]{0,1}, f32[]) tuple(dead, c)",
    ],
)
def test_fusion(root):
    round_trip([request(fusion(root))])


def test_result_in_its_operand():
    module = round_trip([request(fusion("f32[3,4]{0,1} subtract(m, a)"), alias={0: 0})])
    assert "vector.yield %arg0, %arg1, %arg0" in module.to_text()


def test_result_of_another_type_in_its_operand_is_a_view():
    text = ONE.format("x = f32[8] parameter(0)\n ROOT r = s32[8] bitcast-convert(x)")
    assert (
        '"lhlo.view"(%arg0) : (memref<8xf32>) -> memref<8xi32>' in round_trip([request(text, alias={0: 0})]).to_text()
    )


def test_two_values_in_one_argument_stay_two():
    made = request(ONE.format("x = f32[8] parameter(0)\n y = f32[8] parameter(1)\n ROOT r = f32[8] add(x, y)"))
    both = KernelRequest(made.name, made.instruction, (made.arguments[0], made.arguments[2]), (0, 0), (1,))
    round_trip([both])
    assert len(set(to_kernels(from_kernels([both]))[0].instruction.operands)) == 2


def test_one_value_twice_stays_one():
    made = request(ONE.format("x = f32[8] parameter(0)\n ROOT r = f32[8] add(x, x)"))
    back = to_kernels(from_kernels([made]))[0].instruction
    assert back.operands[0] is back.operands[1]


@pytest.mark.parametrize(
    "body",
    [
        """x = f32[3,5]{1,0} parameter(0)
           c = f32[] parameter(1)
           ROOT r = f32[5]{0} reduce(x, c), dimensions={0}, to_apply=sum""",
        """x = f32[4,6]{1,0} parameter(0)
           i = s32[] parameter(1)
           ROOT r = f32[2,3]{1,0} dynamic-slice(x, i, i), dynamic_slice_sizes={2,3}""",
        """x = f32[4]{0} parameter(0)
           c = f32[] parameter(1)
           ROOT r = f32[9]{0} pad(x, c), padding=-1_3_1""",
        """x = f32[4,6]{0,1} parameter(0)
           ROOT r = f32[2,2]{1,0} slice(x), slice={[0:4:2], [4:6]}""",
        """x = f32[2]{0} parameter(0)
           y = f32[3]{0} parameter(1)
           ROOT r = f32[5]{0} concatenate(x, y), dimensions={0}""",
        """x = f32[7]{0} parameter(0)
           c = f32[] parameter(1)
           ROOT r = f32[3]{0} reduce-window(x, c), window={size=3 stride=2}, to_apply=sum""",
        """x = f32[2,3]{1,0} parameter(0)
           y = f32[3,4]{1,0} parameter(1)
           ROOT r = f32[2,4]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0},
             operand_precision={highest,default}""",
        """x = f32[1,4,4,3]{3,2,1,0} parameter(0)
           y = f32[2,2,3,5]{3,2,1,0} parameter(1)
           ROOT r = f32[1,3,3,5]{3,2,1,0} convolution(x, y), window={size=2x2}, dim_labels=b01f_01io->b01f""",
        """x = f32[1,1]{0,1} parameter(0)
           ROOT r = f32[1,1] negate(x)""",
        """x = f32[0,3]{1,0} parameter(0)
           ROOT r = f32[0,3]{0,1} copy(x)""",
        """x = c64[3]{0} parameter(0)
           ROOT r = f32[3]{0} real(x)""",
        """x = u4[3]{0} parameter(0)
           ROOT r = f8e4m3fn[3]{0} convert(x)""",
        """x = f32[3]{0} parameter(0)
           ROOT r = f32[3]{0} negate(x), backend_config={"a":[1,"\\""]}, frontend_attributes={k="v"}""",
    ],
)
def test_unnested(body):
    round_trip([request(ONE.format(body))])


def test_region_that_returns_its_parameter():
    text = (
        "HloModule m\nsecond { a = f32[] parameter(0)\n ROOT b = f32[] parameter(1) }\nENTRY e {\n"
        "x = f32[3,5] parameter(0)\n c = f32[] parameter(1)\n"
        "ROOT r = f32[5] reduce(x, c), dimensions={0}, to_apply=second }"
    )
    assert "{forward}" in round_trip([request(text)]).to_text()


def test_tuples_inside_a_fusion():
    text = """HloModule m
arg_max { a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GE
  v = f32[] select(g, a, b)
  k = s32[] select(g, i, j)
  ROOT t = (f32[], s32[]) tuple(v, k) }
f { x = f32[3,5]{1,0} parameter(0)
  n = s32[3,5]{1,0} iota(), iota_dimension=1
  c = f32[] constant(-inf)
  z = s32[] constant(0)
  r = (f32[3]{0}, s32[3]{0}) reduce(x, n, c, z), dimensions={1}, to_apply=arg_max
  nest = ((f32[3]{0}, s32[3]{0}), f32[3,5]{1,0}) tuple(r, x)
  again = (f32[3]{0}, s32[3]{0}) get-tuple-element(nest), index=0
  whole = f32[3,5]{1,0} get-tuple-element(nest), index=1
  i = s32[3]{0} get-tuple-element(again), index=1
  ROOT o = (s32[3]{0}, f32[3,5]{1,0}) tuple(i, whole) }
ENTRY e { x = f32[3,5]{1,0} parameter(0)
  ROOT z = (s32[3]{0}, f32[3,5]{1,0}) fusion(x), kind=kLoop, calls=f }"""
    round_trip([request(text)])


def test_a_body_called_twice_is_one_computation():
    text = """HloModule m
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
f { x = f32[3,5] parameter(0)
  c = f32[] constant(0)
  p = f32[3] reduce(x, c), dimensions={1}, to_apply=sum
  ROOT q = f32[] reduce(p, c), dimensions={0}, to_apply=sum }
ENTRY e { x = f32[3,5] parameter(0)
  ROOT z = f32[] fusion(x), kind=kLoop, calls=f }"""
    body = to_kernels(round_trip([request(text)]))[0].body
    assert body is not None
    first, second = (i.attributes["to_apply"] for i in body.instructions if i.opcode is Op.REDUCE)
    assert first is second


def test_author_may_leave_names_out():
    (kernel,) = to_kernels(
        parse_text("""
func.func @k(%a: memref<4xf32>, %o: memref<4xf32>) attributes {lhlo.kernel} {
  "lhlo.fusion"() ({
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    %t = memref.alloca() : memref<4xf32>
    "lhlo.negate"(%x, %t) : (memref<4xf32>, memref<4xf32>) -> ()
    "lhlo.negate"(%t, %y) : (memref<4xf32>, memref<4xf32>) -> ()
    vector.yield
  }, { vector.yield %a, %o : memref<4xf32>, memref<4xf32> }) : () -> ()
  return
}""")
    )
    assert kernel.arguments == (
        KernelArgument(BufferSlice(0, 0, 16), 4, False),
        KernelArgument(BufferSlice(1, 0, 16), 4, True),
    )
    assert kernel.body is not None
    assert len({i.name for i in kernel.body.instructions}) == 3
    round_trip([kernel])


def test_what_cannot_be_a_kernel_is_said_with_its_place():
    text = "HloModule m\nENTRY e { ROOT t = token[] after-all() }"
    with pytest.raises(TestbedError):
        from_kernels([request(text)])
    inner = (
        "HloModule m\nc { p = s32[] parameter(0)\n ROOT t = pred[] constant(false) }\n"
        "b { ROOT p = s32[] parameter(0) }\n"
        "f { p = s32[] parameter(0)\n ROOT w = s32[] while(p), condition=c, body=b }\n"
        "ENTRY e { x = s32[] parameter(0)\n ROOT z = s32[] fusion(x), kind=kLoop, calls=f }"
    )
    with pytest.raises(UnsupportedError, match=r":6:7: .*while inside a kernel"):
        from_kernels([request(inner)])


@pytest.mark.parametrize("suite, count", [("jax_programs", 2), ("op_cases", 5), ("xla_modules", 15)])
def test_corpus_kernels(suite, count):
    for case in suite_cases(suite, count, seed=7):
        round_trip(list(plan(parse_module(Path(case.hlo).read_text(), case.hlo)).kernels))
