"""Slips in the legacy stack's emitters: one row each, a line of source and what stands there instead."""

from __future__ import annotations

from ...hlo.opcodes import Op
from ...legacy.numerics.elementwise import library
from .fault import Edit, Fault, emitter_row

_LEGACY = ("legacy",)


LEGACY: tuple[Fault, ...] = (
    Fault(
        "legacy-negate-from-zero",
        "sign",
        "-x is 0 - x, so that -0 is 0",
        _LEGACY,
        ("negate",),
        [emitter_row("legacy", "numerics.elementwise", Op.NEGATE, real=lambda r, x: r.sub(r.c(0.0), x))],
    ),
    Fault(
        "legacy-divide-by-zero",
        "special case",
        "an integer divided by 0 is the quotient by 1",
        _LEGACY,
        ("divide",),
        [Edit("legacy.numerics.integer", "divide", "b.select(zero, x.type(-1), quotient)", "quotient")],
    ),
    Fault(
        "legacy-arithmetic-shift-too-far",
        "special case",
        "an arithmetic shift by the width or more shifts by 0",
        _LEGACY,
        ("shift-right-arithmetic",),
        [Edit("legacy.numerics.integer", "shift_right_arithmetic", "x.type(dtype.bits - 1)", "x.type(0)")],
    ),
    Fault(
        "legacy-unsigned-extremum-as-signed",
        "sign",
        "maximum and minimum compare unsigned integers as signed ones",
        _LEGACY,
        ("maximum", "minimum", "clamp", "reduce", "sort", "scatter", "all-reduce"),
        [
            Edit(
                "legacy.numerics.integer",
                "_extremum",
                "(b.icmp_signed if dtype.is_signed else b.icmp_unsigned)",
                "b.icmp_signed",
            )
        ],
    ),
    Fault(
        "legacy-convert-unsigned-as-signed",
        "sign",
        "an unsigned integer is converted to a float as a signed one",
        _LEGACY,
        ("convert",),
        [
            Edit(
                "legacy.numerics.convert",
                "_from_integer",
                "if signed else b.uitofp(value, type_)",
                "if True else value",
            )
        ],
    ),
    Fault(
        "legacy-bf16-truncated",
        "rounding",
        "f32 is cut to bf16, not rounded",
        _LEGACY,
        ("bf16",),
        [
            Edit(
                "legacy.numerics.narrow",
                "_encode_bfloat",
                "b.add(bits, b.add(b.and_(upper, I32(1)), I32(0x7FFF)))",
                "bits",
            )
        ],
    ),
    Fault(
        "legacy-expm1-cancels",
        "precision",
        "exp(x) - 1 is computed as it is written, and loses small x",
        _LEGACY,
        ("exponential-minus-one",),
        [
            emitter_row(
                "legacy",
                "numerics.elementwise",
                Op.EXPONENTIAL_MINUS_ONE,
                real=lambda r, x: r.sub(library("exp")(r, x), r.c(1.0)),
            )
        ],
    ),
    Fault(
        "legacy-complex-product-conjugated",
        "sign",
        "the imaginary part of a product is b·c - a·d",
        _LEGACY,
        ("multiply", "dot", "c64", "c128"),
        [
            Edit(
                "legacy.numerics.complex_math",
                "multiply",
                "r.fused(b, c, r.mul(a, d))",
                "r.fused(b, c, r.neg(r.mul(a, d)))",
            )
        ],
    ),
    Fault(
        "legacy-pad-drops-the-last",
        "bounds",
        "an interior-padded array ends one element early",
        _LEGACY,
        ("pad",),
        [Edit("legacy.movement.shape", "_unpad", "    end = (size - 1) * step + 1", "    end = (size - 1) * step")],
    ),
    Fault(
        "legacy-slice-start-clamped-early",
        "bounds",
        "a dynamic start is clamped one element before the last place",
        _LEGACY,
        ("dynamic-slice", "dynamic-update-slice", "gather"),
        [
            Edit(
                "legacy.movement.shape",
                "clamped_start",
                "widened_start(code, start, register), limit)",
                "widened_start(code, start, register), limit - 1)",
            )
        ],
    ),
    Fault(
        "legacy-transpose-inverted",
        "index",
        "transpose applies the inverse permutation",
        _LEGACY,
        ("transpose",),
        [
            Edit(
                "legacy.movement.shape",
                "transpose",
                "for position, d in zip(index.multi, instruction.dimensions, strict=True):\n"
                "        positions[d] = position",
                "for n, d in enumerate(instruction.dimensions):\n        positions[n] = index.multi[d]",
            )
        ],
    ),
    Fault(
        "legacy-concatenate-boundary",
        "bounds",
        "the first element of the second half of a concatenate is read behind the first half",
        _LEGACY,
        ("concatenate",),
        [Edit("legacy.movement.concatenate", "_choose", 'b.icmp_unsigned("<"', 'b.icmp_unsigned("<="')],
    ),
    Fault(
        "legacy-iota-along-the-last",
        "index",
        "iota counts along the last dimension",
        _LEGACY,
        ("iota",),
        [
            Edit(
                "legacy.movement.shape",
                "iota",
                'index.multi[instruction.attributes["iota_dimension"]]',
                "index.multi[-1]",
            )
        ],
    ),
    Fault(
        "legacy-sort-unstable",
        "order",
        "insertion sort moves an element before its equals",
        _LEGACY,
        ("sort",),
        [
            Edit(
                "legacy.sorts.sort",
                "_Sorter._insert",
                "moved = self.less(values, neighbours)",
                "moved = code.b.not_(self.less(neighbours, values))",
            )
        ],
    ),
    Fault(
        "legacy-window-ends-early",
        "bounds",
        "a window loses its last tap at the end of the input",
        _LEGACY,
        ("reduce-window", "convolution"),
        [
            Edit(
                "legacy.reductions.windows",
                "Axis._inside",
                "code.subtract(last + places.step, places.start)",
                "code.subtract(last + places.step - 1, places.start)",
            )
        ],
    ),
    Fault(
        "legacy-pool-row-of-padding",
        "bounds",
        "a row of a pool is copied, and not joined, where some windows have no row",
        _LEGACY,
        ("reduce-window",),
        [Edit("legacy.reductions.windows", "Axis.meets_one", " and self.inside() == (0, self.count)", "")],
    ),
    Fault(
        "legacy-convolution-group-stride",
        "index",
        "the kernels of a group begin after as many features as the input has",
        _LEGACY,
        ("convolution",),
        [
            Edit(
                "legacy.reductions.windows",
                "Convolution.operands",
                "right[dims.kernel_output_feature] = code.add(code.multiply(group, self.outs), out)",
                "right[dims.kernel_output_feature] = code.add(group, out)",
            )
        ],
    ),
    Fault(
        "legacy-dot-f64-in-f32",
        "accumulator",
        "the sums of a product of f64 are f32",
        _LEGACY,
        ("dot",),
        [Edit("legacy.products.dot", "accumulator_dtype", "dtype in NARROW", "dtype in NARROW or dtype is DType.F64")],
    ),
    Fault(
        "legacy-long-sum-in-one-chain",
        "precision",
        "a long sum is one chain of additions",
        _LEGACY,
        ("reduce",),
        [
            Edit("legacy.reductions.reduce", "Reduction.of", "op is Op.ADD and length > CHAIN_TERMS", "False"),
            Edit("legacy.reductions.reduce", "reassociation", '(*before, "reassoc")', "before"),
        ],
    ),
    Fault(
        "legacy-reduce-forgets-its-start",
        "special case",
        "a long sum leaves out the initial value",
        _LEGACY,
        ("reduce",),
        [Edit("legacy.reductions.reduce", "_in_parts", "reducer.join(opened, sums.totals())", "sums.totals()")],
    ),
    Fault(
        "legacy-row-maximum-blind-to-nan",
        "nan",
        "the maximum of a long row takes NaN for a number",
        _LEGACY,
        ("reduce",),
        [
            Edit(
                "legacy.reductions.extremum",
                "close_chains",
                'code.b.select(invalid, best.type(float("nan")), ',
                "(lambda value: value)(",
            )
        ],
    ),
    Fault(
        "legacy-scatter-skips-the-last-place",
        "bounds",
        "scatter skips windows at the last place where they fit",
        _LEGACY,
        ("scatter", "select-and-scatter"),
        [Edit("legacy.movement.indexing", "Scatter._update", 'icmp_unsigned("<="', 'icmp_unsigned("<"')],
    ),
    Fault(
        "legacy-dot-tail-of-columns",
        "lane",
        "the last column of a product is not stored if it does not fill a vector",
        _LEGACY,
        ("dot",),
        [Edit("legacy.products.dot_micro", "_Body._mask", "[v * lanes + n for n", "[v * lanes + n + 1 for n")],
    ),
)
