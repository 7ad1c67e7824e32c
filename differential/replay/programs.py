"""HLO text of the suite, each a function of a size: written for the testbed after the shapes that reports describe."""

from __future__ import annotations

from collections.abc import Sequence


def module(name: str, entry: Sequence[str], computations: str = "", header: str = "") -> str:
    """A module whose entry holds the lines. header: attributes behind the name."""
    body = "\n".join(f"  {line}" for line in entry)
    return f"HloModule {name}{header}\n\n{computations}ENTRY e {{\n{body}\n}}\n"


def _add(t: str) -> str:
    return f"add {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  ROOT s = {t}[] add(a, b)\n}}\n\n"


def _counted(state: str, body: Sequence[str], steps: int) -> str:
    """The computations `step` and `below` of a loop over a tuple. body: lines that make `next` of `p`."""
    lines = [f"p = ({state}) parameter(0)", "k = s32[] get-tuple-element(p), index=0", "one = s32[] constant(1)"]
    lines += ["k1 = s32[] add(k, one)", *body]
    inside = "\n".join(f"  {line}" for line in lines)
    below = f"  p = ({state}) parameter(0)\n  k = s32[] get-tuple-element(p), index=0\n  n = s32[] constant({steps})\n"
    return f"step {{\n{inside}\n}}\n\nbelow {{\n{below}  ROOT r = pred[] compare(k, n), direction=LT\n}}\n\n"


# -- sums -------------------------------------------------------------------------------------------------------------
def matvec_squares(t: str, n: int) -> str:
    """A matrix times each of n rows, squared and summed by row: what vmap makes of sum((m @ row)²)."""
    return module(
        "matvec_squares",
        [
            f"x = {t}[{n},3] parameter(0)",
            f"m = {t}[3,3] parameter(1)",
            f"z = {t}[] constant(0)",
            f"y = {t}[3,{n}] dot(m, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}",
            f"q = {t}[3,{n}] multiply(y, y)",
            f"ROOT r = {t}[{n}] reduce(q, z), dimensions={{0}}, to_apply=add",
        ],
        _add(t),
    )


def difference_squares(n: int) -> str:
    """The differences of neighbours along both dimensions, squared and summed."""
    return module(
        "difference_squares",
        [
            f"x = f32[{n},256] parameter(0)",
            "z = f32[] constant(0)",
            f"a = f32[{n - 1},256] slice(x), slice={{[1:{n}], [0:256]}}",
            f"b = f32[{n - 1},256] slice(x), slice={{[0:{n - 1}], [0:256]}}",
            f"d = f32[{n - 1},256] subtract(a, b)",
            f"q = f32[{n - 1},256] multiply(d, d)",
            "s = f32[] reduce(q, z), dimensions={0,1}, to_apply=add",
            f"c = f32[{n},255] slice(x), slice={{[0:{n}], [1:256]}}",
            f"e = f32[{n},255] slice(x), slice={{[0:{n}], [0:255]}}",
            f"g = f32[{n},255] subtract(c, e)",
            f"h = f32[{n},255] multiply(g, g)",
            "w = f32[] reduce(h, z), dimensions={0,1}, to_apply=add",
            "ROOT r = f32[] add(s, w)",
        ],
        _add("f32"),
    )


def _dims(dims: Sequence[int]) -> str:
    return ",".join(map(str, dims))


def thin_sums(n: int) -> str:
    """Sums of products of rank 7 with a dimension of one element that is kept, and of rank 8 of what is repeated."""
    seven, eight = (3, 1, 2, n, 8, 8, 8), (5, 4, n, 3, 3, 3, 3, 3)
    return module(
        "thin_sums",
        [
            f"a = f32[{_dims(seven)}] parameter(0)",
            f"b = f32[{_dims(seven)}] parameter(1)",
            f"o = f32[{_dims(eight[:3])}] parameter(2)",
            f"w = f32[{_dims(eight)}] parameter(3)",
            "z = f32[] constant(0)",
            f"p = f32[{_dims(seven)}] multiply(a, b)",
            "s = f32[3,1,2,8,8,8] reduce(p, z), dimensions={3}, to_apply=add",
            f"v = f32[{_dims(eight)}] broadcast(o), dimensions={{0,1,2}}",
            f"q = f32[{_dims(eight)}] multiply(v, w)",
            "t = f32[5,4,3,3,3,3,3] reduce(q, z), dimensions={2}, to_apply=add",
            "l = f32[] constant(2)",
            "k = f32[5,4,3,3,3,3,3] broadcast(l), dimensions={}",
            "u = f32[5,4,3,3,3,3,3] maximum(t, k)",
            "g = f32[5,4,3,3,3,3,3] log(u)",
            "ROOT r = tuple(s, g)",
        ],
        _add("f32"),
    )


def running_sum(n: int) -> str:
    """All sums of the first elements of n."""
    window = f"{{size={n} pad={n - 1}_0}}"
    return module(
        "running_sum",
        [
            f"x = f32[{n}] parameter(0)",
            "z = f32[] constant(0)",
            f"ROOT r = f32[{n}] reduce-window(x, z), window={window}, to_apply=add",
        ],
        _add("f32"),
    )


