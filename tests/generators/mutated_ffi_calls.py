"""Draws mutated calls of C++ handlers and makes them. A process of its own: prints how many ran, failed, and all.

Run: .venv/bin/python -m testbed.tests.generators.mutated_ffi_calls [--library PATH] [--count 100000] [--seed 1]
"""

from __future__ import annotations

import argparse
import ctypes
import random
import sys
from collections.abc import Callable

from ...ffi import abi, registry
from ...ffi.api import native, take_error
from ...ffi.attributes import attributes_of
from ...ffi.calls import CallError, Run, running
from ...ffi.description import Description
from ...ffi.layout import FRAME, FrameLayout
from ...ffi.sites import Site
from ...ffi.static_library import register_symbols
from ...hlo.dtypes import DType
from ...hlo.errors import TestbedError
from ..support.cpp import compile_cpp

SOURCE = r"""
#include "xla/ffi/api/ffi.h"
using namespace xla::ffi;
enum class Command : int32_t { kAdd = 0, kMul = 1 };
XLA_FFI_REGISTER_ENUM_ATTR_DECODING(Command);
struct Range { int64_t lo; int64_t hi; };
XLA_FFI_REGISTER_STRUCT_ATTR_DECODING(Range, StructMember<int64_t>("lo"), StructMember<int64_t>("hi"));
static Error Many(Buffer<F32> x, BufferR2<S32> y, std::optional<AnyBuffer> z, ResultBuffer<F32> r, int32_t i, float f,
                  std::string_view s, Span<const int64_t> a, Command c, Range g) {
  volatile int64_t sum = i + a.size() + s.size() + g.lo;
  for (size_t k = 0; k < std::min(x.element_count(), r->element_count()); ++k) r->typed_data()[k] = x.typed_data()[k];
  return sum == -1 ? Error(ErrorCode::kInternal, "minus one") : Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(many, Many, Ffi::Bind().Arg<Buffer<F32>>().Arg<BufferR2<S32>>().OptionalArg<AnyBuffer>()
    .Ret<Buffer<F32>>().Attr<int32_t>("i").Attr<float>("f").Attr<std::string_view>("s")
    .Attr<Span<const int64_t>>("a").Attr<Command>("c").Attr<Range>("g"));
static Error Loose(RemainingArgs args, RemainingRets rets, Dictionary d) {
  for (size_t k = 0; k < args.size(); ++k) { auto b = args.get<AnyBuffer>(k); if (!b.has_value()) return b.error(); }
  auto f = args.get<Buffer<F32>>(0);
  if (!f.has_value()) return f.error();
  auto i = d.get<int64_t>("i");
  return i.has_value() ? Error::Success() : i.error();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(loose, Loose, Ffi::Bind().RemainingArgs().RemainingRets().Attrs());
"""

CONFIGS = {
    "many": '{i = 1 : i32, f = 2.5 : f32, s = "text", a = array<i64: 1, 2>, c = 1 : i32, g = {lo = 1, hi = 2}}',
    "loose": "{i = 1, other = dense<[1.0, 2.0]> : tensor<2xf32>, more = {x = true}}",
}
OPERANDS = {
    "many": (("f32", (4,)), ("s32", (2, 2)), ("u8", (3,))),
    "loose": (("f32", (4,)), ("c64", (2,))),
}
RESULTS = {"many": (("f32", (4,)),), "loose": (("f32", (4,)), ("s8", ()))}
VALUES = [
    "1", "-1 : i32", "300 : ui8", "true", "1.5 : f32", "1.5 : f64", "0x7FC00000 : f32", '"a\\22b"', "[1, 2]", "unit",
    "array<i32>", "array<f32: 1.0>", "array<f16: 1.0>", "dense<1> : tensor<3xi64>", "dense<[]> : tensor<0xf32>",
    "dense<true> : tensor<2xi1>", "dense<(1.0, 2.0)> : tensor<complex<f32>>", "{}", "{lo = 1}", "{lo = 1, hi = 2}",
    "@s", "i32", "1 : index", "9" * 30, "-0.0 : f64", "1 : i128", "1 : i4", "#x.y", "dense<1> : tensor<2xbf16>",
]  # fmt: skip


class Made:
    """A mutated call. sizes: changes to the frame that are no wild pointers."""

    def __init__(self, description: Description, change: Callable[[int], None]):
        self.description, self.change = description, change


