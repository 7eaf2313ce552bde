"""Compares the Python reader with what the program has exported: awari_db.py READER RUN OUT.

READER is the directory of the reader, RUN one with databases/NN.awari, OUT one with what `awari export` wrote of them as
raw and csv. Prints what was compared; any difference is an error.
"""

import pathlib
import sys
import tempfile

# Of a database with more positions, this many are looked up one by one.
POSITIONS_MAX = 100_000
SAMPLE = 2_000

reader, run, out = map(pathlib.Path, sys.argv[1:])
sys.path.insert(0, str(reader))

import numpy

import awari_db


def has(module):
    try:
        __import__(module)
        return True
    except ImportError:
        return False


def refuses(path, checksums):
    """Whether a file is refused; nothing but ValueError may say so."""
    try:
        return awari_db.open(path, checksums=checksums).scores() is None
    except ValueError:
        return True


def check_hostile(path):
    """Every byte changed, and every length too short."""
    right = path.read_bytes()
    scores = awari_db.open(path).scores()
    with tempfile.TemporaryDirectory() as directory:
        changed = pathlib.Path(directory) / path.name
        for at in range(len(right)):
            data = bytearray(right)
            data[at] ^= 1 << at % 8
            changed.write_bytes(data)
            if has("blake3"):
                assert refuses(changed, True), f"{path}: byte {at}"
            if not refuses(changed, False):
                found = awari_db.open(changed, checksums=False).scores()
                assert len(found) == len(scores), f"{path}: byte {at}"
        for length in range(0, len(right), 7):
            changed.write_bytes(right[:length])
            assert refuses(changed, False), f"{path}: {length} bytes"
        changed.write_bytes(right + b"\0")
        assert refuses(changed, False)


def check(path):
    """All scores, all at once and position by position."""
    database = awari_db.open(path)
    assert f"{database.stones:02}" == path.stem and database.rules == ("oware" if database.pairs else "awari"), database
    scores, bounds = database.scores(), database.all_bounds()
    names = ("low.raw", "high.raw") if database.pairs else ("raw", "raw")
    for name, found in zip(names, bounds):
        expected = numpy.frombuffer((out / f"{path.stem}.{name}").read_bytes(), numpy.int8)
        assert found.dtype == numpy.int8 and numpy.array_equal(found, expected), f"{path}: others than in {name}"
    low, high = bounds
    if database.pairs:
        assert (low <= high).all() and (database.stones < 4 or (low < high).any()), path
        assert isinstance(scores, numpy.ma.MaskedArray) and numpy.array_equal(scores.mask, low != high), path
        assert numpy.array_equal(scores.compressed(), low[low == high]) and (scores.data[scores.mask] == -128).all(), path
    else:
        assert type(scores) is numpy.ndarray and numpy.array_equal(scores, low), path
    assert scores.dtype == numpy.int8 and len(database) == len(scores), database
    if has("blake3"):
        database.verify()
    lines = (out / f"{path.stem}.csv").read_text().splitlines()
    assert lines.pop(0) == ("position,low,high,score" if database.pairs else "position,score"), path
    assert len(lines) == len(scores), path
    step = 1 if len(lines) <= POSITIONS_MAX else len(lines) // SAMPLE
    for position in sorted({*range(0, len(lines), step), len(lines) - 1}):
        line = lines[position]
        text, *values = line.split(",")
        board = [int(stones) for stones in text.split()]
        assert database.rank(board) == position and database.unrank(position) == board, line
        score = int(values[-1]) if values[-1] else None
        assert database.score(board) == score, line
        expected = tuple(map(int, values[:2])) if database.pairs else (score, score)
        assert database.bounds(board) == expected, line
        assert (score is None) == (expected[0] < expected[1]), line
    for board in ([0] * 11, [-1, database.stones + 1] + [0] * 10, [database.stones + 1] + [0] * 11):
        try:
            database.rank(board)
        except ValueError:
            continue
        raise AssertionError(f"{board} is no position of {database}")
    if database.opening is not None:
        assert database.rank(database.opening) == len(database) - 1, database
        assert database.slabs[-1] == (1, 1) and len(database.slabs) == database.stones + 2, database
    return database


databases = sorted((run / "databases").glob("*.awari"))
assert databases, f"no databases in {run}"
for path in databases:
    database = check(path)
if len(databases) > 2:
    check_hostile(databases[2])
assert (database.opening is None) == (database.stones != 12), database
kind = f"{database.positions} {database.codec}"
print(f"compared: {len(databases)} databases, {kind}{'' if has('blake3') else ', no checksums: no blake3'}")