# -- updates in place -------------------------------------------------------------------------------------------------
def shifted_in_place(n: int) -> str:
    """An array moves by one element within itself, in the memory that it has; the update reads what it overwrites."""
    return module(
        "shifted_in_place",
        [
            f"x = f32[{n}] parameter(0)",
            f"s = f32[{n - 1}] slice(x), slice={{[0:{n - 1}]}}",
            "i = s32[] constant(1)",
            f"ROOT r = f32[{n}] dynamic-update-slice(x, s, i)",
        ],
        header=", input_output_alias={ {}: (0, {}, may-alias) }",
    )


def shifted_in_loop(n: int) -> str:
    """The same three times, in the state of a loop, and with arithmetic on what is read."""
    state = f"s32[], f32[{n}]"
    body = [
        f"x = f32[{n}] get-tuple-element(p), index=1",
        "w = s32[] constant(0)",
        f"s = f32[{n - 1}] dynamic-slice(x, w), dynamic_slice_sizes={{{n - 1}}}",
        f"d = f32[{n - 1}] add(s, s)",
        f"y = f32[{n}] dynamic-update-slice(x, d, one)",
        f"ROOT r = ({state}) tuple(k1, y)",
    ]
    entry = [
        f"x = f32[{n}] parameter(0)",
        "k = s32[] constant(0)",
        f"t = ({state}) tuple(k, x)",
        f"w = ({state}) while(t), condition=below, body=step",
        f"ROOT r = f32[{n}] get-tuple-element(w), index=1",
    ]
    return module("shifted_in_loop", entry, _counted(state, body, 3))


def small_updates(bytes_: int, steps: int, n: int) -> str:
    """A loop writes a few bytes of a buffer of n floats in each of its steps. The work does not depend on n, but for
    what fills the buffer once.
    """
    width = bytes_ // 4
    state = f"s32[], f32[{n}], f32[{width}]"
    body = [
        f"x = f32[{n}] get-tuple-element(p), index=1",
        f"v = f32[{width}] get-tuple-element(p), index=2",
        "m = s32[] constant(1009)",
        f"most = s32[] constant({min(n, 4096) - width})",
        "km = s32[] multiply(k, m)",
        "i = s32[] remainder(km, most)",
        f"o = f32[{width}] dynamic-slice(x, i), dynamic_slice_sizes={{{width}}}",
        f"u = f32[{width}] add(o, v)",
        f"y = f32[{n}] dynamic-update-slice(x, u, i)",
        f"ROOT r = ({state}) tuple(k1, y, v)",
    ]
    return _filled_loop("small_updates", state, body, steps, n, width)


def written_steps(n: int) -> str:
    """A loop of n steps that writes an element in each: the way in which a scan stacks its results."""
    state = f"s32[], f32[{n}], f32[1]"
    body = [
        f"x = f32[{n}] get-tuple-element(p), index=1",
        "v = f32[1] get-tuple-element(p), index=2",
        "f = f32[] convert(k)",
        "g = f32[1] reshape(f)",
        "u = f32[1] multiply(g, v)",
        f"y = f32[{n}] dynamic-update-slice(x, u, k)",
        f"ROOT r = ({state}) tuple(k1, y, v)",
    ]
    return _filled_loop("written_steps", state, body, n, n, 1)


def _filled_loop(name: str, state: str, body: Sequence[str], steps: int, n: int, width: int) -> str:
    entry = [
        f"v = f32[{width}] parameter(0)",
        "z = f32[] constant(1)",
        f"x = f32[{n}] broadcast(z), dimensions={{}}",
        "k = s32[] constant(0)",
        f"t = ({state}) tuple(k, x, v)",
        f"w = ({state}) while(t), condition=below, body=step",
        f"y = f32[{n}] get-tuple-element(w), index=1",
        f"ROOT r = f32[{min(n, 4096)}] slice(y), slice={{[0:{min(n, 4096)}]}}",
    ]
    return module(name, entry, _counted(state, body, steps))


