"""Random numbers by address, as crates/core/src/stream.rs defines them, written a second time in plain Python.

A key is 32 bytes. One ChaCha8 block, chosen by purpose, round and client, is the key below it; the blocks of a key,
from the first on, are its numbers.
"""
import struct

INIT, COHORT, JOB, ORDER = 3, 4, 5, 6
CONSTANTS = struct.unpack("<4I", b"expand 32-byte k")
COLUMNS_AND_DIAGONALS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
                         (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
WORD, LONG = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def block(key, counter, stream):
    """64 bytes of ChaCha with 8 rounds."""
    start = [*CONSTANTS, *struct.unpack("<8I", key), *struct.unpack("<4I", struct.pack("<QQ", counter, stream))]
    x = start[:]
    for _ in range(4):
        for a, b, c, d in COLUMNS_AND_DIAGONALS:
            for left, right in ((16, 12), (8, 7)):
                x[a] = (x[a] + x[b]) & WORD
                mixed = x[d] ^ x[a]
                x[d] = (mixed << left | mixed >> (32 - left)) & WORD
                x[c] = (x[c] + x[d]) & WORD
                mixed = x[b] ^ x[c]
                x[b] = (mixed << right | mixed >> (32 - right)) & WORD
    return struct.pack("<16I", *((a + b) & WORD for a, b in zip(x, start)))


def key_of(seed):
    return struct.pack("<Q", seed) + bytes(24)


def key_at(key, purpose, round, client):
    return block(key, purpose << 32 | round, client)[:32]


class Stream:
    """Stream `number` of a key."""

    def __init__(self, key, number=0):
        self.longs = (long for counter in range(1 << 62) for long in struct.unpack("<8Q", block(key, counter, number)))

    def bits64(self):
        return next(self.longs)

    def unit(self):
        """A multiple of 2^-53 in [0, 1)."""
        return (self.bits64() >> 11) * 2.0**-53

    def below(self, bound):
        """A number in 0..bound: Lemire's multiplication with rejection."""
        reject = (1 << 64) % bound
        while True:
            wide = self.bits64() * bound
            if wide & LONG >= reject:
                return wide >> 64

    def shuffle(self, items):
        """Fisher-Yates from the end."""
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]


# The numbers that stream.rs pins: seed 7, cohort, round 3, client 2.
_pinned = Stream(key_at(key_of(7), COHORT, 3, 2))
assert [_pinned.bits64(), _pinned.bits64()] == [15511449405849924239, 12067778194854637894]
