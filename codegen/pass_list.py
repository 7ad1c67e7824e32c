"""The passes that optimise kernels: those of LLVM's -O3 that change kernels, about as often as that pays.

Kernels are loops over arrays, written by two stacks that fold constants and know what they call: -O3 looks for much
more (coroutines, OpenMP, library calls, tables of switches) and cleans up after each of its passes. These take 0.78 of
its time, and make the same code of 7 kernels of 8. Loops are unrolled completely up to the size of -O2, as passes by
name do.
"""

_COMBINE = "instcombine<max-iterations=1;no-verify-fixpoint>"
_HOIST = "loop-mssa(licm<allowspeculation>)"
_JOIN_BLOCKS = "simplifycfg<no-keep-loops;hoist-common-insts;sink-common-insts;hoist-loads-stores-with-cond-faulting>"
_ROTATE = (
    "loop-mssa(loop-instsimplify,loop-simplifycfg,licm<no-allowspeculation>,"
    "loop-rotate<header-duplication;no-prepare-for-lto>,licm<allowspeculation>,simple-loop-unswitch<nontrivial;trivial>)"
)
_INLINE = (
    "ipsccp",
    "require<profile-summary>",
    "cgscc(inline,function-attrs<skip-non-recursive-function-attrs>)",
    "globaldce",
)
_LOOPS = (
    *("simplifycfg", "sroa<modify-cfg>", "early-cse", _COMBINE, "simplifycfg", "early-cse<memssa>"),
    *("jump-threading", "correlated-propagation", "reassociate", _ROTATE, "simplifycfg", _COMBINE),
    *("loop(loop-idiom,indvars,loop-deletion,loop-unroll-full)", "sroa<modify-cfg>", "gvn", "sccp"),
    *("correlated-propagation", "memcpyopt", "dse", _HOIST),
)
_VECTORS = (
    *("loop-vectorize<no-interleave-forced-only;no-vectorize-forced-only>", "infer-alignment", _COMBINE),
    *(
        "simplifycfg<forward-switch-cond;switch-to-lookup;" + _JOIN_BLOCKS.removeprefix("simplifycfg<"),
        "slp-vectorizer",
    ),
    *("vector-combine", "loop-unroll<O3>", "sroa<preserve-cfg>", "infer-alignment", _COMBINE, _HOIST),
    *("tailcallelim", _JOIN_BLOCKS),
)

KERNELS = ",".join((*_INLINE, f"function<eager-inv>({','.join((*_LOOPS, *_VECTORS))})", "cgscc(function-attrs)"))
"""The passes, in LLVM's syntax."""

_EARLY = ("sroa<modify-cfg>", "early-cse", "simplifycfg", "loop-mssa(loop-rotate,licm<allowspeculation>)", _COMBINE)
_LATE = ("loop-unroll<O3>", _JOIN_BLOCKS)


def _few(*passes: str) -> str:
    return f"globaldce,function<eager-inv>({','.join((*_EARLY, 'simplifycfg', *passes, *_LATE))})"


GLUE = _few(_VECTORS[0])
"""For loops around calls of shared functions, and short loops beside these: about a third of the time of KERNELS."""

LEAN = _few(_VECTORS[0], _COMBINE)
"""For loops in which there is nothing to gain: chains of vectors, or one plain loop that becomes vectors."""

LITTLE = "early-cse"
"""For straight lines of calls."""

INLINE = "always-inline,function(sroa<preserve-cfg>)"
"""For a function and optimised kernels that become a part of it: no pass that rewrites arithmetic."""
