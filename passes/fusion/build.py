"""Turn clusters into `fusion` instructions, each with its own computation."""

from __future__ import annotations

from collections.abc import Mapping

from ...hlo.ir import Computation, Instruction
from ...hlo.opclasses import COSMETIC_ATTRIBUTES
from ...hlo.opcodes import Op
from ..rewriting import Names
from .cost import Cluster
from .epilogue import PRODUCTS

_QUIET = frozenset({Op.PARAMETER, Op.CONSTANT, Op.BROADCAST, Op.RESHAPE, Op.BITCAST, Op.CONVERT})


def build_fusions(computation: Computation, clusters: Mapping[Instruction, Cluster], names: Names) -> Computation:
    """Replace each cluster of several members by one fusion, and drop instructions that nothing else needs."""
    real = {root: c for root, c in clusters.items() if len(c.members) > 1}
    if not real:
        return computation
    needed = _needed(computation, real)
    position = {i: n for n, i in enumerate(computation.instructions)}
    new: dict[Instruction, Instruction] = {}
    for old in computation.instructions:
        if old not in needed:
            continue
        if old in real:
            new[old] = _fusion(real[old], new, names, position)
        else:
            operands = tuple(new[o] for o in old.operands)
            new[old] = old if operands == old.operands else old.replace(operands=operands)
    return Computation(computation.name, tuple(new.values()), new[computation.root], computation.attributes)


def _needed(computation: Computation, clusters: Mapping[Instruction, Cluster]) -> set[Instruction]:
    """The instructions that must still be stored: everything reachable from instructions that are not only members."""
    inside = {m for c in clusters.values() for m in c.members}
    needed = {i for i in computation.instructions if i not in inside or i in clusters or i is computation.root}
    stack = list(needed)
    while stack:
        i = stack.pop()
        reads = clusters[i].inputs if i in clusters else i.operands
        for o in reads:
            if o not in needed:
                needed.add(o)
                stack.append(o)
    return needed


def _fusion(
    cluster: Cluster, new: Mapping[Instruction, Instruction], names: Names, position: Mapping[Instruction, int]
) -> Instruction:
    inner: dict[Instruction, Instruction] = {}
    operands: list[Instruction] = []
    parameters: list[Instruction] = []
    body: list[Instruction] = []
    for old in sorted(cluster.members, key=position.__getitem__):
        for o in old.operands:
            if o not in inner:
                number = len(operands)
                operands.append(new[o])
                inner[o] = Instruction(
                    Op.PARAMETER, names.fresh(f"param_{number}"), new[o].shape, (), {"parameter_number": number}
                )
                parameters.append(inner[o])
        inner[old] = old.replace(name=names.fresh(old.name), operands=tuple(inner[o] for o in old.operands))
        body.append(inner[old])
    name = names.fresh(_name(cluster, position))
    called = Computation(names.fresh(f"{name}_computation"), tuple(parameters + body), inner[cluster.root])
    product = any(m.opcode in PRODUCTS for m in cluster.members)
    kind = "kOutput" if product else "kInput" if cluster.root.opcode is Op.REDUCE else "kLoop"
    attributes = {"kind": kind, "calls": called}
    attributes |= {k: v for k, v in cluster.root.attributes.items() if k in COSMETIC_ATTRIBUTES and k == "metadata"}
    return Instruction(Op.FUSION, name, cluster.root.shape, tuple(operands), attributes, cluster.root.location)


def _name(cluster: Cluster, position: Mapping[Instruction, int]) -> str:
    """A name from up to three characteristic opcodes, in order of computation, as in `multiply_add_fusion`."""
    telling = [
        m for m in sorted(cluster.members, key=position.__getitem__) if m.opcode not in _QUIET or m is cluster.root
    ]
    words = [m.opcode.value.replace("-", "_") for m in telling[-3:]]
    return "_".join(dict.fromkeys(words)) + "_fusion"
