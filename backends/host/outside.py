"""An executable's devices: a thread for each, with its port, its queues, and one transport a run."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import TypeVar

from ...hlo.errors import CollectiveError, InputError, TestbedError
from ...thunks.image import Image
from ...thunks.kinds import meetings_of
from ...thunks.outside import Port
from .feeds import Queues, forms_of
from .interruptible import STOPPING
from .rendezvous import Ended, Rendezvous

T = TypeVar("T")

WAIT_LIMIT = 300.0
"""Seconds that a device waits for another, or for a value of its infeed, unless the caller says otherwise."""


class Outside:
    """wait_limit: seconds that a device waits for another, or for a value of its infeed. forms: as of `forms_of`."""

    def __init__(self, image: Image, name: str):
        self.devices, self.wait_limit = image.devices, WAIT_LIMIT
        self._meetings = meetings_of(image.thunks)
        self.forms = forms_of(image.thunks)
        self._queues = [Queues(name, self.forms, lambda: self.wait_limit) for _ in range(self.devices.count)]

    def queues(self, device: int) -> Queues:
        """Raises InputError for a device that does not exist."""
        if not 0 <= device < len(self._queues):
            raise InputError(f"there is no device {device}", remedy=f"the program is for {self.devices}")
        return self._queues[device]

    def on_all(self, run: Callable[[int, Port], T]) -> list[T]:
        """What run(device, port) returns on a thread for each device. Raises the first exception of any.

        Ctrl-C in the main thread ends all: kernels that were running go on for as long as they take.
        """
        transport = Rendezvous(self.devices, self.wait_limit)
        results: dict[int, T] = {}

        def live(device: int, port: Port) -> None:
            if hasattr(signal, "pthread_sigmask"):  # signals are for the main thread
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                results[device] = run(device, port)
            except Ended:
                pass
            except BaseException as error:  # raised below, in the caller's thread
                transport.fail(self._named(device, error))
            finally:
                transport.end(device)

        threads = []
        for device in range(self.devices.count):
            port = Port(self._meetings, device, self.devices, transport, self._queues[device])
            transport.add(port.stop)
            name = self.devices.name(device)
            threads.append(threading.Thread(target=live, args=(device, port), name=name, daemon=True))
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException as error:
            transport.fail(error)
            for thread in threads:
                if thread.ident is not None:
                    thread.join(STOPPING)
            raise
        if transport.error is not None:
            raise transport.error
        return [results[device] for device in range(self.devices.count)]

    def _named(self, device: int, error: BaseException) -> BaseException:
        """The error with the name of the device in front."""
        if self.devices.count == 1 or not isinstance(error, TestbedError) or isinstance(error, CollectiveError):
            return error
        error.message = f"{self.devices.name(device)}: {error.message}"
        return error
