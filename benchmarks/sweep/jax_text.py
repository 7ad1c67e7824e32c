"""HLO of functions of JAX, as JAX lowers them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any


def hlo_text(function: Callable[..., Any], shapes: Sequence[str]) -> str:
    """HLO of a function of jax, jax.numpy and arrays. shapes: of the arrays, as 'f32 16,128'.

    With an array of 64 bits an element, JAX computes with 64 bits, as with jax_enable_x64.
    """
    import jax

    from ...formats.files import load_module
    from ...formats.text.printer import print_module
    from ...hlo.dtypes import DType

    given = []
    for shape in shapes:
        dtype, _, sizes = shape.partition(" ")
        given.append(jax.ShapeDtypeStruct([int(n) for n in sizes.split(",") if n], DType(dtype).numpy))
    wide = any(shape.dtype.itemsize == 8 and shape.dtype.kind != "c" for shape in given)
    with jax.enable_x64(wide):
        lowered = jax.jit(partial(function, jax, jax.numpy)).lower(*given).as_text()
    return print_module(load_module(lowered.encode(), "function.mlir").module)
