"""A child that is this process: faults that are planted here reach what it runs."""

from ...differential.child import Child
from ...differential.outcome import outcome
from ...differential.setting import Setting

UNCACHED = Setting(cache=False)


class Here(Child):
    """A child in this process, with the faults that are planted here."""

    def outcome(self, module, inputs, stacks, limit=0.0, setting=UNCACHED, *, again=False):
        return outcome(module, inputs, stacks, setting, again=again)

    def call(self, function, *arguments, limit_s=0.0):
        return function(*arguments)
