"""Slips in the MLIR stack's emitters: one row each, a line of source and what stands there instead."""

from __future__ import annotations

from ...hlo.opcodes import Op
from .fault import Edit, Fault, Spot, emitter_row

_MLIR = ("mlir",)

MLIR: tuple[Fault, ...] = (
    Fault(
        "mlir-compare-unordered",
        "predicate",
        "compare LT of floats holds for NaN",
        _MLIR,
        ("compare",),
        [Spot("mlir_emitters.numerics.elementwise", "ORDERED", lambda _: "ult", "LT", (Op.COMPARE, Op.SORT))],
    ),
    Fault(
        "mlir-remainder-as-signed",
        "sign",
        "the remainder of unsigned integers is that of signed ones",
        _MLIR,
        ("remainder",),
        [Edit("mlir_emitters.numerics.elementwise", "remainder_unsigned", "y, divisor, False", "y, divisor, True")],
    ),
    Fault(
        "mlir-power-of-negative",
        "special case",
        "an integer to a negative power is one to its low bits",
        _MLIR,
        ("power",),
        [
            Edit(
                "mlir_emitters.numerics.elementwise",
                "power_integer",
                'b.select(b.compare_integers("slt", y, zero(b, y)), unit, result)',
                "result",
            )
        ],
    ),
    Fault(
        "mlir-clamp-low-last",
        "operands",
        "clamp takes the lower bound last",
        _MLIR,
        ("clamp",),
        [
            Edit(
                "mlir_emitters.numerics.elementwise",
                "clamp_float",
                "b.minf(b.maxf(x, low), high)",
                "b.maxf(b.minf(x, high), low)",
            )
        ],
    ),
    Fault(
        "mlir-bf16-ties-up",
        "rounding",
        "f32 halfway between two bf16 is rounded up, not to even",
        _MLIR,
        ("bf16",),
        [Edit("mlir_emitters.core.elements", "_round_bf16", 'b.binary("addi", bits, odd), 0x7FFF', "bits, 0x8000")],
    ),
    Fault(
        "mlir-f8-saturates",
        "overflow",
        "a number beyond the range of a float of 8 bits is the largest one, not NaN",
        _MLIR,
        ("f8", "f4", "f6"),
        [
            Edit(
                "mlir_emitters.core.elements",
                "_overflow",
                'b.select(b.binary("ori", too_large, is_nan), b.constant(nan, t.i32), code)',
                "b.select(is_nan, b.constant(nan, t.i32), "
                "b.select(too_large, b.constant(format.largest, t.i32), code))",
            )
        ],
    ),
    Fault(
        "mlir-convert-nan-to-integer",
        "nan",
        "NaN becomes the lowest integer, not 0",
        _MLIR,
        ("convert",),
        [
            Edit(
                "mlir_emitters.numerics.convert",
                "_float_to_integer",
                "b.select(b.is_nan(x), b.constant(0, type), value)",
                "value",
            )
        ],
    ),
    Fault(
        "mlir-log1p-cancels",
        "precision",
        "log(1 + x) is computed as it is written, and loses small x",
        _MLIR,
        ("log-plus-one",),
        [
            emitter_row(
                "mlir_emitters",
                "numerics.elementwise",
                Op.LOG_PLUS_ONE,
                floating=lambda b, node, x: b.math("math.log", b.addf(b.like(1.0, x), x)),
            )
        ],
    ),
    Fault(
        "mlir-reduce-precision-cuts",
        "rounding",
        "reduce-precision rounds halves up, not to even",
        _MLIR,
        ("reduce-precision",),
        [
            Edit(
                "mlir_emitters.numerics.convert",
                "reduce_precision",
                'b.binary("addi", b.binary("addi", bits, odd), (1 << (drop - 1)) - 1)',
                'b.binary("addi", bits, 1 << (drop - 1))',
            )
        ],
    ),
    Fault(
        "mlir-complex-magnitude-in-f32",
        "overflow",
        "the squares of |z| overflow for large c128",
        _MLIR,
        ("abs", "sign"),
        [
            Edit(
                "mlir_emitters.numerics.complex_math",
                "absolute",
                "return _hypotenuse(b, x)",
                'return b.op("math.sqrt", b.addf(b.mulf(x[0], x[0]), b.mulf(x[1], x[1])))',
            )
        ],
    ),
    Fault(
        "mlir-pad-high-forgotten",
        "bounds",
        "padding behind an array is not told from its elements",
        _MLIR,
        ("pad",),
        [
            Edit(
                "mlir_emitters.movement.shape",
                "pad",
                "if not (p.low or p.high or p.interior):",
                "if not (p.low or p.interior):",
            )
        ],
    ),
    Fault(
        "mlir-slice-stride-of-start",
        "index",
        "the start of a slice is multiplied by its stride",
        _MLIR,
        ("slice",),
        [
            Edit(
                "mlir_emitters.movement.shape",
                "slice_",
                "e.b.add(e.b.mul(i, s.stride), s.start)",
                "e.b.mul(e.b.add(i, s.start), s.stride)",
            )
        ],
    ),
    Fault(
        "mlir-bitcast-convert-order",
        "index",
        "elements are put together with the first one highest",
        _MLIR,
        ("bitcast-convert",),
        [
            Edit(
                "mlir_emitters.movement.shape",
                "bitcast_convert",
                'b.binary("shli", bits, k * have_bits)',
                'b.binary("shli", bits, want_bits - (k + 1) * have_bits)',
            )
        ],
    ),
    Fault(
        "mlir-gather-batch-after-vector",
        "index",
        "gather clamps the start of a slice as if it had one element",
        _MLIR,
        ("gather",),
        [
            Edit(
                "mlir_emitters.movement.indexing",
                "gather",
                'source.dims[d] - max(a["slice_sizes"][d], 1)',
                "source.dims[d] - 1",
            )
        ],
    ),
    Fault(
        "mlir-scatter-wraps-around",
        "special case",
        "scatter takes a window that begins before the operand as one at its start",
        _MLIR,
        ("scatter", "select-and-scatter"),
        [
            Edit(
                "mlir_emitters.movement.indexing",
                "ScatterLoops.visit",
                'starts: dict[int, Index] = dict(zip(a["scatter_dims_to_operand_dims"], numbers, strict=True))',
                "starts = {d: b.binary('maxsi', n, 0) for d, n in zip(a['scatter_dims_to_operand_dims'], numbers)}",
            )
        ],
    ),
    Fault(
        "mlir-sort-last-pair",
        "bounds",
        "a last run of one element is not merged",
        _MLIR,
        ("sort",),
        [
            Edit(
                "mlir_emitters.sorts.sort",
                "RowSort.merge_pass",
                'b.binary("addi", pair, b.add(length, -1))',
                'b.binary("addi", pair, b.add(length, -2))',
            )
        ],
    ),
    Fault(
        "mlir-convolution-not-reversed",
        "index",
        "a reversed window is read forwards",
        _MLIR,
        ("convolution",),
        [
            Edit(
                "mlir_emitters.reductions.windows",
                "Geometry.factors",
                "b.sub(s.window - 1, taps[n]) if s.reverse else taps[n]",
                "taps[n]",
            )
        ],
    ),
    Fault(
        "mlir-window-dilation-forgotten",
        "index",
        "the taps of a dilated window are neighbours",
        _MLIR,
        ("reduce-window", "convolution"),
        [Edit("mlir_emitters.reductions.windows", "Sliding.element", "b.mul(tap, self.spread)", "tap")],
    ),
    Fault(
        "mlir-pool-row-of-padding",
        "bounds",
        "a row of a pool is copied, and not joined, where some windows have no row",
        _MLIR,
        ("reduce-window",),
        [Edit("mlir_emitters.reductions.windows", "Sliding.single", " and len(self.covered()) == self.result", "")],
    ),
    Fault(
        "mlir-long-sum-without-start",
        "special case",
        "a long sum leaves out the initial value",
        _MLIR,
        ("reduce",),
        [Edit("mlir_emitters.reductions.long_sums", "LongSums.results", 'b.op("arith.addf", initial, value)', "value")],
    ),
    Fault(
        "mlir-long-sum-drops-the-last",
        "lane",
        "a long sum leaves out its last element if it does not fill a vector",
        _MLIR,
        ("reduce", "dot"),
        [
            Edit(
                "mlir_emitters.reductions.long_sums",
                "PartialSums.add_up",
                "self._turns(visit, prefix, [size - left], left, given)",
                "self._turns(visit, prefix, [size - left], left - 1, given)",
            )
        ],
    ),
    Fault(
        "mlir-long-sum-in-one-chain",
        "precision",
        "a long sum is one chain of additions",
        _MLIR,
        ("reduce",),
        [
            Edit(
                "mlir_emitters.reductions.reduce_ways", "way_of", "sums and _is_in_blocks(facts, node, along)", "False"
            ),
            Edit(
                "mlir_emitters.reductions.reduce_ways",
                "is_long_sum",
                "is_long(facts, sizes) and are_float_sums(node)",
                "False",
            ),
            Edit("mlir_emitters.reductions.reduce", "combine", "with e.b.reassociating():", "if True:"),
        ],
    ),
    Fault(
        "mlir-maximum-of-zeros",
        "sign",
        "the maximum of a long row of zeros is -0 if one of them is",
        _MLIR,
        ("reduce",),
        [Spot("mlir_emitters.reductions.extremum", "COMBINE", lambda row: (row[0], "ori"), Op.MAXIMUM)],
    ),
    Fault(
        "mlir-dot-tail-of-columns",
        "lane",
        "the last column of a product is not stored if it does not fill a vector",
        _MLIR,
        ("dot",),
        [
            Edit(
                "mlir_emitters.products.dot_tile",
                "_Body._store",
                "self.columns, v * self.lanes)",
                "self.columns, v * self.lanes + 1)",
            )
        ],
    ),
    Fault(
        "mlir-dot-of-preds-exclusive",
        "operands",
        "the sum of a product of preds is the exclusive or",
        _MLIR,
        ("dot",),
        [
            Edit(
                "mlir_emitters.products.dot",
                "multiply_add",
                'b.binary("ori", total, b.binary("andi", x, y))',
                'b.binary("xori", total, b.binary("andi", x, y))',
            )
        ],
    ),
)
