"""Safetensors files: eight bytes with the length of a JSON header, the header, the tensors' bytes.

https://huggingface.co/docs/safetensors/index#format
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4", "U8": "|u1"}


def read(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file by name, in the file's order."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    arrays = {}
    for name, about in sorted(header.items(), key=lambda entry: entry[1]["data_offsets"]):
        shape, kind = about["shape"], np.dtype(_TYPES[about["dtype"]])
        start = 8 + length + about["data_offsets"][0]
        values = np.frombuffer(content, kind, count=math.prod(shape), offset=start)
        # A copy, because a view of the file's bytes could not be changed.
        arrays[name] = values.reshape(shape).copy()
    return arrays
