"""The words of a launch for native code: the kernel, three sizes of all items, three of a group, the number of
arguments; then an allocation and an offset for each argument.
"""

KERNEL, SIZES, GROUP, COUNT, PLACES = 0, 1, 4, 7, 8
