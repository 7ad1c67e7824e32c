"""Modules that a rule of the algebra table leaves alone, one for each condition: the rest of the pattern fits."""

import pytest

from ....evaluator.evaluator import evaluate
from ....formats.text.parser import parse_module
from ....hlo.verify.verifier import verify
from ....passes.algebra.sweep import ALL_RULES, by_opcode, simplify_algebra
from ....passes.fuel import Fuel, limited
from ...cases.algebra_modules import hlo_text, special_inputs
from ...cases.algebra_template import Template

_COLUMNS = "lhs_batch_dims={1}, rhs_batch_dims={1}, lhs_contracting_dims={0}, rhs_contracting_dims={0}"
_DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"

REGIONS = """subtract {
  a = f32[] parameter(0)
  c = f32[] parameter(1)
  ROOT r = f32[] subtract(a, c) }
twice { w = f32[2] parameter(0)
  ROOT r = f32[2] add(w, w) }
summed {
  a = f32[] parameter(0)
  c = f32[] parameter(1)
  v = f32[2] broadcast(a), dimensions={}
  s = f32[1] slice(v), slice={[1:2]}
  t = f32[] reshape(s)
  ROOT r = f32[] add(t, c) }
crossed {
  a = f32[] parameter(0)
  c = f32[] parameter(1)
  d = f32[] parameter(2)
  e = f32[] parameter(3)
  s = f32[] add(a, d)
  m = f32[] maximum(d, e)
  ROOT r = (f32[], f32[]) tuple(s, m) }
doubled {
  a = f32[] parameter(0)
  c = f32[] parameter(1)
  d = f32[] parameter(2)
  e = f32[] parameter(3)
  s = f32[] add(a, a)
  m = f32[] maximum(c, e)
  ROOT r = (f32[], f32[]) tuple(s, m) }
chosen {
  a = f32[] parameter(0)
  c = f32[] parameter(1)
  d = f32[] parameter(2)
  e = f32[] parameter(3)
  g = pred[] compare(a, d), direction=GE
  k = f32[] select(g, a, d)
  m = f32[] select(g, c, e)
  ROOT r = (f32[], f32[]) tuple(k, m) }
limited {
  a = f32[] parameter(0)
  c = f32[] parameter(1)
  d = f32[] parameter(2)
  e = f32[] parameter(3)
  s = f32[] add(a, c)
  m = f32[] maximum(c, e)
  ROOT r = (f32[], f32[]) tuple(s, m) }
"""

PAIR = (
    "n = S parameter(2); x = T[2,{0}] parameter(0); y = T[2,{0}] parameter(1);"
    "t = (T[2], T[2]) reduce(x, y, n, n), dimensions={{1}}, to_apply={1};"
    "ROOT r = T[2] get-tuple-element(t), index=0"
)

# (rule, type, the module): why it must stay is the comment.
STACK = (
    "n = S parameter(2); x = T[2,1] parameter(0); y = T[2,1] parameter(1); z = T[2,{0}] parameter(3);"
    "a = T[2,{1}] concatenate(x, y, {2}), dimensions={{1}}; c = T[2,{1}] {3};"
    "t = (T[2], T[2]) reduce(a, c, n, n), dimensions={{1}}, to_apply={4};"
    "ROOT r = T[2] get-tuple-element(t), index=0"
)

