"""Mutants of the planner: lives too short, memory shared that may not be, parts that overlap or are missing."""

from __future__ import annotations

from . import planning_lives, planning_places
from .base import Room
from .planning_registry import mutants, record

FILES = (planning_lives, planning_places)
"""Where mutants are registered as these files are imported."""

ROOM = Room(("planning", "backends/test_red_zones.py"), mutants, record)
