"""Options and runs for programs of several devices, or with feeds: `run` and `exec`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .json_output import array_body
from .params import FILE
from .results import print_results

if TYPE_CHECKING:
    import numpy as np

    from ..backends.host.executable import HostExecutable
    from ..formats.arrays import Feed
    from ..hlo.devices import Devices
    from ..hlo.ir import Module
    from ..hlo.shapes import Shape
    from .inputs import HasInputs, Inputs, Values


@dataclass(frozen=True)
class Wish:
    """What a command line says of devices and feeds. infeed: a file. wait_limit: seconds."""

    replicas: int | None = None
    partitions: int | None = None
    infeed: str | None = None
    wait_limit: float | None = None

    def devices(self, module: Module) -> Devices:
        """Raises InputError for a module of several partitions, where none are asked for."""
        from ..hlo.devices import Devices
        from ..hlo.errors import InputError

        partitions = int(module.attributes.get("num_partitions", 1))
        if self.partitions is None and self.replicas is not None and partitions > 1:
            raise InputError(
                f"{module.name} has {partitions} partitions, and --replicas runs one partition a replica",
                remedy=f"add --partitions {partitions}, or --partitions 1",
            )
        return Devices(self.replicas or 1, self.partitions or 1)


@dataclass(frozen=True)
class Done:
    """A run on all devices: the results and the values of the outfeed of each."""

    results: list[list[np.ndarray]]
    outfeeds: list[Feed]

    def print(self, devices: Devices) -> None:
        """A line for each result leaf, then for each leaf that was written to an outfeed."""
        names = [prefix_of(devices, n) for n in range(devices.count)]
        for name, leaves in zip(names, self.results, strict=True):
            print_results(leaves, name)
        for name, feed in zip(names, self.outfeeds, strict=True):
            for number, value in enumerate(feed):
                print_results(value, f"{name}outfeed {number} ")

    def body(self, shapes: Sequence[str]) -> list[dict[str, Any]]:
        """What a document says of each device. shapes: of the result leaves."""
        found = []
        for results, feed in zip(self.results, self.outfeeds, strict=True):
            body: dict[str, Any] = {"results": [array_body(v, s) for v, s in zip(results, shapes, strict=True)]}
            if feed:
                body["outfeed"] = [{"leaves": [array_body(leaf, _shape_of(leaf)) for leaf in value]} for value in feed]
            found.append(body)
        return found


def prefix_of(devices: Devices, device: int) -> str:
    """The name of a device in front of that of a result, where there are several devices."""
    return f"{devices.name(device)} " if devices.count > 1 else ""


def _shape_of(leaf: np.ndarray) -> str:
    from ..hlo.dtypes import FROM_NUMPY
    from ..hlo.shapes import array

    return str(array(FROM_NUMPY[leaf.dtype], *leaf.shape))


def has_feeds(module: Module) -> bool:
    from ..hlo.opcodes import Op

    return not module.opcodes.isdisjoint((Op.INFEED, Op.OUTFEED))


def feed_forms(module: Module) -> list[tuple[Shape, ...]]:
    """The leaves of the values that a module reads from its infeed."""
    from ..hlo.opcodes import Op

    reads = [i for i in module.instructions() if i.opcode is Op.INFEED]
    return [tuple(shape for _, shape in i.shape.leaves() if shape.is_array) for i in reads]


def values_for(program: HasInputs, inputs: Inputs, devices: Devices, iteration: int) -> tuple[list[Values], str]:
    """Inputs for each device, and where they are from. What is drawn comes from a seed for each; the rest is equal."""
    count = devices.count
    values = [inputs.values(program, iteration * count + d, expected=False) for d in range(count)]
    if not inputs.options and program.inputs is not None and iteration == 0:
        values = values[:1] * count
    return values, "; ".join(dict.fromkeys(v.origin for v in values))


def run_executable(
    executable: HostExecutable, inputs: Sequence[Sequence[np.ndarray]], feeds: Sequence[Feed], wait_limit: float | None
) -> Done:
    """Run once. No device waits for more values than it is given."""
    outside = executable.outside
    if outside is None:
        return Done([executable.execute(given) for given in inputs], [[] for _ in inputs])
    if wait_limit is not None:
        outside.wait_limit = wait_limit
    queues = [outside.queues(device) for device in range(len(inputs))]
    for queue, feed in zip(queues, feeds, strict=True):
        queue.clear()
        for value in feed:
            queue.put(value)
        queue.close()
    results = executable.execute_replicated(inputs)
    return Done(results, [queue.taken() for queue in queues])


def run_evaluator(module: Module, devices: Devices, inputs: Sequence[Sequence[np.ndarray]], feeds: list[Feed]) -> Done:
    from ..evaluator.evaluator import evaluate_replicated

    given = [[leaves[0] if len(leaves) == 1 else tuple(leaves) for leaves in feed] for feed in feeds]
    written: list[list[Any]] = [[] for _ in given]
    results = evaluate_replicated(
        module, inputs, replicas=devices.replicas, partitions=devices.partitions, infeeds=given, outfeeds=written
    )
    return Done(results, [[list(_leaves(value)) for value in values] for values in written])


def _leaves(value: Any) -> list[np.ndarray]:
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, tuple) else [value]


def read_feeds(file: str | None, forms: Sequence[Sequence[Shape]], devices: Devices) -> list[Feed]:
    if file is None:
        return [[] for _ in range(devices.count)]
    from ..formats.arrays import load_infeed

    return load_infeed(Path(file), forms, devices.count)


def feed_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --infeed and --wait-limit."""
    for option in reversed(_FEEDS):
        command = option(command)
    return command


def device_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of devices and feeds to a command, which gets them as one argument, `wish: Wish`."""

    @wraps(command)
    def wrapper(*arguments: Any, **options: Any) -> Any:
        given = (options.pop(name) for name in ("replicas", "partitions", "infeed", "wait_limit"))
        return command(*arguments, wish=Wish(*given), **options)

    return replicas_option(partitions_option(feed_options(wrapper)))


replicas_option = click.option(
    "--replicas",
    type=click.IntRange(1),
    metavar="N",
    help="Run on N devices that exchange values at collectives: threads of one process.",
)
partitions_option = click.option(
    "--partitions", type=click.IntRange(1), metavar="M", help="M devices for each replica."
)
_FEEDS = (
    click.option("--infeed", type=FILE, metavar="FILE.NPZ", help="Values of the infeed: value0, value1, …"),
    click.option(
        "--wait-limit",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        help="The longest time that a device waits for another.  [default: 300]",
    ),
)
