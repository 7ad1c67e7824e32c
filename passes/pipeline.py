"""The pipeline: a list of passes as data, run in order; an observer gets the time and instruction counts of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from ..hlo.devices import ONE_DEVICE, Devices
from ..hlo.errors import TestbedError
from ..hlo.ir import Module
from ..hlo.records import dataclass, field, replace
from .algebra.sweep import simplify_algebra
from .canonical.batch_loops import batch_loops
from .canonical.convolution import canonicalize_convolutions
from .canonical.copy_dot_operands import copy_dot_operands
from .canonical.counted_compares import compare_counted
from .canonical.depth_last import depth_last
from .canonical.dot import canonicalize_dots
from .canonical.features_last import features_last
from .canonical.follow_layouts import follow_layouts
from .canonical.layouts import agree_layouts
from .canonical.library_layouts import choose_library_layouts
from .canonical.matrix_dots import matrix_dots
from .canonical.normalize_floats import normalize_floats
from .canonical.patches import integer_patches
from .canonical.split_reductions import split_reductions
from .cleanup.constant_folding import fold_constants
from .cleanup.cse import share_equal
from .cleanup.dce import remove_dead_code
from .cleanup.prune import prune
from .cleanup.simplify import simplify
from .cleanup.untuple import untuple_fusions
from .control.conditionals import simplify_conditionals
from .control.counters import simplify_counters
from .control.finite_loops import finite_loops
from .control.hoist_branches import hoist_branches
from .control.loops import simplify_loops
from .dynamic.pad import pad_dynamic
from .expand.asynchronous import expand_async
from .expand.batch_norm import expand_batch_norm
from .expand.bitcast import expand_bitcast
from .expand.conditional import expand_conditional
from .expand.dots import expand_dots
from .expand.gather import expand_gather
from .expand.linalg import expand_linalg
from .expand.map import expand_map
from .expand.reduce_window import expand_reduce_window
from .expand.rng import expand_rng
from .expand.rng_state import expand_rng_state
from .expand.scan import expand_scan
from .expand.select_and_scatter import expand_select_and_scatter
from .expand.stochastic_convert import expand_stochastic_convert
from .expand.topk import expand_topk
from .flatten import flatten
from .fuel import is_off, without
from .fusion.loop import fuse
from .fusion.outputs import fuse_outputs
from .fusion.rotations import fuse_rotations
from .fusion.rows import fuse_rows
from .fusion.small import fuse_small
from .fusion.unfuse import unfuse
from .inline import inline_calls


@dataclass(frozen=True, slots=True)
class Pass:
    """One rewrite of a module.

    requires, guarantees: names of properties; `run_pipeline` checks that each required one holds.
    """

    name: str
    run: Callable[[Module], Module]
    requires: frozenset[str] = frozenset()
    guarantees: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PassRecord:
    """Record of one pass run: wall time in seconds, instruction counts before and after, and the resulting module."""

    name: str
    seconds: float
    before: int
    after: int
    module: Module = field(repr=False)


Observer = Callable[[PassRecord], None]

FLAT = "flat"  # no calls; every computation has one caller; names are unique in the module
LIVE = "live"  # no dead instructions
AGREED = "agreed"  # forwarding ops have the same layouts as the values that they forward
FUSED = "fused"  # loop fusions are formed

PASSES: dict[str, Pass] = {
    p.name: p
    for p in (
        Pass("inline", inline_calls),
        Pass("flatten", flatten, guarantees=frozenset({FLAT})),
        Pass("expand-async", expand_async, requires=frozenset({FLAT})),
        Pass("expand-rng-state", expand_rng_state, requires=frozenset({FLAT})),
        Pass("pad-dynamic", pad_dynamic, requires=frozenset({FLAT})),
        Pass("untuple", untuple_fusions, requires=frozenset({FLAT})),
        Pass("dce", remove_dead_code, guarantees=frozenset({LIVE})),
        Pass("prune", prune, requires=frozenset({FLAT})),
        Pass("simplify", simplify),
        Pass("finite-loops", finite_loops, requires=frozenset({FLAT})),
        Pass("cse", share_equal),
        Pass("algebra", simplify_algebra),
        Pass("fold-constants", fold_constants),
        Pass("hoist-branches", hoist_branches, requires=frozenset({FLAT})),
        Pass("conditionals", simplify_conditionals, requires=frozenset({FLAT})),
        Pass("counters", simplify_counters, requires=frozenset({FLAT})),
        Pass("loops", simplify_loops, requires=frozenset({FLAT})),
        Pass("expand-conditional", expand_conditional, requires=frozenset({FLAT})),
        Pass("unfuse", unfuse, requires=frozenset({FLAT})),
        Pass("expand-map", expand_map, requires=frozenset({FLAT})),
        Pass("expand-scan", expand_scan, requires=frozenset({FLAT})),
        Pass("expand-bitcast", expand_bitcast),
        Pass("expand-stochastic-convert", expand_stochastic_convert),
        Pass("expand-batch-norm", expand_batch_norm),
        Pass("expand-dots", expand_dots),
        Pass("expand-gather", expand_gather),
        Pass("expand-topk", expand_topk),
        Pass("expand-rng", expand_rng),
        Pass("expand-select-and-scatter", expand_select_and_scatter, requires=frozenset({FLAT})),
        Pass("expand-reduce-window", expand_reduce_window),
        Pass("expand-linalg", expand_linalg),
        Pass("follow-layouts", follow_layouts, requires=frozenset({FLAT})),
        Pass("canonicalize-convolution", canonicalize_convolutions),
        Pass("canonicalize-dot", canonicalize_dots),
        Pass("matrix-dots", matrix_dots),
        Pass("batch-loops", batch_loops, requires=frozenset({FLAT})),
        Pass("features-last", features_last),
        Pass("depth-last", depth_last),
        Pass("integer-patches", integer_patches),
        Pass("copy-dot-operands", copy_dot_operands),
        Pass("split-reductions", split_reductions),
        Pass("counted-compares", compare_counted),
        Pass("normalize-floats", normalize_floats),
        Pass("layouts", agree_layouts, requires=frozenset({FLAT}), guarantees=frozenset({AGREED})),
        Pass("fuse", fuse, requires=frozenset({FLAT, AGREED}), guarantees=frozenset({FUSED})),
        Pass("fuse-rows", fuse_rows, requires=frozenset({FLAT, AGREED, FUSED})),
        Pass("fuse-outputs", fuse_outputs, requires=frozenset({FLAT, AGREED, FUSED})),
        Pass("library-layouts", choose_library_layouts, requires=frozenset({FLAT, AGREED, FUSED})),
        Pass("fuse-small", fuse_small, requires=frozenset({FLAT, AGREED, FUSED})),
        Pass("fuse-rotations", fuse_rotations, requires=frozenset({FLAT, AGREED, FUSED})),
    )
}
"""Every pass by name, in the order of a full run."""

EXPAND = (
    "expand-conditional",
    "unfuse",
    "expand-map",
    "expand-scan",
    "expand-bitcast",
    "expand-stochastic-convert",
    "expand-batch-norm",
    "expand-dots",
    "expand-gather",
    "expand-topk",
    "expand-rng",
    "expand-select-and-scatter",
    "expand-reduce-window",
    "expand-linalg",
)
"""Names of the expanders. They replace ops that the stacks do not emit by ops that both stacks emit."""

EARLY = ("expand-async", "expand-rng-state", "pad-dynamic")
"""Names of the expanders that run first: they remove constructs that later passes do not support."""

OPTIMIZE = (
    *("flatten", *EARLY, "untuple", "dce", "prune", "simplify", "algebra", "fold-constants", "hoist-branches"),
    *("conditionals", "finite-loops", "counters", "loops", *EXPAND),
    *("follow-layouts", "cse", "simplify", "algebra", "fold-constants", "finite-loops", "loops"),
    *("algebra", "fold-constants", "canonicalize-convolution", "canonicalize-dot", "simplify", "cse", "dce"),
    *("batch-loops", "dce", "features-last", "depth-last", "integer-patches", "copy-dot-operands", "split-reductions"),
    *("simplify", "counted-compares", "prune", "dce"),
    *("layouts", "fuse", "dce", "fuse-rows", "fuse-outputs", "dce", "library-layouts"),
    *("fuse-small", "dce", "fuse-rotations"),
)
"""Names of the passes that a plan runs on an unscheduled module."""

PREPARE = ("flatten", *EARLY, "untuple", "dce", "simplify", "finite-loops", *EXPAND, "layouts", "dce")
"""Names of the passes that a plan runs on a scheduled module; they keep its schedule and its fusions."""


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """passes: names of the passes to run; None chooses OPTIMIZE, or PREPARE for scheduled modules. devices: those that
    the program is for. without: names of passes that do not run, and of rewrites that passes leave out (rewrites.py).
    """

    passes: tuple[str, ...] | None = None
    devices: Devices = ONE_DEVICE
    without: frozenset[str] = frozenset()


USUAL = PipelineOptions()


def select(names: Sequence[str]) -> tuple[Pass, ...]:
    """Look up passes by name. Raises TestbedError for an unknown name."""
    for name in names:
        if name not in PASSES:
            import difflib

            near = difflib.get_close_matches(name, PASSES, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"passes: {', '.join(PASSES)}"
            raise TestbedError(f"no pass named {name!r}", remedy=remedy)
    return tuple(PASSES[n] for n in names)


def complete(passes: Sequence[Pass]) -> tuple[Pass, ...]:
    """Insert, before each pass, the passes that guarantee the properties it requires and that do not hold yet."""
    held: set[str] = set()
    done: list[Pass] = []

    def put(step: Pass) -> None:
        for need in sorted(step.requires):
            if need not in held:
                put(next(p for p in PASSES.values() if need in p.guarantees))
        done.append(step)
        held.update(step.guarantees)

    for step in passes:
        put(step)
    return tuple(done)


def run_pipeline(module: Module, passes: Sequence[Pass], observer: Observer | None = None) -> Module:
    """Run passes in order. Raises TestbedError if a pass requires a property that no earlier pass guarantees."""
    held: set[str] = set()
    settled: dict[str, Module] = {}  # by pass name, the last module that the pass left unchanged
    for step in passes:
        if is_off(step.name):
            continue
        missing = step.requires - held
        if missing:
            makers = [p.name for p in PASSES.values() if p.guarantees & missing]
            raise TestbedError(
                f"pass {step.name} requires {', '.join(sorted(missing))}", remedy=f"run {', '.join(makers)} before it"
            )
        before, start = module, time.perf_counter()
        if settled.get(step.name) is not module:
            module = step.run(module)
            if module is before:
                settled[step.name] = module
        held |= step.guarantees
        if observer is not None:
            seconds = time.perf_counter() - start
            observer(PassRecord(step.name, seconds, count_instructions(before), count_instructions(module), module))
    return module


def count_instructions(module: Module) -> int:
    return sum(len(c.instructions) for c in module.computations)


def is_scheduled(module: Module) -> bool:
    return module.attributes.get("is_scheduled") is True


def default_passes(module: Module) -> tuple[str, ...]:
    """Names of the passes that a plan runs on this module: PREPARE if it is scheduled, else OPTIMIZE."""
    return PREPARE if is_scheduled(module) else OPTIMIZE


def optimize(module: Module, options: PipelineOptions = USUAL, observer: Observer | None = None) -> Module:
    """Run the passes that precede scheduling and buffer assignment."""
    names = options.passes if options.passes is not None else default_passes(module)
    with without(options.without):
        return run_pipeline(module, [_for(step, options.devices) for step in select(names)], observer)


def _for(step: Pass, devices: Devices) -> Pass:
    """The pass for a program of these devices."""
    run = _OF_DEVICES.get(step.name)
    return step if run is None or devices.count == 1 else replace(step, run=partial(run, devices=devices))


_OF_DEVICES: dict[str, Callable[..., Module]] = {"expand-async": expand_async, "expand-rng-state": expand_rng_state}
"""The passes that depend on the devices."""
