"""Counts which functions of the legacy stack look past the op that they emit: at the ops of its operands, at slices.

    .venv/bin/python3 tools/dag_reads.py FOLDER …        the modules (*.hlo) below the folders

Each module is planned and its kernels are emitted. An access to an instruction's opcode, operands or attributes counts
for the function that makes it, or for the nearest one among its callers that has read the `operands` that hold the
instruction: that one looks at an operand's op. Parameters do not count. See docs/adr/0028-what-legacy-emitters-read.md.
"""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).absolute().parents[1]
LEGACY = str(ROOT / "legacy")
PARTS = frozenset({"opcode", "operands", "attributes", "literal"})
VALUES = frozenset({"Elemental.run"})
"""What gives an emitter the value of an operand at an index: the operand's own rule runs in it, not the emitter."""


class Watch:
    """What the functions of legacy/ read of instructions and kernel arguments. Counts are kernels."""

    def __init__(self) -> None:
        self.operands: Counter[str] = Counter()
        self.slices: Counter[str] = Counter()
        self._held: dict[FrameType, dict[int, Any]] = defaultdict(dict)  # frame → operands of what it has read
        self._found: set[tuple[str, str]] = set()

    def install(self) -> None:
        from testbed.hlo.ir import Instruction
        from testbed.hlo.opcodes import Op
        from testbed.planning.plan import KernelArgument

        plain, read, watch = object.__getattribute__, self._read, self

        def of_instruction(self: Any, name: str) -> Any:
            value = plain(self, name)
            if name in PARTS and plain(self, "opcode") is not Op.PARAMETER:
                frame = _function(sys._getframe(1))
                if frame is not None:
                    read(frame, self, value if name == "operands" else ())
            return value

        def of_argument(self: Any, name: str) -> Any:
            frame = _function(sys._getframe(1)) if name == "slice" else None
            if frame is not None:
                watch._found.add(("slices", _name(frame)))
            return plain(self, name)

        Instruction.__getattribute__ = of_instruction  # type: ignore[method-assign]
        KernelArgument.__getattribute__ = of_argument  # type: ignore[method-assign]

    def _read(self, frame: FrameType, instruction: Any, operands: Sequence[Any]) -> None:
        holder: FrameType | None = frame
        while holder is not None and id(instruction) not in self._held.get(holder, ()):
            holder = holder.f_back if holder.f_code.co_qualname not in VALUES else None
        if holder is not None:
            through = "" if holder is frame else f" through {_name(frame)}"
            self._found.add(("operands", _name(holder) + through))
        self._held[frame].update((id(o), o) for o in operands)

    def end_kernel(self) -> None:
        for kind, name in self._found:
            getattr(self, kind)[name] += 1
        self._found.clear()
        self._held.clear()


def _function(frame: FrameType | None) -> FrameType | None:
    """The function of legacy/ that a frame belongs to; None if it is elsewhere."""
    while frame is not None and frame.f_code.co_name.startswith("<"):  # a comprehension
        frame = frame.f_back
    return frame if frame is not None and frame.f_code.co_filename.startswith(LEGACY) else None


def _name(frame: FrameType) -> str:
    return f"{Path(frame.f_code.co_filename).name}: {frame.f_code.co_qualname}"


def main(folders: Sequence[str]) -> int:
    spec = importlib.util.spec_from_file_location("_names", ROOT / "tools/python/pytest_names.py")
    assert spec is not None and spec.loader is not None
    names = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(names)
    names.import_root(ROOT)
    from testbed.codegen.options import EmitOptions
    from testbed.formats.text.parser import parse_module
    from testbed.hlo.errors import TestbedError
    from testbed.legacy.emission import emit_module
    from testbed.planning.planner import plan

    modules = sorted(path for folder in folders for path in Path(folder).rglob("*.hlo") if "xla_" not in path.name)
    if not modules:
        print(f"no *.hlo below {', '.join(folders) or 'nothing'}: name a folder of modules", file=sys.stderr)
        return 2
    watch, kernels, left_out, options = Watch(), 0, 0, EmitOptions.host()
    plans = []
    for path in modules:
        try:
            plans.append(plan(parse_module(path.read_text(), str(path))))
        except TestbedError:
            left_out += 1
    watch.install()
    for made in plans:
        for request in made.kernels:
            try:
                emit_module([request], options)
                kernels += 1
            except TestbedError:
                left_out += 1  # a library's kernel, among others
            watch.end_kernel()
    print(f"{kernels} kernels of {len(plans)} modules; {left_out} modules or kernels have no emitter here")
    for title, counts in (("operands' ops", watch.operands), ("slices of the assignment", watch.slices)):
        print(f"\n{title}:")
        for name, count in counts.most_common():
            print(f"  {count:6} kernels  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
