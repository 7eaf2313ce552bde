"""Prints random games of oware by OpenSpiel (PyPI open-spiel), a line each, for tests/solvers/openspiel.rs.

Usage: openspiel_oware.py GAMES SEED

A line holds the seeds in each pit at the start, the moves, and after `=` the final stores of South and North. A move is
the letter of its pit, the legal moves before it as two hexadecimal digits (bit 0 is the first pit of the mover), and the
board after it: pits A to F, a to f, the stores of South and North, each as the character with the code 48 plus the number.
The last move has no board, since OpenSpiel then collects the remaining seeds.
"""

import random
import sys

import pyspiel


def numbers(state):
    """Returns pits and stores."""
    _, stores, pits = state.observation_string(0).split("|")
    return [int(one) for one in pits.split()] + [int(one) for one in stores.split()]


def played(game, seeds, choose):
    state = game.new_initial_state()
    words = [str(seeds)]
    while not state.is_terminal():
        legal = state.legal_actions()
        mask = sum(1 << action for action in legal)
        action = choose(state, legal)
        letter = "ABCDEFabcdef"[6 * state.current_player() + action]
        state.apply_action(action)
        board = "" if state.is_terminal() else "".join(chr(48 + one) for one in numbers(state))
        words.append(f"{letter}{mask:02x}{board}")
    words.append("=" + "".join(chr(48 + one) for one in numbers(state)[12:]))
    return " ".join(words)


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    generator = random.Random(seed)
    # Games of few seeds reach endings and repetitions soon.
    games = {seeds: pyspiel.load_game(f"oware(num_seeds_per_house={seeds})") for seeds in (1, 2, 3, 4)}
    for number in range(count):
        seeds = 1 + number % 4
        # Every other game prefers the first legal pit, which piles up seeds in few pits and brings laps.
        lazy = number // 4 % 2 == 1
        choose = lambda _, legal: legal[0] if lazy and generator.random() < 0.6 else generator.choice(legal)
        print(played(games[seeds], seeds, choose))


main()
