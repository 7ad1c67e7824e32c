"""`testbed toggles stale` and `refresh`: rows whose evidence is of other code than that of now, and their gates."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from .output import say, wrapped

if TYPE_CHECKING:
    from ..migration.ledger import Ledger, Row

    Codes = dict[str, dict[str, str]]
    """Row → its code: 'STACK FORM' → digest."""

OUTSIDE = ("tests", "cli", "benchmarks", "display", "docs", "examples", "tools", "profiling")
"""Folders of the checkout whose files no kernel's code depends on."""

START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv.pop(1)); from testbed.cli.main import main; sys.exit(main())"
)
"""The command in a process of its own, which finds the same packages."""

SHOWN_FORMS = 6


def sources_digest(root: Path) -> str:
    """Of the files that the code of kernels may depend on."""
    digest = sha256()
    for file in sorted(root.rglob("*.py")):
        place = file.relative_to(root)
        if place.parts[0] not in OUTSIDE and not place.parts[0].startswith("."):
            digest.update(f"{place}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def codes(names: Sequence[str], stacks: tuple[str, str], compute: bool = True) -> Codes | None:
    """The code of rows, from the cache if these sources were asked before. Otherwise, without `compute`, None."""
    from ..codegen.cache import DEFAULT_CACHE, cache_key
    from ..migration.parity import __file__ as place
    from .progress import progress
    from .toggles_gate import versions

    key = cache_key("code of rows", sources_digest(Path(place).parents[1]), versions(stacks), *stacks)
    held = DEFAULT_CACHE.read(key)
    found: Codes = json.loads(held) if held is not None else {}
    left = [name for name in names if name not in found]
    if left and not compute:
        return None
    if left:
        from ..differential.gate.code import code_of

        with progress(len(left)) as advance:
            for name in left:
                unit, dtypes, _ = name.split(".")
                found[name] = dict(code_of(unit, dtypes, stacks))
                advance()
        DEFAULT_CACHE.write(key, json.dumps(found).encode())
    return {name: found[name] for name in names}


def stale_rows(ledger: Ledger, now: Codes) -> dict[str, list[str]]:
    """Row with evidence → 'STACK FORM' of what is other code now, for rows of which something is. Evidence that says no
    forms is of no code that is known: all of them; and so is that of another LLVM or MLIR.
    """
    from ..migration.form_evidence import changed_forms
    from .toggles_gate import versions

    found, compilers = {}, _compilers(versions(ledger.stacks))
    for name, row in sorted(ledger.rows.items()):
        if row.evidence is None or name not in now:
            continue
        same = _compilers(row.evidence.versions) == compilers
        changed = changed_forms(now[name], row.evidence.forms) if same else sorted(now[name])
        if changed:
            found[name] = changed
    return found


def _compilers(versions: str) -> str:
    """Versions without the testbed's own: its code is compared."""
    return versions.partition(", ")[2]


def stale_note(row: Row, changed: Sequence[str]) -> str:
    """What the table says of a stale row."""
    assert row.evidence is not None
    if not row.evidence.forms:
        return f"stale: its evidence, of {row.evidence.date}, does not say of which code it is"
    more = f" and {len(changed) - SHOWN_FORMS} more" if len(changed) > SHOWN_FORMS else ""
    return f"stale since {row.evidence.date}: the code of {', '.join(changed[:SHOWN_FORMS])}{more} has changed"


def show_stale(file: Path, days: int) -> int:
    """Print the stale rows that are on. The exit status: 1 if the evidence of one is more than `days` days older than
    the last commit.
    """
    from ..migration.ledger_file import read_ledger

    ledger = read_ledger(file)
    on = [name for name, row in ledger.rows.items() if row.is_on]
    stale = stale_rows(ledger, codes(on, ledger.stacks) or {})
    bare = [name for name in on if ledger.rows[name].evidence is None]
    last = _last_commit()
    late = [*bare, *(name for name in stale if _age(ledger.rows[name], last) > days)]
    for name in stale:
        say(wrapped(f"{name}: {stale_note(ledger.rows[name], stale[name])}"))
    for name in bare:
        say(wrapped(f"{name}: on without evidence"))
    say(wrapped(f"{len(stale) + len(bare)} of {len(on)} rows that are on have stale evidence"))
    if late:
        say(wrapped(f"for more than {days} days: {', '.join(late)}: run ./testbed toggles refresh"))
    return int(bool(late))


def _age(row: Row, last: datetime.date) -> int:
    assert row.evidence is not None
    return (last - row.evidence.date).days


def _last_commit() -> datetime.date:
    """The day of the checkout's last commit; today outside of one."""
    from ..migration.parity import __file__ as place

    command = ["git", "-C", str(Path(place).parent), "log", "-1", "--format=%cs"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        return datetime.date.fromisoformat(done.stdout.strip())
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return datetime.date.today()


def refresh(file: Path, jobs: int, options: Sequence[str]) -> int:
    """Run the gates of the stale rows, `jobs` at a time, each in a process of its own that writes its row when it is
    done. The exit status: 1 if one was refused.
    """
    from ..migration.ledger import refuse_record
    from ..migration.ledger_file import read_ledger
    from .progress import telling
    from .toggles_promote import refuse_changed_files

    ledger = read_ledger(file)
    refuse_record(ledger)
    refuse_changed_files()
    wanted = [name for name, row in ledger.rows.items() if row.is_on or row.state == "shadow"]
    stale = stale_rows(ledger, codes(wanted, ledger.stacks) or {})
    left = _oldest_first(ledger, [*stale, *(name for name in wanted if ledger.rows[name].evidence is None)])
    say(wrapped(f"{len(left)} of {len(wanted)} rows that are on or in shadow have stale evidence"))
    refused: list[str] = []
    with telling() as tell, ThreadPoolExecutor(jobs) as pool:
        started = {pool.submit(_gate, file, name, options): name for name in left}
        for count, future in enumerate(as_completed(started), 1):
            status, text = future.result()
            refused += [started[future]] if status else []
            say(text.rstrip().splitlines()[-1] if status in (0, 1) and text.strip() else text)
            tell(f"{count} of {len(left)} rows done; refused: {', '.join(refused) or 'none'}")
    say(wrapped(f"{len(left) - len(refused)} of {len(left)} passed; refused: {', '.join(refused) or 'none'}"))
    return int(bool(refused))


def _oldest_first(ledger: Ledger, names: Iterable[str]) -> list[str]:
    def age(name: str) -> datetime.date:
        evidence = ledger.rows[name].evidence
        return evidence.date if evidence is not None else datetime.date.min

    return sorted(names, key=age)


def _gate(file: Path, name: str, options: Sequence[str]) -> tuple[int, str]:
    """(Exit status, what it printed) of the gate of a row."""
    arguments = ["toggles", "--ledger", str(file), "promote", name, *options]
    command = [sys.executable, "-P", "-c", START, json.dumps(sys.path), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def notes(ledger: Ledger) -> Mapping[str, str] | None:
    """Row → what is stale about it; None if the code of these sources is not known yet."""
    now = codes(list(ledger.rows), ledger.stacks, compute=False)
    if now is None:
        return None
    return {name: stale_note(ledger.rows[name], changed) for name, changed in stale_rows(ledger, now).items()}
