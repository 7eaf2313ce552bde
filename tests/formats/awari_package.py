"""Tests the installed package awari: awari_package.py README, in a folder with runs/quickstart, runs/CODEC-POSITIONS,
runs/oware and runs/oware-reachable.

Runs the examples of the README and of the docstrings, compares every answer with the independent reader awari_db, and
opens changed files. Prints what was compared; any difference is an error.
"""

import contextlib
import doctest
import io
import multiprocessing
import os
import pathlib
import pickle
import re
import signal
import subprocess
import sys
import shutil
import tempfile
import threading
import time
import types

import numpy
import pandas
import polars

# This folder has a script of the name of the reader.
sys.path.pop(0)
import awari
import awari_db

SCORES_MAX = 100


def fails(error, call):
    """Checks that a call raises an exception of this class and no other."""
    try:
        call()
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


def run_examples():
    """Runs the examples of the README, of the module and of all docstrings."""
    blocks = re.findall(r"```python\n(.*?)```", pathlib.Path(sys.argv[1]).read_text(), re.S)
    tests = [doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "README.md", sys.argv[1], 0)]
    tests.append(doctest.DocTestParser().get_doctest(awari.__doc__, {}, "awari", None, 0))
    for name in awari.__all__:
        finder = doctest.DocTestFinder()
        tests += finder.find(getattr(awari, name), name, module=False, globs={"awari": awari})
    out = io.StringIO()
    runner = doctest.DocTestRunner()
    with contextlib.redirect_stdout(out):
        for test in tests:
            runner.run(test)
    assert runner.failures == 0, out.getvalue()
    assert runner.tries >= 30, f"only {runner.tries} examples were found"
    documented = set(test.name for test in tests if test.examples)
    public = {f"{name}.{method}" for name in ("Databases", "Position", "Game", "Engine", "Book")
              for method in dir(getattr(awari, name)) if not method.startswith("_") and callable(getattr(getattr(awari, name), method))}
    assert not public - documented, f"methods without an example: {public - documented}"


