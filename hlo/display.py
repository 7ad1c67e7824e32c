"""Rich reprs of values in notebooks. What draws them is in display/, which a value reaches as its users do: by the
public names of the package (docs/adr/0027-values-draw-themselves-by-public-names.md).
"""

from __future__ import annotations

from importlib import import_module

from .errors import TestbedError

PACKAGE = __name__.partition(".")[0]


class Displayed:
    """A value with a page and a picture: `testbed.to_html(value)`, `testbed.to_svg(value)`."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """A page with tables, the picture and the text, for notebooks."""
        return import_module(PACKAGE).to_html(self)

    def _repr_svg_(self) -> str | None:
        """A picture; None if it would be too large, or if what draws it is not installed."""
        try:
            return import_module(PACKAGE).to_svg(self)
        except TestbedError:
            return None
