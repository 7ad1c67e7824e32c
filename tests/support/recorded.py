"""A platform of GPUs on a recording driver, and a kernel that its devices run."""

from __future__ import annotations

import functools

from ...backends.accelerator.build import build_device_code
from ...backends.accelerator.targets import DeviceTarget
from ...backends.device import Kernel, KernelSpec
from ...backends.gpu.driver import Dialect, started
from ...backends.gpu.executor import GpuStreamExecutor, Program
from ...backends.gpu.platform import GpuPlatform
from .host_items import host_items
from .recording_driver import RecordingDriver

NEGATED = """
@testbed_item = global i64 0
define void @negated(ptr %x, ptr %y) {
  %i = load volatile i64, ptr @testbed_item
  br label %next
next:
  %n = phi i64 [ %i, %0 ], [ %m, %next ]
  %a = getelementptr float, ptr %x, i64 %n
  %v = load float, ptr %a, align 4
  %w = fneg float %v
  %b = getelementptr float, ptr %y, i64 %n
  store float %w, ptr %b, align 4
  %m = add i64 %n, 1
  %more = icmp ult i64 %m, 8
  br i1 %more, label %next, label %end
end:
  ret void
}
"""


class RecordedExecutor(GpuStreamExecutor):
    """Tells the recording driver how many arguments kernels of object files take."""

    def kernel(self, program: Program, name: str, arguments: int) -> Kernel:
        self.platform.library.arguments[name] = arguments
        return super().kernel(program, name, arguments)


class Recorded(GpuPlatform):
    """A platform on a recording driver; its devices run code for the host, or keep PTX."""

    executor_type = RecordedExecutor

    def __init__(self, dialect: Dialect, target: DeviceTarget, **about):
        self.library = RecordingDriver(dialect, **about)
        super().__init__(dialect.name.lower(), lambda: started(dialect, self.library), lambda *_: target)


@functools.cache
def negated() -> KernelSpec:
    """Writes the negatives of 8 numbers."""
    return KernelSpec("negated", build_device_code(NEGATED, host_items(), None), 2)
