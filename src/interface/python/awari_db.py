"""Reads endgame databases of awari, as the program `awari` writes them: `databases/NN.awari`.

    import awari_db
    database = awari_db.open("runs/small/databases/06.awari")
    database.score([0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 3])    # the player to move first, A to F, then a to f
    database.scores()                                        # all scores, a numpy array of int8

A score is the stones that the player to move will capture less those that the opponent will. Positions are numbered in
canonical order: slabs ascending by the stones of the player to move; in a slab a row for each half of the opponent, in it
a column for each half of the player to move, both in descending lexicographic order of their pits. In a database of
reachable positions the opponent's halves without an empty pit are left out; that of all stones of the game ends with the
opening position, the same number of stones in every pit, as a slab of its own.

By the rules of oware a position has two bounds instead of a score: what the player to move can force, and to what the
opponent can hold that player. bounds() and all_bounds() return both. A score is known where they are equal: elsewhere
score() returns None, and the array of scores() is masked.

The layout of the bytes is described in `docs/formats.md`; this is a second reader of it, which shares nothing with
the first. For any bytes of a file it raises ValueError or returns scores of the range that the file states. With the
package `blake3` checksums are compared too, so that the scores are those that were written. Databases of the codec zstd
need the package `zstandard`.
"""

import builtins
import math
import mmap
import operator
import os
import stat
import struct

import numpy as np

try:
    import blake3 as _blake3
except ImportError:
    _blake3 = None

__all__ = ["Database", "open"]

_MAGIC = b"\x89awari\r\n"
_MAGIC_END = _MAGIC[::-1]
_VERSION_MAX = 2
_PAIRS_VERSION = 5
_FIXED_BYTES = 104
_FOOTER_BYTES = 72
_ENTRY_BYTES = 24
_BLOCK_POSITIONS = 65_536
_STONES_MAX = 48
_DATABASE = 1
_BOUNDS = 5
_OPPONENT_MAJOR = 2
_CODECS = {1: "raw", 2: "packed", 3: "zstd", 4: "rans"}
_FORMS = {1: "raw", 2: "packed", 3: "frame", 4: "frames", 5: "strips"}
_ADMITTED = {"raw": ("raw",), "packed": ("packed",), "zstd": ("packed", "frame", "frames"), "rans": ("packed", "strips")}
_FRAME_VALUES = 8192
# In place of a score that is masked: no score, and no bound of one.
_NO_SCORE = -128
# Constants of the codec rans, explained in the modules tiling, model and coder of the crate store.
_LANES = 16
_CELL_COLUMNS = 32
_CELL_VALUES = 512
_SLOT_BITS = 10
_SLOTS = 1 << _SLOT_BITS
_GUESSES = 25
_GUESS_OFFSET = 256
_ROUGHNESS_BOUNDS = [1, 4, 9]
_ROUGHNESSES = 5
_CLASSES = _GUESSES * _ROUGHNESSES + 1
_HEADER_NUMBER = 2**64 - 1
_INDEX_NUMBER = 2**64 - 2
_FOOTER_NUMBER = 2**64 - 3


def open(path, checksums=None):
    """Opens a database and checks everything but its blocks, which are checked as they are read.

    checksums: True compares them and needs the package blake3, False does not, None does where blake3 is there.

    Raises ValueError if the file is not a sound database, ImportError if blake3 is asked for and not there, OSError.
    """
    if checksums is None:
        checksums = _blake3 is not None
    elif checksums and _blake3 is None:
        raise ImportError("comparing checksums needs the package blake3: pip install blake3")
    return Database(path, checksums)


