"""Templates of the rules of arithmetic, bits, comparisons, choices and types."""

from __future__ import annotations

from .algebra_template import Template, case

VALUES: dict[str, tuple[Template, ...]] = {
    # arithmetic
    "add_zero": (case("int", "ROOT r = T add(x, #0)"), case("real", "ROOT r = T add(#-0, x)")),
    "add_negated": (case("number", "a = T negate(y); ROOT r = T add(x, a)"),
                    case("number", "a = T negate(y); ROOT r = T add(a, x)")),
    "factor_out": (case("int", "a = T multiply(x, z); c = T multiply(z, y); ROOT r = T add(a, c)"),
                   case("int", "a = T multiply(x, #3); c = T multiply(y, z); d = T multiply(z, x);"
                               "ROOT r = T subtract(c, d)")),
    "gather_constants": (case("int", "a = T add(x, #3); ROOT r = T add(#5, a)"),
                         case("int", "a = T multiply(#3, x); ROOT r = T multiply(a, #$most)"),
                         case("bits", "a = T and(x, #1); ROOT r = T and(a, #$most)"),
                         case("bits", "a = T xor(x, #1); ROOT r = T xor(a, #$most)")),
    "subtract_zero": (case("int", "ROOT r = T subtract(x, #0)"), case("real", "ROOT r = T subtract(x, #0)")),
    "subtract_itself": (case("int", "ROOT r = T subtract(x, x)"),),
    "subtract_negated": (case("number", "a = T negate(y); ROOT r = T subtract(x, a)"),),
    "subtract_constant": (case("int", "a = T add(x, #3); ROOT r = T subtract(a, #5)"),
                          case("int", "a = T add(#$most, x); ROOT r = T subtract(a, #$least)")),
    "multiply_one": (case("number", "ROOT r = T multiply(x, #1)"), case("number", "ROOT r = T multiply(#1, x)")),
    "multiply_zero": (case("int", "ROOT r = T multiply(#0, x)"),),
    "multiply_minus_one": (case("signed real", "ROOT r = T multiply(x, #-1)"),),
    "negated_factor": (case("number", "a = T negate(x); ROOT r = T multiply(a, #3)"),
                       case("number", "a = T negate(x); ROOT r = T multiply(#0, a)"),
                       case("float", "a = T negate(x); ROOT r = T divide(a, #-0)"),
                       case("float", "a = T negate(x); ROOT r = T divide(#3, a)")),
    "negated_product": (case("number", "a = T multiply(x, #3); ROOT r = T negate(a)"),
                        case("number", "a = T multiply(#0, x); ROOT r = T negate(a)"),
                        case("float", "a = T divide(x, #3); ROOT r = T negate(a)"),
                        case("float", "a = T divide(#-0, x); ROOT r = T negate(a)")),
    "square_of_magnitude": (case("signed real", "a = T abs(x); ROOT r = T multiply(a, a)"),
                            case("number", "a = T negate(x); ROOT r = T multiply(a, a)")),
    "multiply_negated": (case("number", "a = T negate(x); c = T negate(y); ROOT r = T multiply(a, c)"),
                         case("float", "a = T negate(x); c = T negate(y); ROOT r = T divide(a, c)")),
    "divide_one": (case("number", "ROOT r = T divide(x, #1)"),),
    "divide_minus_one": (case("signed real", "ROOT r = T divide(x, #-1)"),),
    "divide_power_of_two": (case("float", "ROOT r = T divide(x, #8)"), case("float", "ROOT r = T divide(x, #-0.25)"),
                            case("big", "ROOT r = T divide(x, #1267650600228229401496703205376)")),
    "divide_in_range": (case("int", "a = T remainder(x, #3); m = T and(a, #1); ROOT r = T divide(m, #2)"),),
    "unsigned_divide_power_of_two": (case("unsigned", "ROOT r = T divide(x, #16)"),
                                     case("wide", "a = T and(x, #$most); ROOT r = T divide(a, #4)")),
    "remainder_one": (case("int", "ROOT r = T remainder(x, #1)"), case("signed", "ROOT r = T remainder(x, #-1)")),
    "remainder_in_range": (case("int", "a = T remainder(x, #3); ROOT r = T remainder(a, #5)"),
                           case("int", "a = T iota(), iota_dimension=1; ROOT r = T remainder(a, #3)")),
    "unsigned_remainder_power_of_two": (case("unsigned", "ROOT r = T remainder(x, #8)"),
                                        case("wide", "a = T and(x, #$most); ROOT r = T remainder(a, #4)")),
    "power_zero_or_one": (case("float wide", "ROOT r = T power(x, #0)"), case("float wide", "ROOT r = T power(x, #1)"),
                          case("float", "ROOT r = T power(#1, x)")),
    "power_integer": tuple(case("wide", f"ROOT r = T power(x, #{n})") for n in (2, 3, 4)),
    "power_small": tuple(case("float", f"ROOT r = T power(x, #{n})") for n in (2, 3, 4, -1)),
    "power_half": (*(case("float", f"ROOT r = T power(x, #{n})") for n in (0.5, -0.5)),
                   *(case("float", f"a = T abs(x); ROOT r = T power(a, #{n})") for n in (0.5, -0.5))),
    "power_complex": tuple(case("complex", f"k = S constant(({n},0)); c = T broadcast(k), dimensions={{}};"
                                           "ROOT r = T power(x, c)") for n in (1, 2, 3)),
    "twice": (case("number complex", "a = T negate(x); ROOT r = T negate(a)"),
              case("bits", "a = T not(x); ROOT r = T not(a)")),
    "negated_difference": (case("int", "a = T subtract(x, y); ROOT r = T negate(a)"),),
    "idempotent": (case("signed real", "a = T abs(x); ROOT r = T abs(a)"),
                   case("signed real", "a = T sign(x); ROOT r = T sign(a)")),
    "rounded_twice": (case("real", "a = T floor(x); ROOT r = T ceil(a)"),
                      case("real", "a = T ceil(x); ROOT r = T round-nearest-even(a)"),
                      case("real", "a = T round-nearest-even(x); ROOT r = T round-nearest-afz(a)")),
    "rounded_integer": (case("int pred", "a = f32[2,3] convert(x); ROOT r = f32[2,3] floor(a)"),),
    "abs_of_negated": (case("signed real", "a = T negate(x); ROOT r = T abs(a)"),),
    "abs_of_what_is_not_negative": (case("float", "a = T exponential(x); ROOT r = T abs(a)"),
                                    case("real", "a = T multiply(x, x); ROOT r = T abs(a)"),
                                    case("signed", "a = T and(x, #$most); ROOT r = T abs(a)")),
    # bits, comparisons and choices
    "same_operands": tuple(case(kinds, f"ROOT r = T {op}(x, x)") for op, kinds in
                           (("and", "bits"), ("or", "bits"), ("minimum", "number pred"), ("maximum", "number pred"))),
    "logic_known": tuple(case("bits", f"ROOT r = T {op}({o})") for op in ("and", "or")
                         for o in ("x, #0", "#$ones, x")),
    "logic_of_negation": tuple(case("bits", f"a = T not(x); ROOT r = T {op}(a, x)") for op in ("and", "or")),
    "absorb": (*(case("bits", f"a = T {one}(x, y); ROOT r = T {other}(y, a)") for one in ("and", "or")
                    for other in ("and", "or")), *(
                    case("int pred", f"a = T {one}(x, y); ROOT r = T {other}(a, x)") for one in ("minimum", "maximum")
                    for other in ("minimum", "maximum"))),
    "de_morgan": tuple(case("bits", f"a = T not(x); c = T not(y); ROOT r = T {op}(a, c)") for op in ("and", "or")),
    "xor_known": tuple(case("bits", f"ROOT r = T xor({o})") for o in ("x, x", "x, #0", "#$ones, x")),
    "not_of_compare": (*(case("int pred", f"a = P compare(x, y), direction={d}; ROOT r = P not(a)")
                            for d in ("LT", "LE", "GT", "GE", "EQ", "NE")), *(
                            case("real", f"a = P compare(x, y), direction={d}; ROOT r = P not(a)")
                            for d in ("EQ", "NE", "LT, type=TOTALORDER", "GE, type=TOTALORDER"))),
    "shift_by_zero": tuple(case("wide", f"ROOT r = T {op}({o})") for o in ("x, #0", "#0, x")
                           for op in ("shift-left", "shift-right-logical", "shift-right-arithmetic")),
    "shift_out": tuple(case("wide", f"ROOT r = T {op}(x, #{n})") for op in ("shift-left", "shift-right-logical")
                       for n in ("$bits", "100")),
    "shift_twice": tuple(case("wide", f"a = T {op}(x, #{m}); ROOT r = T {op}(a, #{n})")
                         for op in ("shift-left", "shift-right-logical", "shift-right-arithmetic")
                         for m, n in ((1, 2), (7, 7), (0, 3))),
    "compare_itself": (*(case("bits", f"ROOT r = P compare(x, x), direction={d}") for d in ("EQ", "LT", "GE")),
                            case("real", "ROOT r = P compare(x, x), direction=LE, type=TOTALORDER"),),
    "compare_with_truth": tuple(case("pred", f"ROOT r = P compare({o}), direction={d}") for d in ("EQ", "NE")
                                for o in ("x, #1", "#0, x")),
    "compare_converted_truth": tuple(case("wide float", f"a = T convert(p); ROOT r = P compare(a, #0), direction={d}")
                                     for d in ("NE", "EQ", "GT", "LE")),
    "compare_ranges": (case("unsigned", "ROOT r = P compare(x, #0), direction=LT"),
                       case("unsigned", "ROOT r = P compare(x, #0), direction=GE"),
                       case("int", "a = T iota(), iota_dimension=1; ROOT r = P compare(a, #3), direction=LT"),
                       case("wide", "a = T remainder(x, #7); ROOT r = P compare(#9, a), direction=LE"),
                       case("int", "a = T and(x, #3); ROOT r = P compare(a, #4), direction=NE"),
                       case("wide", "a = T iota(), iota_dimension=0; c = T add(a, #9);"
                                    "ROOT r = P compare(c, a), direction=GT"),
                       case("wide", "a = T clamp(#2, x, #9); c = T clamp(#10, y, #20);"
                                    "ROOT r = P compare(a, c), direction=EQ"),
                       case("wide", "a = T convert(p); ROOT r = P compare(a, #1), direction=LE")),
    "compare_negated": tuple(case("float", f"a = T negate(x); {c}; ROOT r = P compare({o}), direction={d}")
                             for c, o in (("c = T negate(y)", "a, c"), ("c = T add(#3, #0)", "#0, a"),
                                          ("c = T add(#3, #0)", "a, #3"))
                             for d in ("LT", "LE", "GT", "GE", "EQ", "NE")),
    "select_known": (case("any", "t = P constant({{1,0,1},{0,1,0}}); ROOT r = T select(t, x, x)"),
                     case("any", "t = pred[] constant(false); ROOT r = T select(t, x, y)"),
                     case("any", "t = pred[] constant(true); u = P broadcast(t), dimensions={};"
                                 "ROOT r = T select(u, x, y)")),
    "select_of_not": (case("any", "t = P not(p); ROOT r = T select(t, x, y)"),),
    "select_same_test": (case("any", "a = T select(p, x, y); ROOT r = T select(p, a, z)"),
                         case("any", "a = T select(p, x, y); ROOT r = T select(p, z, a)")),
    "select_truth": tuple(case("pred", f"ROOT r = T select(p, {o})") for o in
                          ("#1, #0", "#0, #1", "#1, #1", "#0, #0", "#1, x", "#0, x", "x, #1", "x, #0")),
    "select_extreme": tuple(case("int", f"t = P compare({o}), direction={d}; ROOT r = T select(t, x, y)")
                            for o in ("x, y", "y, x") for d in ("LT", "LE", "GT", "GE")),
    "select_of_update": tuple(case("any", "x = T parameter(0); v = T[1,2] parameter(1); j = s32[] parameter(2);"
                                          f"k = s32[] parameter(3); t = {t} parameter(4);"
                                          f"a = T dynamic-update-slice(x, v, j, k); ROOT r = T select({o})")
                              for t, o in (("P", "t, a, x"), ("P", "t, x, a"), ("pred[]", "t, a, x"))),
    "extreme_of_limit": (case("float bits", "ROOT r = T maximum(x, #$least)"), case("bits",
                         "ROOT r = T minimum(x, #$least)"),
                         case("bits", "ROOT r = T maximum(#$most, x)"), case("float bits",
                                  "ROOT r = T minimum(#$most, x)")),
    "extreme_in_range": (case("wide", "a = T clamp(#2, x, #9); ROOT r = T minimum(a, #9)"),
                         case("wide", "a = T iota(), iota_dimension=0; ROOT r = T maximum(#5, a)")),
    "extreme_of_constants": (*(case("number", f"a = T {op}(x, #{c}); ROOT r = T {op}(#{d}, a)")
                                  for op in ("maximum", "minimum") for c, d in ((1, 2), (3, 1))),
                                  case("int", "a = T maximum(x, #0); ROOT r = T maximum(a, #1)"),
                                  case("float", "a = T maximum(x, #nan); ROOT r = T maximum(a, #1)")),
    "clamp_twice": (case("number", "a = T clamp(y, x, z); ROOT r = T clamp(y, a, z)"),),
    "clamp_of_clamp": tuple(case("wide float", f"a = T clamp(#{a}, x, #{b}); n = S constant({c});"
                                               f"m = S constant({d}); ROOT r = T clamp(n, a, m)")
                            for a, b, c, d in ((1, 9, 3, 7), (3, 7, 1, 9), (1, 3, 5, 7), (5, 7, 1, 3), (7, 1, 3, 5),
                                               (1, 5, 3, 2))),
    "clamp_in_range": (case("wide", "a = T remainder(x, #5); c = T and(a, #3); ROOT r = T clamp(#0, c, #4)"),
                       case("wide", "ROOT r = T clamp(#5, x, #3)"),
                       case("wide", "a = T and(x, #3); ROOT r = T clamp(#5, a, #7)"),
                       case("wide", "a = T clamp(#5, x, #9); n = S constant(0); m = S constant(4);"
                                    "ROOT r = T clamp(n, a, m)")),
    "is_finite_of_sign": (case("real", "a = T negate(x); ROOT r = P is-finite(a)"),
                          case("real", "a = T abs(x); ROOT r = P is-finite(a)")),
    "is_finite_integer": (case("bits", "a = f32[2,3] convert(x); ROOT r = P is-finite(a)"),
                          case("bits", "a = bf16[2,3] convert(x); ROOT r = P is-finite(a)")),
    # types
    "convert_back": tuple(case(kinds, f"a = {wide}[2,3] convert(x); ROOT r = T convert(a)") for kinds, wide in
                          (("real", "f64"), ("pred", "u8"), ("pred", "bf16"))),
    "convert_twice": (case("signed u8 u16 u32 s4 u4 pred", "a = s64[2,3] convert(x); ROOT r = f32[2,3] convert(a)"),
                      case("float narrow pred", "a = f64[2,3] convert(x); ROOT r = s16[2,3] convert(a)"),
                      case("float", "a = f64[2,3] convert(x); ROOT r = f8e5m2[2,3] convert(a)"),
                      case("s16 s32 s64 u8 u16 u32 u64 s4 u4", "a = s16[2,3] convert(x); ROOT r = s8[2,3] convert(a)"),
                      case("s16 s32 s64 u16 u32 u64 u4", "a = u16[2,3] convert(x); ROOT r = u8[2,3] convert(a)"),
                      case("s8 s16 s32 u8 u16 u32", "a = f64[2,3] convert(x); ROOT r = pred[2,3] convert(a)")),
    "convert_of_iota": (case("wide float", "a = s32[2,3] iota(), iota_dimension=1; ROOT r = T convert(a)"),),
    "convert_of_select": (case("wide", "a = T select(p, #1, #0); ROOT r = f32[2,3] convert(a)"),),
    "bits_twice": (case("f32 s32", "a = u32[2,3] bitcast-convert(x); ROOT r = T bitcast-convert(a)"),
                   case("f32 s32", "a = u32[2,3] bitcast-convert(x); ROOT r = s32[2,3] bitcast-convert(a)")),
    "part_of_complex": tuple(case("big", f"a = C complex(x, y); ROOT r = T {part}(a)") for part in ("real", "imag")),
    "part_of_real": tuple(case("big", f"ROOT r = T {part}(x)") for part in ("real", "imag")),
    "part_of_sum": (
        *(case("complex", f"a = T {op}(x, y); ROOT r = F {part}(a)")
          for op in ("add", "subtract") for part in ("real", "imag")),
        *(case("complex", f"a = T negate(x); ROOT r = F {part}(a)") for part in ("real", "imag")),
    ),
    "complex_of_parts": (case("complex", "a = F real(x); c = F imag(x); ROOT r = T complex(a, c)"),),
}  # fmt: skip
