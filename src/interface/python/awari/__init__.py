"""Reads endgame databases of awari and probes positions.

Position knows the rules without databases; open() opens the databases of a run directory. A score is the number of stones on the board that the player to move will
capture, minus the number that the opponent will, if both play best. By the rules of oware a position has two bounds instead:
see Databases.bounds().

>>> import awari
>>> databases = awari.open("runs/quickstart")
>>> databases.probe("0 0 0 0 0 2 1 1 0 0 0 0").score
4

Every byte is compared with a checksum before it is used: a damaged database gives awari.DamagedError, not a wrong score.
"""

from ._awari import DamagedError, Databases, Error, MissingError, Move, Position, Probe, Slab, __version__, open

__all__ = ["DamagedError", "Databases", "Error", "MissingError", "Move", "Position", "Probe", "Slab", "open"]
