"""How pictures of graphs look unless the user says otherwise: colours, light and dark, depth and number of boxes."""

from __future__ import annotations

from dataclasses import dataclass

THEMES = ("auto", "light", "dark")
"""auto: an SVG follows its reader's preference; other pictures are light."""


FOLDS = ("auto", "scopes", "kernels", "runs")
"""auto: scopes where the module names at least two of them, else runs, of what is too large for boxes of its own."""

DEPTH, LIMIT = 8, 250
"""How deep computations nest in a picture, and how many boxes it has, unless the user says otherwise."""


@dataclass(frozen=True)
class Theme:
    """page, text, line: of the background, of words, of edges and frames. boxes: fill by kind. groups: the same."""

    page: str
    text: str
    line: str
    call: str
    boxes: dict[str, str]
    groups: dict[str, str]


LIGHT = Theme(
    page="#ffffff",
    text="#1b1f24",
    line="#6e7781",
    call="#a475f9",
    boxes={
        "plain": "#f2f4f6",
        "input": "#fff3cc",
        "product": "#cfe3ff",
        "fold": "#e6dcfb",
        "call": "#d3f3dc",
        "folded": "#ffdfd2",
    },
    groups={"computation": "#fbfcfd", "fusion": "#eef6ee"},
)
DARK = Theme(
    page="#14181d",
    text="#e6edf3",
    line="#8b949e",
    call="#b392f0",
    boxes={
        "plain": "#2a3038",
        "input": "#4a3f14",
        "product": "#16406e",
        "fold": "#43306b",
        "call": "#1c4a2b",
        "folded": "#5e3222",
    },
    groups={"computation": "#1a1f26", "fusion": "#1d2b22"},
)


def theme_of(name: str) -> Theme:
    """The colours of a name in THEMES, in which `auto` begins as light."""
    return DARK if name == "dark" else LIGHT


def dark_css() -> str:
    """Rules that make a picture dark, drawn light by Graphviz or by us, for a reader who prefers that."""
    rules = [
        f".graph>polygon,.page{{fill:{DARK.page}}}",
        f"text{{fill:{DARK.text}}}",
        f".node path,.node polygon,.node rect,.cluster path,.cluster polygon{{stroke:{DARK.line}}}",
        f".edge path{{stroke:{DARK.line}}}.edge polygon{{fill:{DARK.line};stroke:{DARK.line}}}",
        f".edge.iscall path{{stroke:{DARK.call}}}.edge.iscall polygon{{fill:{DARK.call};stroke:{DARK.call}}}",
        *(f".k-{kind} path,.k-{kind} polygon,.k-{kind} rect{{fill:{fill}}}" for kind, fill in DARK.boxes.items()),
        *(f".g-{kind}>path,.g-{kind}>polygon,.g-{kind}>rect{{fill:{fill}}}" for kind, fill in DARK.groups.items()),
    ]
    return f"@media (prefers-color-scheme:dark){{{''.join(rules)}}}"
