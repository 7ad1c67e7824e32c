"""Reductions of every direction and length, arg max, running sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..workload import Case, Draw, Register, fold_text, jax, jnp, module_text, shape_text

REDUCTIONS = Register("reductions")
ARGMAX = Register("argmax")
CUMSUM = Register("cumsum")


def _reduce(dims: tuple[int, ...], over: tuple[int, ...], op: str = "add", dtype: str = "f32") -> Callable[[], Case]:
    def make() -> Case:
        kept = [n for d, n in enumerate(dims) if d not in over]
        start = {"add": "0", "maximum": "-inf", "multiply": "1"}[op]
        body = f"""
            start = {dtype}[] constant({start})
            ROOT r = {shape_text(dtype, kept)} reduce(x, start), \
dimensions={{{",".join(map(str, over))}}}, to_apply=fold"""
        x = (
            Draw().integers(-100, 100, *dims)
            if dtype == "s32"
            else Draw().uniform(*dims, low=0.0 if op == "add" else -1.0, dtype=dtype)
        )
        known = op in ("add", "maximum") and dtype != "bf16"
        in_numpy: dict[str, Any] = {"add": np.sum, "maximum": np.max}
        in_torch = {"add": "sum", "maximum": "amax"}
        return Case(
            (x,),
            module_text([("x", shape_text(dtype, dims))], body, fold_text("fold", dtype, op)),
            numpy=(lambda x: in_numpy[op](x, axis=over, dtype=x.dtype) if op == "add" else np.max(x, axis=over))
            if known
            else None,
            torch=(lambda torch, x: getattr(torch, in_torch[op])(x, over)) if known else None,
        )

    return make


def _of_square(size: int, weighted: bool = False) -> Callable[[], Case]:
    """The sum of x·x, or of x·x·w: an elementwise producer in front of a long sum."""

    def make() -> Case:
        s = f"f32[{size}]{{0}}"
        body = f"""
            q = {s} multiply(x, x)
            {f"p = {s} multiply(q, w)" if weighted else ""}
            zero = f32[] constant(0)
            ROOT r = f32[] reduce({"p" if weighted else "q"}, zero), dimensions={{0}}, to_apply=fold"""
        draw = Draw()
        names = ["x", "w"] if weighted else ["x"]
        return Case(
            tuple(draw.uniform(size, low=0.0) for _ in names),
            module_text([(n, s) for n in names], body, fold_text("fold", "f32", "add")),
        )

    return make


for _power in (10, 15, 20, 24):
    REDUCTIONS.hlo(f"sum_2^{_power}", _reduce((1 << _power,), (0,)))
for _power in (10, 20, 24):
    REDUCTIONS.hlo(f"sum_squares_2^{_power}", _of_square(1 << _power))
REDUCTIONS.hlo("sum_weighted_2^22", _of_square(1 << 22, weighted=True))
REDUCTIONS.hlo("max_2^22", _reduce((1 << 22,), (0,), "maximum"))
REDUCTIONS.hlo("sum_f64_2^22", _reduce((1 << 22,), (0,), dtype="f64"))
REDUCTIONS.hlo("sum_s32_2^22", _reduce((1 << 22,), (0,), dtype="s32"))
REDUCTIONS.hlo("sum_rows_4096x4096", _reduce((4096, 4096), (1,)))
REDUCTIONS.hlo("sum_cols_4096x4096", _reduce((4096, 4096), (0,)))
REDUCTIONS.hlo("max_rows_4096x1024", _reduce((4096, 1024), (1,), "maximum"))
REDUCTIONS.hlo("max_cols_4096x1024", _reduce((4096, 1024), (0,), "maximum"))
REDUCTIONS.hlo("sum_rows_2^20x8", _reduce((1 << 20, 8), (1,)))
REDUCTIONS.hlo("sum_cols_2^20x8", _reduce((1 << 20, 8), (0,)))
REDUCTIONS.hlo("sum_rows_bf16_2048", _reduce((2048, 2048), (1,), dtype="bf16"))
REDUCTIONS.hlo("sum_middle_256x512x128", _reduce((256, 512, 128), (1,)))
REDUCTIONS.hlo("sum_channels_nchw", _reduce((16, 64, 56, 56), (0, 2, 3)))
REDUCTIONS.hlo("product_8x10^6x8", _reduce((8, 1_000_000, 8), (1,), "multiply"))


@REDUCTIONS.jax("variance_2^22")
def _variance() -> Case:
    return Case((Draw().normal(1 << 22),), function=lambda x: jnp.square(x - x.mean()).mean())


@REDUCTIONS.jax("mse_images")
def _mse() -> Case:
    draw = Draw()
    return Case(
        (draw.uniform(8, 224, 224, 3), draw.uniform(8, 224, 224, 3)),
        function=lambda a, b: jnp.square(a - b).mean(),
        torch=lambda torch, a, b: torch.nn.functional.mse_loss(a, b),
    )


@REDUCTIONS.jax("logsumexp_rows")
def _logsumexp() -> Case:
    return Case(
        (Draw().normal(1024, 4096),),
        function=lambda x: jax.nn.logsumexp(x, 1),
        torch=lambda torch, x: torch.logsumexp(x, 1),
    )


def _argmax(name: str, dims: tuple[int, ...], axis: int) -> None:
    ARGMAX.jax(name)(
        lambda: Case(
            (Draw().uniform(*dims),),
            function=lambda x: jnp.argmax(x, axis),
            numpy=lambda x: np.argmax(x, axis).astype(np.int32),
            torch=lambda torch, x: torch.argmax(x, axis).int(),
        )
    )


_argmax("argmax_rows_4096x1024", (4096, 1024), 1)
_argmax("argmax_cols_4096x1024", (4096, 1024), 0)
_argmax("argmax_2^20", (1 << 20,), 0)
_argmax("argmax_rows_64x32003", (64, 32003), 1)


def _cumsum(name: str, dims: tuple[int, ...], axis: int, dtype: str = "f32") -> None:
    CUMSUM.jax(name)(
        lambda: Case(
            (Draw().uniform(*dims, dtype=dtype) if dtype != "s32" else Draw().integers(-9, 10, *dims),),
            function=lambda x: jnp.cumsum(x, axis),
            numpy=lambda x: np.cumsum(x, axis, dtype=x.dtype),
            torch=lambda torch, x: torch.cumsum(x, axis, dtype=x.dtype),
            exact=lambda x: np.cumsum(x, axis, dtype=x.dtype),
        )
    )


_cumsum("cumsum_2^20", (1 << 20,), 0)
_cumsum("cumsum_rows_1024x1024", (1024, 1024), 1)
_cumsum("cumsum_cols_1024x1024", (1024, 1024), 0)
_cumsum("cumsum_s32_2^20", (1 << 20,), 0, "s32")


@CUMSUM.jax("cumprod_scan_rows")
def _associative() -> Case:
    def run(a, b):
        def combine(left, right):
            return left[0] * right[0], left[1] * right[0] + right[1]

        return jax.lax.associative_scan(combine, (a, b), axis=1)[1]

    draw = Draw()
    return Case((draw.uniform(512, 1024, low=0.5, high=1), draw.uniform(512, 1024)), function=run)
