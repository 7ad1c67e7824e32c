"""Replace dynamic dimensions: arrays get their bounds as dimensions, and present sizes become s32 scalars beside them.

A value with sizes crosses the border of a computation as a tuple (value, sizes…). Entry parameters and results do the
same; the module's frontend attributes list their sizes for the caller (hlo/dynamic_border.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...hlo.attributes import Raw
from ...hlo.dtypes import DType
from ...hlo.dynamic_border import PARAMETERS, RESULTS
from ...hlo.errors import UnsupportedError
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opclasses import CONTROL, branches
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ...hlo.shapes import Shape, array, tuple_shape
from ..building import Builder
from ..fusion.unfuse import take_apart
from ..rewriting import Names, callees_first, rename_predecessors, with_attributes
from .sizes import ALWAYS, RULES, SIZED_TARGETS, SOURCES
from .values import Key, Sized, static

S32 = array(DType.S32)


def pad_dynamic(module: Module) -> Module:
    """Replace dynamic dimensions by static ones at their bounds, with the present sizes as scalars beside them.

    Raises UnsupportedError for an op that has no rule for dynamic sizes.
    """
    instructions = module.instructions()
    if module.opcodes.isdisjoint(ALWAYS) and not any(i.shape.is_dynamic or _makes_sizes(i) for i in instructions):
        return module
    module = take_apart(module, _is_dynamic_fusion)
    padder = _Padder(Names.of(module))
    entry, attributes = padder.entry(module.entry)
    kept = {k: v for k, v in module.attributes.items() if k != "frontend_attributes"}
    if attributes:
        for stale in ("entry_computation_layout", "input_output_alias", "buffer_donor"):
            kept.pop(stale, None)
    text = _merged(getattr(module.attributes.get("frontend_attributes"), "text", ""), attributes)
    if text:
        kept["frontend_attributes"] = Raw(text)
    return Module(module.name, callees_first(entry), entry, kept)


def _is_dynamic_fusion(i: Instruction) -> bool:
    return i.opcode is Op.FUSION and any(
        o.shape.is_dynamic or o.opcode in ALWAYS for o in (i, *i.operands, *i.called()[0].instructions)
    )


def _merged(text: str, attributes: Mapping[str, str]) -> str:
    """The text of the frontend attributes with further ones added."""
    parts = [text.strip()[1:-1].strip()] if text else []
    parts += [f'{key}="{value}"' for key, value in attributes.items()]
    inner = ",".join(p for p in parts if p)
    return f"{{{inner}}}" if inner else ""


def _keys(shape: Shape) -> list[Key]:
    """The dimensions that a shape declares dynamic."""
    return [(path, d) for path, leaf in shape.leaves() for d, dynamic in enumerate(leaf.dynamic) if dynamic]


def _together(*several: Iterable[Key]) -> list[Key]:
    """The union of keys, sorted."""
    return sorted({key for keys in several for key in keys})


def _carried(shape: Shape, keys: Sequence[Key]) -> Shape:
    """The shape of a value at the border of a computation: its static shape, or a tuple of that and its sizes."""
    return tuple_shape(static(shape), *(S32 for _ in keys)) if keys else static(shape)


class _Padder:
    def __init__(self, names: Names):
        self.names, self.renamed = names, dict[str, str]()

    def entry(self, old: Computation) -> tuple[Computation, dict[str, str]]:
        b = Builder(self.names, "sizes")
        many, values, noted = len(old.parameters), {}, []
        first = leaf = 0
        total = sum(s.is_array for p in old.parameters for _, s in p.shape.leaves())
        for p in old.parameters:
            made, sizes = b.add(p.replace(shape=static(p.shape))), {}
            for path, shape in p.shape.leaves():
                for d in (d for d, dynamic in enumerate(shape.dynamic) if dynamic):
                    sizes[path, d] = b.op(Op.PARAMETER, S32, parameter_number=many + first)
                    noted.append(f"{leaf}.{d}:{total + first}")
                    first += 1
                leaf += shape.is_array
            values[p] = Sized(made, sizes)
        result = self.body(b, old, values)
        taken = self._result(b, result)
        attributes = {PARAMETERS: " ".join(noted)} if noted else {}
        if taken:
            attributes[RESULTS] = taken
        root = b.instructions[-1] if taken else result.value
        return Computation(old.name, tuple(b.instructions), root, old.attributes), attributes

    def _result(self, b: Builder, result: Sized) -> str:
        """Append the sizes to the result. Returns the attribute text that lists them."""
        paths = [path for path, s in result.value.shape.leaves() if s.is_array]
        keys = [k for k in result.sizes if k[0] in paths]
        if not keys:
            return ""
        b.tuple([result.value, *(result.sizes[k] for k in keys)])
        return " ".join(f"{paths.index(path)}.{d}:{len(paths) + n}" for n, (path, d) in enumerate(keys))

    def callee(self, old: Computation, keys: Sequence[Key]) -> _Callee:
        """A body, condition or branch under construction, whose parameter has these sizes."""
        b = Builder(self.names, "sizes")
        (p,) = old.parameters
        whole = b.add(p.replace(shape=_carried(p.shape, keys)))
        return _Callee(old, b, self.body(b, old, {p: _received(b, whole, keys)}))

    def body(self, b: Builder, old: Computation, values: dict[Instruction, Sized]) -> Sized:
        """Add all instructions to the builder. Returns the root with its sizes."""
        for i in old.instructions:
            if i not in values:
                b.stem, b.location = i.name, i.location
                values[i] = self.instruction(i, b, [values[o] for o in i.operands])
                self.renamed[i.name] = values[i].value.name
        return values[old.root]

    def instruction(self, i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
        if i.opcode in CONTROL:
            return self.control(i, b, xs)
        sized = any(x.sizes for x in xs)
        rule = RULES.get(i.opcode)
        if not sized and i.opcode not in ALWAYS and not _makes_sizes(i):
            if i.shape.is_dynamic and (rule is None or i.opcode is Op.CUSTOM_CALL) and i.opcode not in SOURCES:
                raise _unsupported(i)
            made = i.replace(operands=tuple(x.value for x in xs), shape=static(i.shape))
            return Sized(b.add(rename_predecessors(made, self.renamed)), {})
        result = rule(i, b, xs) if rule is not None else None
        if result is None:
            raise _unsupported(i)
        return result

    def control(self, i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
        return self.loop(i, b, xs[0]) if i.opcode is Op.WHILE else self.conditional(i, b, xs)

    def loop(self, i: Instruction, b: Builder, x: Sized) -> Sized:
        """Carry in the state every size that it has at the start or that an iteration gives it."""
        condition, body = i.attributes["condition"], i.attributes["body"]
        keys = _together(_keys(i.shape), _keys(body.parameters[0].shape), x.sizes)
        while True:
            iteration = self.callee(body, keys)
            more = _together(keys, iteration.root.sizes)
            if more == keys:
                break
            keys = more
        changed = {"condition": self.callee(condition, keys).closed(()), "body": iteration.closed(keys)}
        start = _sent(b, x, keys)
        made = with_attributes(i, **changed).replace(operands=(start,), shape=_carried(i.shape, keys))
        return _received(b, b.add(made), keys)

    def conditional(self, i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
        taken = [_together(_keys(c.parameters[0].shape), x.sizes) for x, c in zip(xs[1:], branches(i), strict=True)]
        arguments = [_sent(b, x, keys) for x, keys in zip(xs[1:], taken, strict=True)]
        made = [self.callee(c, keys) for c, keys in zip(branches(i), taken, strict=True)]
        keys = _together(_keys(i.shape), *(c.root.sizes for c in made))
        new = tuple(c.closed(keys) for c in made)
        pair = {"true_computation": new[0], "false_computation": new[-1]}
        listed = {"branch_computations": new} if "branch_computations" in i.attributes else pair
        changed = with_attributes(i, **listed)
        shape = _carried(i.shape, keys)
        return _received(b, b.add(changed.replace(operands=(xs[0].value, *arguments), shape=shape)), keys)


@dataclass(frozen=True)
class _Callee:
    """A computation under construction: everything except its final result tuple."""

    old: Computation
    builder: Builder
    root: Sized

    def closed(self, keys: Sequence[Key]) -> Computation:
        """The computation, with these sizes appended to its result."""
        root = _sent(self.builder, self.root, keys)
        return Computation(self.old.name, tuple(self.builder.instructions), root, self.old.attributes)


def _received(b: Builder, whole: Instruction, keys: Sequence[Key]) -> Sized:
    if not keys:
        return Sized(whole, {})
    value, *sizes = b.elements(whole)
    return Sized(value, dict(zip(keys, sizes, strict=True)))


def _sent(b: Builder, x: Sized, keys: Sequence[Key]) -> Instruction:
    if not keys:
        return x.value
    sizes = [x.sizes.get(k) or b.constant(x.value.shape.at(k[0]).dims[k[1]], DType.S32) for k in keys]
    return b.tuple([x.value, *sizes])


def _makes_sizes(i: Instruction) -> bool:
    return i.opcode is Op.CUSTOM_CALL and i.attributes["custom_call_target"] in SIZED_TARGETS


def _unsupported(i: Instruction) -> UnsupportedError:
    return UnsupportedError(
        "pad-dynamic",
        f"dynamic dimensions ({i.opcode.value})",
        location=i.location,
        remedy=f"give every dimension a fixed size, or add a rule for {i.opcode!r} in passes/dynamic/",
    )
