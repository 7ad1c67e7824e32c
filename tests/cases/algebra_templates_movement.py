"""Templates of the rules for data movement and indices."""

from __future__ import annotations

from .algebra_template import Template, case

_DOT1 = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
_ONE_ROW = "index_vector_dim=0, slice_sizes={1,3}"

MOVEMENT: dict[str, tuple[Template, ...]] = {
    # movement
    "iota_of_one": (case("wide float", "ROOT r = T[1,3] iota(), iota_dimension=0"),),
    "broadcast_of_iota": (case("wide float", "a = T[3] iota(), iota_dimension=0; ROOT r = T broadcast(a), "
                                        "dimensions={1}"),),
    "transpose_of_iota": (case("wide float", "a = T iota(), iota_dimension=1; ROOT r = T[3,2] transpose(a), "
                                        "dimensions={1,0}"),),
    "transpose_of_broadcast": (case("any", "x = T[3] parameter(0); a = T[2,3,4] broadcast(x), dimensions={1};"
                                           "ROOT r = T[4,3,2] transpose(a), dimensions={2,1,0}"),
                               case("any", "x = T[2,3] parameter(0); a = T[2,3,4] broadcast(x), dimensions={0,1};"
                                           "ROOT r = T[4,2,3] transpose(a), dimensions={2,0,1}")),
    "reshape_of_broadcast": (case("any", "x = T[3] parameter(0); a = T broadcast(x), dimensions={1};"
                                         "ROOT r = T[1,2,3,1] reshape(a)"),
                             case("any", "x = T[3] parameter(0); a = T[3,1,4] broadcast(x), dimensions={0};"
                                         "ROOT r = T[1,3,4] reshape(a)")),
    "slice_of_iota": (case("wide float", "a = T iota(), iota_dimension=1; ROOT r = T[1,2] slice(a), "
                                        "slice={[1:2],[0:2]}"),),
    "slice_of_concatenate": tuple(case("any", "a = T[2,9] concatenate(x, y, z), dimensions={1};"
                                              f"ROOT r = T[{n}] slice(a), slice={{[0:2],[{s}]}}")
                                  for n, s in (("2,2", "4:6"), ("2,4", "1:5"), ("2,2", "6:9:2"), ("2,3", "3:6"),
                                               ("2,2", "0:3:2"))),
    "slice_of_pad": tuple(case("any", "n = S parameter(1); x = T parameter(0);"
                                      "a = T[5,5] pad(x, n), padding=1_2x2_0;"
                                      f"ROOT r = T[{n}] slice(a), slice={{{s}}}")
                          for n, s in (("2,2", "[1:3],[3:5]"), ("2,5", "[3:5],[0:5]"), ("1,1", "[1:2],[2:4:3]"),
                                       ("3,1", "[0:5:2],[0:2:2]"))),
    "slice_of_broadcast": (case("any", "x = T[3] parameter(0); a = T broadcast(x), dimensions={1};"
                                       "ROOT r = T[1,2] slice(a), slice={[1:2],[0:3:2]}"),
                           case("any", "x = S parameter(0); a = T broadcast(x), dimensions={};"
                                       "ROOT r = T[1,2] slice(a), slice={[1:2],[0:3:2]}")),
    "slice_of_transpose": (case("any", "a = T[3,2] transpose(x), dimensions={1,0};"
                                       "ROOT r = T[2,1] slice(a), slice={[0:3:2],[1:2]}"),),
    "slice_of_reverse": (case("any", "a = T reverse(x), dimensions={1}; ROOT r = T[1,2] slice(a), "
                                     "slice={[1:2],[0:3:2]}"),
                         case("any", "a = T reverse(x), dimensions={0,1}; ROOT r = T[2,1] slice(a), "
                                     "slice={[0:2],[0:2:2]}")),
    "concatenate_of_concatenates": (case("any", "a = T[4,3] concatenate(x, y), dimensions={0};"
                                                "ROOT r = T[6,3] concatenate(a, z), dimensions={0}"),),
    "concatenate_of_one": tuple(case("any", f"ROOT r = T[{n}] concatenate({o}), dimensions={{{d}}}")
                                for n, o, d in (("4,3", "x, x", 0), ("2,9", "x, x, x", 1))),
    "slice_of_update": tuple(case("any", "x = T[4,5] parameter(0); u = T[2,3] parameter(1); i = s32[] constant(1);"
                                         "j = s32[] constant(7); a = T[4,5] dynamic-update-slice(x, u, i, j);"
                                         f"ROOT r = T[{n}] slice(a), slice={{{s}}}")
                             for n, s in (("1,3", "[0:1],[1:4]"), ("2,2", "[0:4:2],[0:2]"), ("2,3", "[1:3],[2:5]"),
                                          ("1,2", "[2:3],[2:5:2]"))),
    "concatenate_of_slices": (case("any", "a = T[2,1] slice(x), slice={[0:2],[0:1]}; c = T[2,1] slice(x), "
                                        "slice={[0:2],[1:2]};"
                                          "d = T[2,1] slice(x), slice={[0:2],[2:3]};"
                                          "ROOT r = T[2,6] concatenate(a, c, d, y), dimensions={1}"),),
    "concatenate_of_splats": (case("any", "n = S parameter(0); a = T broadcast(n), dimensions={};"
                                          "c = T[1,3] broadcast(n), dimensions={}; "
                                        "ROOT r = T[3,3] concatenate(a, c), dimensions={0}"),
                              case("any", "ROOT r = T[4,3] concatenate(#1, x), dimensions={0}"),
                              case("any", "ROOT r = T[2,6] concatenate(x, #1), dimensions={1}")),
    "pad_of_splat": (case("any", "n = S parameter(0); a = T broadcast(n), dimensions={}; ROOT r = T[3,3] pad(a, n), "
                                 "padding=1_0x-1_1"),
                     case("any", "n = S parameter(0); a = T[0,3] constant({}); ROOT r = T[2,3] pad(a, n), "
                                 "padding=1_1x0_0")),
    "pad_of_pad": (case("any", "n = S parameter(1); x = T parameter(0); a = T[3,4] pad(x, n), padding=1_0x0_1;"
                               "ROOT r = T[4,6] pad(a, n), padding=0_1x2_0"),),
    "pad_that_cuts": (case("any", "n = S parameter(1); x = T parameter(0); ROOT r = T[1,1] pad(x, n), "
                                  "padding=-1_0x-1_-1"),),
    "sum_of_pads": tuple(case("number complex", f"n = S constant(0); x = T parameter(0); y = T[2,{m}] parameter(1);"
                                     f"a = T[2,{w}] pad(x, n), padding=0_0x{p};"
                                     f"c = T[2,{w}] pad(y, n), padding=0_0x{q};"
                                     f"ROOT r = T[2,{w}] add({o})")
                         for m, w, p, q in ((3, 6, "0_1_1", "1_0_1"), (2, 5, "0_0_1", "1_1_1"), (2, 5, "0_2", "3_0"))
                         for o in ("a, c", "c, a")),
    "reverse_of_reverse": (case("any", "a = T reverse(x), dimensions={0,1}; ROOT r = T reverse(a), dimensions={1}"),
                           case("any", "a = T reverse(x), dimensions={1}; ROOT r = T reverse(a), dimensions={1}")),
    "reverse_of_broadcast": (case("any", "x = T[3] parameter(0); a = T broadcast(x), dimensions={1};"
                                         "ROOT r = T reverse(a), dimensions={0,1}"),
                             case("any", "x = T[1,3] parameter(0); ROOT r = T[1,3] reverse(x), dimensions={0,1}")),
    "elementwise_of_reshaped_product": (
        case("wide float", "x = T[6,4] parameter(0); y = T[4,3] parameter(1); d = T[6,3] dot(x, y), " + _DOT1 + ";"
                           "a = T[2,3,3] reshape(d); n = T[3] parameter(2); c = T[2,3,3] broadcast(n), dimensions={2};"
                           "ROOT r = T[2,3,3] maximum(a, c)"),
        case("wide float", "x = T[6,4] parameter(0); y = T[4,3] parameter(1); d = T[6,3] dot(x, y), " + _DOT1 + ";"
                           "a = T[2,3,3] reshape(d); m = T[2,3,3] negate(a); z = T[2,3,3] parameter(2);"
                           "c = S parameter(3); k = T[2,3,3] broadcast(c), dimensions={}; b = T[2,3,3] minimum(k, m);"
                           "ROOT r = T[2,3,3] maximum(z, b)"),
        case("wide float", "x = T[2,1,4] parameter(0); y = T[4,3] parameter(1); d = T[2,1,3] dot(x, y),"
                           "lhs_contracting_dims={2}, rhs_contracting_dims={0}; a = T reshape(d);"
                           "n = T[2] parameter(2); c = T broadcast(n), dimensions={0};"
                           "p = pred[2,3] compare(c, a), direction=LT;"
                           "ROOT r = T select(p, a, c)"),
    ),
    "elementwise_of_transposes": (case("any", "a = T[3,2] transpose(x), dimensions={1,0}; c = T[3,2] transpose(y), "
                                             "dimensions={1,0}; ROOT r = pred[3,2] compare(a, c), direction=LE"
                                             .replace("LE", "EQ")),
                                  case("number", "a = T[3,2] transpose(x), dimensions={1,0};"
                                                 "ROOT r = T[3,2] negate(a)"),
                                  case("float", "a = T[3,2] transpose(x), dimensions={1,0}; n = S constant(3);"
                                                "m = T[3,2] broadcast(n), dimensions={}; ROOT r = T[3,2] add(m, a)")),
    "elementwise_of_broadcasts": (case("float", "x = T[3] parameter(0); a = T broadcast(x), dimensions={1}; "
                                        "ROOT r = T power(a, #3)"),
                                  case("float", "x = T[3] parameter(0); a = T broadcast(x), dimensions={1}; "
                                        "ROOT r = T divide(#3, a)"),
                                  case("number", "n = S parameter(0); m = S parameter(1); a = T broadcast(n), "
                                        "dimensions={};"
                                                 "c = T broadcast(m), dimensions={}; ROOT r = T multiply(a, c)"),
                                  case("float", "x = T[3] parameter(0); a = T broadcast(x), dimensions={1}; "
                                        "ROOT r = T exponential(a)"),
                                  case("any", "n = S parameter(0); a = T broadcast(n), dimensions={};"
                                              "m = S parameter(1); c = T broadcast(m), dimensions={};"
                                              "ROOT r = P compare(a, c), direction=EQ")),
    # indices
    "dynamic_slice_at_known": (*(case("any", f"x = T[4,5] parameter(0); i = {t}[] constant({i});"
                                        f" j = {t}[] constant({j});"
                                                "ROOT r = T[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={2,3}")
                                    for t, i, j in (("s32", -5, 1), ("s64", 9, 2), ("u8", 200, 0),
                                                    ("s32", -2147483648, 2147483647))),
                                    case("any", "x = T[2,5] parameter(0); i = s32[] parameter(1);"
                                        " j = s32[] constant(1);"
                                                "ROOT r = T[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={2,3}"),),
    "dynamic_slice_of_splat": (case("any", "n = S parameter(0); i = s32[] parameter(1); a = T[4,5] broadcast(n), "
                                        "dimensions={};"
                                           "ROOT r = T dynamic-slice(a, i, i), dynamic_slice_sizes={2,3}"),),
    "dynamic_slice_of_broadcast": (case("any", "x = T[5] parameter(0); i = s32[] parameter(1); j = s32[] parameter(2);"
                                               "a = T[4,5] broadcast(x), dimensions={1};"
                                               "ROOT r = T dynamic-slice(a, i, j), dynamic_slice_sizes={2,3}"),
                                   case("any", "x = T[4] parameter(0); i = s32[] parameter(1); j = s32[] parameter(2);"
                                               "a = T[4,5] broadcast(x), dimensions={0};"
                                               "ROOT r = T[4,2] dynamic-slice(a, i, j), dynamic_slice_sizes={4,2}")),
    "dynamic_slice_of_iota": tuple(case(kinds, f"i = {t} parameter(0); a = T[3,7] iota(), iota_dimension={d};"
                                               f"ROOT r = T[{n}] dynamic-slice(a, i, i), dynamic_slice_sizes={{{n}}}")
                                   for kinds, t in (("wide float", "s32[]"), ("s8 u64 f16", "u8[]"))
                                   for d, n in ((0, "1,2"), (1, "1,1"), (1, "3,4"))),
    "dynamic_slice_twice": tuple(case("any", f"x = T[4,7,5] parameter(0); i = {t} parameter(1); j = {t} parameter(2);"
                                             "a = T[3,7,4] dynamic-slice(x, i, j, i), dynamic_slice_sizes={3,7,4};"
                                             "ROOT r = T[3,2,1] dynamic-slice(a, j, i, j), "
                                             "dynamic_slice_sizes={3,2,1}") for t in ("s32[]", "u8[]", "s64[]")),
    "update_of_nothing": (case("any", "i = s32[] parameter(1); x = T parameter(0); u = T[0,3] constant({});"
                                      "ROOT r = T dynamic-update-slice(x, u, i, i)"),),
    "update_by_itself": (case("any", "i = s32[] parameter(1); x = T parameter(0); u = T[1,2] dynamic-slice(x, i, i),"
                                     "dynamic_slice_sizes={1,2}; ROOT r = T dynamic-update-slice(x, u, i, i)"),),
    "update_twice": (case("any", "i = s32[] parameter(1); x = T parameter(0); u = T[1,2] parameter(2);"
                                 " v = T[1,2] parameter(3);"
                                 "a = T dynamic-update-slice(x, u, i, i); "
                                 "ROOT r = T dynamic-update-slice(a, v, i, i)"),),
    "update_of_splat": tuple(case("any", f"x = T parameter(0); n = S parameter(1); i = s32[] constant({i});"
                                        f" a = T[5,5] broadcast(n), dimensions={{}};"
                                         "ROOT r = T[5,5] dynamic-update-slice(a, x, i, i)") for i in (1, -3, 99)),
    "gather_of_whole": (case("any", "x = T[1,3] parameter(0); i = s32[2,4] parameter(1);"
                                    "ROOT r = T[2,3,4] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, "
                                    "start_index_map={0}, index_vector_dim=2, slice_sizes={1,3}"),
                        case("any", "x = T[5,2] parameter(0); i = u8[4,1] parameter(1);"
                                    "ROOT r = T[3,2,4] gather(x, i), offset_dims={0,1}, collapsed_slice_dims={}, "
                                    "start_index_map={1}, index_vector_dim=1, slice_sizes={3,2}")),
    "gather_of_one": (case("any", "x = T[5,3] parameter(0); i = s32[1] parameter(1); ROOT r = T[2] gather(x, i), "
                                  "offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, "
                                  "index_vector_dim=0, slice_sizes={1,2}"),
                      case("any", "x = T[5,3] parameter(0); i = s32[1] parameter(1); ROOT r = T[3] gather(x, i), "
                                  "offset_dims={0},"
                                  "collapsed_slice_dims={0}, start_index_map={0}, " + _ONE_ROW),
                      case("any", "x = T[5,3] parameter(0); i = s64[2] parameter(1); ROOT r = T[2,2] gather(x, i), "
                                  "offset_dims={0,1},"
                                  "collapsed_slice_dims={}, start_index_map={1,0}, index_vector_dim=0, "
                                  "slice_sizes={2,2}"),
                      case("any", "x = T[5,3] parameter(0); i = u32[1,1] parameter(1); "
                                  "ROOT r = T[1,3] gather(x, i), offset_dims={1},"
                                  "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
                                  "slice_sizes={1,3}")),
    "gather_of_consecutive": (*(case("any", f"x = T[2,9] parameter(0); i = s32[{s}] constant({c});"
                                              "ROOT r = T[3,2] gather(x, i), offset_dims={1}, "
                                              "collapsed_slice_dims={1}, start_index_map={1}, "
                                              "index_vector_dim=1, slice_sizes={2,1}")
                                for s, c in (("3", "{4,5,6}"), ("3,1", "{{0},{4},{8}}"))),
                              case("any", "x = T[5,3] parameter(0); i = s32[4] iota(), iota_dimension=0;"
                                   " j = s32[4,1] reshape(i);"
                                   "ROOT r = T[4,3] gather(x, j), offset_dims={1}, collapsed_slice_dims={0}, "
                                   "start_index_map={0},"
                                   "index_vector_dim=1, slice_sizes={1,3}"),
                       case("any", "x = T[5,3,2] parameter(0); i = s32[3] iota(), iota_dimension=0;"
                                   "ROOT r = T[4,3,2] gather(x, i), offset_dims={0,2}, collapsed_slice_dims={1}, "
                                   "start_index_map={1},"
                                   "index_vector_dim=1, slice_sizes={4,1,2}")),
    "scatter_of_nothing": (case("sum", "x = T parameter(0); i = s32[0,1] constant({}); u = T[0,3] constant({});"
                                       "ROOT r = T scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},"
                                       "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add"),),
    "scatter_at_known": (*(case("sum", "x = T parameter(0); i = s32[1,1] constant({{1}}); u = T[1,3] parameter(1);"
                                          "ROOT r = T scatter(x, i, u), update_window_dims={1}, "
                                        "inserted_window_dims={0},"
                                          f"scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply={op}")
                              for op in ("add", "maximum")),
                              case("sum", "x = T parameter(0); i = s32[2] constant({1,0}); u = T[2,2] parameter(1);"
                                          "ROOT r = T scatter(x, i, u), update_window_dims={0,1}, "
                                        "inserted_window_dims={},"
                                          "scatter_dims_to_operand_dims={1,0}, index_vector_dim=0, to_apply=add"),),
    "scatter_of_consecutive": tuple(
        case("sum", f"x = T[5,4] parameter(0); i = s32[3,1] {i}; u = T[{u}] parameter(1);"
                    f"ROOT r = T[5,4] scatter(x, i, u), update_window_dims={{{w}}}, inserted_window_dims={{{d}}},"
                    f"scatter_dims_to_operand_dims={{{d}}}, index_vector_dim=1, to_apply={op}")
        for op in ("add", "maximum")
        for i, u, w, d in (("constant({{1},{2},{3}})", "3,4", 1, 0), ("iota(), iota_dimension=0", "4,3", 0, 0),
                           ("constant({{1},{2},{3}})", "5,3", 0, 1), ("iota(), iota_dimension=0", "3,2", 1, 1))),
}  # fmt: skip
