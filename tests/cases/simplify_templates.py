"""Templates (form: algebra_template.py) of what simplify.py removes or merges, by opcode."""

from __future__ import annotations

from ...hlo.opcodes import Op
from .algebra_template import Template, case

SIMPLIFY: dict[Op, tuple[Template, ...]] = {
    Op.GET_TUPLE_ELEMENT: (case("any", "a = (T, T) tuple(x, y); ROOT r = T get-tuple-element(a), index=1"),),
    Op.TUPLE: (case("any", "x = (T, T) parameter(0); a = T get-tuple-element(x), index=0;"
                           "c = T get-tuple-element(x), index=1; ROOT r = (T, T) tuple(a, c)"),),
    Op.RESHAPE: (case("any", "a = T[6] reshape(x); ROOT r = T[3,2] reshape(a)"),
                 case("any", "ROOT r = T reshape(x)"),
                 case("any", "n = S parameter(0); a = T broadcast(n), dimensions={}; ROOT r = T[6] reshape(a)"),
                 case("any", "x = T[2,3]{0,1} parameter(0); a = T[6] reshape(x); ROOT r = T[3,2]{0,1} reshape(a)")),
    Op.BROADCAST: (case("any", "ROOT r = T broadcast(x), dimensions={0,1}"),
                   case("any", "x = T[3] parameter(0); ROOT r = T[1,3] broadcast(x), dimensions={1}"),
                   case("any", "x = T[3] parameter(0); a = T broadcast(x), dimensions={1};"
                               "ROOT r = T[3,4,2] broadcast(a), dimensions={2,0}"),
                   case("any", "x = T[3] parameter(0); a = T[1,3,1] reshape(x);"
                               "ROOT r = T[1,4,3,1] broadcast(a), dimensions={0,2,3}"),
                   case("any", "x = S parameter(0); a = T[1,1] reshape(x); ROOT r = T[4,1,1] broadcast(a),"
                               "dimensions={1,2}")),
    Op.TRANSPOSE: (case("any", "ROOT r = T transpose(x), dimensions={0,1}"),
                   case("any", "x = T[2,3,4] parameter(0); a = T[4,2,3] transpose(x), dimensions={2,0,1};"
                               "ROOT r = T[3,4,2] transpose(a), dimensions={2,0,1}"),
                   case("any", "x = T[1,3] parameter(0); ROOT r = T[3,1] transpose(x), dimensions={1,0}"),
                   case("any", "n = S parameter(0); a = T broadcast(n), dimensions={};"
                               "ROOT r = T[3,2] transpose(a), dimensions={1,0}")),
    Op.CONVERT: (case("any", "ROOT r = T convert(x)"),),
    Op.BITCAST: (case("any", "ROOT r = T bitcast(x)"),),
    Op.BITCAST_CONVERT: (case("wide float", "ROOT r = T bitcast-convert(x)"),),
    Op.COPY: (case("any", "ROOT r = T copy(x)"),
              case("any", "x = T[1,3]{1,0} parameter(0); ROOT r = T[1,3]{0,1} copy(x)")),
    Op.SLICE: (case("any", "ROOT r = T slice(x), slice={[0:2],[0:3]}"),
               case("any", "x = T[9,3] parameter(0); a = T[4,3] slice(x), slice={[1:9:2],[0:3]};"
                           "ROOT r = T[2,1] slice(a), slice={[0:3:2],[2:3]}"),
               case("any", "n = S parameter(0); a = T broadcast(n), dimensions={}; ROOT r = T[1,3] slice(a),"
                           "slice={[1:2],[0:3]}")),
    Op.PAD: (case("any", "n = S parameter(1); x = T parameter(0); ROOT r = T pad(x, n), padding=0_0x0_0"),),
    Op.CONCATENATE: (case("any", "ROOT r = T concatenate(x), dimensions={0}"),
                     case("any", "a = T[0,3] constant({}); ROOT r = T[4,3] concatenate(x, a, y), dimensions={0}")),
    Op.REVERSE: (case("any", "x = T[1,3] parameter(0); ROOT r = T[1,3] reverse(x), dimensions={0}"),),
    Op.REDUCE: (case("sum", "x = T[2,1,3] parameter(0); n = S parameter(1);"
                            "ROOT r = T reduce(x, n), dimensions={1}, to_apply=add"),
                case("sum", "x = T[1,1] parameter(0); n = S parameter(1);"
                            "ROOT r = S reduce(x, n), dimensions={0,1}, to_apply=maximum")),
    Op.SORT: (case("sum", "x = T[2,1] parameter(0); ROOT r = T[2,1] sort(x), dimensions={1}, to_apply=less"),
              case("sum", "x = T[1] parameter(0); y = T[1] parameter(1);"
                          "ROOT r = (T[1], T[1]) sort(x, y), dimensions={0}, to_apply=less2")),
    Op.DYNAMIC_SLICE: (case("any", "i = s32[] parameter(1); x = T parameter(0);"
                                   "ROOT r = T dynamic-slice(x, i, i), dynamic_slice_sizes={2,3}"),),
    Op.DYNAMIC_UPDATE_SLICE: (case("any", "i = s32[] parameter(2); x = T parameter(0); y = T parameter(1);"
                                          "ROOT r = T dynamic-update-slice(x, y, i, i)"),),
    Op.GET_DIMENSION_SIZE: (case("any", "ROOT r = s32[] get-dimension-size(x), dimensions={1}"),),
}  # fmt: skip
