"""The table of XLA's kernels in a dump, which `testbed xla` and `testbed import` print."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from .output import say, table, wrapped

if TYPE_CHECKING:
    from ..migration.xla_programs import XlaProgram
    from ..xla_kernels.kernels import XlaKernel


def print_listing(program: XlaProgram) -> None:
    """Print a row for each kernel, then the instructions that have none, and the totals."""
    from ..benchmarks.tables import left, right

    columns = [left(heading) for heading in ("kernel", "emitter", "code", "opcode")]
    rows = [
        (row["kernel"], row["emitter"] or "?", row["code"] or "none", row["opcode"], str(len(row["instructions"])))
        for row in rows_of(program)
    ]
    if rows:
        say(table([*columns, right("uses")], rows))
    counts = Counter((i.opcode.value, reason) for i, reason in program.matches.refused.items())
    for (opcode, reason), count in counts.most_common():
        say(wrapped(f"{count} x {opcode} without a kernel: {reason}"))
    for i, why in program.matches.broken.items():
        say(wrapped(f"{i.name}: refused: {why}"))
    found, kernels = program.matches.found, program.kernels.kernels
    generation = f", {program.generation} emitters" if program.generation else ""
    say(
        f"{program.files.prefix}{generation}: {len(kernels)} kernels, {len(program.matches.by_symbol)} of them matched "
        f"with {len(found)} instructions"
    )


def rows_of(program: XlaProgram) -> list[dict[str, Any]]:
    """A row for each kernel, in the order of symbols."""
    users: dict[str, list[str]] = {}
    opcodes: dict[str, str] = {}
    for i, made in program.matches.found.items():
        users.setdefault(made.kernel.symbol, []).append(i.name)
        opcodes.setdefault(made.kernel.symbol, i.opcode.value)
    rows = []
    for symbol, kernel in sorted(program.kernels.kernels.items()):
        match = program.matches.by_symbol.get(symbol)
        rows.append(
            {
                "kernel": symbol,
                "emitter": kernel.emitter,
                "code": _code(kernel),
                "opcode": opcodes.get(symbol, "-"),
                "instructions": users.get(symbol, []),
                "workgroups": match.workgroups if match else None,
                "overwrites": [[n, list(index)] for n, index in match.overwritten] if match else [],
            }
        )
    return rows


def _code(kernel: XlaKernel) -> str:
    return "+".join(name for name, path in (("IR", kernel.ir), ("object", kernel.code)) if path is not None)


def document_of(program: XlaProgram) -> dict[str, Any]:
    """What the JSON document says."""
    refused = [
        {"instruction": i.name, "opcode": i.opcode.value, "reason": r} for i, r in program.matches.refused.items()
    ]
    return {
        "module": program.files.prefix,
        "generation": program.generation or None,
        "kernels": rows_of(program),
        "without_kernel": refused,
        "refused": [{"instruction": i.name, "reason": why} for i, why in program.matches.broken.items()],
    }
