"""How many devices run a program together, and what they are called."""

from __future__ import annotations

from .records import dataclass

MOST_DEVICES = 1024
"""Devices that a program is compiled for: each is a thread, and has an arena."""


@dataclass(frozen=True, slots=True)
class Devices:
    """How many devices run a program. A device's number is replica · partitions + partition."""

    replicas: int = 1
    partitions: int = 1

    @property
    def count(self) -> int:
        return self.replicas * self.partitions

    def __str__(self) -> str:
        return f"{self.replicas} replicas × {self.partitions} partitions"

    def name(self, device: int) -> str:
        """What messages call a device."""
        replica, partition = divmod(device, self.partitions)
        if self.partitions == 1:
            return f"replica {replica}"
        return f"partition {partition}" if self.replicas == 1 else f"replica {replica}, partition {partition}"


ONE_DEVICE = Devices()