def compare(directory):
    """Compares all scores and numbers of a directory with the reader, and values of moves with each other."""
    databases = awari.open(os.fsencode(directory))
    codec, positions_of = directory.name.split("-")
    assert databases.stones == list(range(9)) and databases.reachable_only == (positions_of == "reachable")
    assert databases.rules == "awari" and databases.has_scores
    for n in databases.stones:
        reader = awari_db.open(directory / f"databases/{n:02}.awari")
        assert reader.codec == codec
        expected = reader.scores()
        scores = databases.scores(n)
        assert scores.dtype == numpy.int8 and numpy.array_equal(scores, expected), f"{directory}: {n}"
        assert type(scores) is numpy.ndarray
        assert (scores.base is None, scores.flags.writeable) == (codec != "raw", codec != "raw")
        for low, high in (databases.bounds(n), databases.bounds(n, 0, len(expected))):
            assert low is high and numpy.array_equal(low, expected)
        assert databases.count(n) == len(expected)
        positions = databases.positions(n)
        numbers = numpy.arange(len(expected))
        assert numpy.array_equal(databases.numbers(n, positions), numbers)
        backwards = databases.positions(n, numbers[::-1].astype(numpy.uint32))
        assert numpy.array_equal(backwards, positions[::-1])
        table = databases.table(n)
        assert numpy.array_equal(numpy.stack([table[name] for name in "ABCDEFabcdef"], axis=1), positions)
        assert numpy.array_equal(table["score"], expected)
        assert numpy.array_equal(databases.read(n, 1, len(expected)), expected[1:])
        for number in range(0, len(expected), max(1, len(expected) // 200)):
            board = reader.unrank(number)
            assert positions[number].tolist() == board
            probe = databases.probe(positions[number])
            assert probe.score == expected[number] and probe.bounds == (probe.score, probe.score)
            assert all(move.bounds == (move.value, move.value) for move in probe.moves)
            assert "bounds" not in repr(probe)
            assert not probe.moves or max(move.value for move in probe.moves) == probe.score
            best = [move for move in probe.moves if move.value == probe.score]
            assert databases.best_moves(" ".join(map(str, board))) == best
        walked = []
        for slab, row, rows in databases.iter_slabs(n, scores_max=SCORES_MAX):
            assert slab in databases.slabs(n) and rows.shape[1] == slab.columns
            assert rows.size <= max(SCORES_MAX, slab.columns)
            assert slab.first + row * slab.columns == sum(map(len, walked))
            walked.append(rows.ravel())
        assert numpy.array_equal(numpy.concatenate(walked), expected)
    return databases


def score_of(low, high):
    return low if low == high else None


def is_masked(scores, low, high):
    """Whether an array of scores shows those whose bounds are equal, and hides no bound under its mask."""
    return (isinstance(scores, numpy.ma.MaskedArray) and scores.dtype == numpy.int8
            and numpy.array_equal(scores.mask, low != high) and numpy.array_equal(scores.compressed(), low[low == high])
            and (scores.data[scores.mask] == -128).all())


def compare_bounds(directory):
    """Compares all bounds of a directory with the reader, and those of moves with each other; no bound is given as a score."""
    databases = awari.open(directory)
    assert databases.rules == "oware" and not databases.has_scores and "rules oware" in repr(databases)
    open_positions = 0
    for n in databases.stones:
        reader = awari_db.open(directory / f"databases/{n:02}.awari")
        low, high = reader.all_bounds()
        found = databases.bounds(n)
        assert numpy.array_equal(found[0], low) and numpy.array_equal(found[1], high), f"{directory}: {n}"
        assert found[0].dtype == found[1].dtype == numpy.int8 and databases.count(n) == len(low)
        assert is_masked(databases.scores(n), low, high) and is_masked(databases.read(n, 1, len(low)), low[1:], high[1:])
        for start, stop in ((None, None), (1, None), (None, len(low) // 2), (len(low) // 3, len(low) // 2)):
            some = databases.bounds(n, start, stop)
            assert numpy.array_equal(some[0], low[start:stop]) and numpy.array_equal(some[1], high[start:stop])
        walked = [databases.iter_slabs(n, scores_max=SCORES_MAX), databases.iter_bounds(n, positions_max=SCORES_MAX)]
        at = 0
        for (slab, row, scores), (slab_of_bounds, row_of_bounds, *rows) in zip(*walked, strict=True):
            assert (slab, row) == (slab_of_bounds, row_of_bounds) and slab.first + row * slab.columns == at
            here = slice(at, at + scores.size)
            assert scores.shape == rows[0].shape == rows[1].shape and is_masked(scores.ravel(), low[here], high[here])
            assert numpy.array_equal(rows[0].ravel(), low[here]) and numpy.array_equal(rows[1].ravel(), high[here])
            at += scores.size
        assert at == len(low)
        check_frames(databases.table(n), low, high)
        positions = databases.positions(n)
        assert numpy.array_equal(databases.numbers(n, positions), numpy.arange(len(low)))
        for number in range(0, len(low), max(1, len(low) // 200)):
            bounds = int(low[number]), int(high[number])
            board = reader.unrank(number)
            probe = databases.probe(positions[number])
            assert probe.bounds == reader.bounds(board) == bounds and probe.score == reader.score(board) == score_of(*bounds)
            assert all(move.value == score_of(*move.bounds) for move in probe.moves)
            if probe.moves:
                assert bounds == tuple(max(move.bounds[side] for move in probe.moves) for side in (0, 1))
                assert all(databases.probe(move.child).bounds == (move.captured - move.bounds[1], move.captured - move.bounds[0])
                           for move in probe.moves)
            rivals = {move.pit: [other.bounds[1] for other in probe.moves if other != move] for move in probe.moves}
            best = [move for move in probe.moves if move.bounds[0] >= max(rivals[move.pit], default=-128)]
            assert databases.best_moves(board) == best
            assert ("score=None, bounds=" in repr(probe)) == (probe.score is None)
            open_positions += probe.score is None
    assert open_positions > 100, open_positions
    return databases


def check_frames(table, low, high):
    """A data frame has both bounds, and a score that is missing where they differ."""
    assert list(table) == [*"ABCDEFabcdef", "low", "high", "score"] and is_masked(table["score"], low, high)
    for frame in (pandas.DataFrame(table), polars.DataFrame(table)):
        assert numpy.array_equal(frame["low"].to_numpy(), low) and numpy.array_equal(frame["high"].to_numpy(), high)
    exact = low == high
    scores = pandas.DataFrame(table)["score"]
    assert numpy.array_equal(scores.notna(), exact) and numpy.array_equal(scores[exact], low[exact])
    scores = polars.DataFrame(table)["score"]
    assert numpy.array_equal(scores.is_not_null(), exact) and numpy.array_equal(scores.drop_nulls(), low[exact])


def check_mixed(directory, other):
    """Databases of several rules are not called damaged."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(directory / "databases/03.awari", folder)
        shutil.copy(other / "databases/04.awari", folder)
        try:
            awari.open(folder)
        except awari.Error as error:
            assert type(error) is awari.Error and "has rules oware" in str(error) and "damage" not in str(error), error
            return
    raise AssertionError("databases of two rules were opened")


def check_opening(directory):
    """The opening position is the last position of the database of all stones of a game, and a slab of its own."""
    databases = awari.open(directory)
    assert databases.stones == [*range(11), 12] and databases.reachable_only
    reader = awari_db.open(directory / "databases/12.awari")
    scores, last = databases.scores(12), len(reader) - 1
    assert numpy.array_equal(scores, reader.scores()) and reader.unrank(last) == reader.opening == [1] * 12
    assert databases.positions(12, [last]).tolist() == [reader.opening]
    assert databases.numbers(12, [reader.opening]).tolist() == [last]
    assert databases.probe(reader.opening).score == scores[last] == reader.score(reader.opening)
    slab = databases.slabs(12)[-1]
    assert (slab.mover_stones, slab.rows, slab.columns, slab.first) == (6, 1, 1, last), slab
    *_, (end, row, rows) = databases.iter_slabs(12)
    assert (end, row, rows.tolist()) == (slab, 0, [[scores[last]]])


def check_arguments(databases):
    """Wrong arguments raise ValueError or TypeError."""
    boards = ["1 2", "x", [0] * 11, [0] * 13, [-1] + [0] * 11, [49] + [0] * 11, [300] + [0] * 11, [2**70] + [0] * 11]
    for board in boards:
        fails(ValueError, lambda: databases.probe(board))
    for n in (-1, 49, 2**70):
        fails(ValueError, lambda: databases.scores(n))
    for numbers in ([-1], [364], numpy.array([2**64 - 1], numpy.uint64), [[1]]):
        fails(ValueError, lambda: databases.positions(3, numbers))
    for positions in ([[0] * 12], [0] * 12, [[1] * 11], [[-1, 4] + [0] * 10], [[256] * 12]):
        fails(ValueError, lambda: databases.numbers(3, positions))
    for start, stop in ((2, 1), (0, 365), (-1, 1), (0, 2**70)):
        fails(ValueError, lambda: databases.read(3, start, stop))
    for call in (lambda: databases.probe(3), lambda: databases.probe([0.5] * 12), lambda: databases.scores("3"),
                 lambda: databases.scores(3.0), lambda: databases.positions(3, [0.5]), lambda: awari.open(3)):
        fails(TypeError, call)
    assert databases.positions(3, []).shape == (0, 12)
    fails(awari.MissingError, lambda: awari.open(b"absent"))
    fails(awari.MissingError, lambda: databases.scores(9))
    fails(awari.MissingError, lambda: databases.probe([4] * 12))
    fails(awari.MissingError, lambda: awari.open("absent"))
    fails(awari.Error, lambda: awari.open(sys.argv[1]))


def check_hostile(directory, n):
    """With every 3rd byte changed and every 7th length, a file gives an exception of the package or the right scores."""
    right = (directory / f"databases/{n:02}.awari").read_bytes()
    expected = awari.open(directory).scores(n)
    refused = 0
    with tempfile.TemporaryDirectory() as folder:
        changed = pathlib.Path(folder) / f"{n:02}.awari"
        changes = [right[:at] + bytes([right[at] ^ 1 << at % 8]) + right[at + 1:] for at in range(0, len(right), 3)]
        changes += [right[:length] for length in range(0, len(right), 7)]
        for data in changes:
            changed.write_bytes(data)
            for ask in (lambda: awari.open(folder).scores(n), lambda: list(awari.open(folder).iter_slabs(n))):
                try:
                    ask()
                except awari.Error:
                    refused += 1
    assert refused == 2 * len(changes), f"{refused} of {2 * len(changes)} refused"
    assert numpy.array_equal(awari.open(directory).scores(n), expected)


def check_changes(directory):
    """The array of a raw database outlives its Databases, its replacement, and the truncation of its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "08.awari"
        data = (directory / "databases/08.awari").read_bytes()
        path.write_bytes(data)
        scores = awari.open(folder).scores(8)
        expected = scores.copy()
        replacement = path.with_name("new")
        replacement.write_bytes(b"")
        replacement.rename(path)
        assert numpy.array_equal(scores, expected)
        path.write_bytes(data)
        scores = awari.open(folder).scores(8)
        with open(path, "r+b") as file:
            file.truncate(4096)
        assert scores[-1] == 0 and numpy.array_equal(scores[:3000], expected[:3000])


def count_positive(directory):
    return int((awari.open(directory).scores(8) > 0).sum())


def check_fork(directory):
    """A forked process, which has no thread of its parent, decodes too."""
    expected = count_positive(directory)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(count_positive, [directory] * 4).get(timeout=60) == [expected] * 4


def check_protocols(directory):
    """What Python expects of a container, and other processes of what they are given."""
    databases = awari.open(directory)
    assert awari.__version__ and databases.path == str(directory)
    assert len(databases) == 9 and list(databases) == databases.stones and 8 in databases and 9 not in databases
    assert None not in databases and "8" not in databases
    assert numpy.array_equal(databases[6], databases.scores(6))
    fails(KeyError, lambda: databases[9])
    with databases as same:
        assert same is databases
    assert "\n" not in repr(databases) and str(directory) in repr(databases) and str(directory) in databases._repr_html_()
    probe = databases.probe("1 0 0 0 0 2 1 1 0 0 0 1")
    assert probe.position == [1, 0, 0, 0, 0, 2, 1, 1, 0, 0, 0, 1] and len(repr(probe).splitlines()) == 1 + len(probe.moves)
    assert "<table>" in probe._repr_html_()
    for wrong in (None, 3.5, [None] * 12, {}.items):
        try:
            databases.probe(wrong)
        except TypeError as error:
            assert "expected a position: twelve integers" in str(error) and type(wrong).__name__ in str(error), error
        else:
            raise AssertionError(f"{wrong} is no position")
    again = pickle.loads(pickle.dumps(databases))
    assert again.path == databases.path and again.probe(probe.position) == probe
    # Positions of all numbers of stones at once.
    boards = numpy.concatenate([databases.positions(n) for n in databases])
    expected = numpy.concatenate([databases.scores(n) for n in databases])
    order = numpy.random.default_rng(1).permutation(len(boards))[:5000]
    assert numpy.array_equal(databases.lookup(boards[order]), expected[order])
    fails(awari.MissingError, lambda: databases.lookup([[4] * 12]))


def check_lookup_of_bounds(directory):
    databases = awari.open(directory)
    found = databases.lookup(databases.positions(6))
    expected = databases.scores(6)
    assert numpy.array_equal(numpy.ma.getmaskarray(found), numpy.ma.getmaskarray(expected))
    assert numpy.array_equal(found.compressed(), expected.compressed())


def check_rules(directory):
    """Positions without databases have the moves that databases give."""
    databases = awari.open(directory)
    for board in databases.positions(6)[::50]:
        position = awari.Position(board, rules=databases.rules)
        moves = databases.probe(position).moves
        assert position.moves() == [move.pit for move in moves]
        for move in moves:
            assert position.captures(move.pit) == move.captured and position.play(move.pit).pits == move.child
        for pit in set("ABCDEF") - set(position.moves()):
            fails(ValueError, lambda: position.play(pit))
    position = awari.Position()
    assert position.pits == [4] * 12 and position.rules == "awari" and pickle.loads(pickle.dumps(position)) == position
    assert position != awari.Position(rules="oware") and str(position).splitlines()[0].split() == list("fedcba")
    for wrong in ("x", "f", "", "AB"):
        fails(ValueError, lambda: position.play(wrong))
    fails(ValueError, lambda: awari.Position(rules="chess"))


def refused(error, words, call):
    """Checks that a call raises an exception of this class whose message has these words."""
    try:
        call()
    except error as found:
        assert all(word in str(found) for word in words), found
        return
    raise AssertionError(f"no {error.__name__} with {words}")


def check_search(directory):
    """A search finds what the databases hold, with databases of fewer stones and without any; by its rules alone."""
    databases = awari.open(directory)
    with tempfile.TemporaryDirectory() as folder:
        for n in range(5):
            shutil.copy(pathlib.Path(directory) / f"databases/{n:02}.awari", folder)
        engines = [awari.Engine(databases), awari.Engine(awari.open(folder)), awari.Engine(rules=databases.rules)]
        proved = 0
        for board in databases.positions(7)[::997]:
            probe = databases.probe(board)
            for engine in engines:
                found = engine.search(board, nodes=3000, lines=6)
                assert engine.rules == databases.rules and found.position == probe.position
                low, high = found.bounds
                assert low <= probe.bounds[0] and probe.bounds[1] <= high and low <= found.estimate <= high
                assert found.score == (low if low == high else None) and found.time >= 0
                assert sorted(move.pit for move in found.moves) == [move.pit for move in probe.moves]
                assert found.line == (found.moves[0].line if found.moves else [])
                values = {move.pit: move.bounds for move in probe.moves}
                for move in found.moves:
                    low, high = move.bounds
                    assert low <= values[move.pit][0] and values[move.pit][1] <= high and low <= move.estimate <= high
                position = awari.Position(board, rules=databases.rules)
                for pit in found.line:
                    position = position.play(pit)
                proved += found.score is not None
            if databases.has_scores:
                assert engines[0].search(board).score == probe.score
    return proved


def check_engine(directory):
    """Limits, threads, games, errors, signals and pickles."""
    databases = awari.open(directory)
    engine = awari.Engine()
    start = time.monotonic()
    found = engine.search(awari.Position(), time=0.2)
    assert 0.15 < found.time < 5 and time.monotonic() - start < 10 and found.depth > 1 and found.score is None
    assert engine.search(awari.Position(), depth=3).depth == 3
    assert engine.search(awari.Position(), nodes=5000, threads=2).nodes >= 5000
    assert sum(not move.at_most for move in engine.search(awari.Position(), depth=4, lines=3).moves) >= 3
    assert "<table>" in found._repr_html_() and len(repr(found).splitlines()) == 7
    # Of a game, the positions before count: a move back to one of them ends the game as a draw.
    game = awari.Game("1-0-0-0-0-0-1-0-0-0-0-0-23-23-S")
    while not game.result:
        found = engine.search(game, nodes=2000)
        assert found.position == game.position.pits
        game.play(found.line[0])
    assert game.final_stores[0] + game.final_stores[1] == 48
    again = pickle.loads(pickle.dumps(awari.Engine(databases, table_bytes=1 << 20)))
    assert again.search([0, 0, 0, 0, 0, 2, 1, 1, 0, 0, 0, 0]).score == 4 and "with databases" in repr(again)
    # An evaluation that a build has fitted is used where it is.
    assert engine.evaluation is None and again.evaluation is None
    fitted = awari.Engine(awari.open("runs/raw-all"))
    assert fitted.evaluation == os.path.join("runs/raw-all", "evaluation", "network.bin")
    opening = [engine.search(awari.Position(), nodes=2000).estimate for engine in (awari.Engine(), fitted)]
    assert opening[0] != opening[1], opening
    refused(ValueError, ["the rules awari", "those of oware"], lambda: engine.search(awari.Position(rules="oware")))
    refused(ValueError, ["the rules awari", "those of oware"], lambda: engine.search(awari.Game(rules="oware")))
    refused(ValueError, ["the rules awari", "those of oware"], lambda: databases.probe(awari.Position(rules="oware")))
    refused(ValueError, ["the databases have the rules awari, not oware"], lambda: awari.Engine(databases, rules="oware"))
    refused(TypeError, ["awari.open()", "str"], lambda: awari.Engine("runs/quickstart"))
    refused(TypeError, ["expected a position", "NoneType"], lambda: engine.search(None))
    refused(TypeError, ["ndarray of float64, shape [12]"], lambda: engine.search(numpy.zeros(12)))
    refused(TypeError, ["ndarray of int64, shape [2, 12]"], lambda: engine.search(numpy.zeros((2, 12), "int64")))
    refused(ValueError, ["a pit of 300"], lambda: engine.search([300] + [0] * 11))
    for name in ("nodes", "depth", "lines", "threads"):
        refused(ValueError, [name, "from 1", "0"], lambda: engine.search("0 " * 12, **{name: 0}))
        refused(TypeError, [name, "integer", "str"], lambda: engine.search("0 " * 12, **{name: "many"}))
    refused(ValueError, ["seconds", "-1"], lambda: engine.search(awari.Position(), time=-1))
    refused(TypeError, ["seconds", "str"], lambda: engine.search(awari.Position(), time="1"))
    refused(awari.Error, [], lambda: awari.Engine(table_bytes=2**60))
    # A signal ends a search without limits of time.
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    start = time.monotonic()
    fails(KeyboardInterrupt, lambda: engine.search(awari.Position(), nodes=10**15))
    assert time.monotonic() - start < 10
    # The interpreter goes on meanwhile.
    counted = []
    thread = threading.Thread(target=lambda: counted.append(engine.search(awari.Position(), time=1.0)))
    thread.start()
    steps = 0
    while thread.is_alive():
        steps += 1
        time.sleep(0.01)
    assert len(counted) == 1 and steps > 20, steps


def check_games():
    """Games of all rules to their end, their notation, and mistakes."""
    texts = []
    for rules in ("awari", "wari", "oware"):
        for seed in range(8):
            random = numpy.random.default_rng(seed)
            game, position = awari.Game(rules=rules), awari.Position(rules=rules)
            captured = {"South": 0, "North": 0}
            while not game.result:
                moves = game.legal_moves()
                assert [move.upper() for move in moves] == position.moves() and game.position == position
                move = str(random.choice(moves))
                captured[game.side] += position.captures(move.upper())
                position = position.play(move.upper())
                # North's moves are understood in capitals too.
                game.play(move.upper() if seed % 2 else move)
            assert game.stores == (captured["South"], captured["North"]) and sum(game.final_stores) == 48
            assert game.position == position == game.positions[-1] and game.legal_moves() == []
            turns = list(game)
            assert [turn.move for turn in turns] == game.moves and len(game) == len(turns) == len(game.positions) - 1
            assert all(turn.before.play(turn.move.upper()) == turn.after for turn in turns)
            assert turns[-1].stores == game.stores
            refused(ValueError, ["the game is over", game.result], lambda: game.play("A"))
            game.tags = {"White": 'a "name"', "Round": str(seed)}
            again = awari.Game.parse(game.text())
            assert again.rules == rules and again.moves == game.moves and again.tags["White"] == 'a "name"'
            assert game.text().rstrip().endswith({1: "1-0", 0: "1/2-1/2", -1: "0-1"}[
                (game.final_stores[0] > game.final_stores[1]) - (game.final_stores[0] < game.final_stores[1])])
            copied = pickle.loads(pickle.dumps(game))
            assert copied.moves == game.moves and copied.rules == rules and copied.positions == game.positions
            assert game.result in repr(game) and game.result in game._repr_html_()
            texts.append(game.text())
            last = game.moves[-1]
            assert game.take_back() == last and game.result is None and game.positions == copied.positions[:-1]
    games = awari.Game.parse_all("\n".join(texts))
    assert [game.text() for game in games] == [awari.Game.parse(text).text() for text in texts]
    assert {game.rules for game in games} == {"awari", "wari", "oware"}
    start = awari.Game([0, 0, 0, 0, 0, 2, 1, 1, 0, 0, 0, 1])
    start.play("F")
    assert start.stores == (4, 0) and awari.Game.parse(start.text()) == start
    assert awari.Game(awari.Position(rules="oware")).rules == "oware"
    assert awari.Game("4-4-4-4-4-4-4-4-4-4-4-4-0-0-N").side == "North"
    for wrong, words in (("F F", ["move 2", "North"]), ("F x", ["move 2", "x"]), ("F4 f5", ["f5", "4"]), ("", ["without moves"]),
                         ("F 1-0 F 1-0", ["one game, found 2"]), ('[Variant "chess"] F', ["chess"]), ("A\nA", ["line 2"])):
        refused(ValueError, words, lambda: awari.Game.parse(wrong))
    refused(ValueError, ["move 1, x"], lambda: awari.Game().play("x"))
    refused(TypeError, ["expected a move", "int"], lambda: awari.Game().play(1))
    refused(ValueError, ["FEN"], lambda: setattr(awari.Game(), "tags", {"FEN": "x"}))
    refused(ValueError, ["Variant"], lambda: setattr(awari.Game(), "tags", {"Variant": "oware"}))
    refused(TypeError, ["expected a position", "float"], lambda: awari.Game(1.5))
    fails(IndexError, lambda: awari.Game().take_back())


def check_book(path):
    """A book has its positions with all moves, and says so of no other."""
    book = awari.open_book(path)
    assert book.path == path and book.rules == "awari" and book.root == awari.Position() and len(book) >= 60
    entry, seen = book.lookup(book.root), 0
    assert entry.position == [4] * 12 and "<table>" in entry._repr_html_() and "is_best=True" in repr(entry)
    waiting = [book.root]
    while waiting:
        position = waiting.pop()
        entry = book.lookup(position)
        seen += 1
        assert position in book and entry.bounds[0] <= entry.estimate <= entry.bounds[1]
        if not entry.moves:
            continue
        assert sorted(move.pit for move in entry.moves) == position.moves()
        assert [move.estimate for move in entry.moves] == sorted((move.estimate for move in entry.moves), reverse=True)
        for move in entry.moves:
            assert move.captured == position.captures(move.pit) and move.child == position.play(move.pit).pits
            child = book.lookup(move.child)
            assert move.estimate == move.captured - child.estimate and move.goes_on == bool(child.moves)
        waiting += [position.play(move.pit) for move in entry.moves if move.goes_on]
        assert seen < 10_000
    assert seen > 5 and [0, 0, 0, 0, 0, 2, 1, 1, 0, 0, 0, 0] not in book
    assert pickle.loads(pickle.dumps(book)).lookup(book.root) == book.lookup(book.root)
    refused(ValueError, ["oware"], lambda: book.lookup(awari.Position(rules="oware")))
    refused(awari.MissingError, ["awari book expand"], lambda: awari.open_book("runs/absent.sqlite"))
    refused(TypeError, [], lambda: awari.open_book(3))
    data = pathlib.Path(path).read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "copy.sqlite"
        for changed in (b"", b"no book", data[:5000], bytes([data[0] ^ 1]) + data[1:]):
            copy.write_bytes(changed)
            refused(awari.DamagedError, ["copy.sqlite"], lambda: awari.open_book(copy))


def check_wheel():
    """pip builds a program with Parquet."""
    sys.path.insert(0, str(pathlib.Path(sys.argv[1]).resolve().parent))
    import program_backend
    commands = []
    program_backend.subprocess = types.SimpleNamespace(run=lambda command, **_: commands.append(command))
    program_backend._build_program()
    assert len(commands) == 1
    # Cargo knows the package and the feature.
    cargo = ["cargo", "tree", "--locked", "--offline", "--edges", "normal", "--prefix", "none"]
    chosen = [word for at, word in enumerate(commands[0]) if {"--package", "--features"} & {word, commands[0][at - 1]}]
    tree = subprocess.run(cargo + chosen, cwd=pathlib.Path(sys.argv[1]).parent.parent, capture_output=True, text=True)
    assert re.search("^parquet v", tree.stdout, re.M), tree.stderr


def check_program():
    """The program of the package runs: output, exit codes and signals."""
    program = pathlib.Path(awari.__file__).parent.parent / "bin/awari"
    probe = subprocess.run([program, "probe", "--dir", "runs/quickstart", *"0 0 0 0 0 2 1 1 0 0 0 0".split()],
                           capture_output=True, text=True, check=True)
    assert "score" in probe.stdout, probe.stdout
    assert subprocess.run([program, "probe"], capture_output=True).returncode == 2
    export = subprocess.run([program, "export", "--dir", "runs/quickstart", "--stones", "6", "--format", "parquet", "--out", "out"],
                            capture_output=True, text=True)
    if export.returncode == 0:
        frame = polars.read_parquet("out/06.parquet")
        table = awari.open("runs/quickstart").table(6)
        names = [f"mover_{letter}" for letter in "abcdef"] + [f"opponent_{letter}" for letter in "abcdef"] + ["score"]
        assert frame.columns == names
        assert all(numpy.array_equal(frame[name].to_numpy(), column) for name, column in zip(names, table.values()))
    else:
        assert export.returncode == 2 and "awari.open(DIR).table(N)" in export.stderr, export.stderr
    run = subprocess.Popen([program, "run", "m.toml", "--set", "build.stones=\"0..20\"", "--dir", "runs/stopped"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not pathlib.Path("runs/stopped/databases/08.awari").exists():
        assert run.poll() is None, run.communicate()
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    out, error = run.communicate()
    assert run.returncode == 75, out + error


run_examples()
directories = [pathlib.Path(f"runs/{name}") for name in ("raw-all", "packed-reachable", "zstd-all", "rans-reachable")]
for directory in directories:
    databases = compare(directory)
    check_hostile(directory, 3)
with_bounds = [pathlib.Path("runs/oware"), pathlib.Path("runs/oware-reachable")]
for directory in with_bounds:
    compare_bounds(directory)
check_mixed(directories[0], with_bounds[0])
check_opening(pathlib.Path("runs/opening"))
check_arguments(awari.open("runs/raw-all"))
check_changes(directories[0])
check_fork(directories[-1])
check_protocols(directories[0])
check_lookup_of_bounds(with_bounds[0])
check_rules(directories[0])
check_rules(with_bounds[0])
assert check_search("runs/raw-all") > 10 and check_search("runs/oware") > 10
check_engine("runs/quickstart")
check_games()
check_book("runs/quickstart/books/opening.sqlite")
check_wheel()
check_program()
print(f"compared: {len(directories)} directories of scores, {len(with_bounds)} of bounds")
