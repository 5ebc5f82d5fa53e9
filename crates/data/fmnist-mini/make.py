#!/usr/bin/env python3
"""Makes fmnist-mini from the full Fashion-MNIST: make.py FOLDER-WITH-THE-FOUR-IDX-FILES

Keeps the first 1,200 images of each class of the training set and the first 200 of each class of the test
set, in their original order, and writes them in the original format beside this script.
"""

import gzip
import pathlib
import struct
import sys

PIXELS = 28 * 28


def read(folder, name, header):
    return gzip.decompress((folder / f"{name}.gz").read_bytes())[header:]


def write(name, header, content):
    path = pathlib.Path(__file__).with_name(f"{name}.gz")
    path.write_bytes(gzip.compress(header + content, compresslevel=9, mtime=0))


def main():
    folder = pathlib.Path(sys.argv[1])
    for part, per_class in (("train", 1200), ("t10k", 200)):
        images = read(folder, f"{part}-images-idx3-ubyte", 16)
        labels = read(folder, f"{part}-labels-idx1-ubyte", 8)
        seen = [0] * 10
        kept = []
        for row, label in enumerate(labels):
            if seen[label] < per_class:
                seen[label] += 1
                kept.append(row)
        write(
            f"{part}-images-idx3-ubyte",
            struct.pack(">IIII", 0x803, len(kept), 28, 28),
            b"".join(images[row * PIXELS : (row + 1) * PIXELS] for row in kept),
        )
        write(
            f"{part}-labels-idx1-ubyte",
            struct.pack(">II", 0x801, len(kept)),
            bytes(labels[row] for row in kept),
        )


main()
