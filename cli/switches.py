"""`--without-form` and `--without-rewrite`: single forms of the stacks, and single rewrites of passes, left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..differential.setting import Setting


def switch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--without-form and --without-rewrite."""
    for option in (
        click.option(
            "--without-rewrite",
            multiple=True,
            metavar="NAME",
            help="Leave out a pass, or a kind of its rewrites (algebra/add_zero, simplify/reshape). May be repeated.",
        ),
        click.option(
            "--without-form",
            multiple=True,
            metavar="[STACK:]FORM",
            help="Decline a form (dot/tiled, legacy:dot/tiled), so that the next one in the table is taken. May be "
            "repeated.",
        ),
    ):
        command = option(command)
    return command


def switched(setting: Setting, forms: tuple[str, ...], rewrites: tuple[str, ...]) -> Setting:
    """The setting with more switched off. Raises click.UsageError and InputError for unknown names."""
    from ..passes.rewrites import checked

    return replace(
        setting,
        without_forms=tuple(dict.fromkeys((*setting.without_forms, *(f for name in forms for f in forms_named(name))))),
        without_rewrites=tuple(dict.fromkeys((*setting.without_rewrites, *checked(rewrites)))),
    )


def forms_named(text: str) -> list[str]:
    """`stack:form` for each stack that has the form."""
    import difflib

    from ..migration.forms import form_tables

    stack, colon, name = text.rpartition(":")
    known = {f"{room}:{form.name}" for room, table in form_tables().items() for form in table}
    found = sorted(form for form in known if form == text or (not colon and form.partition(":")[2] == name))
    if not found:
        names = sorted(known if stack else {form.partition(":")[2] for form in known})
        near = difflib.get_close_matches(text, names, 1)
        hint = f"did you mean {near[0]!r}?" if near else "testbed forms lists them"
        raise click.UsageError(f"--without-form: no form named {text!r} ({hint})")
    return found