def text_mutated(draw: random.Random, text: str) -> str:
    """A config with a character or a value changed, or a row removed, added, renamed."""
    kind = draw.randrange(6)
    place = draw.randrange(len(text))
    if kind == 0:
        return text[:place] + draw.choice('{}[]<>=,:"\\ x1-.#@') + text[place + 1 :]
    if kind == 1:
        return text[:place] + text[place + draw.randrange(1, 6) :]
    rows = text[1:-1].split(", ")
    if kind == 2:
        return "{" + ", ".join(draw.sample(rows, draw.randrange(len(rows) + 1))) + "}"
    if kind == 3:
        return "{" + ", ".join([*rows, f"{draw.choice('ifsacgz')} = {draw.choice(VALUES)}"]) + "}"
    name = draw.choice(["i", "f", "s", "a", "c", "g"])
    pairs = [r if not r.startswith(f"{name} =") else f"{name} = {draw.choice(VALUES)}" for r in rows]
    return "{" + ", ".join(pairs) + "}"


def leaves_mutated(draw: random.Random, leaves: tuple) -> tuple:
    kind, rows = draw.randrange(4), list(leaves)
    if kind == 0 and rows:
        del rows[draw.randrange(len(rows))]
    elif kind == 1:
        rows.insert(draw.randrange(len(rows) + 1), (draw.choice(list(DType)).value, (2,)))
    elif rows:
        number = draw.randrange(len(rows))
        dtype, dims = rows[number]
        dims = tuple(draw.choice([0, 1, 2, 3]) for _ in range(draw.randrange(9))) if kind == 2 else dims
        rows[number] = (dtype if kind == 2 else draw.choice(list(abi.DATA_TYPES)).value, dims)
    return tuple((d, n) for d, n in rows if DType(d) in abi.DATA_TYPES)


def frame_mutated(draw: random.Random) -> Callable[[int], None]:
    """A change to sizes, versions, stages and counts in a call frame."""
    places = [0, abi.CallFrame.args.offset, abi.CallFrame.rets.offset, abi.CallFrame.attrs.offset]
    kind, value = draw.randrange(4), draw.choice([0, 1, 8, 39, 41, 167, 169, 1 << 40])

    def change(block: int) -> None:
        if kind == 0:
            ctypes.c_uint64.from_address(block + draw.choice(places)).value = value
        elif kind == 1:
            ctypes.c_int32.from_address(block + abi.CallFrame.stage.offset).value = draw.choice(list(abi.Stage))
        elif kind == 2:  # fewer than there are: more would be wild pointers
            size = ctypes.c_int64.from_address(block + draw.choice(places[1:]) + 16)
            size.value = draw.randrange(size.value + 1)

    return change


def drawn(draw: random.Random, prefix: str) -> Made:
    name = draw.choice(["many", "loose"])
    config, operands, results = CONFIGS[name], OPERANDS[name], RESULTS[name]
    for _ in range(draw.randrange(4)):
        what = draw.randrange(4)
        if what <= 1:
            config = text_mutated(draw, config) if len(config) > 2 else config
        elif what == 2:
            operands = leaves_mutated(draw, operands)
        else:
            results = leaves_mutated(draw, results)
    change = frame_mutated(draw) if draw.randrange(3) == 0 else lambda block: None
    made = Description(
        "r", prefix + name, "API_VERSION_TYPED_FFI", config, operands, results, len(results) != 1, attributes_of(config)
    )
    return Made(made, change)


def make_call(made: Made) -> None:
    """Call it with memory for each buffer. Raises CallError."""
    site = Site(made.description, registry.lookup(made.description.target))
    layout = FrameLayout(len(made.description.operands), len(made.description.results))
    block = (ctypes.c_uint64 * (layout.size // 8))()
    start = ctypes.addressof(block)
    ctypes.memmove(start, site.address + FRAME, layout.size)
    memory = [(ctypes.c_uint64 * 4096)() for _ in range(layout.operands + layout.results)]
    for place, target in layout.places.items():
        block[place // 8] = start + target
    for number, data in enumerate(memory):
        block[(layout.buffer(number) + abi.Buffer.data.offset) // 8] = ctypes.addressof(data)
    made.change(start)
    error = native().call(site.handler.execute, start)
    if error:
        raise CallError("r", made.description.target, *take_error(error))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    prefix = "mutated."
    register_symbols(options.library or compile_cpp(SOURCE), {prefix + name: name for name in CONFIGS})
    draw, good = random.Random(options.seed), 0
    for number in range(options.count):
        try:
            good += runs(draw, prefix)
        except Exception as error:
            print(f"number {number} of seed {options.seed}: {type(error).__name__}: {error}", file=sys.stderr)
            raise
    print(good, options.count - good, options.count)
    return 0


def runs(draw: random.Random, prefix: str) -> bool:
    """Whether the next call runs; otherwise it ended in an error of ours. Raises any other."""
    try:
        with running(Run(lambda *_: None, 0)):
            make_call(drawn(draw, prefix))
    except TestbedError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
