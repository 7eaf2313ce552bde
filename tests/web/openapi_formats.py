"""Formats of the oracle's API that a schema cannot describe, for schemathesis.

    SCHEMATHESIS_HOOKS=tests.web.openapi_formats schemathesis run http://127.0.0.1:8080/v1/openapi.json --checks all

The formats of the description are positions of at most 48 stones, games, and letters of moves that some position allows.
Any other text that schemathesis generates is sent as a request that must be refused.
"""

import schemathesis
from hypothesis import strategies

OPENING = "4-4-4-4-4-4-4-4-4-4-4-4-0-0-S"
# A game of oware programs; each beginning of it is a game.
MOVES = "F4 f4 B5 d5".split()


@strategies.composite
def positions(draw):
    """Positions with stores, some of which the short form leaves out."""
    pits = [0] * 14
    for _ in range(draw(strategies.integers(0, 48))):
        pits[draw(strategies.integers(0, 13))] += 1
    if draw(strategies.booleans()):
        return draw(strategies.sampled_from([" ", ",", ", "])).join(map(str, pits[:12]))
    return "-".join(map(str, pits)) + draw(strategies.sampled_from(["-S", "-N"]))


@strategies.composite
def games(draw):
    """Games with tags, move numbers, comments and results."""
    text = draw(strategies.sampled_from(["", '[Event "a game"]\n', f'[FEN "{OPENING}"]\n\n']))
    for number, move in enumerate(MOVES[: draw(strategies.integers(0, 4))]):
        if draw(strategies.booleans()):
            text += f"{number // 2 + 1}. " if number % 2 == 0 else f"{number // 2 + 1}... "
        text += draw(strategies.sampled_from([move, move[0]])) + " "
        text += draw(strategies.sampled_from(["", "{good} ", "(1. a (b)) ", "; to the end\n", "\n"]))
    return text + draw(strategies.sampled_from(["", "*", "1-0", "1/2-1/2"]))


schemathesis.openapi.format("awari-position", positions())
schemathesis.openapi.format("awari-game", games())
schemathesis.openapi.format("awari-moves", strategies.sampled_from(["", "F", "Ff", "FfB"]))


@schemathesis.hook
def map_query(context, query):
    """Sets the position to the opening where the query has moves, which are legal only there, and the game to the first."""
    if query and query.get("moves") in ("F", "Ff", "FfB"):
        query["pos"] = OPENING
    # A generated text has one game.
    if query and "game" in query:
        query["game"] = 1
    return query
