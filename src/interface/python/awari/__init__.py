"""Reads endgame databases of awari, searches positions beyond them, and knows games, books and rules.

open() opens the databases of a run directory. Without databases, Position knows the rules, Game whole games and their notation,
and Engine searches positions; open_book() opens an opening book. A score is the number of stones on the board that the player to
move will capture, minus the number that the opponent will, if both play best. By the rules of oware a position has two bounds
instead: see Databases.bounds().

>>> import awari
>>> databases = awari.open("runs/quickstart")
>>> databases.probe("0 0 0 0 0 2 1 1 0 0 0 0").score
4

Every byte is compared with a checksum before it is used: a damaged database gives awari.DamagedError, not a wrong score.
"""

from ._awari import (
    Book,
    BookEntry,
    BookMove,
    DamagedError,
    Databases,
    Engine,
    Error,
    Game,
    MissingError,
    Move,
    Position,
    Probe,
    Search,
    SearchedMove,
    Slab,
    Turn,
    __version__,
    open,
    open_book,
)

__all__ = [
    "Book",
    "BookEntry",
    "BookMove",
    "DamagedError",
    "Databases",
    "Engine",
    "Error",
    "Game",
    "MissingError",
    "Move",
    "Position",
    "Probe",
    "Search",
    "SearchedMove",
    "Slab",
    "Turn",
    "open",
    "open_book",
]
