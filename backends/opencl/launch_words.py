"""The words of a launch for native code: the kernel, three sizes of all items, three of a group, the number of
arguments; then an allocation, an offset, and the address that it was given last, for each argument.
"""

KERNEL, SIZES, GROUP, COUNT, PLACES = 0, 1, 4, 7, 8
ALLOCATION, OFFSET, LAST, EACH = 0, 1, 2, 3
NOWHERE = (1 << 64) - 1
"""No address: the argument has to be given."""