# (rule, type, the module): why it must stay is the comment.
REFUSED = [
    # sums and products of floats round
    ("gather_constants", "f32", "a = T add(x, #3); ROOT r = T add(a, #5)"),
    # neither factor is known
    ("negated_product", "f32", "a = T multiply(x, y); ROOT r = T negate(a)"),
    # what was converted is no integer
    ("rounded_integer", "f32", "h = f16[2,3] parameter(0); a = T convert(h); ROOT r = T floor(a)"),
    ("is_finite_integer", "f32", "h = f16[2,3] parameter(0); a = T convert(h); ROOT r = P is-finite(a)"),
    # NaN
    ("absorb", "f32", "a = T maximum(x, y); ROOT r = T minimum(x, a)"),
    ("not_of_compare", "f32", "a = P compare(x, y), direction=LT; ROOT r = P not(a)"),
    ("extreme_of_limit", "f32", "ROOT r = T minimum(x, #$least)"),
    # other numbers than the rule's
    ("compare_converted_truth", "f32", "a = T convert(p); ROOT r = P compare(a, #1), direction=NE"),
    ("pad_of_pad", "f32", ("n = S constant(1); m = S constant(2); a = T[2,4] pad(x, n), padding=0_0x0_1;"
                          "ROOT r = T[2,5] pad(a, m), padding=0_0x1_0")),
    ("reduce_of_reduce", "s32", ("x = T[2,3,4] parameter(0); n = S constant(1);"
                                "a = T[2,4] reduce(x, n), dimensions={1}, to_apply=add;"
                                "ROOT r = T[2] reduce(a, n), dimensions={1}, to_apply=add")),
    ("sum_of_broadcast", "s32", ("n = S parameter(0); o = S constant(1); a = T broadcast(n), dimensions={};"
                                "ROOT r = T[2] reduce(a, o), dimensions={1}, to_apply=add")),
    ("reduce_of_pad", "s32", ("n = S constant(1); a = T[2,9] pad(x, n), padding=0_0x1_3_1;"
                             "ROOT r = T[2] reduce(a, n), dimensions={1}, to_apply=add")),
    ("window_of_pad", "s32", ("n = S constant(1); a = T[2,6] pad(x, n), padding=0_0x1_2;"
                             "ROOT r = T[2,6] reduce-window(a, n), window={size=1x3 pad=0_0x2_0}, to_apply=add")),
    # gaps that nothing fills, other numbers in them
    ("sum_of_pads", "f32", ("n = S constant(0); y = T[2,2] parameter(1); a = T[2,6] pad(x, n), padding=0_0x0_1_1;"
                           "c = T[2,6] pad(y, n), padding=0_0x1_2_1; ROOT r = T[2,6] add(a, c)")),
    ("sum_of_pads", "f32", ("n = S constant(0); o = S constant(1); a = T[2,6] pad(x, n), padding=0_0x0_1_1;"
                           "c = T[2,6] pad(x, o), padding=0_0x1_0_1; ROOT r = T[2,6] add(a, c)")),
    ("sum_of_pads", "f32", ("n = S constant(0); o = S constant(-0); a = T[2,6] pad(x, n), padding=0_0x0_1_1;"
                           "c = T[2,6] pad(x, o), padding=0_0x1_0_1; ROOT r = T[2,6] add(a, c)")),
    # a prefix sum stays one
    ("window_of_pad", "s32", ("n = S constant(0); a = T[2,4] pad(x, n), padding=0_0x1_0;"
                             "ROOT r = T[2,4] reduce-window(a, n), window={size=1x4 pad=0_0x3_0}, to_apply=add")),
    # the first conversion loses something; a subnormal is true only as what it was
    ("convert_twice", "f32", "d = f64[2,3] parameter(0); a = T convert(d); ROOT r = f16[2,3] convert(a)"),
    ("convert_twice", "f32", "h = f16[2,3] parameter(0); a = T convert(h); ROOT r = P convert(a)"),
    ("convert_twice", "f32", "i = s8[2,3] parameter(0); a = T convert(i); ROOT r = u32[2,3] convert(a)"),
    ("convert_twice", "f64", "i = s32[2,3] parameter(0); a = T convert(i); ROOT r = s16[2,3] convert(a)"),
    # the order of differences matters
    ("reduce_of_reshape", "f32", ("x = T[2,3,4] parameter(0); n = S parameter(1); a = T[6,4] reshape(x);"
                                 "ROOT r = T[4] reduce(a, n), dimensions={0}, to_apply=subtract")),
    # sums that round; several places; many arrays; another array than a stack, or numbers along another dimension
    ("reduce_of_stack", "f32", STACK.format(1, 3, "z", "iota(), iota_dimension=1", "crossed")),
    ("reduce_of_stack", "f32", STACK.format(2, 4, "z", "iota(), iota_dimension=1", "chosen")),
    ("reduce_of_stack", "f32", STACK.format(1, 9, ", ".join("z" * 7), "iota(), iota_dimension=1", "chosen")),
    ("reduce_of_stack", "f32", STACK.format(1, 3, "z", "parameter(4)", "chosen")),
    ("reduce_of_stack", "f32", STACK.format(1, 3, "z", "iota(), iota_dimension=0", "chosen")),
    # what is stored anyway
    ("reduce_of_stack", "f32", STACK.format(1, 3, "z", "negate(a)", "chosen")),
    # few elements; a result that depends on the sum, or the sum on another operand; a narrow float
    ("sums_beside_others", "f32", PAIR.format(32, "add_maximum")),
    ("sums_beside_others", "f32", PAIR.format(40, "crossed")),
    ("sums_beside_others", "f32", PAIR.format(40, "doubled")),
    ("sums_beside_others", "f32", PAIR.format(40, "limited")),
    ("sums_beside_others", "bf16", PAIR.format(40, "add_add")),
    ("reduce_of_transpose", "f32", ("x = T[2,3,4] parameter(0); n = S parameter(1);"
                                   "a = T[4,2,3] transpose(x), dimensions={2,0,1};"
                                   "ROOT r = T[2,3] reduce(a, n), dimensions={0}, to_apply=subtract")),
    ("reduce_of_reverse", "f32", ("n = S parameter(1); x = T parameter(0); a = T reverse(x), dimensions={1};"
                                 "ROOT r = T[2] reduce(a, n), dimensions={1}, to_apply=subtract")),
    ("window_of_all", "f32", ("n = S parameter(1); x = T parameter(0);"
                             "ROOT r = T[2,1] reduce-window(x, n), window={size=1x3}, to_apply=subtract")),
    # complex numbers, and integers narrower than a byte
    ("dot_outer", "c128", "x = c64[2,1] parameter(0); y = T[1,3] parameter(1); ROOT r = T dot(x, y), " + _DOT),
    ("dot_outer", "s4", "x = T[2,1] parameter(0); y = T[1,3] parameter(1); ROOT r = T dot(x, y), " + _DOT),
    ("dot_of_one_number", "s4", "x = T[2,3] parameter(0); n = S constant(1); c = T[3,2] broadcast(n), dimensions={};"
                                "ROOT r = T[2,2] dot(x, c), " + _DOT),
    ("dot_of_columns", "c64", "x = T[3,4] parameter(0); y = T[3,4] parameter(1); ROOT r = T[4] dot(x, y), " + _COLUMNS),
    ("dot_of_columns", "f32", ("x = T[3,4] parameter(0); y = T[4,3] parameter(1); ROOT r = T[4] dot(x, y),"
                              "lhs_batch_dims={1}, rhs_batch_dims={0}, lhs_contracting_dims={0}, "
                              "rhs_contracting_dims={1}")),
    ("dot_of_columns", "f32", "x = T[3,4]{0,1} parameter(0); y = T[3,4]{0,1} parameter(1);"
                              "ROOT r = T[4] dot(x, y), " + _COLUMNS),
    ("dot_across", "f32", ("x = T[130,128] parameter(0); y = T[130,128] parameter(1); ROOT r = T[130] dot(x, y),"
                          "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, "
                          "rhs_contracting_dims={1}")),
    ("dot_across", "f32", ("x = T[30,28] parameter(0); y = T[28,30] parameter(1); ROOT r = T[30] dot(x, y),"
                          "lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={1}, "
                          "rhs_contracting_dims={0}")),
    ("dot_with_vector", "c64", "x = T[2,3] parameter(0); y = T[3] parameter(1); ROOT r = T[2] dot(x, y), " + _DOT),
    # the region does not work on whole arrays
    ("scatter_at_known", "f32", ("x = T[5] parameter(0); u = T[1] parameter(1); i = s32[1,1] constant({{2}});"
                                "ROOT r = T[5] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0},"
                                "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=summed")),
    ("scatter_of_consecutive", "f32", ("x = T[5] parameter(0); u = T[2] parameter(1); i = s32[2,1] iota(),"
                                      "iota_dimension=0; ROOT r = T[5] scatter(x, i, u), update_window_dims={},"
                                      "inserted_window_dims={0}, scatter_dims_to_operand_dims={0},"
                                      "index_vector_dim=1, to_apply=summed")),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "dtype", "body"), REFUSED, ids=[f"[{r[0]}] {r[2][-60:]}" for r in REFUSED])
def test_a_rule_leaves_alone_what_lacks_one_of_its_conditions(rule, dtype, body):
    text = hlo_text(Template(dtype, body), dtype)
    text = text.replace("ENTRY", REGIONS + "ENTRY", 1)
    before = parse_module(text)
    verify(before)
    row = next(r for r in ALL_RULES if r.name == rule)
    with limited(Fuel()) as fuel:
        simplify_algebra(before, by_opcode([row]))
    assert not fuel.spent, f"{rule} fires on\n{text}"
    evaluate(before, special_inputs(before, 1))  # it is a program
