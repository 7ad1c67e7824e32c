"""Loop fusion: compute producers inside the kernels of their consumers instead of storing them.

The algorithm is greedy and visits consumers before producers. When it visits an instruction, all its users belong to
clusters (fusions under construction) already. The instruction joins all of these clusters, or it is stored and becomes
the root of its own. Clusters grow only at their inputs and have one result, so no cycle can arise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ...hlo.analysis.kernel_forms import CHAINED, MOST_OPERANDS, MOST_TOKENS
from ...hlo.analysis.overwrites import NO_READERS, Readers
from ...hlo.analysis.windows import running
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.layouts import changes_elements, is_alias
from ...hlo.opclasses import CONTROL_PREDECESSORS, ELEMENTWISE, control_computations
from ...hlo.opcodes import Op
from ..rewriting import Names, callees_first, rebuild
from .build import build_fusions
from .cost import (
    MOST_CODE,
    MOST_REUSE,
    SMALL_WORK,
    TINY_WORK,
    Cluster,
    Tokens,
    code_size,
    root_tokens,
    weight,
)
from .epilogue import PRODUCTS, takes_product
from .orders import LARGE_TRANSPOSE, fastest, mixes_orders
from .reading_order import ReadingOrder, order_of_reads
from .sorts import cut_sorts, parts_of_sorts

MOVEMENT = frozenset(
    {
        Op.BROADCAST,
        Op.RESHAPE,
        Op.BITCAST,
        Op.SLICE,
        Op.PAD,
        Op.CONCATENATE,
        Op.TRANSPOSE,
        Op.REVERSE,
        Op.DYNAMIC_SLICE,
        Op.GATHER,
        Op.IOTA,
    }
)
PRODUCERS = (ELEMENTWISE | MOVEMENT | {Op.CONSTANT}) - {Op.STOCHASTIC_CONVERT}
ROOTS = PRODUCERS - {Op.CONSTANT} | {
    Op.REDUCE,
    Op.REDUCE_WINDOW,
    Op.DYNAMIC_UPDATE_SLICE,
    Op.SCATTER,
    Op.SORT,
}
"""Opcodes that may be the root of a fusion."""

MOST_DUPLICATES = 4
"""Maximum number of kernels into which one instruction that computes something is copied."""

CHEAP_CONE = 16
"""Maximum number of operations that a duplicated instruction may bring along."""


CHOSEN = 256
"""Elements of a concatenation above which no other one takes it in: each element would choose between values twice.
jax.lax.associative_scan has one at each level: 4096 elements that chose six times took 108 us.
"""

STACKED = 4
"""Arrays that a gather may choose from at each element, where it takes in its index vectors: numpy.choose does."""


def fuse(module: Module) -> Module:
    """Form loop fusions in every computation that the host program runs; existing fusions are kept."""
    names = Names.of(module)
    reads = order_of_reads(module, lambda maker: maker.opcode in PRODUCERS)  # what a kernel may compute again is kept

    def change(computation: Computation) -> Computation:
        clusters = plan_fusions(computation, reads(computation))
        return cut_sorts(build_fusions(computation, clusters, names), names)

    fused = rebuild(module, change, control_computations(module))
    return Module(fused.name, callees_first(fused.entry), fused.entry, fused.attributes)


def plan_fusions(computation: Computation, readers: Readers = NO_READERS) -> dict[Instruction, Cluster]:
    """The cluster of each instruction that is stored and may have fused producers.

    readers: the ops that have to come before what overwrites their operand.
    """
    return _Planner(computation, readers).run()


class _Planner:
    def __init__(self, computation: Computation, readers: Readers):
        self.computation = computation
        self.reading = ReadingOrder(computation, readers, PRODUCERS)
        self.users = computation.users
        self.clusters: dict[Instruction, Cluster] = {}  # by root
        self.homes: dict[Instruction, list[Cluster]] = {}  # the clusters that an instruction is a member of
        self.pinned = computation.pinned
        self.parts = {s for slices in parts_of_sorts(computation).values() for s in slices}

    @cached_property
    def cones(self) -> dict[Instruction, tuple[int, bool]]:
        return _cones(self.computation)

    def run(self) -> dict[Instruction, Cluster]:
        for i in reversed(self.computation.instructions):
            if not self._join(i):
                self._store(i)
        return self.clusters

    def _join(self, i: Instruction) -> bool:
        """Try to make `i` a member of the clusters of its users. Returns True if nothing needs it stored."""
        users = self.users[i]
        if i.opcode in PRODUCTS:
            return self._join_product(i)
        if i.opcode not in PRODUCERS or not users or not self._free(i) or not _may_be_computed_again(i):
            return False
        if i in self.parts or _is_view(i, users):
            return False
        trivial = _trivial(i)
        groups, stored = self._groups(i, users)
        if stored and not trivial:
            return False
        if len(groups) > 1 and self._ends_reduction(i):
            return False
        wanted = {c: c.tokens_of(i, members) for c, members in groups.items()}
        accepted = {c: t for c, t in wanted.items() if self._fits(c, i, t)}
        if trivial:
            stored = stored or len(accepted) < len(wanted)
        elif len(accepted) < len(wanted) or not self._pays(i, accepted):
            return False
        for cluster, tokens in accepted.items():
            cluster.add(i, tokens)
            self.homes.setdefault(i, []).append(cluster)
        return not stored

    def _groups(self, i: Instruction, users: Sequence[Instruction]) -> tuple[dict[Cluster, list[Instruction]], bool]:
        """({cluster that may compute `i`: users in it}, whether another user needs `i` stored)."""
        # products read their operands from memory
        products = {c for u in users if u.opcode in PRODUCTS for c in self.homes.get(u, ())}
        groups: dict[Cluster, list[Instruction]] = {}
        stored = i is self.computation.root
        for user in users:
            alone = True
            for cluster in self.homes.get(user, ()):
                if cluster in products:
                    continue
                alone = False
                if cluster.root is user and not (_reads_by_element(user, i) and self._may_wait(user, i)):
                    stored = True
                else:
                    groups.setdefault(cluster, []).append(user)
            stored = stored or alone
        return groups, stored

    def _may_wait(self, root: Instruction, i: Instruction) -> bool:
        """Whether `i` is cheap or small, or not in a chain along memory whose results wait for one another."""
        if root.opcode is not Op.REDUCE_WINDOW or i.shape.size <= CHAINED:
            return True
        run = running(root)
        if run is None or run.dimension != root.operands[0].shape.minor_to_major[0]:
            return True
        cost, expensive = self.cones[i]
        return cost <= CHEAP_CONE and not expensive

    def _join_product(self, i: Instruction) -> bool:
        """`_join` for a dot or convolution, whose cluster then is its epilogue."""
        users = self.users[i]
        clusters = {c for user in users for c in self.homes.get(user, ())}
        if len(clusters) != 1 or not self._free(i) or i is self.computation.root:
            return False
        (cluster,) = clusters
        if not all(user in cluster.members for user in users):
            return False
        tokens = cluster.tokens_of(i, list(users))
        if not takes_product(cluster, i, tokens) or not self._fits(cluster, i, tokens):
            return False
        cluster.add(i, tokens)
        self.homes.setdefault(i, []).append(cluster)
        return True

    def _free(self, i: Instruction) -> bool:
        return (
            i.shape.is_array
            and not i.shape.is_dynamic
            and i.name not in self.pinned
            and CONTROL_PREDECESSORS not in i.attributes
        )

    def _ends_reduction(self, i: Instruction) -> bool:
        """Whether `i` ends a chain of elementwise ops on a reduction that nothing else reads.

        The reduction is stored in any case, so the end of the chain is stored in its place.
        """
        while i.opcode in ELEMENTWISE:
            above = [o for o in i.operands if o.shape.dims == i.shape.dims and self.users[o] == (i,)]
            if any(o.opcode is Op.REDUCE for o in above):
                return True
            inner = [o for o in above if o.opcode in ELEMENTWISE]
            if len(inner) != 1:
                return False
            i = inner[0]
        return False

    def _fits(self, cluster: Cluster, i: Instruction, tokens: Tokens) -> bool:
        if not self.reading.allows(cluster.root, i):
            return False
        grows = len(tokens) if code_size(i) else 0
        if len(tokens) > MOST_TOKENS or (grows and cluster.code + grows > MOST_CODE):
            return False
        if cluster.root.opcode in (Op.REDUCE, Op.REDUCE_WINDOW) and mixes_orders(i):
            return False
        joined = [m for m in cluster.members if m.opcode is Op.CONCATENATE] if self._chooses(i) else []
        if joined and not (_is_small_stack(i) and all(self._indexes(m) for m in joined)):
            return False
        inputs = cluster.inputs.union(o for o in i.operands if o not in cluster.members)
        return (
            len(inputs) - 1 <= MOST_OPERANDS
            or sum(1 for o in inputs if o is not i and not _is_free(o)) <= MOST_OPERANDS
        )

    def _chooses(self, i: Instruction) -> bool:
        """Whether each of many elements is that of one of several values, not of one value at a place that is
        chosen.
        """
        if i.opcode is not Op.CONCATENATE or i.shape.size <= CHOSEN or self._indexes(i):
            return False
        return len({o.operands[0] if o.opcode is Op.SLICE else o for o in i.operands}) > 1

    def _indexes(self, i: Instruction) -> bool:
        """Whether a concatenation only joins index vectors, whose components are read at known places."""
        return all(
            u.opcode is Op.GATHER and u.operands[1] is i and u.attributes["index_vector_dim"] == i.dimensions[0]
            for u in self.users[i]
        )

    def _pays(self, i: Instruction, clusters: dict[Cluster, Tokens]) -> bool:
        """Whether computing `i` in all these kernels is cheaper than storing it."""
        repeated = (sum(sum(t.values()) for t in clusters.values()) - i.shape.size) * weight(i)
        if len(clusters) <= 2 and repeated <= SMALL_WORK:
            return True
        if len(clusters) > 1 and repeated > 0:
            cost, expensive = self.cones[i]
            if len(clusters) > MOST_DUPLICATES or cost > CHEAP_CONE or expensive:
                return False
        if repeated <= TINY_WORK:
            return True
        if weight(i) > 1:
            return repeated <= 0.05 * i.shape.size * weight(i)
        return all(
            c.reuse + max(0.0, sum(t.values()) - i.shape.size) <= MOST_REUSE * max(root_tokens(c.root)["root"], 1.0)
            for c, t in clusters.items()
        )

    def _store(self, i: Instruction) -> None:
        """Make `i` the root of a cluster, if it may be one. Aliases cost nothing and stay outside."""
        if i.opcode not in ROOTS or is_alias(i) or not self._free_root(i):
            return
        cluster = Cluster(i)
        cluster.add(i, root_tokens(i))
        self.clusters[i] = cluster
        self.homes[i] = [*self.homes.get(i, ()), cluster]

    def _free_root(self, i: Instruction) -> bool:
        arrays = i.shape.is_array or i.opcode in (Op.REDUCE, Op.REDUCE_WINDOW, Op.SCATTER, Op.SORT)
        return (
            arrays
            and not i.shape.is_dynamic
            and not any(o.shape.is_dynamic for o in i.operands)
            and CONTROL_PREDECESSORS not in i.attributes
            and i.name not in self.pinned
        )


def _reads_by_element(root: Instruction, producer: Instruction) -> bool:
    """Whether a cluster's root can use the producer's elements as they are computed."""
    if root.opcode is Op.DYNAMIC_UPDATE_SLICE:
        starts = root.operands[:1]
    elif root.opcode is Op.SCATTER:
        starts = root.operands[: len(root.operands) // 2]
    else:
        return True
    alone = len(starts) == 1 and producer.opcode in ELEMENTWISE
    return producer not in starts or alone or _trivial(producer)


def _is_free(i: Instruction) -> bool:
    """Whether a kernel reads nothing for a value, nor computes it: a scalar constant, or that for every element."""
    constant = i.operands[0] if i.opcode is Op.BROADCAST else i
    return constant.opcode is Op.CONSTANT and not constant.shape.dims


def _trivial(i: Instruction) -> bool:
    """Whether an op is always cheaper to compute than to read from memory."""
    return i.opcode in (Op.BROADCAST, Op.IOTA) or (i.opcode is Op.CONSTANT and not i.shape.dims)


def _may_be_computed_again(i: Instruction) -> bool:
    """Whether an op may be evaluated element by element inside another kernel."""
    if i.opcode is Op.CONSTANT:
        return not i.shape.dims and i.shape.is_array
    if i.opcode is Op.BITCAST_CONVERT:
        return i.shape.dims == i.operands[0].shape.dims
    if i.opcode is Op.BITCAST and changes_elements(i):
        return False
    if i.opcode in (Op.TRANSPOSE, Op.COPY) and i.shape.size > LARGE_TRANSPOSE:
        return _keeps_neighbours(i)
    return not any(o.shape.is_dynamic for o in i.operands)


def _keeps_neighbours(i: Instruction) -> bool:
    """Whether a transpose, or a copy that may change the layout, leaves the elements of a row side by side."""
    source = i.operands[0].shape
    if i.opcode is Op.TRANSPOSE:
        return bool(i.shape.rank) and i.shape.minor_to_major[0] == i.dimensions.index(source.minor_to_major[0])
    return not i.shape.is_array or fastest(i.shape) == fastest(source)


def _is_view(i: Instruction, users: Sequence[Instruction]) -> bool:
    """Whether `i` is another shape of what is in memory, and large transposes read it: as a part of their kernel, it
    would keep them from being blocks of a matrix.
    """
    if i.opcode not in (Op.RESHAPE, Op.BITCAST) or not is_alias(i):
        return False
    (source,) = i.operands
    stored = source.opcode not in PRODUCERS or not _may_be_computed_again(source)
    return stored and all(u.opcode is Op.TRANSPOSE and u.shape.size > LARGE_TRANSPOSE for u in users)


def _expands(i: Instruction) -> bool:
    """Whether `i` repeats an array, so that its operand should be stored rather than `i`."""
    return i.opcode is Op.BROADCAST and i.shape.size >= 2 * i.operands[0].shape.size


def _cones(computation: Computation) -> dict[Instruction, tuple[int, bool]]:
    """Per instruction: (number of cheap operations it needs, itself included; whether expensive ones feed them)."""
    cones: dict[Instruction, frozenset[Instruction] | None] = {}  # None: more than CHEAP_CONE
    result: dict[Instruction, tuple[int, bool]] = {}
    nothing: frozenset[Instruction] = frozenset()
    for i in computation.instructions:
        if i.opcode not in PRODUCERS:
            cones[i], result[i] = nothing, (0, False)
            continue
        if weight(i) > 1:
            cones[i], result[i] = nothing, (weight(i), True)
            continue
        cone: frozenset[Instruction] | None = frozenset([i]) if weight(i) else nothing
        for o in i.operands:
            above = cones[o]
            cone = None if cone is None or above is None or len(cone) > CHEAP_CONE else cone | above
        expensive = any(result[o][1] and o.shape.size > 1 for o in i.operands) and not _expands(i)
        cones[i], result[i] = cone, (CHEAP_CONE + 1 if cone is None else len(cone), expensive)
    return result


def _is_small_stack(i: Instruction) -> bool:
    """Whether a concatenation is of so few arrays of one place each that an element costs little more than a choice."""
    return len(i.operands) <= STACKED and all(o.shape.dims[i.dimensions[0]] == 1 for o in i.operands)
