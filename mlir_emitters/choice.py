"""The only place that decides how a kernel is emitted: it asks the forms of forms.py in their order, and keeps what
they answer. Choosing builds no IR.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any

from ..codegen.forms import ChosenForms, Declined
from ..codegen.forms import Part as ToldPart
from ..hlo.dtypes import DType
from ..hlo.errors import UnsupportedError
from ..hlo.opclasses import EXPENSIVE
from ..hlo.opcodes import Op
from ..hlo.records import dataclass, replace
from .core.access import AccessMap
from .core.facts import Code
from .core.graph import Buffer, Node, origin, reachable
from .forms import FORMS, GROUPS, NESTS, PRODUCTS, ROOT_FORMS, ROWS
from .loops.form import Fits, Form
from .loops.row_graph import RowGraph, rows_of
from .loops.view import Subject, View
from .products.element_code import code_of, ways_of
from .reductions.results import alike, products_of, products_or_why
from .roots import why_not_apart
from .rows.rows_abreast import only_reduction
from .sorts.sort import uncut


@dataclass(frozen=True, slots=True)
class Part:
    """Results that a form emits together. declined: the forms before it in the table, and why they do not fit."""

    form: Form
    subject: Subject
    fits: Fits
    declined: tuple[Declined, ...]

    @property
    def elements(self) -> Iterator[Node]:
        """What is computed element by element where it is read. Rows say themselves what of them is."""
        subject = self.subject
        if isinstance(subject.rows, RowGraph):
            return iter(())
        return reachable(subject.results if subject.is_nest else subject.node.inputs)


@dataclass(frozen=True, slots=True)
class Choice:
    """How a kernel is emitted: its parts in the order of their emission. ranged: whether its loops run over steps;
    passes: the list of LLVM's passes that it wants (full, glue, lean).
    """

    parts: tuple[Part, ...]
    ranged: bool
    passes: str

    def told(self, view: View) -> ChosenForms:
        """As plain values, for reports."""
        numbers = {result: n for n, result in enumerate(view.results)}
        parts = []
        for part in self.parts:
            results = tuple(numbers[r] for r in part.subject.results)
            parameters = told_of(part.fits.parameters) + ways_of(view.facts, part.elements)
            parts.append(ToldPart(part.form.name, results, parameters, part.declined))
        return ChosenForms(tuple(parts), self.ranged, self.passes)


def choose(view: View) -> Choice:
    """With a partition, if the loops of all parts can run over its steps; else without."""
    if view.partition is not None:
        choice = _chosen(view)
        if choice.ranged:
            return choice
    return _chosen(replace(view, partition=None))


def choose_for_group(view: View) -> Part | None:
    """The form in which groups of a device's items compute a kernel; None if they cannot."""
    if not all(result.shape.size for result in view.results):
        return None
    rows = rows_of(view.results, single=True)
    groups = alike(view.results) if isinstance(rows, str) else []
    products = products_of(groups[0]) if len(groups) == 1 else []
    reads = AccessMap.of(groups[0] if len(groups) == 1 else ())
    subject = Subject(view.results, products=tuple(products), rows=rows, reads=reads)
    return _Asked(view).part(GROUPS, subject) if len(groups) == 1 or isinstance(rows, RowGraph) else None


def _chosen(view: View) -> Choice:
    asked = _Asked(view)
    rows = asked.part(ROWS, Subject(view.results, rows=_rows_of(view.results)))
    if rows is not None:
        ranged = view.partition is not None and rows.fits.in_steps
        return Choice((rows,), ranged, _passes_of(rows.fits.code))
    parts = _parts_of(view, asked)
    ranged = view.partition is not None and all(part.fits.in_steps for part in parts)
    passes = _passes_of(_code_of(view, parts)) if _is_light(view.results) else "full"
    return Choice(tuple(parts), ranged, passes)


def _code_of(view: View, parts: Sequence[Part]) -> Code:
    """Of the parts, and of the elements that they read."""
    code = Code()
    for part in parts:
        code |= part.fits.code | code_of(view.facts, part.elements)
    return code


def _rows_of(results: Sequence[Buffer]) -> RowGraph | str:
    """The rows of a row kernel, or of a single reduction."""
    rows = rows_of(results)
    single = rows_of(results, single=True) if isinstance(rows, str) and only_reduction(results) else rows
    return rows if isinstance(single, str) else single


