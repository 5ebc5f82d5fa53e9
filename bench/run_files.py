"""Reads what fedtvd reads and writes: images in IDX files, a run directory's split and rounds, a model's tensors."""
import gzip, hashlib, json, struct
from pathlib import Path
import torch


def idx(path):
    """An IDX file of bytes as a tensor."""
    data = gzip.decompress(Path(path).read_bytes())
    dimensions = data[3]
    shape = struct.unpack(f">{dimensions}I", data[4:4 + 4 * dimensions])
    return torch.frombuffer(bytearray(data[4 + 4 * dimensions:]), dtype=torch.uint8).reshape(shape)


def grey_images(folder):
    """Images from 0 to 1 and labels, for training and for testing."""
    return [(idx(f"{folder}/{part}-images-idx3-ubyte.gz").unsqueeze(1).float() / 255,
             idx(f"{folder}/{part}-labels-idx1-ubyte.gz").long()) for part in ("train", "t10k")]


def partition(run):
    """For each client its rows; the file's own hash of them must be right, and be the manifest's."""
    run = Path(run)
    file = json.loads((run / "partition.json").read_text())
    lists = b"".join(struct.pack(f"<Q{len(rows)}I", len(rows), *rows) for rows in file["clients"])
    found = hashlib.sha256(b"fedtvd partition 1\n" + struct.pack("<Q", len(file["clients"])) + lists).hexdigest()
    expected = json.loads((run / "manifest.json").read_text())["split_hash"]
    if not found == expected == file["hash"]:
        raise SystemExit(f"the split's hash is {found}, its file says {file['hash']}, the manifest {expected}")
    return file["clients"]


def rounds(run):
    return [json.loads(line) for line in (Path(run) / "rounds.jsonl").read_text().splitlines()]


def tensors(path):
    """A safetensors file as a dictionary."""
    data = Path(path).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    body = bytearray(data[8 + length:])

    def tensor(about):
        start, end = about["data_offsets"]
        return torch.frombuffer(body, dtype=torch.float32, count=(end - start) // 4, offset=start).reshape(about["shape"])

    return {name: tensor(about) for name, about in header.items()}
