"""Slips with memory: reads beside an array, elements that are not written, scratch memory that is read too early.

Whatever lay there before decides what they give; in the checking mode (Setting.memory) each is named with its kernel.
"""

from __future__ import annotations

from .fault import Edit, Fault
from .stacks import module

_REVERSED = module("""
    p = f32[7] parameter(0)
    ROOT r = f32[7] reverse(p), dimensions={0}
""")

_SMALLER = """smaller {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  d = f32[] subtract(a, b)
  z = f32[] constant(0)
  ROOT l = pred[] compare(d, z), direction=LT
}

"""
"""A comparator without keys: runs are merged, to and fro between the result and scratch memory."""


def _sorted(length: int) -> str:
    """A row of which the first runs are in scratch memory, so that an odd number of merges ends in the result."""
    body = f"""
    p = f32[{length}] parameter(0)
    ROOT s = f32[{length}] sort(p), dimensions={{0}}, to_apply=smaller
"""
    return module(body, _SMALLER)


MEMORY: tuple[Fault, ...] = (
    Fault(
        "legacy-reverse-from-before",
        "memory",
        "a reverse reads one element too early, and so the one in front of the array",
        ("legacy",),
        ("reverse",),
        [Edit("legacy.movement.shape", "reverse", "operand.shape.dims[d] - 1", "operand.shape.dims[d] - 2")],
        _REVERSED,
    ),
    Fault(
        "mlir-reverse-past-the-end",
        "memory",
        "a reverse reads one element too late, and so the one behind the array",
        ("mlir",),
        ("reverse",),
        [Edit("mlir_emitters.movement.shape", "reverse", "dims[d] - 1", "dims[d]")],
        _REVERSED,
    ),
    Fault(
        "legacy-last-column-unwritten",
        "memory",
        "loops over the elements of a result leave out its last column",
        ("legacy",),
        ("legacy",),
        [
            Edit(
                "legacy.loops.nest",
                "nest",
                "open_nest(e, shape.dims,",
                "open_nest(e, (*shape.dims[:-1], *(max(1, n - 1) for n in shape.dims[-1:])),",
            )
        ],
        module("""
            p = f32[5,12] parameter(0)
            ROOT r = f32[5,6] slice(p), slice={[0:5],[0:12:2]}
        """),
    ),
    Fault(
        "legacy-sort-last-run-unwritten",
        "memory",
        "a sort merges a last run that it did not write into scratch memory",
        ("legacy",),
        ("sort",),
        [
            Edit(
                "legacy.sorts.sort",
                "_Sorter._sort_runs",
                "loop(self.length, step=MAXIMUM_RUN_ELEMENTS",
                "loop(self.length - MAXIMUM_RUN_ELEMENTS, step=MAXIMUM_RUN_ELEMENTS",
            )
        ],
        _sorted(1500),
    ),
    Fault(
        "mlir-sort-last-run-unwritten",
        "memory",
        "a sort merges a last run that it did not write into scratch memory",
        ("mlir",),
        ("sort",),
        [
            Edit(
                "mlir_emitters.sorts.sort",
                "RowSort.row",
                "b.loop(0, self.length, self.run, unroll=Unroll.NONE) as loop",
                "b.loop(0, self.length - self.run, self.run, unroll=Unroll.NONE) as loop",
            )
        ],
        _sorted(3000),
    ),
)
