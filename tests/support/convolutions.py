"""HLO of one convolution, from its sizes and the orders of its dimensions."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Spatial:
    """One spatial dimension of a convolution."""

    size: int
    window: int
    stride: int
    low: int
    high: int
    holes: int
    dilation: int
    reverse: int

    @property
    def count(self) -> int:
        dilated = 0 if self.size == 0 else (self.size - 1) * self.holes + 1
        padded, reach = dilated + self.low + self.high, (self.window - 1) * self.dilation + 1
        return 0 if padded < reach else (padded - reach) // self.stride + 1


def text_of(
    kind: str, axes: list[Spatial], batch: int, ins: int, outs: int, groups: tuple[int, int], orders: list[list[str]],
    layouts: list[list[int]] | None = None,
) -> str:  # fmt: skip
    """The HLO text. orders: the labels of input, kernel and result; layouts: of each, minor to major."""
    features, batches = groups
    roles = [
        {"b": batch * batches, "f": ins * features, **{str(n): a.size for n, a in enumerate(axes)}},
        {"i": ins, "o": outs * features * batches, **{str(n): a.window for n, a in enumerate(axes)}},
        {"b": batch, "f": outs * features * batches, **{str(n): a.count for n, a in enumerate(axes)}},
    ]
    shapes = []
    for n, (sizes, order) in enumerate(zip(roles, orders, strict=True)):
        layout = "" if layouts is None else "{" + ",".join(map(str, layouts[n])) + "}"
        shapes.append(f"{kind}[{','.join(str(sizes[c]) for c in order)}]{layout}")
    window = ""
    if axes:
        parts = {
            "size": [a.window for a in axes],
            "stride": [a.stride for a in axes],
            "pad": [f"{a.low}_{a.high}" for a in axes],
            "lhs_dilate": [a.holes for a in axes],
            "rhs_dilate": [a.dilation for a in axes],
            "rhs_reversal": [a.reverse for a in axes],
        }
        window = "window={" + " ".join(f"{k}={'x'.join(map(str, v))}" for k, v in parts.items()) + "}, "
    left, right, result = ("".join(o) for o in orders)
    return f"""HloModule m
ENTRY e {{
  x = {shapes[0]} parameter(0)
  k = {shapes[1]} parameter(1)
  ROOT c = {shapes[2]} convolution(x, k), {window}dim_labels={left}_{right}->{result},
    feature_group_count={features}, batch_group_count={batches}
}}
"""
