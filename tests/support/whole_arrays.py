"""What a plan's loops copy: steps in their bodies that write as much as a whole table."""

from collections.abc import Iterable, Iterator

from ...planning.plan import ConditionalStep, CopyStep, KernelStep, Plan, Step, WhileStep


def in_loops(steps: Iterable[Step], inside: bool = False) -> Iterator[Step]:
    """The copies and kernels that run in loops."""
    for step in steps:
        if isinstance(step, WhileStep):
            yield from in_loops([*step.condition, *step.body], True)
        elif isinstance(step, ConditionalStep):
            for branch in step.branches:
                yield from in_loops(branch, inside)
        elif inside:
            yield step


def written_whole(made: Plan, size: int) -> list[str]:
    """Names of the steps in loops that write a result of `size` bytes or more elsewhere than over an operand."""
    found = []
    for step in in_loops(made.steps):
        if isinstance(step, CopyStep) and step.source.size >= size:
            found.append(f"copy at {step.instruction.name}")
        elif isinstance(step, KernelStep):
            results = [n for n in step.kernel.results if n >= 0 and n not in step.kernel.operands]
            if any(step.arguments[n].size >= size for n in results):
                found.append(step.instruction.name)
    return found