def picked_steps(n: int) -> str:
    """A loop of n steps; each reads the element of one of two places, chosen by an inner loop that mixes bits, and
    writes it. The buffer is a parameter.
    """
    inner = "s32[], u32[], u32[]"
    rounds = [
        "a = u32[] get-tuple-element(p), index=1",
        "b = u32[] get-tuple-element(p), index=2",
        "c = u32[] constant(13)",
        "d = u32[] constant(19)",
        "s = u32[] add(a, b)",
        "h = u32[] shift-left(b, c)",
        "l = u32[] shift-right-logical(b, d)",
        "o = u32[] or(h, l)",
        "x = u32[] xor(o, s)",
        f"ROOT r = ({inner}) tuple(k1, s, x)",
    ]
    mixing = _counted(inner, rounds, 5).replace("step {", "mix {").replace("below {", "mixing {")
    state = f"s32[], f32[{n}]"
    body = [
        f"x = f32[{n}] get-tuple-element(p), index=1",
        "zero = s32[] constant(0)",
        "seed = u32[] constant(466688986)",
        "ku = u32[] convert(k)",
        f"t = ({inner}) tuple(zero, ku, seed)",
        f"m = ({inner}) while(t), condition=mixing, body=mix",
        "bits = u32[] get-tuple-element(m), index=2",
        "last = u32[] constant(1)",
        "bit = u32[] and(bits, last)",
        "i = s32[] convert(bit)",
        "u = f32[1] dynamic-slice(x, i), dynamic_slice_sizes={1}",
        f"y = f32[{n}] dynamic-update-slice(x, u, k)",
        f"ROOT r = ({state}) tuple(k1, y)",
    ]
    entry = [
        f"x = f32[{n}] parameter(0)",
        "k = s32[] constant(0)",
        f"t = ({state}) tuple(k, x)",
        f"w = ({state}) while(t), condition=below, body=step",
        f"ROOT r = f32[{n}] get-tuple-element(w), index=1",
    ]
    return module("picked_steps", entry, mixing + _counted(state, body, n))


# -- rules that hold for real numbers only ----------------------------------------------------------------------------
def undone(t: str, n: int) -> str:
    """log(exp x) and sqrt(x²) on numbers whose exponential and square overflow."""
    shape = f"{t}[{n}]"
    return module(
        "undone",
        [
            f"x = {shape} parameter(0)",
            f"e = {shape} exponential(x)",
            f"l = {shape} log(e)",
            f"q = {shape} multiply(x, x)",
            f"s = {shape} sqrt(q)",
            f"ROOT r = ({shape}, {shape}) tuple(l, s)",
        ],
    )


# -- ranks ------------------------------------------------------------------------------------------------------------
def high_rank(rank: int) -> str:
    """A contraction of two tensors with many dimensions of two elements, as repeated factors of a product that is
    summed over every other dimension, next to a turned copy of one of them.
    """
    dims, every = _dims([2] * rank), list(range(rank))
    half, gone = rank // 2, every[::2]
    kept = _dims([2] * (rank - len(gone)))
    return module(
        "high_rank",
        [
            f"x = f32[{_dims([2] * half)}] parameter(0)",
            f"y = f32[{dims}] parameter(1)",
            "z = f32[] constant(0)",
            f"t = f32[{dims}] transpose(y), dimensions={{{_dims(every[::-1])}}}",
            f"v = f32[{dims}] broadcast(x), dimensions={{{_dims(every[1 : 2 * half : 2])}}}",
            f"m = f32[{dims}] multiply(v, t)",
            f"s = f32[{dims}] add(m, y)",
            f"ROOT q = f32[{kept}] reduce(s, z), dimensions={{{_dims(gone)}}}, to_apply=add",
        ],
        _add("f32"),
    )


# -- scans with small bodies ------------------------------------------------------------------------------------------
def matrix_scan(n: int) -> str:
    """n steps of a state of 3 × 3 numbers: a product, a tanh and a sum."""
    state = "s32[], f64[3,3], f64[3,3]"
    body = [
        "c = f64[3,3] get-tuple-element(p), index=1",
        "m = f64[3,3] get-tuple-element(p), index=2",
        "d = f64[3,3] dot(c, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "h = f64[3,3] tanh(d)",
        "s = f64[3,3] add(h, m)",
        f"ROOT r = ({state}) tuple(k1, s, m)",
    ]
    return _scan("matrix_scan", state, body, n, "f64[3,3]")


def gate_scan(n: int) -> str:
    """n steps of eight cells whose gates open and close by exponentials."""
    state = "s32[], f64[8], f64[8]"
    body = [
        "v = f64[8] get-tuple-element(p), index=1",
        "m = f64[8] get-tuple-element(p), index=2",
        "minus = f64[8] negate(v)",
        "a = f64[8] exponential(minus)",
        "one64 = f64[] constant(1)",
        "ones = f64[8] broadcast(one64), dimensions={}",
        "b = f64[8] add(a, ones)",
        "g = f64[8] divide(ones, b)",
        "h = f64[8] multiply(g, m)",
        "half = f64[] constant(0.5)",
        "halves = f64[8] broadcast(half), dimensions={}",
        "w = f64[8] multiply(v, halves)",
        "s = f64[8] add(w, h)",
        f"ROOT r = ({state}) tuple(k1, s, m)",
    ]
    return _scan("gate_scan", state, body, n, "f64[8]")


def _scan(name: str, state: str, body: Sequence[str], steps: int, carry: str) -> str:
    entry = [
        f"c = {carry} parameter(0)",
        f"m = {carry} parameter(1)",
        "k = s32[] constant(0)",
        f"t = ({state}) tuple(k, c, m)",
        f"w = ({state}) while(t), condition=below, body=step",
        f"ROOT r = {carry} get-tuple-element(w), index=1",
    ]
    return module(name, entry, _counted(state, body, steps))
