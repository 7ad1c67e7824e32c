"""An oracle whose tanh goes wrong, for tests of campaigns: it is planted in each of their processes."""

import os
import time
from dataclasses import replace

from ...evaluator import rules
from ...hlo.opcodes import Op


def plant(kind: str) -> None:
    """wrong: results are one too large; crash: the process ends; hang: it never answers."""
    usual = rules.RULES[Op.TANH]

    def wrong(*operands):
        if kind == "crash":
            os._exit(3)
        if kind == "hang":
            time.sleep(3600)
        return usual.function(*operands) + operands[0].dtype.type(1)

    rules.RULES[Op.TANH] = replace(usual, function=wrong)
