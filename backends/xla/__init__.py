"""XLA:CPU through jaxlib, if it is installed: the external reference."""

from .child import IsolatedXla
from .errors import XlaCrashed, XlaRefused
from .executable import XlaExecutable, start_client
from .flags import parse_xla_flags
from .installed import REMEDY, installed

__all__ = [
    "REMEDY",
    "IsolatedXla",
    "XlaCrashed",
    "XlaExecutable",
    "XlaRefused",
    "installed",
    "parse_xla_flags",
    "start_client",
]