class Database:
    """The scores, or the bounds, of all positions with some number of stones. Made by open().

    path        the file
    stones      stones on the board
    rules       the name of the rules, such as "awari"
    positions   the position set, "all" or "reachable"
    codec       "raw", "packed", "zstd" or "rans"
    pairs       whether positions have two bounds instead of a score, as by the rules "oware"
    slabs       rows and columns of each slab, by the stones of the player to move; last the opening, if it is there; with pairs
                those of the lower bounds, then those of the upper ones
    opening     the opening position, if it is the last position of the database; else None
    digest      BLAKE3 of the scores in canonical order, as the file states it
    checksums   whether checksums are compared
    """

    def __init__(self, path, checksums):
        self.path = os.fspath(path)
        self.checksums = checksums
        # A pipe without a writer would block.
        with builtins.open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
            status = os.fstat(file.fileno())
            self._require(stat.S_ISREG(status.st_mode), "a regular file", "another kind of file")
            size = status.st_size
            self._require(size >= _FIXED_BYTES + _FOOTER_BYTES, "a database", f"{size} bytes")
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._read_header()
        self._read_footer()
        # The last block of each section.
        self._last = [(None, None), (None, None)]

    def __len__(self):
        """The number of positions."""
        return self._firsts[-1] // (2 if self.pairs else 1)

    def __repr__(self):
        return f"<database of {self.stones} stones, {len(self)} positions ({self.positions}), {self.codec}: {self.path}>"

    def score(self, board):
        """The score of a position: twelve numbers, the pits of the player to move first. None if it has two bounds that differ.

        Raises ValueError if the position is not in the database, or its block is damaged.
        """
        low, high = self.bounds(board)
        return low if low == high else None

    def bounds(self, board):
        """What the player to move can force, and to what the opponent can hold that player. Both are the score if positions
        have one.

        Raises ValueError as score() does.
        """
        position = self.rank(board)
        low = self._value(position)
        high = self._value(len(self) + position) if self.pairs else low
        self._require(low <= high, f"a lower bound of position {position} up to {high}", low)
        return low, high

    def _value(self, position):
        slab = next(m for m in range(len(self.slabs)) if position < self._firsts[m + 1])
        block, at = divmod(position - self._firsts[slab], self._in_block[slab])
        block += self._first_blocks[slab]
        section = position // len(self)
        if self._last[section][0] != block:
            self._last[section] = (block, self._block(block, slab))
        return int(self._last[section][1][at])

    def scores(self):
        """All scores in canonical order, a numpy array of int8. With pairs it is a masked array, which hides the positions whose
        bounds differ.

        Raises ValueError if a block is damaged.
        """
        low, high = self.all_bounds()
        if not self.pairs:
            return low
        mask = low != high
        return np.ma.MaskedArray(np.where(mask, np.int8(_NO_SCORE), low), mask=mask, fill_value=_NO_SCORE)

    def all_bounds(self):
        """The lower and the upper bounds of all positions in canonical order, two numpy arrays of int8.

        Raises ValueError if a block is damaged.
        """
        values = self._values()
        if not self.pairs:
            return values, values
        low, high = values[: len(self)], values[len(self) :]
        crossed = low > high
        if crossed.any():
            at = int(crossed.argmax())
            self._require(False, f"a lower bound of position {at} up to {high[at]}", low[at])
        return low, high

    def _values(self):
        scores = np.empty(self._firsts[-1], np.int8)
        first = 0
        for slab in range(len(self.slabs)):
            for block in range(self._first_blocks[slab], self._first_blocks[slab + 1]):
                values = self._block(block, slab)
                scores[first : first + len(values)] = values
                first += len(values)
        return scores

    def verify(self):
        """Compares the digest of all scores with the one in the footer of the file. Needs the package blake3.

        Raises ValueError if they differ.
        """
        if _blake3 is None:
            raise ImportError("the digest needs the package blake3: pip install blake3")
        found = _blake3.blake3(self._values().tobytes()).digest()
        self._require(found == self.digest, f"scores with the digest {self.digest.hex()}", found.hex())

    def rank(self, board):
        """The number of a position in canonical order.

        Raises ValueError if the position is not in the database.
        """
        pits = [operator.index(stones) for stones in board]
        if len(pits) != 12 or min(pits) < 0 or sum(pits) != self.stones:
            raise ValueError(f"expected twelve pits with {self.stones} stones, found {pits}")
        if pits == self.opening:
            return len(self) - 1
        mover, opponent = pits[:6], pits[6:]
        row = _halves_before(opponent, 0)
        if self.positions == "reachable":
            if 0 not in opponent:
                raise ValueError(f"no move leads to {pits}: all pits of the opponent hold stones")
            row -= _halves_before(opponent, 1)
        slab = sum(mover)
        return self._firsts[slab] + row * self.slabs[slab][1] + _halves_before(mover, 0)

    def unrank(self, position):
        """The position of a number, twelve pits.

        Raises IndexError if there is no such position.
        """
        if not 0 <= position < len(self):
            raise IndexError(f"there is no position {position} of {len(self)}")
        if self.opening is not None and position == len(self) - 1:
            return list(self.opening)
        slab = next(m for m in range(len(self.slabs)) if position < self._firsts[m + 1])
        row, column = divmod(position - self._firsts[slab], self.slabs[slab][1])
        return _half(slab, column, False) + _half(self.stones - slab, row, self.positions == "reachable")

    def _require(self, condition, expected, found):
        if not condition:
            raise ValueError(f"{self.path}: expected {expected}, found {found}")

    def _check(self, part, number, data, stored):
        if self.checksums:
            found = _checksum(number, data)
            self._require(found == stored, f"{part} with checksum {stored:016x}", f"{found:016x}")

    def _read_header(self):
        data = self._bytes
        self._require(data[:8] == _MAGIC, f"{_MAGIC} at the start", data[:8])
        version, header_bytes = struct.unpack_from("<II", data, 8)
        self._require(
            1 <= version <= _VERSION_MAX or version == _PAIRS_VERSION,
            f"version 1 to {_VERSION_MAX} or {_PAIRS_VERSION}",
            version,
        )
        self._version = version
        self._require(
            header_bytes % 64 == 0 and 128 <= header_bytes <= len(data) - _FOOTER_BYTES, "a whole header", header_bytes
        )
        self._header_bytes = header_bytes
        (checksum,) = struct.unpack_from("<Q", data, header_bytes - 8)
        self._check("a header", _HEADER_NUMBER, data[: header_bytes - 8], checksum)
        kind, orientation, stones, codec, low, high, role, bound = struct.unpack_from("<BBBBbbBB", data, 16)
        self.pairs = version == _PAIRS_VERSION
        expected = _BOUNDS if self.pairs else _DATABASE
        self._require((kind, role, bound) == (expected, 0, 0), "a database", f"kind {kind}")
        self._require(orientation == _OPPONENT_MAJOR, f"orientation {_OPPONENT_MAJOR}", orientation)
        self._require(stones <= _STONES_MAX, f"at most {_STONES_MAX} stones", stones)
        self._require(codec in _CODECS, "codec 1 to 4", codec)
        self._require(low <= high, "a range of values", f"{low} to {high}")
        self.stones = stones
        self.codec = _CODECS[codec]
        self._low, self._span = low, high - low
        self.rules = self._name(data[24:56])
        self.positions = self._name(data[56:72])
        self._require(self.positions in ("all", "reachable"), "positions all or reachable", self.positions)
        part, parts, first, count, block, slabs = struct.unpack_from("<IIQQII", data, 72)
        block_positions = 0 if self.codec == "rans" else _BLOCK_POSITIONS
        whole = (part, parts, first, block) == (0, 1, 0, block_positions)
        self._require(whole, f"one part in blocks of {block_positions}", (part, parts, first, block))
        reachable = self.positions == "reachable"
        sections = 2 if self.pairs else 1
        has_opening = slabs == sections * (stones + 2) and reachable and stones > 0 and stones % 12 == 0
        is_right = slabs == sections * (stones + 1) or has_opening
        self._require(is_right, f"{sections * (stones + 1)} slabs", slabs)
        self.opening = [stones // 12] * 12 if has_opening else None
        expected = (_FIXED_BYTES + 8 * slabs + 8 + 63) // 64 * 64
        self._require(header_bytes == expected, f"a header of {expected} bytes", header_bytes)
        padding = data[_FIXED_BYTES + 8 * slabs : header_bytes - 8]
        self._require(not any(padding), "zeros behind the slabs", padding)
        self.slabs = list(struct.iter_unpack("<II", data[_FIXED_BYTES : _FIXED_BYTES + 8 * slabs]))
        shape = [(_halves(stones - m, reachable), _halves(m, False)) for m in range(stones + 1)]
        shape += [(1, 1)] if has_opening else []
        shape *= sections
        self._require(self.slabs == shape, f"the slabs of {stones} stones, {self.positions}", self.slabs)
        self._firsts, self._first_blocks, self._in_block = [0], [0], []
        for rows, columns in self.slabs:
            in_block = _band_rows(columns) * columns if self.codec == "rans" else _BLOCK_POSITIONS
            self._in_block.append(in_block)
            self._firsts.append(self._firsts[-1] + rows * columns)
            self._first_blocks.append(self._first_blocks[-1] - rows * columns // -in_block)
        self._require(count == self._firsts[-1], f"{self._firsts[-1]} positions", count)

    def _name(self, field):
        name, _, padding = field.partition(b"\0")
        is_name = name and len(name) < len(field) and not any(padding) and all(32 <= byte < 127 for byte in name)
        self._require(is_name, "a name", field)
        return name.decode("ascii")

    def _read_footer(self):
        data, end = self._bytes, len(self._bytes) - _FOOTER_BYTES
        self._require(data[-8:] == _MAGIC_END, f"{_MAGIC_END} at the end", data[-8:])
        self.digest = data[end : end + 32]
        offset, size, index_checksum, checksum = struct.unpack_from("<QQQQ", data, end + 32)
        covered = data[self._header_bytes - 8 : self._header_bytes] + data[end : end + 56]
        self._check("a footer", _FOOTER_NUMBER, covered, checksum)
        expected = self._first_blocks[-1] * _ENTRY_BYTES
        is_there = size == expected and offset == end - size and offset >= self._header_bytes
        self._require(is_there, f"an index of {expected} bytes before the footer", f"{size} bytes at {offset}")
        index = data[offset : offset + size]
        self._check("an index", _INDEX_NUMBER, index, index_checksum)
        self._entries = []
        next_offset = self._header_bytes
        for block, entry in enumerate(struct.iter_unpack("<QIB3sQ", index)):
            start, size, form, reserved, _ = entry
            form = _FORMS.get(form)
            admitted = form in _ADMITTED[self.codec] and (form not in ("frames", "strips") or self._version > 1)
            self._require(admitted and not any(reserved), f"a form of codec {self.codec} of block {block}", entry[2:4])
            self._require(start == next_offset, f"block {block} at {next_offset}", start)
            values = self._block_len(block)
            packed = (values * self._span.bit_length() + 7) // 8
            fits = {"raw": size == values, "packed": size == packed}.get(form, size < packed)
            self._require(fits, f"the size of {values} values ({form}) in block {block}", size)
            next_offset += size
            self._entries.append((start, size, form, entry[4]))
        self._require(next_offset == offset, f"blocks up to {offset}", next_offset)

    def _block_len(self, block):
        slab = next(m for m in range(len(self.slabs)) if block < self._first_blocks[m + 1])
        first = self._firsts[slab] + (block - self._first_blocks[slab]) * self._in_block[slab]
        return min(self._in_block[slab], self._firsts[slab + 1] - first)

    def _block(self, block, slab):
        """Returns the values of a block as int8."""
        start, size, form, checksum = self._entries[block]
        data = self._bytes[start : start + size]
        count = self._block_len(block)
        if form == "strips":
            columns = self.slabs[slab][1]
            codes = self._decode_strips(block, data, count // columns, columns, checksum).ravel()
            return (codes + np.uint8(self._low & 0xFF)).view(np.int8)
        self._check(f"block {block}", block, data, checksum)
        if form == "packed":
            codes = _unpack(data, self._span.bit_length(), count)
        else:
            if form == "frame":
                data = self._decompress(block, data, count)
            elif form == "frames":
                data = self._decompress_frames(block, data, count)
            codes = np.frombuffer(data, np.uint8) - np.uint8(self._low & 0xFF)
        outside = codes > self._span
        if outside.any():
            at = int(outside.argmax())
            expected = f"values from {self._low} to {self._low + self._span} in block {block}"
            self._require(False, expected, f"another at {at}")
        return (codes + np.uint8(self._low & 0xFF)).view(np.int8)

    def _decode_strips(self, block, data, rows, columns, checksum):
        """Decodes a band of rows. Returns codes (values minus the least value) as an array of rows and columns."""
        strips = _strips(rows, columns)
        head_bytes, count = struct.unpack_from("<II", data.ljust(8, b"\0"))
        entries_end = 8 + 10 * len(strips)
        is_whole = count == len(strips) and entries_end <= head_bytes <= len(data) and self._span < 254
        self._require(is_whole, f"a head with {len(strips)} strips in block {block}", (head_bytes, count))
        self._check(f"the head of block {block}", block, data[:head_bytes], checksum)
        bounds = [head_bytes]
        for number, (size, strip_checksum) in enumerate(struct.iter_unpack("<HQ", data[8:entries_end])):
            strip = data[bounds[-1] : bounds[-1] + size]
            bounds.append(bounds[-1] + size)
            is_whole = bounds[-1] <= len(data) and size >= 64 and size % 2 == 0
            self._require(is_whole, f"strip {number} of block {block}", f"{size} bytes")
            self._check(f"strip {number} of block {block}", (number + 1) << 40 | block, strip, strip_checksum)
        self._require(bounds[-1] == len(data), f"strips up to {len(data)} in block {block}", bounds[-1])
        tables = self._model(block, data[entries_end:head_bytes])
        words = np.frombuffer(data, "<u2", (len(data) - head_bytes) // 2, head_bytes)
        firsts = np.array([(start - head_bytes) // 2 for start in bounds], np.int64)
        out = np.empty((rows, columns), np.uint8)
        for cell in {strip[2:] for strip in strips}:
            alike = [number for number, strip in enumerate(strips) if strip[2:] == cell]
            codes, is_right = _decode_lanes(words, firsts[alike], firsts[1:][alike], cell, tables)
            self._require(is_right, f"whole strips in block {block}", "others")
            for codes_of_one, number in zip(codes, alike):
                _place_cells(out, codes_of_one, strips[number])
        return out

    def _model(self, block, data):
        """Decodes a model: code, frequency and first slot by class and slot, and tables that map guess and roughness to classes."""
        codes, frequencies, starts = (np.zeros((_CLASSES, _SLOTS), np.int64) for _ in range(3))
        frequencies[:] = _SLOTS
        at = 0
        data += b"\0\0"
        for number in range(_CLASSES):
            self._require(at + 2 < len(data), f"a model of {_CLASSES} classes in block {block}", "its end")
            first, count = data[at], data[at + 1]
            at += 2
            slot = 0
            for code in range(first, first + count):
                self._require(at + 2 < len(data), f"a model of {_CLASSES} classes in block {block}", "its end")
                frequency, size = (data[at], 1) if data[at] < 128 else ((data[at] - 128) << 8 | data[at + 1], 2)
                at += size
                codes[number, slot : slot + frequency] = code
                frequencies[number, slot : slot + frequency] = frequency
                starts[number, slot : slot + frequency] = slot
                slot += frequency
            is_right = slot == _SLOTS if count else slot == 0
            self._require(is_right and first + count <= self._span + 1, f"class {number} of block {block}", slot)
        self._require(at + 2 == len(data), f"a model of {at} bytes in block {block}", len(data) - 2)
        most = 3 * self._span
        guesses = np.clip(np.arange(2048) - _GUESS_OFFSET, 0, most) * _GUESSES // (most + 1) * _ROUGHNESSES
        roughnesses = np.searchsorted(_ROUGHNESS_BOUNDS, np.arange(512), "right")
        return codes.ravel(), frequencies.ravel(), starts.ravel(), guesses, roughnesses

    def _decompress_frames(self, block, data, count):
        frames = -(-count // _FRAME_VALUES)
        self._require(len(data) >= 2 * frames, f"{frames} frames in block {block}", f"{len(data)} bytes")
        lengths = struct.unpack_from(f"<{frames}H", data)
        ends = 2 * frames + sum(lengths)
        self._require(ends == len(data), f"frames up to {len(data)} in block {block}", ends)
        values, at = [], 2 * frames
        for frame, length in enumerate(lengths):
            frame_count = min(_FRAME_VALUES, count - frame * _FRAME_VALUES)
            values.append(self._decompress(block, data[at : at + length], frame_count))
            at += length
        return b"".join(values)

    def _decompress(self, block, data, count):
        try:
            import zstandard
        except ImportError:
            message = f"{self.path} is compressed; reading it needs the package zstandard: pip install zstandard"
            raise ImportError(message) from None
        try:
            # Checks the size stated in the frame first, because the decoder allocates that much memory.
            stated = zstandard.get_frame_parameters(data).content_size
            self._require(stated == count, f"a zstd frame of {count} values in block {block}", stated)
            values = zstandard.ZstdDecompressor().decompress(data, max_output_size=count)
        except zstandard.ZstdError as error:
            raise ValueError(f"{self.path}: block {block} is not a zstd frame: {error}") from None
        self._require(len(values) == count, f"{count} values in block {block}", len(values))
        return values


def _checksum(number, data):
    key = b"awari-store-checksum-v1\0" + struct.pack("<Q", number)
    return struct.unpack("<Q", _blake3.blake3(data, key=key).digest()[:8])[0]


def _band_rows(columns):
    """Rows of a block of the codec rans."""
    return max(2**20 // columns, min(16, 2**23 // columns), 1)


def _parts(units, part):
    """Divides units into parts of about equal size, and returns the bounds of the parts."""
    parts = max((units + part // 2) // part, 1)
    return [(number * units // parts, (number + 1) * units // parts) for number in range(parts)]


def _strips(rows, columns):
    """The strips of a band: rows, columns, then rows and columns of a cell and how many cells are side by side."""
    lanes = _LANES
    while lanes > 1 and columns < lanes * _CELL_COLUMNS:
        lanes //= 2
    lanes_down = _LANES // lanes
    units = -(-columns // lanes)
    across = _parts(units, _CELL_COLUMNS) if lanes == _LANES else [(0, units)]
    down = _parts(-(-rows // lanes_down), max(_CELL_VALUES * len(across) // units, 1))
    return [
        (
            (top * lanes_down, min(bottom * lanes_down, rows)),
            (left * lanes, min(right * lanes, columns)),
            bottom - top,
            right - left,
            lanes,
        )
        for top, bottom in down
        for left, right in across
    ]


def _decode_lanes(words, firsts, ends, cell, tables):
    """Decodes strips with equal cells. Returns their codes by strip, step and lane, and whether each strip is valid."""
    codes_of, frequency_of, start_of, guesses, roughnesses = tables
    cell_rows, cell_columns, _ = cell
    halves = words[firsts[:, None] + np.arange(2 * _LANES)].astype(np.int64)
    states = halves[:, 0::2] | halves[:, 1::2] << 16
    used = firsts + 2 * _LANES
    codes = np.empty((cell_rows * cell_columns, len(firsts), _LANES), np.int64)
    for step in range(len(codes)):
        row, column = divmod(step, cell_columns)
        if row and column:
            left, upper, corner = codes[step - 1], codes[step - cell_columns], codes[step - cell_columns - 1]
            guess = guesses[2 * (left + upper) - corner + _GUESS_OFFSET]
            classes = guess + roughnesses[np.abs(left - corner) + np.abs(upper - corner)]
        elif step:
            one = codes[step - 1] if column else codes[step - cell_columns]
            classes = guesses[3 * one + _GUESS_OFFSET] + _ROUGHNESSES - 1
        else:
            classes = np.full(states.shape, _CLASSES - 1)
        slots = states & (_SLOTS - 1)
        at = classes << _SLOT_BITS | slots
        codes[step] = codes_of[at]
        states = frequency_of[at] * (states >> _SLOT_BITS) + slots - start_of[at]
        needs = states < 1 << 16
        order = used[:, None] + np.cumsum(needs, axis=1) - 1
        states = np.where(needs, states << 16 | words[np.clip(order, 0, len(words) - 1)], states)
        used = used + needs.sum(axis=1)
    is_right = np.array_equal(used, ends) and (states == 1 << 16).all()
    return codes.transpose(1, 0, 2), is_right


def _place_cells(out, codes, strip):
    """Writes the codes of a strip, given by step and lane, to their positions in the band."""
    (top, bottom), (left, right), cell_rows, cell_columns, lanes_across = strip
    for lane in range(_LANES):
        row = top + lane // lanes_across * cell_rows
        column = left + lane % lanes_across * cell_columns
        there = out[row : min(row + cell_rows, bottom), column : min(column + cell_columns, right)]
        if there.size:
            there[:] = codes[:, lane].reshape(cell_rows, cell_columns)[: there.shape[0], : there.shape[1]]


def _unpack(data, bits, count):
    """Unpacks values of some bits each, from the least significant bit of the first byte on, as uint8."""
    if bits == 0:
        return np.zeros(count, np.uint8)
    groups = -(-count // 8)
    padded = np.zeros(groups * bits, np.uint8)
    padded[: len(data)] = np.frombuffer(data, np.uint8)
    # Eight values are `bits` bytes, which fit a word.
    words = np.zeros((groups, 8), np.uint8)
    words[:, :bits] = padded.reshape(groups, bits)
    shifts = np.arange(8, dtype=np.uint64) * np.uint64(bits)
    lanes = words.view("<u8").astype(np.uint64) >> shifts & np.uint64((1 << bits) - 1)
    return lanes.astype(np.uint8).ravel()[:count]


def _ways(pits, stones):
    """Returns the number of ways to distribute stones over pits; there is at least one pit."""
    return math.comb(stones + pits - 1, pits - 1) if stones >= 0 else 0


def _halves(stones, is_open):
    """Returns the number of halves with the given stones, optionally only of those with an empty pit."""
    return _ways(6, stones) - (_ways(6, stones - 6) if is_open else 0)


def _halves_before(half, least):
    """Returns the number of halves before this one with as many stones and at least `least` in every pit: those with more
    stones in the first pit that differs."""
    before = 0
    rest = sum(half)
    for pit, stones in enumerate(half):
        pits = 6 - pit
        more = max(stones + 1, least)
        before += _ways(pits, rest - more - (pits - 1) * least)
        if stones < least:
            break
        rest -= stones
    return before


def _half(stones, number, is_open):
    """Returns the half with this number among those with the given stones, optionally only among those with an empty pit."""
    half = []
    for pits in range(6, 1, -1):
        here = stones
        while True:
            ways = _ways(pits - 1, stones - here)
            if is_open and here > 0 and 0 not in half:
                ways -= _ways(pits - 1, stones - here - (pits - 1))
            if number < ways:
                break
            number -= ways
            here -= 1
        half.append(here)
        stones -= here
    half.append(stones)
    return half
