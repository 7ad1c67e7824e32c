"""The forms of a kernel as lines of text: what `testbed forms` prints and a stage's file holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .forms import ChosenForms


def form_lines(kernel: str, stack: str, forms: ChosenForms | None, brief: bool = False) -> Iterator[str]:
    """forms: None where the stack does not say. brief: without parameters and reasons."""
    if forms is None:
        yield f"{kernel}  {stack}  (the stack does not say)"
        return
    how = ", ".join(filter(None, ("split" if forms.ranged else "", f"{forms.passes} passes")))
    yield f"{kernel}  {stack}  {' + '.join(forms.names)}  ({how})"
    for part in () if brief else forms.parts:
        given = ", ".join(f"{name} {value}" for name, value in part.parameters)
        yield f"  results {', '.join(map(str, part.results))}: {part.form}"
        if given:
            yield f"    {given}"
        for declined in part.declined:
            yield f"    not {declined.form}: {declined.reason}"


def forms_text(stack: str, forms: Mapping[str, ChosenForms]) -> str:
    """Of all kernels that a stack has emitted."""
    return "\n".join(line for kernel, chosen in forms.items() for line in form_lines(kernel, stack, chosen)) + "\n"
