"""Why a client's training failed: the round goes on without it."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


class Diverged(Exception):
    """The loss became NaN or infinite."""

    def __init__(self, epoch: int, loss: float) -> None:
        super().__init__(f"the loss became {loss} in epoch {epoch + 1}")
        self.epoch = epoch
        self.loss = loss


class DeviceFailed(Exception):
    """The device cannot do this, for example because its memory is full or because it was lost."""


@contextmanager
def on(device: str, work: str) -> Iterator[None]:
    """Turns what PyTorch raises during ``work`` into a sentence about the device."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        raise DeviceFailed(
            f"{device} has too little memory for {work}; a smaller local.batch or fewer --workers need less"
        ) from error
    except (Diverged, DeviceFailed):
        raise
    except Exception as error:
        # A lost device and a module's own mistakes arrive as exceptions of many types; their first line says what happened.
        first = str(error).strip().partition("\n")[0] or type(error).__name__
        raise DeviceFailed(f"{device} failed in {work}: {first}") from error
