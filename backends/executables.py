"""What a compiler makes: a program that is called like a function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..hlo.display import Displayed
from ..hlo.later import np

if TYPE_CHECKING:
    from ..hlo.ir import Module
    from .calling import Calling
    from .device import DeviceMemory, Stream


class _OfInstance:
    """An attribute of instances that inspect.signature and help read; the class itself has `of_class` there."""

    def __init__(self, read: Callable[[Executable], Any], of_class: Any = None):
        self._read, self._of_class = read, of_class

    def __get__(self, executable: Executable | None, owner: type | None = None) -> Any:
        return self._of_class if executable is None else self._read(executable)


class Executable(Displayed, ABC):
    """A compiled program: `executable(x, y)` runs it. Threads may call it at the same time."""

    program: Module
    """The module as its caller knows it: names, shapes and trees of arguments and results."""

    __signature__ = _OfInstance(lambda executable: executable.calling.signature())

    def __init_subclass__(cls) -> None:
        document = _OfInstance(lambda executable: executable.calling.document(), cls.__doc__)
        cls.__doc__ = document  # type: ignore[assignment]  # a str of an instance, which help() reads

    @cached_property
    def calling(self) -> Calling:
        """How it is called, from `program`."""
        from .calling import Calling

        return Calling(self.program)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run once. Takes numpy arrays, Python numbers, buffers, DLPack objects and pytrees of them, in the order of
        the parameters or, for a program from JAX, in the trees that it was lowered with.

        out: the array for the result, or a tuple (or JAX's tree) of arrays as the result is; None makes a new array.
        donate: names or positions of arguments whose arrays may be overwritten; those that the module aliases to a
        result become it. A program with an argument called `out` or `donate` takes that by this name instead.

        Returns a numpy array, or a tuple (or JAX's tree) of them. Raises InputError that names the argument, what is
        expected and what is given.
        """
        options = self.calling.options(named)
        inputs = self.calling.leaves(arguments, named)
        return self.calling.result(self.execute(inputs, options.outputs, donated=options.donated))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.calling.text()}>"

    kernels: tuple[tuple[str, str], ...] = ()
    """(kernel, name of the stack that emitted it), in order of first use."""

    timings: Mapping[str, float] = {}
    """Seconds per stage of the compilation."""

    stages: tuple[tuple[str, str], ...] = ()
    """(file name, text) of every IR stage, if the options requested them."""

    @abstractmethod
    def execute(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[np.ndarray | None] | None = None,
        *,
        donated: Collection[int] = (),
    ) -> list[np.ndarray]:
        """Run once. inputs: one array per leaf, flattened. outputs: arrays that receive the results; None makes new
        ones. donated: numbers of inputs that may be overwritten.

        Returns one array per result leaf.
        """

    platform_name = "host"
    """Of the platform that compiled it, for messages."""

    def execute_async_on_stream(self, stream: Stream, arguments: Sequence[DeviceMemory]) -> list[DeviceMemory]:
        """Run once in a stream, on arrays in the memory of its device, in the layouts of the transfer manager.

        Returns new blocks, one per result leaf, which hold the results when the stream has come that far. Raises
        InputError for a wrong number of blocks, or one that is too small.
        """
        raise self._refused("ASYNC_EXECUTION")

    def serialize(self, key: bytes | None = None) -> bytes:
        """The program as bytes, for `Compiler.load_executable`. key: signs them."""
        raise self._refused("SERIALIZATION")

    def infeed(self, *leaves: Any, device: int = 0) -> None:
        """Append a value to a device's infeed, one array per leaf."""
        raise self._refused("FEEDS")

    def close_infeed(self) -> None:
        """Say that no more values come: a run that reads more than there are fails at once."""

    def outfeed(self, device: int = 0, timeout: float = 0.0) -> list[np.ndarray]:
        """The next value of a device's outfeed, one array per leaf."""
        raise self._refused("FEEDS")

    def _refused(self, capability: str) -> Exception:
        from .device import Capability, refused

        return refused(self.platform_name, Capability[capability])
