"""A data set that stays on the device."""

from typing import TYPE_CHECKING

import numpy
import numpy.typing
import torch
from torch import Tensor

if TYPE_CHECKING:
    from fedtvd.torch.device import Device


class Data:
    """Values and labels of all rows; images stay bytes until they are read."""

    def __init__(
        self,
        device: "Device",
        shape: tuple[int, int, int],
        classes: int,
        labels: numpy.typing.NDArray[numpy.uint32],
        values: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.float32],
        table: numpy.typing.NDArray[numpy.float32] | None,
    ) -> None:
        self.shape, self.classes = shape, classes
        place = device.torch
        self.labels = torch.from_numpy(labels.astype(numpy.int64)).to(place)
        self.table: Tensor | None = None
        if table is not None:
            self.table = torch.from_numpy(table).to(place).view(shape[0], 256)
        self.values = torch.from_numpy(values).view(-1, *shape).to(place)

    def read(self, rows: Tensor, draws: Tensor | None, crop: int) -> Tensor:
        """The samples of these rows; ``draws`` has the shift down, the shift right and whether to mirror of each."""
        x = self.values[rows]
        if self.table is not None:
            places = torch.arange(self.shape[0], device=x.device).view(1, -1, 1, 1) * 256
            x = self.table.flatten()[x.long() + places]
        return x if draws is None else augmented(x, draws.long(), crop)


def augmented(x: Tensor, draws: Tensor, crop: int) -> Tensor:
    """Shifted and mirrored images; pixels from beyond the edge are 0."""
    samples, channels, height, width = x.shape
    down, right, mirrored = draws.unbind(1)
    padded = torch.nn.functional.pad(x, (crop, crop, crop, crop))
    lines = torch.arange(height, device=x.device) + down[:, None]
    columns = torch.arange(width, device=x.device).expand(samples, -1)
    columns = torch.where(mirrored[:, None] == 1, width - 1 - columns, columns) + right[:, None]
    sample = torch.arange(samples, device=x.device)[:, None, None, None]
    channel = torch.arange(channels, device=x.device)[None, :, None, None]
    return padded[sample, channel, lines[:, None, :, None], columns[:, None, None, :]]
