"""Devices by name: ``cuda``, ``cuda:1``, ``mps`` and ``cpu-torch``, each with options such as ``cuda+bf16+channels-last``."""

import os
import platform
from typing import TYPE_CHECKING, Any

import numpy
import numpy.typing
import torch

if TYPE_CHECKING:
    from fedtvd.torch.data import Data
    from fedtvd.torch.trainer import Trainer

#: Options and what they do.
OPTIONS = {
    "bf16": "forward and backward passes in bfloat16 where PyTorch considers it safe; parameters and steps stay in float32",
    "channels-last": "images with their channels last, which tensor cores prefer",
    "fast": "the fastest algorithms, also those that do not repeat their bits",
}


def known() -> list[str]:
    """The devices of this machine."""
    names = ["cpu-torch"]
    if torch.cuda.is_available():
        names += ["cuda", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        names.append("mps")
    return names


def open_device(name: str) -> "Device | None":
    """The device of this name; ``None`` if PyTorch has no device of this kind, an error if it is not there."""
    base, *options = name.split("+")
    kind, _, index = base.partition(":")
    if kind not in ("cpu-torch", "cuda", "mps") or (index and (kind != "cuda" or not index.isdecimal())):
        return None
    wrong = [option for option in options if option not in OPTIONS]
    if wrong:
        raise ValueError(f"device {name}: there is no option {wrong[0]}; there are {', '.join(OPTIONS)}")
    if base not in known():
        raise ValueError(f"device {base} is not there: PyTorch {torch.__version__} finds {', '.join(known())}")
    return Device(name, "cpu" if kind == "cpu-torch" else base, frozenset(options))


class Device:
    """A device of PyTorch with its options."""

    def __init__(self, name: str, place: str, options: frozenset[str]) -> None:
        self.name = name
        self.torch = torch.device(place)
        self.options = options
        if "fast" not in options:
            # cuBLAS repeats its sums only with a workspace of a fixed size, which must be set before it starts.
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
            torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.benchmark = "fast" in options

    @property
    def double(self) -> torch.dtype:
        """The type in which losses and sums are computed."""
        return torch.float32 if self.torch.type == "mps" else torch.float64

    def describe(self) -> dict[str, Any]:
        """What the bits of results depend on, and how many trainers keep it busy."""
        versions = {"torch": str(torch.__version__), "python": platform.python_version()}
        if self.torch.type == "cuda":
            hardware = torch.cuda.get_device_name(self.torch)
            versions["cuda"] = str(torch.version.cuda)
            versions["cudnn"] = str(torch.backends.cudnn.version())  # type: ignore[no-untyped-call]
        elif self.torch.type == "mps":
            hardware = f"Apple GPU, macOS {platform.mac_ver()[0]}"
        else:
            hardware = f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"
            # Sums are divided over threads.
            versions["threads"] = str(torch.get_num_threads())
        repeatable = "fast" not in self.options and self.torch.type != "mps"
        return {
            "name": self.name,
            "hardware": hardware,
            "versions": versions,
            "repeatable": repeatable,
            "workers": 1,
        }

    def data(
        self,
        shape: tuple[int, int, int],
        classes: int,
        labels: numpy.typing.NDArray[numpy.uint32],
        values: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.float32],
        table: numpy.typing.NDArray[numpy.float32] | None,
    ) -> "Data":
        """A data set that stays on the device: bytes with the value that each encodes, or numbers."""
        from fedtvd.torch.data import Data
        from fedtvd.torch.failure import on

        with on(self.name, f"a data set of {values.nbytes // 1_000_000} MB"):
            return Data(self, shape, classes, labels, values, table)

    def trainer(self, definition: str, tensors: str, data: "Data") -> "Trainer":
        """A trainer of a model, a definition as JSON with the tensors of its layout, on a data set."""
        from fedtvd.torch.failure import on
        from fedtvd.torch.trainer import Trainer

        with on(self.name, "making a model"):
            return Trainer(self, definition, tensors, data)

    def training_memory(self, definition: str, tensors: str, batch: int, vectors: int) -> int:
        """Bytes that training takes in batches of this size, with an optimiser of this many vectors: parameters, gradient,
        optimiser and the activations that the backward pass needs, which a forward pass without data counts."""
        from fedtvd.torch.memory import training_memory

        return training_memory(definition, tensors, batch, vectors)
