"""Data on the device, and the names of devices."""

import numpy
import pytest

torch = pytest.importorskip("torch")

from fedtvd.torch import known, open_device  # noqa: E402
from fedtvd.torch.data import Data, augmented  # noqa: E402


def test_images_are_bytes_until_they_are_read() -> None:
    device = open_device("cpu-torch")
    assert device is not None
    table = numpy.stack([numpy.arange(256) / 255, numpy.arange(256) * 2.0]).astype(numpy.float32)
    values = numpy.arange(12, dtype=numpy.uint8)
    data = Data(device, (2, 1, 3), 2, numpy.array([0, 1], dtype=numpy.uint32), values, table.ravel())
    found = data.read(torch.tensor([1]), None, 0)
    expected = torch.tensor([[[[6 / 255, 7 / 255, 8 / 255]], [[18.0, 20.0, 22.0]]]])
    assert torch.equal(found, expected.float())
    assert data.values.dtype == torch.uint8


def test_shifted_and_mirrored_images_have_zeros_beyond_the_edge() -> None:
    image = torch.arange(1.0, 10.0).view(1, 1, 3, 3)
    draw = lambda *numbers: torch.tensor([numbers])  # noqa: E731
    # As the program's own `Augment`: a shift of 1 of 0 to 2 leaves an image where it is.
    assert torch.equal(augmented(image, draw(1, 1, 0), 1), image)
    assert torch.equal(augmented(image, draw(1, 1, 1), 1), image.flip(3))
    down = torch.tensor([[[[0.0, 0.0, 0.0], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]])
    assert torch.equal(augmented(image, draw(0, 1, 0), 1), down)
    right = torch.tensor([[[[2.0, 3.0, 0.0], [5.0, 6.0, 0.0], [8.0, 9.0, 0.0]]]])
    assert torch.equal(augmented(image, draw(1, 2, 0), 1), right)
    # Mirrored after the shift, as the program does.
    assert torch.equal(augmented(image, draw(1, 2, 1), 1), right.flip(3))


def test_a_device_that_is_not_there_is_refused_and_others_are_left_to_the_program() -> None:
    assert "cpu-torch" in known()
    assert open_device("cpu") is None
    assert open_device("tpu") is None
    with pytest.raises(ValueError, match="there is no option quick; there are bf16, channels-last, fast"):
        open_device("cpu-torch+quick")
    with pytest.raises(ValueError, match="device cuda:99 is not there: PyTorch .* finds cpu-torch"):
        open_device("cuda:99")


def test_a_device_says_what_its_bits_depend_on() -> None:
    device = open_device("cpu-torch+bf16")
    assert device is not None
    found = device.describe()
    assert (found["name"], found["repeatable"], found["workers"]) == ("cpu-torch+bf16", True, 1)
    assert found["versions"]["torch"] == str(torch.__version__)
