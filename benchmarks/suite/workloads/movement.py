"""Transposes, layouts, joining and cutting, gather and scatter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..workload import Case, Draw, Register, fold_text, jnp, module_text, shape_text

TRANSPOSES = Register("transposes")
JOINING = Register("pad-concat-slice")
INDEXED = Register("gather-scatter")


def _transpose(dims: tuple[int, ...], order: tuple[int, ...], dtype: str = "f32") -> Callable[[], Case]:
    def make() -> Case:
        result = shape_text(dtype, [dims[d] for d in order])
        body = f"ROOT r = {result} transpose(x), dimensions={{{','.join(map(str, order))}}}"
        return Case(
            (Draw().uniform(*dims, dtype=dtype),),
            module_text([("x", shape_text(dtype, dims))], body),
            numpy=(lambda x: np.ascontiguousarray(x.transpose(order))) if dtype != "bf16" else None,
            torch=lambda torch, x: x.permute(order).contiguous(),
        )

    return make


def _add_transposed() -> Case:
    """The sum of an array and the transpose of another: one is read across its rows."""
    body = """
        yt = f32[2048,2048]{1,0} transpose(y), dimensions={1,0}
        ROOT r = f32[2048,2048]{1,0} add(x, yt)"""
    draw = Draw()
    return Case(
        (draw.uniform(2048, 2048), draw.uniform(2048, 2048)),
        module_text([("x", "f32[2048,2048]{1,0}"), ("y", "f32[2048,2048]{1,0}")], body),
        numpy=lambda x, y: x + y.T,
        torch=lambda torch, x, y: x + y.T,
    )


TRANSPOSES.hlo("transpose_2048x2048", _transpose((2048, 2048), (1, 0)))
TRANSPOSES.hlo("transpose_bf16_2048", _transpose((2048, 2048), (1, 0), "bf16"))
TRANSPOSES.hlo("transpose_0213", _transpose((8, 512, 12, 64), (0, 2, 1, 3)))
TRANSPOSES.hlo("transpose_nchw_nhwc", _transpose((16, 64, 56, 56), (0, 2, 3, 1)))
TRANSPOSES.hlo("transpose_210", _transpose((128, 128, 128), (2, 1, 0)))
TRANSPOSES.hlo("transpose_2^18x3", _transpose((1 << 18, 3), (1, 0)))
TRANSPOSES.hlo("transpose_1000003x5", _transpose((1_000_003, 5), (1, 0)))
TRANSPOSES.hlo("transpose_1999x2003", _transpose((1999, 2003), (1, 0)))
TRANSPOSES.hlo("transpose_0231_odd", _transpose((17, 31, 29, 63), (0, 2, 3, 1)))
TRANSPOSES.hlo("transpose_42031_odd", _transpose((7, 11, 13, 17, 19), (4, 2, 0, 3, 1)))
TRANSPOSES.hlo("add_transposed_2048", _add_transposed)


def _concat_pad_slice() -> Case:
    body = """
        zero = f32[] constant(0)
        c = f32[4096,1024]{1,0} concatenate(x, y), dimensions={0}
        p = f32[4098,1026]{1,0} pad(c, zero), padding=1_1x1_1
        ROOT r = f32[4096,1024]{1,0} slice(p), slice={[2:4098], [2:1026]}"""
    draw = Draw()
    s = "f32[2048,1024]{1,0}"
    return Case(
        (draw.uniform(2048, 1024), draw.uniform(2048, 1024)),
        module_text([("x", s), ("y", s)], body),
        numpy=lambda x, y: np.ascontiguousarray(np.pad(np.concatenate([x, y]), 1)[2:, 2:]),
        torch=lambda torch, x, y: torch.nn.functional.pad(torch.cat([x, y]), (1, 1, 1, 1))[2:, 2:].contiguous(),
    )


def _concat_minor() -> Case:
    body = "ROOT r = f32[65536,96]{1,0} concatenate(x, y), dimensions={1}"
    draw = Draw()
    return Case(
        (draw.uniform(65536, 32), draw.uniform(65536, 64)),
        module_text([("x", "f32[65536,32]{1,0}"), ("y", "f32[65536,64]{1,0}")], body),
        numpy=lambda x, y: np.concatenate([x, y], 1),
        torch=lambda torch, x, y: torch.cat([x, y], 1),
    )


def _strided_slice() -> Case:
    body = "ROOT r = f32[1024,1024]{1,0} slice(x), slice={[0:2048:2], [1:2048:2]}"
    return Case(
        (Draw().uniform(2048, 2048),),
        module_text([("x", "f32[2048,2048]{1,0}")], body),
        numpy=lambda x: np.ascontiguousarray(x[::2, 1::2]),
        torch=lambda torch, x: x[::2, 1::2].contiguous(),
    )


def _reverse() -> Case:
    body = "ROOT r = f32[2048,2048]{1,0} reverse(x), dimensions={0,1}"
    return Case(
        (Draw().uniform(2048, 2048),),
        module_text([("x", "f32[2048,2048]{1,0}")], body),
        numpy=lambda x: np.ascontiguousarray(x[::-1, ::-1]),
        torch=lambda torch, x: x.flip(0, 1),
    )


def _broadcast() -> Case:
    body = "ROOT r = f32[64,128,512]{2,1,0} broadcast(x), dimensions={0,2}"
    return Case(
        (Draw().uniform(64, 512),),
        module_text([("x", "f32[64,512]{1,0}")], body),
        numpy=lambda x: np.ascontiguousarray(np.broadcast_to(x[:, None], (64, 128, 512))),
    )


JOINING.hlo("concat_pad_slice", _concat_pad_slice)
JOINING.hlo("concat_minor", _concat_minor)
JOINING.hlo("slice_strided", _strided_slice)
JOINING.hlo("reverse_2048x2048", _reverse)
JOINING.hlo("broadcast_64x128x512", _broadcast)


def _gather_rows() -> Case:
    body = """
        ROOT r = f32[65536,64]{1,0} gather(table, index), offset_dims={1}, collapsed_slice_dims={0}, \
