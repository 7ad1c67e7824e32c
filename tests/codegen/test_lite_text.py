"""Names and texts of llvmlite's modules are those that llvmlite gives, and no instruction keeps its own."""

import pytest
from llvmlite import ir
from llvmlite.ir._utils import DuplicatedNameError, NameScope

from ... import legacy
from ...codegen import lite_text
from ...codegen.lite_text import Names, module_text, name_fast
from ...codegen.options import EmitOptions
from ...formats.text.parser import parse_module
from ...legacy import emission
from ...planning.planner import plan

I1, I8, I32, I64, F32 = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.FloatType()
ROW, POINTER = ir.VectorType(F32, 4), ir.PointerType()


def every_kind(name: str = "f") -> ir.Module:
    """A module with each kind of instruction, with and without flags, alignment and metadata."""
    module = ir.Module("all", context=ir.Context())
    table = ir.GlobalVariable(module, ir.ArrayType(I8, 4), "table")
    table.initializer = ir.Constant(table.value_type, bytearray(b'a"\0\\'))
    pair = module.context.get_identified_type("pair")
    pair.set_body(I32, F32)
    several = ir.Function(module, ir.FunctionType(I32, [POINTER], var_arg=True), "several")
    function = ir.Function(module, ir.FunctionType(F32, [POINTER, F32, I64]), name)
    name_fast(function)
    array, x, n = function.args
    first, arm, last = (function.append_basic_block(word) for word in ("entry", "arm", "arm"))
    b = ir.IRBuilder(first)
    place = b.alloca(ROW, size=4, name="place")
    place.align = 16
    loaded = b.load(b.gep(array, [n], inbounds=True, source_etype=F32), typ=F32, align=4)
    loaded.set_metadata("invariant.load", module.add_metadata([]))
    row = b.load(place, typ=ROW)
    b.store(row, place, align=16).set_metadata("nontemporal", module.add_metadata([I32(1)]))
    total = b.fadd(b.fneg(loaded), x, flags=("reassoc", "contract"))
    more = b.add(n, I64(-3), flags=("nsw",))
    less = b.icmp_signed("<", more, n)
    b.select(less, x, b.fmul(total, ir.Constant(F32, 0.1)), flags=("nnan",))
    b.fcmp_ordered("<", x, total, flags=("nnan",))
    b.icmp_unsigned("==", row and b.ptrtoint(array, I64), I64(7)).set_metadata("seen", module.add_metadata([I32(2)]))
    b.sitofp(more, F32)
    b.insert_element(row, b.extract_element(row, I32(0)), I32(ir.Undefined))
    b.shuffle_vector(row, row, ir.Constant(ir.VectorType(I32, 4), [3, 2, 1, 7]))
    b.shuffle_vector(row, ir.Constant(ROW, None), ir.Constant(ir.VectorType(I32, 2), None))
    held = b.insert_value(ir.Constant(pair, ir.Undefined), I32(1), 0)
    b.extract_value(held, 1)
    b.call(several, [array, I32(4)], arg_attrs={0: ("nonnull",)})
    b.call(module.declare_intrinsic("llvm.fabs", [F32]), [x], fastmath=("fast",), tail=True)
    b.call(module.declare_intrinsic("llvm.assume"), [ir.Constant(I1, True)], attrs=("nounwind",))
    b.fence("seq_cst")
    b.cbranch(less, arm, last).set_weights([1, 9])
    b.position_at_end(arm)
    again = b.branch(last)
    own = ir.MDValue(module, [], name=str(len(module.metadata)))
    own.operands = (own, module.add_metadata(("llvm.loop.unroll.disable",)))
    again.set_metadata("llvm.loop", own)
    b.position_at_end(last)
    joined = b.phi(F32, "joined", flags=("nnan",))
    joined.add_incoming(x, first)
    joined.add_incoming(ir.Constant(F32, float("nan")), arm)
    b.ret(joined)
    empty = ir.Function(module, ir.FunctionType(ir.VoidType(), []), "empty")
    ir.IRBuilder(empty.append_basic_block()).ret_void()
    return module


@pytest.mark.parametrize("name", ["f", 'a "quoted" \\ name'])
def test_the_text_is_llvmlites(name):
    assert module_text(every_kind(name)) == str(every_kind(name))


def test_each_written_kind_is_tried():
    used = {type(i) for f in every_kind().functions for block in f.blocks for i in block.instructions}
    assert set(lite_text._WRITERS) <= used and used - set(lite_text._WRITERS)


def test_a_name_to_be_quoted_is():
    module = every_kind()
    (function,) = (f for f in module.functions if f.name == "f")
    b = ir.IRBuilder(function.append_basic_block("later"))
    b.ret(b.fadd(function.args[1], function.args[1], name='say "a"'))
    assert "say \\22a\\22" in module_text(module) and module_text(module) == str(module)


def test_names_are_llvmlites():
    ours, theirs = Names(), NameScope()
    for name in ["", "x", "x", "", "x.1", "x", "x.1", "y.2", "y", "y", "y", ""]:
        assert ours.register(name, deduplicate=True) == theirs.register(name, deduplicate=True)
    with pytest.raises(DuplicatedNameError):
        ours.register("x")


PROGRAM = """HloModule m
ENTRY e {
  x = f32[64,300] parameter(0)
  w = f32[300,70] parameter(1)
  s = f32[64,300] sine(x)
  d = f32[64,70] dot(s, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  i = s32[64,300] convert(s)
  t = s32[300,64] transpose(i), dimensions={1,0}
  ROOT r = (f32[64,70], s32[300,64]) tuple(d, t)
}
"""


def test_kernels_have_llvmlites_text_and_keep_none_of_it(monkeypatch):
    compared = []

    def text_of(module: ir.Module) -> str:
        text = module_text(module)
        kept = {key for f in module.functions for block in f.blocks for i in block.instructions for key in vars(i)}
        compared.append((text, kept, str(module)))
        return text

    monkeypatch.setattr(emission, "module_text", text_of)
    legacy.emit(plan(parse_module(PROGRAM)).kernels, EmitOptions.host())
    ((text, kept, theirs),) = compared
    assert text == theirs and len(text) > 5000
    assert "_StrCaching__cached_str" not in kept
