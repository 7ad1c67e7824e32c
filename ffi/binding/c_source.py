"""The C source of a handler whose body is a kernel: it decodes the call frame as XLA's C++ layer does, with its texts.

It includes nothing but the C library. The structures are those of xla/ffi/api/c_api.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .. import abi
from ..abi import DATA_TYPES
from .attributes import dtype_name, scalar_number
from .kernels import Kernel, llvm_arguments, scalar_of
from .specs import ArgSpec, AttrSpec, BufferSpec, ResultSpec, SpanSpec, Spec


def prelude() -> str:
    """What all handlers of a file share."""
    names = "\n".join(f'    case {n}: return "{dtype_name(n)}";' for n in sorted(DATA_TYPES.values()))
    major, minor = abi.NEWEST
    defines = f"#define NEWEST_MAJOR {major}\n#define NEWEST_MINOR {minor}\n"
    text = Path(__file__).with_name("prelude.c").read_text(encoding="utf-8")
    return defines + text.replace("/* dtypes */", names.strip())


C_NAMES = {"ptr": "const void *", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t"}
C_NAMES |= {"float": "float", "double": "double"}


def handler_source(name: str, kernel: Kernel, symbol: str, specs: Sequence[Spec]) -> str:
    """The C function of one handler; prelude() stands before it. symbol: of the kernel in its object."""
    arguments = ", ".join(C_NAMES[t] for t in llvm_arguments(specs)) or "void"
    args = sum(isinstance(s, ArgSpec) for s in specs)
    rets = sum(isinstance(s, ResultSpec) for s in specs)
    names = sorted({(s.name or "").encode() for s in specs if isinstance(s, AttrSpec)})
    attrs = sum(isinstance(s, AttrSpec) for s in specs)
    lines, passed, taken = [], [], {False: 0, True: 0}
    for number, spec in enumerate(specs):
        if isinstance(spec, (ArgSpec, ResultSpec)):
            is_result = isinstance(spec, ResultSpec)
            lines.append(_buffer_line(spec.of, number, taken[is_result], is_result))
            passed += _buffer_arguments(spec.of, number)
            taken[is_result] += 1
        elif isinstance(spec, AttrSpec):
            lines.append(_attribute_line(spec, number, names.index((spec.name or "").encode())))
            passed += _attribute_arguments(spec, number)
    body = "\n".join(f"  {line}" for line in lines)
    return f"""
extern int32_t {symbol}({arguments});

void *{name}(CallFrame *frame) {{
  Diagnosis d = {{{{0}}, {{0}}, 0, 0}};
  int done;
  void *error = refused(frame, {args}, {rets}, {attrs}, &done);
  if (done) return error;
{body}
  if (d.bad_size) return undecoded(frame, &d);
  return status(frame, "{kernel.entry}", {symbol}({", ".join(passed)}));
}}
"""


def _buffer_line(of: BufferSpec, number: int, index: int, is_result: bool) -> str:
    assert of.dtype is not None
    rank, list_ = (-1 if of.rank is None else of.rank), "rets" if is_result else "args"
    values = f"&frame->{list_}, {index}, {int(is_result)}, {DATA_TYPES[of.dtype]}, {rank}, {number}, &d"
    return f"const Buffer *v{number} = buffer({values});"


def _buffer_arguments(of: BufferSpec, number: int) -> list[str]:
    sizes = [f"elements(v{number})"] if of.rank is None else [f"v{number}->dims[{n}]" for n in range(of.rank)]
    return [f"v{number}->data", *sizes]


def _attribute_line(spec: AttrSpec, number: int, place: int) -> str:
    dtype = scalar_of(spec)
    if isinstance(spec.type, SpanSpec):
        kind, wanted, cast = abi.AttrType.ARRAY, scalar_number(spec.type.of), "Array"
    elif dtype is None:
        kind, wanted, cast = abi.AttrType.STRING, 0, "ByteSpan"
    else:
        pointer = type(spec.type).__name__ == "PointerSpec"
        kind, wanted, cast = abi.AttrType.SCALAR, -5 if pointer else scalar_number(dtype.type), "Scalar"
    name = "".join(c if c.isalnum() or c == "_" else "".join(f"\\{b:03o}" for b in c.encode()) for c in spec.name or "")
    values = f'&frame->attrs, {place}, "{name}", {int(kind)}, {wanted}, {number}, &d'
    return f"const {cast} *v{number} = attribute({values});"


def _attribute_arguments(spec: AttrSpec, number: int) -> list[str]:
    if isinstance(spec.type, SpanSpec):
        return [f"v{number}->data", f"(int64_t)v{number}->size"]
    dtype = scalar_of(spec)
    if dtype is None:
        return [f"v{number}->ptr", f"(int64_t)v{number}->len"]
    (kind,) = llvm_arguments([spec])
    return [f"*(const {C_NAMES[kind]} *)v{number}->value"]
