"""One-op cases of the small corpus: for each family of opcodes a few, with the dtypes spread over them."""

# ruff: noqa: E501 - tables are read by line

import re
from collections.abc import Iterator

import ml_dtypes
import numpy as np

from ...differential.fake_inputs import fake_inputs
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...hlo.opcodes import BY_NAME
from ...hlo.opset import OPSET
from ..cases.elementwise_cases import special_values

ELEMENTWISE_CASES = (
    *(
        "abs.s32",
        "negate.f16",
        "sign.bf16",
        "floor.f64",
        "round-nearest-even.f32",
        "not.u8",
        "popcnt.u32",
        "is-finite.f32",
    ),
    *(
        "count-leading-zeros.s16",
        "exponential.f32",
        "log.f64",
        "tanh.bf16",
        "sine.f32",
        "logistic.f16",
        "sqrt.c64",
        "erf.f32",
    ),
    *("cbrt.f64", "add.f32", "subtract.c64", "multiply.s8", "divide.s32", "remainder.u16", "power.f32", "atan2.f64"),
    *(
        "maximum.bf16",
        "minimum.f32",
        "and.pred",
        "xor.s64",
        "shift-left.u32",
        "shift-right-arithmetic.s16",
        "clamp.f32",
    ),
)
"""Opcode and dtype of cases that need no attribute and give a result of the same dtype (of pred for is-finite)."""

ATTRIBUTES = {
    "compare.f32": "pred[N] compare(f32[N], f32[N]), direction=LE",
    "compare.u8": "pred[N] compare(u8[N], u8[N]), direction=GT",
    "select.bf16": "bf16[N] select(pred[N], bf16[N], bf16[N])",
    "convert.f32": "s8[N] convert(f32[N])",
    "convert.s64": "bf16[N] convert(s64[N])",
    "convert.f16": "f64[N] convert(f16[N])",
    "bitcast-convert.f32": "s32[N] bitcast-convert(f32[N])",
    "reduce-precision.f32": "f32[N] reduce-precision(f32[N]), exponent_bits=5, mantissa_bits=10",
    "complex.f32": "c64[N] complex(f32[N], f32[N])",
    "real.c128": "f64[N] real(c128[N])",
}
"""Elementwise cases with attributes, or with a result of another dtype than their operands."""

STRUCTURES = {
    "broadcast.s16": "s16[3,5,7] broadcast(s16[7,3]), dimensions={2,0}",
    "transpose.f32": "f32[9,4,13] transpose(f32[4,13,9]), dimensions={2,0,1}",
    "reshape.u8": "u8[6,35] reshape(u8[5,7,6])",
    "reverse.bf16": "bf16[5,9] reverse(bf16[5,9]), dimensions={0}",
    "slice.f64": "f64[3,4] slice(f64[8,9]), slice={[1:8:3], [2:6]}",
    "pad.f32": "f32[9,11] pad(f32[4,6], f32[]), padding=1_1_1x3_2",
    "concatenate.s32": "s32[4,9] concatenate(s32[4,2], s32[4,6], s32[4,1]), dimensions={1}",
    "iota.u16": "u16[5,6] iota(), iota_dimension=1",
    "copy.c64": "c64[4,7]{0,1} copy(c64[4,7])",
    "dynamic-slice.f32": "f32[3,5] dynamic-slice(f32[7,9], s32[], s32[]), dynamic_slice_sizes={3,5}",
    "dynamic-update-slice.s8": "s8[7,9] dynamic-update-slice(s8[7,9], s8[2,3], s32[], s32[])",
    "gather.f32": "f32[6,1,5] gather(f32[8,5], s32[6,1]), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,5}",
    "scatter.s32": "s32[8,5] scatter(s32[8,5], s32[6,1], s32[6,5]), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
    "reduce.f32": "f32[6,5] reduce(f32[6,33,5], f32[]), dimensions={1}, to_apply=add",
    "reduce.s64": "s64[] reduce(s64[4,19], s64[]), dimensions={0,1}, to_apply=maximum",
    "reduce-window.f32": "f32[4,5] reduce-window(f32[8,9], f32[]), window={size=3x3 stride=2x2 pad=1_0x1_1}, to_apply=add",
    "select-and-scatter.f32": "f32[6,8] select-and-scatter(f32[6,8], f32[3,4], f32[]), window={size=2x2 stride=2x2}, select=ge, scatter=add",
    "sort.f32": "f32[3,41] sort(f32[3,41]), dimensions={1}, to_apply=lt",
    "sort.s32": "s32[37,3] sort(s32[37,3]), dimensions={0}, to_apply=lt",
    "map.f32": "f32[5,6] map(f32[5,6], f32[5,6]), dimensions={0,1}, to_apply=add",
    "dot.f32": "f32[9,11] dot(f32[9,37], f32[37,11]), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "dot.s32": "s32[3,4,5] dot(s32[3,4,6], s32[3,5,6]), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}",
    "convolution.f32": "f32[2,5,6,4] convolution(f32[2,6,6,3], f32[3,3,3,4]), window={size=3x3 pad=0_1x1_1}, dim_labels=b01f_01io->b01f",
    "fft.c64": "c64[3,8] fft(c64[3,8]), fft_type=FFT, fft_length={8}",
    "rng-bit-generator.u64": "(u64[2], u32[9]) rng-bit-generator(u64[2]), algorithm=rng_three_fry",
    "cholesky.f32": "f32[1,1] cholesky(f32[1,1]), lower=true",
}
"""Cases of movement, indices, reductions, windows, sorts, products and random bits."""

