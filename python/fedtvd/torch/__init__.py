"""Training with PyTorch: any device that it has, networks of fedtvd and any ``torch.nn.Module``.

One call per pass crosses from the program into this package; everything between is on the device.
"""

from fedtvd.torch.device import Device, known, open_device
from fedtvd.torch.failure import DeviceFailed, Diverged
from fedtvd.torch.models import register, registered

__all__ = ["Device", "DeviceFailed", "Diverged", "known", "open_device", "register", "registered"]