start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}"""
    draw = Draw()
    return Case(
        (draw.uniform(50_000, 64), draw.integers(0, 50_000, 65536)),
        module_text([("table", "f32[50000,64]{1,0}"), ("index", "s32[65536]{0}")], body),
        numpy=lambda table, index: table[index],
        torch=lambda torch, table, index: table[index],
    )


def _scatter_add() -> Case:
    body = """
        zero = f32[] constant(0)
        start = f32[1024,64]{1,0} broadcast(zero), dimensions={}
        ROOT r = f32[1024,64]{1,0} scatter(start, index, rows), update_window_dims={1}, inserted_window_dims={0}, \
scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=fold"""
    draw = Draw()
    return Case(
        (draw.integers(0, 1024, 16384), draw.uniform(16384, 64)),
        module_text(
            [("index", "s32[16384]{0}"), ("rows", "f32[16384,64]{1,0}")], body, fold_text("fold", "f32", "add")
        ),
        torch=lambda torch, index, rows: torch.zeros(1024, 64).index_add_(0, index, rows),
    )


INDEXED.hlo("gather_rows_64k", _gather_rows)
INDEXED.hlo("scatter_add_rows_16k", _scatter_add)


@INDEXED.jax("gather_scalars_2^20")
def _gather_scalars() -> Case:
    draw = Draw()
    return Case((draw.uniform(1 << 20), draw.integers(0, 1 << 20, 1 << 20)), function=lambda x, i: x[i])


@INDEXED.jax("histogram_2^18")
def _histogram() -> Case:
    return Case(
        (Draw().integers(0, 256, 1 << 18),), function=lambda i: jnp.zeros(256, jnp.int32).at[i].add(1, mode="drop")
    )


@INDEXED.jax("take_along_axis")
def _take_along_axis() -> Case:
    draw = Draw()
    return Case(
        (draw.uniform(1024, 1024), draw.integers(0, 1024, 1024, 256)),
        function=lambda x, i: jnp.take_along_axis(x, i, 1),
        numpy=lambda x, i: np.take_along_axis(x, i, 1),
    )


@INDEXED.jax("embedding_gradient")
def _embedding_gradient() -> Case:
    draw = Draw()
    return Case(
        (draw.uniform(8192, 128), draw.integers(0, 8192, 16, 128)),
        function=lambda seed, tokens: jnp.zeros((8192, 128)).at[tokens].add(seed[: 16 * 128].reshape(16, 128, 128)),
    )