REGIONS = {
    "add": "ROOT z = T[] add(x, y)",
    "maximum": "ROOT z = T[] maximum(x, y)",
    "ge": "ROOT z = pred[] compare(x, y), direction=GE",
    "lt": "ROOT z = pred[] compare(x, y), direction=LT",
}


def elementwise(name: str) -> str:
    """The instruction of a row of ELEMENTWISE_CASES, in the form of the other tables."""
    opcode, dtype = name.split(".")
    operands = ", ".join([f"{dtype}[N]"] * OPSET[BY_NAME[opcode]].low)
    return f"{'pred' if opcode == 'is-finite' else dtype}[N] {opcode}({operands})"


def module_text(instruction: str) -> str:
    """A module whose root is the instruction; its operands are written as shapes and become parameters."""
    before, operands, after = re.fullmatch(r"(.* [\w-]+)\((.*?)\)(.*)", instruction).groups()
    shapes = re.findall(r"\w+\[[\d,]*\]", operands)
    dtype = shapes[0].split("[")[0] if shapes else ""
    regions = [
        f"{name} {{\n  x = {dtype}[] parameter(0)\n  y = {dtype}[] parameter(1)\n  {root.replace('T[]', dtype + '[]')}\n}}\n"
        for name, root in REGIONS.items()
        if re.search(rf"=({name})\b", after)
    ]
    parameters = [f"  p{n} = {shape} parameter({n})\n" for n, shape in enumerate(shapes)]
    names = ", ".join(f"p{n}" for n in range(len(shapes)))
    root = f"  ROOT r = {before}({names}){after}\n"
    return "HloModule case\n\n" + "\n".join([*regions, "ENTRY e {\n" + "".join(parameters) + root + "}\n"])


def subnormal(values: np.ndarray) -> np.ndarray:
    size = np.abs(values.astype(np.float64))
    return (size > 0) & (size < float(ml_dtypes.finfo(values.dtype).smallest_normal))


def specials(dtypes: list[DType]) -> list[np.ndarray]:
    """Every pair of special values of two operands; one operand takes them in turn, a third one backwards."""
    values = [special_values(d) for d in dtypes]
    if len(values) == 1:
        return values
    values = [v if v.dtype.kind in "biuc" else v[~subnormal(v)] for v in values]  # XLA:CPU takes those for zero
    count = min(20, *(len(v) for v in values[-2:]))
    first, second = (m.reshape(-1) for m in np.meshgrid(range(count), range(count)))
    index = [first, second] if len(values) == 2 else [first, second, first[::-1]]
    return [v[i % len(v)] for v, i in zip(values, index, strict=True)]


def coarse(inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Floats as sixteenths: sums and products of a few are exact in any order, and files are small."""
    kinds = "fcV"  # floats of ml_dtypes have the kind V
    return [(np.round(x * 16) / 16).astype(x.dtype) if x.dtype.kind in kinds else x for x in inputs]


def cases() -> Iterator[tuple[str, str, list[np.ndarray]]]:
    """id, text of the module, and inputs."""
    for name, instruction in {**{n: elementwise(n) for n in ELEMENTWISE_CASES}, **ATTRIBUTES}.items():
        dtypes = [DType(d) for d in re.findall(r"(\w+)\[N\]", instruction.partition("(")[2])]
        inputs = specials(dtypes)
        yield name, module_text(instruction.replace("[N]", f"[{inputs[0].size}]")), inputs
    for name, instruction in STRUCTURES.items():
        text = module_text(instruction)
        yield name, text, coarse(fake_inputs(parse_module(text), seed=len(name)))
