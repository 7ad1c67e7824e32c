"""Arrays of a few channels beside each other, as pixels have them, that become planes: vectors of pixels are loaded
whole, and each channel's lanes are chosen from them. LLVM would read each plane's elements at their distances.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.records import dataclass
from ...hlo.shapes import Shape
from ..core.builder import Code, Unroll
from ..core.registers import shuffled
from ..core.view import View
from .access import crossings_of, live_dimensions
from .elemental import Elemental
from .form import at_least, needs
from .leaf import Leaf
from .ranges import Steps, loops_over

MAXIMUM_CHANNELS = 4
"""Channels whose vectors are chosen from the same number of vectors of pixels, two after the other."""

MINIMUM_ELEMENTS = 1 << 12
"""Minimum elements of a result for which the code pays."""

NARROW_BYTES = 2
"""Bytes of a lane, at most, that a processor may move within a part of a vector only."""


@dataclass(frozen=True, slots=True)
class Channels:
    """leaf: the array of pixels. outer: dimensions around, each with its stride in the pixels; count: of channels;
    pixels: that follow each other in a plane; apart: the distance of planes.
    """

    leaf: Instruction
    outer: tuple[tuple[int, int], ...]
    count: int
    pixels: int
    apart: int
    lanes: int

    @staticmethod
    def of(view: View, root: Instruction, shape: Shape) -> Channels:
        """Of a root that only moves elements. Raises Unfit."""
        dtype = shape.dtype
        at_least(shape.size, MINIMUM_ELEMENTS, "elements")
        needs(not view.by_element, "for a device")
        needs(dtype is not DType.PRED and 8 <= dtype.bits <= 64, f"{dtype.value} has not 8 to 64 bits")
        found = crossings_of(view, root, MINIMUM_ELEMENTS)
        whole = len(found) == 1 and found[0].exact and found[0].value.shape.size == shape.size
        needs(whole, "not all elements of one array are moved")
        leaf, roles = found[0].value, found[0].roles
        strides = {role: leaf.shape.strides[d] for d, role in enumerate(roles) if leaf.shape.dims[d] != 1}
        order = live_dimensions(shape)
        count, pixels = strides[order[0]], 1
        while order and strides[order[0]] == count * pixels:
            pixels *= shape.dims[order.pop(0)]
        planes = next((d for d in order if strides[d] == 1), None)
        vector = max(view.vector_bits, 128) // 8
        narrow = min(vector, view.processor.narrow_shuffle_bytes)
        lanes = (narrow if dtype.bytes <= NARROW_BYTES else vector) // dtype.bytes
        needs(planes is not None and shape.dims[planes] == count, f"{count} elements are between those of a plane")
        assert planes is not None
        needs(2 <= count <= MAXIMUM_CHANNELS, f"{count} channels, not 2 to {MAXIMUM_CHANNELS}")
        at_least(pixels, 2 * lanes, "pixels")
        outer = tuple((d, strides[d]) for d in reversed(order) if d != planes)
        return Channels(leaf, outer, count, pixels, shape.strides[planes], lanes)

    def emit(self, e: Elemental, leaf: Leaf, steps: Steps | None) -> None:
        result, shape = leaf.pointer(e), leaf.shape
        code, size = e.code, shape.dtype.component.bytes
        element = ir.IntType(8 * shape.dtype.bytes)
        vector = ir.VectorType(element, self.lanes)
        order = [d for d, _ in self.outer]
        with loops_over(code, steps, shape.dims, order, Unroll.NEVER) as positions:
            places = [positions[d] for d in order]
            source = code.weighted_sum(places, [stride for _, stride in self.outer])
            target = code.weighted_sum(places, [shape.strides[d] for d in order])
            with code.loop(self.pixels, step=self.lanes, unroll=Unroll.NEVER) as i:
                last = self.pixels - self.lanes  # of the vectors, which may lie over the one before
                pixel = code.minimum(i, last) if self.pixels % self.lanes else i
                b, first = code.b, code.add(source, code.multiply(pixel, self.count))
                read = [code.value(code.add(first, k * self.lanes)) for k in range(self.count)]
                pixels_ = e.leaves[self.leaf].value
                loaded = [b.load(b.gep(pixels_, [at], source_etype=element), typ=vector, align=size) for at in read]
                for n in range(self.count):
                    at = code.add(code.add(target, pixel), n * self.apart)
                    place = b.gep(result.value, [code.value(at)], source_etype=element)
                    b.store(self._channel(code, loaded, n), place, align=size)

    def _channel(self, code: Code, loaded: Sequence[ir.Value], n: int) -> ir.Value:
        """The lanes of one channel."""
        lanes, chosen = self.lanes, loaded[0]
        places = [divmod(self.count * lane + n, lanes) for lane in range(lanes)]
        for k, more in enumerate(loaded[1:], 1):
            before = [at if k == 1 else lane for lane, (_, at) in enumerate(places)]
            mask = [lanes + at if number == k else before[lane] for lane, (number, at) in enumerate(places)]
            chosen = shuffled(code.b, chosen, mask, more)
        return chosen
