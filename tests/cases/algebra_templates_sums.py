"""Templates of the rules of reductions and products."""

from __future__ import annotations

from .algebra_template import Template, case

_DOT1 = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
_BOTH = (
    "a = T[2] get-tuple-element(t), index=0; b = T[2] get-tuple-element(t), index=1;"
    "ROOT r = T[4] concatenate(a, b), dimensions={0}"
)

SUMS: dict[str, tuple[Template, ...]] = {
    # reductions and products
    "reduce_of_nothing": (case("sum", "n = S parameter(0); a = T[2,0] constant({{},{}});"
                                      "ROOT r = T[2] reduce(a, n), dimensions={1}, to_apply=add"),),
    "sums_beside_others": tuple(
        case(kinds, f"n = S parameter(1); x = T[2,40] parameter(0); y = T[2,40] iota(), iota_dimension=1;"
                    f"t = (T[2], T[2]) reduce(x, y, n, n), dimensions={{1}}, to_apply={op}; {last}")
        for op, kinds, last in (
            ("add_add", "big complex", "ROOT r = T[2] get-tuple-element(t), index=1"),
            ("add_maximum", "big", "ROOT r = T[2] get-tuple-element(t), index=0"),
            ("add_maximum", "big", "ROOT r = T[2] get-tuple-element(t), index=1"),
            ("maximum_add", "big", _BOTH))),
    "reduce_of_stack": tuple(
        case(kinds, f"n = S parameter(2); m = S parameter(3); x = T[2,1,3] parameter(0); y = T[2,1,3] parameter(1);"
                    f"a = T[2,3,3] concatenate(x, y, x), dimensions={{1}}; c = T[2,3,3] {other}, {where};"
                    f"t = (T[2,3], T[2,3]) reduce(a, c, n, m), dimensions={{1}}, to_apply={op};"
                    f"ROOT r = T[2,3] get-tuple-element(t), index={index}")
        for kinds, other, where, op in (
            ("wide float pred", "concatenate(y, x, y)", "dimensions={1}", "first"),
            ("wide float", "iota()", "iota_dimension=1", "first"),
            ("wide", "concatenate(y, x, y)", "dimensions={1}", "add_maximum"))
        for index in (0, 1)),
    "reduce_of_reduce": (*(case("sum", f"x = T[2,3,4] parameter(0); n = S constant({s});"
                                          f"a = T[2,4] reduce(x, n), dimensions={{1}}, to_apply={op};"
                                          f"ROOT r = T[2] reduce(a, n), dimensions={{1}}, to_apply={op}")
                              for op, s in (("maximum", "1"), ("minimum", "3"))),
                              case("wide big", "x = T[2,3,4] parameter(0); n = S constant(0);"
                                               "a = T[2,4] reduce(x, n), dimensions={1}, to_apply=add;"
                                               "ROOT r = T[4] reduce(a, n), dimensions={0}, to_apply=add"),),
    "reduce_of_broadcast": tuple(case("wide float", f"x = T[3] parameter(0); n = S constant({s});"
                                        f" a = T[2,3,4] broadcast(x), dimensions={{1}};"
                                               f"ROOT r = {shape} reduce(a, n), dimensions={{{d}}}, to_apply={op}")
                                 for op, s in (("maximum", "1"), ("minimum", "$most"))
                                 for d, shape in (("0", "T[3,4]"), ("0,1", "T[4]"), ("0,2", "T[3]"), ("0,1,2", "S"))),
    "sum_of_broadcast": tuple(case("wide big", "n = S parameter(0); z = S constant(0); a = T broadcast(n), "
                                        "dimensions={};"
                                               f"ROOT r = {shape} reduce(a, z), dimensions={{{d}}}, to_apply=add")
                              for d, shape in (("1", "T[2]"), ("0,1", "S"))) + tuple(
        case("wide big", "x = T[2,3] parameter(0); z = S constant(0); a = T[2,4,3,5] broadcast(x), dimensions={0,2};"
                         f"ROOT r = {shape} reduce(a, z), dimensions={{{d}}}, to_apply=add")
        for d, shape in (("1", "T[2,3,5]"), ("0,1", "T[3,5]"), ("0,1,2,3", "S"), ("2,3", "T[2,4]"))),
    "reduce_of_concatenate": tuple(case(kinds, f"x = T[2,3,700] parameter(0); y = T[2,4,700] parameter(1);"
                                               "n = S parameter(2); a = T[2,7,700] concatenate(x, y), dimensions={1};"
                                               f"ROOT r = {shape} reduce(a, n), dimensions={{{d}}}, to_apply={op}")
                                   for op, kinds in (("add", "s8 u32"), ("maximum", "f16 f32 u8 s32"))
                                   for d, shape in (("1", "T[2,700]"), ("0,1,2", "S"))),
    "reduce_of_reshape": tuple(case("sum", f"x = {old} parameter(0); n = S parameter(1); a = {new} reshape(x);"
                                           f"ROOT r = {last} reduce(a, n), dimensions={{{d}}}, to_apply={op}")
                               for op in ("add", "maximum") for old, new, last, d in (
                                   ("T[2,12]", "T[2,3,4]", "T[2]", "1,2"), ("T[2,3]", "T[2,1,3]", "T[2,1]", "2"),
                                   ("T[2,3,4]", "T[6,4]", "T[4]", "0"), ("T[6]", "T[2,3]", "S", "0,1"))),
    "reduce_of_transpose": tuple(case("sum", "n = S parameter(1); x = T[2,3,4] parameter(0);"
                                             "a = T[4,2,3] transpose(x), dimensions={2,0,1};"
                                             f"ROOT r = {shape} reduce(a, n), dimensions={{{d}}}, to_apply=add")
                                 for d, shape in (("0", "T[2,3]"), ("1,2", "T[4]"), ("0,1,2", "S"))),
    "reduce_of_reverse": (case("sum", "n = S parameter(1); x = T parameter(0); a = T reverse(x), dimensions={1};"
                                      "ROOT r = T[2] reduce(a, n), dimensions={1}, to_apply=add"),),
    "reduce_of_pad": tuple(case("sum", f"n = S constant({s}); a = T[2,9] pad(x, n), padding=0_0x1_3_1;"
                                       f"ROOT r = T[2] reduce(a, n), dimensions={{1}}, to_apply={op}")
                           for op, s in (("add", "0"), ("multiply", "1"), ("maximum", "$least"))),
    "window_of_one": (case("sum", "n = S parameter(1); x = T parameter(0);"
                                  "ROOT r = T reduce-window(x, n), window={size=1x1}, to_apply=add"),),
    "window_of_all": (case("sum", "n = S parameter(1); x = T parameter(0);"
                                  "ROOT r = T[2,1] reduce-window(x, n), window={size=1x3}, to_apply=add"),
                      case("sum", "n = S parameter(1); x = T parameter(0);"
                                  "ROOT r = T[1,1] reduce-window(x, n), window={size=2x3 stride=5x2}, "
                                  "to_apply=maximum")),
    "window_of_pad": tuple(case("sum", f"n = S constant({s}); a = T[{m}] pad(x, n), padding={p};"
                                       f"ROOT r = T[{m}] reduce-window(a, n), window={{size=1x3 pad=0_0x2_0}}, "
                                       f"to_apply={op}")
                           for op, s in (("add", "0"), ("maximum", "$least"), ("multiply", "1"))
                           for m, p in (("2,6", "0_0x1_2"), ("4,9", "1_0_1x0_4_1"))),
    "dot_of_nothing": (case("sum", "a = T[2,0] constant({{},{}}); c = T[0,3] constant({}); "
                                   "ROOT r = T dot(a, c), " + _DOT1),),
    "dot_of_zeros": (case("wide", "x = T[2,3] parameter(0); z = S constant(0); c = T[3,2] broadcast(z), dimensions={};"
                                  "ROOT r = T[2,2] dot(x, c), " + _DOT1),),
    "dot_of_one_number": (case("wide", "x = T[2,3] parameter(0); n = S constant(5); c = T[3,2] broadcast(n), "
                                       "dimensions={}; ROOT r = T[2,2] dot(x, c), " + _DOT1),
                          case("sum", "x = T[2,3] parameter(0); n = S constant(1); c = T[3,2] broadcast(n), "
                                      "dimensions={}; ROOT r = T[2,2] dot(x, c), " + _DOT1),
                          case("sum", "x = T[5,3,4] parameter(0); n = S constant(1); c = T[6,4,5] broadcast(n), "
                                      "dimensions={}; ROOT r = T[5,6,3] dot(c, x), lhs_batch_dims={2}, "
                                      "rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={2}")),
    "slice_of_dot": (case("sum", "x = T[4,3] parameter(0); y = T[3,5] parameter(1); d = T[4,5] dot(x, y), " + _DOT1 +
                                 "; ROOT r = T[2,2] slice(d), slice={[1:4:2],[2:4]}"),
                     case("sum", "x = T[4,3,2] parameter(0); y = T[3,5,2] parameter(1); d = T[2,4,5] dot(x, y), "
                                 "lhs_batch_dims={2}, rhs_batch_dims={2}, lhs_contracting_dims={1}, "
                                 "rhs_contracting_dims={0}; ROOT r = T[1,4,1] slice(d), slice={[1:2],[0:4],[3:4]}")),
    "convolution_of_single_places": tuple(
        case("float", f"x = T[{x}] parameter(0); y = T[{y}] parameter(1);"
                      f"ROOT r = T[{r}] convolution(x, y), window={{{w}}}, dim_labels={labels}")
        for x, y, r, w, labels in (
            ("2,1,5,3", "1,2,3,4", "2,1,4,4", "size=1x2", "b01f_01io->b01f"),
            ("5,2,3,1,1", "4,1,3,2,1", "2,4,1,4,1", "size=1x2x1 stride=3x1x1", "1bf02_o0i12->bf012"),
            ("2,3,1", "3,4,1", "1,4,2", "size=1 rhs_reversal=1", "bf0_io0->0fb"))),
    "dot_outer": (case("sum", "x = T[2,1] parameter(0); y = T[1,3] parameter(1); ROOT r = T dot(x, y), " + _DOT1),
                  case("complex", "x = T[2,1] parameter(0); y = T[1,3] parameter(1); ROOT r = T dot(x, y), " + _DOT1),
                  case("sum", "x = T[2] parameter(0); y = T[3] parameter(1); ROOT r = T dot(x, y)"),
                  case("sum", "x = T[4,2] parameter(0); y = T[4,3] parameter(1);"
                              "ROOT r = T[4,2,3] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}"),
                  case("sum", "x = T[2,1,4] parameter(0); y = T[3,4,1] parameter(1); ROOT r = T[4,2,3] dot(x, y),"
                              "lhs_batch_dims={2}, rhs_batch_dims={1}, lhs_contracting_dims={1}, "
                              "rhs_contracting_dims={2}")),
    "dot_of_columns": (case("sum", "x = T[3,4] parameter(0); y = T[3,4] parameter(1); ROOT r = T[4] dot(x, y),"
                                   "lhs_batch_dims={1}, rhs_batch_dims={1}, lhs_contracting_dims={0}, "
                                   "rhs_contracting_dims={0}"),
                       case("sum", "x = T[2,3,4,1] parameter(0); y = T[2,3,4,1] parameter(1);"
                                   "ROOT r = T[2,4] dot(x, y), lhs_batch_dims={0,2}, rhs_batch_dims={0,2},"
                                   "lhs_contracting_dims={3,1}, rhs_contracting_dims={3,1}")),
    "dot_across": (case("sum", "x = T[130,128] parameter(0); y = T[128,130] parameter(1); ROOT r = T[130] dot(x, y),"
                               "lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={1}, "
                               "rhs_contracting_dims={0}"),
                   case("sum", "x = T[2,300,40] parameter(0); y = T[40,300,2] parameter(1); ROOT r = T[2] dot(x, y),"
                               "lhs_batch_dims={0}, rhs_batch_dims={2}, lhs_contracting_dims={1,2}, "
                               "rhs_contracting_dims={1,0}")),
    "dot_with_vector": (case("sum", "x = T[2,3] parameter(0); y = T[3] parameter(1); "
                                    "ROOT r = T[2] dot(x, y), " + _DOT1),
                        case("sum", "x = T[5] parameter(0); y = T[5] parameter(1);"
                                    "ROOT r = S dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
                        case("sum", "x = T[1,3] parameter(0); y = T[4,3] parameter(1);"
                                    "ROOT r = T[1,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
                        case("sum", "x = T[4,3,2] parameter(0); y = T[4,3,1] parameter(1); ROOT r = T[4,2,1] dot(x, y),"
                                    "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, "
                                    "rhs_contracting_dims={1}")),
}  # fmt: skip
