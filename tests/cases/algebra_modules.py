"""Modules in which a given rule of the optimiser matches, and inputs that incorrect rules often get wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ...formats.program import parameter_leaves
from ...hlo.dtypes import BY_NAME, DType
from ...hlo.ir import Module
from .algebra_template import TYPES, Template
from .algebra_templates import TEMPLATES

BINARY = """{op} {{
  a = S parameter(0)
  c = S parameter(1)
  ROOT r = S {op}(a, c) }}
"""

LESS = """less {{
  a = S parameter(0)
  c = S parameter(1)
{more}  ROOT r = pred[] compare(a, c), direction=LT }}
"""

PAIRS = """{name} {{
  a = S parameter(0)
  c = S parameter(1)
  d = S parameter(2)
  e = S parameter(3)
  s = S add({summed})
  m = S {other}
  ROOT r = (S, S) tuple(s, m) }}
"""

FIRST = """first {
  a = S parameter(0)
  c = S parameter(1)
  d = S parameter(2)
  e = S parameter(3)
  g = pred[] compare(a, d), direction=GE
  k = S select(g, a, d)
  m = S select(g, c, e)
  ROOT r = (S, S) tuple(k, m) }
"""

REGIONS = {op: BINARY.format(op=op) for op in ("add", "maximum", "minimum", "multiply")} | {
    "less": LESS.format(more=""),
    "add_add": PAIRS.format(name="add_add", summed="a, d", other="add(e, c)"),
    "add_maximum": PAIRS.format(name="add_maximum", summed="d, a", other="maximum(c, e)"),
    "maximum_add": PAIRS.format(name="maximum_add", summed="c, e", other="maximum(a, d)").replace("(s, m)", "(m, s)"),
    "first": FIRST,
    "less2": LESS.format(more="  d = S parameter(2)\n  e = S parameter(3)\n").replace("less", "less2"),
}
"""Computations that templates may apply."""

COMPLEX = {"f32": "c64", "f64": "c128"}


def dtypes(template: Template) -> tuple[str, ...]:
    return tuple(dict.fromkeys(t for kind in template.kinds.split() for t in TYPES.get(kind, kind).split()))


def hlo_text(template: Template, dtype: str) -> str:
    """The template as the text of a module."""
    body = template.body
    lines, number = [], 0

    def constant(match: re.Match) -> str:
        nonlocal number
        number += 1
        lines.append(f"n{number} = {dtype}[] constant({_literal(match[1], dtype)})")
        lines.append(f"k{number} = {dtype}{template.dims} broadcast(n{number}), dimensions={{}}")
        return f"k{number}"

    body = re.sub(r"#(\$\w+|-?[\w.+]+)", constant, body)
    body = re.sub(r"constant\((\$\w+)\)", lambda m: f"constant({_literal(m[1], dtype)})", body)
    given = set(re.findall(r"(?:^|;)\s*(?:ROOT )?(\w+) =", body))
    found = [n for n in "xyzpq" if n not in given and re.search(rf"[(, ]{n}[,)]", body)]
    head = [f"{n} = {'P' if n in 'pq' else 'T'} parameter({k})" for k, n in enumerate(found)]
    body = "\n".join([*head, *lines, *(line.strip() for line in body.split(";"))])
    regions = "".join(text for name, text in REGIONS.items() if re.search(rf"to_apply={name}\b", body))
    text = f"HloModule m\n{regions}ENTRY e {{\n{body}\n}}\n"
    text = re.sub(r"\bT\b(?!\[)", f"{dtype}{template.dims}", text)
    text = re.sub(r"\bT\[", f"{dtype}[", text)
    text = re.sub(r"\bC\b", f"{COMPLEX.get(dtype)}{template.dims}", text)
    text = re.sub(r"\bF\b", f"{BY_NAME[dtype].component.value}{template.dims}", text)
    return re.sub(r"\bS\b", f"{dtype}[]", re.sub(r"\bP\b", f"pred{template.dims}", text))


def _literal(word: str, dtype: str) -> str:
    """Resolve $least, $most and $ones for a type; other words are returned unchanged."""
    kind = BY_NAME[dtype]
    if kind is DType.PRED and word in ("0", "1"):
        return ("false", "true")[int(word)]
    if not word.startswith("$"):
        return word
    if kind.is_float:
        return {"$least": "-inf", "$most": "inf"}[word]
    if kind is DType.PRED:
        return {"$least": "false", "$most": "true", "$ones": "true"}[word]
    least = -(2 ** (kind.bits - 1)) if kind.is_signed else 0
    most = least + 2**kind.bits - 1
    return str({"$least": least, "$most": most, "$ones": -1 if kind.is_signed else most, "$bits": kind.bits}[word])


def special_inputs(module: Module, seed: int) -> list[np.ndarray]:
    """Inputs with NaN, infinities, -0, subnormals and limits of integers, which incorrect rules often get wrong."""
    draw = np.random.default_rng(seed)
    return [_special(shape.dtype, shape.dims, draw) for shape in parameter_leaves(module)]


def _special(dtype: DType, dims: tuple[int, ...], draw: np.random.Generator) -> np.ndarray:
    if dtype is DType.PRED:
        return draw.integers(0, 2, dims).astype(bool)
    if dtype.is_complex:
        made = np.empty(dims, dtype.numpy)
        made.real, made.imag = (_special(dtype.component, dims, draw) for _ in range(2))
        return made
    if dtype.is_integer:
        least = -(2 ** (dtype.bits - 1)) if dtype.is_signed else 0
        most = least + 2**dtype.bits - 1
        values = [least, most, 0, 1, max(least, -1), most // 2 + 1, 2, 3, 5, 7]
        picked = [values[k] if values[k] <= most else 1 for k in draw.integers(0, len(values), dims).flat]
        return np.array(picked, dtype=object).astype(np.int64 if least else np.uint64).astype(dtype.numpy).reshape(dims)
    values = np.array([0.0, -0.0, 1, -1, np.nan, 2.5, -3.5, 0.5, 7, 1e-41, 3e38, 6e-8], np.float64)
    ends = [] if dtype is DType.F8E4M3FN else [np.inf, -np.inf]
    with np.errstate(all="ignore"):
        return draw.choice(np.array([*values, *ends]), dims).astype(dtype.numpy)


def cases() -> Iterator[tuple[str, Template, str]]:
    """(rule, template, type) of all templates."""
    for name, templates in TEMPLATES.items():
        for template in templates:
            for dtype in dtypes(template):
                yield name, template, dtype
