"""Faults that are planted at run time into a stack, a pass, the buffer plan or a thunk: what the tools that find bugs
are measured by. Nothing of it is in a program unless a fault is asked for by name.
"""