def _parts_of(view: View, asked: _Asked) -> list[Part]:
    """The products, then roots with loops of their own, then nests over what is left, by shape and layout."""
    parts = list(_products(view, asked))
    done = {result for part in parts for result in part.subject.results}
    nests: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Buffer]] = {}
    special: dict[Node, list[tuple[Buffer, Buffer]]] = {}
    for result in view.results:
        if result.writer is None or not result.shape.size or result in done:
            continue
        source = uncut(origin(result))
        root, why = source.writer, why_not_apart(view.facts, source.writer, result, view.results)
        if root is not None and why is None:
            special.setdefault(root, []).append((source, result))
        else:
            asked.decline(ROOT_FORMS.get(root.opcode, ()) if root else (), [result], why or "")
            nests.setdefault((result.dims, result.strides), []).append(result)
    for root, targets in special.items():
        sources, results = zip(*targets, strict=True)
        part = asked.part(ROOT_FORMS[root.opcode], Subject(results, root, sources))
        if part is not None:
            parts.append(part)
        for result in () if part is not None else results:
            nests.setdefault((result.dims, result.strides), []).append(result)
    return parts + [asked.nest(Subject(tuple(group), reads=AccessMap.of(group))) for group in nests.values()]


def _products(view: View, asked: _Asked) -> Iterable[Part]:
    """The parts that follow a product through elementwise ops. A dot that is a result itself is a root."""
    for group in alike(view.results):
        products = products_or_why(group)
        if view.facts.by_element and products:
            products = "elements are computed each by itself"
        if isinstance(products, str):
            inside = {node.opcode for node in reachable(group)}
            asked.decline([form for form in PRODUCTS if form.opcode in inside], group, products)
            continue
        bare = len(group) == 1 and products and origin(group[0]).writer is products[0]
        if products and not (bare and products[0].opcode is Op.DOT):
            part = asked.part(PRODUCTS, Subject(tuple(group), products=tuple(products)))
            if part is not None:
                yield part


class _Asked:
    """The forms of one kernel's results, and what each answered."""

    def __init__(self, view: View):
        self.view = view
        self.reasons: dict[tuple[str, Buffer], str] = {}

    def part(self, forms: Sequence[Form], subject: Subject) -> Part | None:
        """The first of some forms that fits."""
        for form in forms:
            off = form.name in self.view.facts.without
            answer = "it is switched off" if off else form.answer(self.view, subject)
            if isinstance(answer, Fits):
                return Part(form, subject, answer, self.declined(form, subject))
            self.decline([form], subject.results, answer)
        return None

    def nest(self, subject: Subject) -> Part:
        found = self.part(NESTS, subject)
        if found is None:  # the last nest fits all, unless it is switched off
            off = ", ".join(sorted(self.view.facts.without))
            what = f"a kernel without the forms {off}"
            raise UnsupportedError("mlir_emitters", what, remedy="leave one that fits switched on")
        return found

    def decline(self, forms: Iterable[Form], results: Iterable[Buffer], reason: str) -> None:
        for form in forms:
            self.reasons |= {(form.name, result): reason for result in results}

    def declined(self, chosen: Form, subject: Subject) -> tuple[Declined, ...]:
        """Each form before it in the table, with its reason, or the one of forms that are for other roots."""
        before = FORMS[: FORMS.index(chosen)]
        return tuple(Declined(f.name, self.reasons.get((f.name, subject.first), f.other)) for f in before)


def _is_light(results: Sequence[Buffer]) -> bool:
    """Whether a product is followed by no more than a few cheap operations on each of its elements."""
    nodes = list(reachable(results))
    return (
        len(nodes) <= MAXIMUM_LIGHT_OPERATIONS
        and not any(n.opcode in EXPENSIVE for n in nodes)
        and len(alike(results)) == 1
    )


MAXIMUM_LIGHT_OPERATIONS = 12
"""Operations of a kernel for whose short loops LLVM does less, at most."""


def _passes_of(code: Code) -> str:
    return "glue" if code.shares and not code.walks else "lean" if code.lean else "full"


def told_of(parameters: Any) -> tuple[tuple[str, str], ...]:
    """Names and values of those parameters that are numbers, names, or such in turn; flags only where they are set."""
    if (text := _text(parameters)) is not None:
        return (("value", text),)
    if hasattr(parameters, "told"):
        return tuple(parameters.told)
    found: list[tuple[str, str]] = []
    for name in () if isinstance(parameters, (Buffer, Node)) else getattr(parameters, "__match_args__", ()):
        value = getattr(parameters, name)
        text = _text(value)
        found += [(name, text)] if text is not None else [(f"{name}.{n}", inner) for n, inner in told_of(value)]
    return tuple(found)


def _text(value: Any) -> str | None:
    if isinstance(value, Enum):
        return str(value.value) if isinstance(value, DType) else value.name.lower()
    if isinstance(value, bool):
        return "yes" if value else None
    if isinstance(value, (int, str)):
        return str(value)
    if isinstance(value, tuple) and value and all(isinstance(x, int) for x in value):
        return "x".join(map(str, value))
    return None
