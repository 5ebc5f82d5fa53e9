"""Trains and evaluates a module on a device; one call per pass."""

import json
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy
import numpy.typing
import torch
from torch import Tensor, nn

from fedtvd.torch import models, norm, pass_spec
from fedtvd.torch.bound import Bound
from fedtvd.torch.data import Data
from fedtvd.torch.failure import DeviceFailed, Diverged, on
from fedtvd.torch.loss import cross_entropy
from fedtvd.torch.network import Dropout, Network
from fedtvd.torch.optimizer import State
from fedtvd.torch.pass_spec import Pass

if TYPE_CHECKING:
    from fedtvd.torch.device import Device

Floats = numpy.typing.NDArray[numpy.float32]
Doubles = numpy.typing.NDArray[numpy.float64]
Rows = numpy.typing.NDArray[numpy.uint32]
Counts = numpy.typing.NDArray[numpy.uint64]

#: Samples per batch of an evaluation.
EVALUATION_BATCH = 256

#: A module of one's own may draw from PyTorch's generator, which passes at the same time would share.
_GENERATOR = threading.Lock()


def module_of(definition: str) -> tuple[nn.Module, bool]:
    """The module of a definition, and whether it takes flat samples."""
    model = json.loads(definition)
    if "other" not in model:
        return Network(model), False
    shape = tuple(model["input"])
    make = models.registered(model["other"])
    if models.source(make) != model["source"]:
        raise ValueError(f"module {model['other']} has another source here than where the run was started")
    return models.made(make, shape, model["classes"]), shape[1:] == (1, 1)


class Trainer:
    """A module, its optimiser and a data set on one device."""

    def __init__(self, device: "Device", definition: str, tensors: str, data: Data) -> None:
        self.device, self.data = device, data
        self.classes: int = json.loads(definition)["classes"]
        module, self.flat = module_of(definition)
        self.own = not isinstance(module, Network)
        self.norms = norm.prepare(module)
        self.bound = Bound(module, tensors, device.torch)
        if "channels-last" in device.options:
            # Inputs bring the format with them; parameters stay views of one vector.
            self.format = torch.channels_last
        else:
            self.format = torch.contiguous_format
        self.state = State()
        self.generator = torch.Generator(device.torch)
        for part in module.modules():
            if isinstance(part, Dropout):
                part.generator = self.generator

    def run(self, params: Floats, spec: dict[str, Any]) -> tuple[int, list[float], Doubles | None]:
        """Trains the parameters, in place; returns steps, losses of the first and last epoch, and batch statistics."""
        with on(self.device.name, f"a pass in batches of {spec['batch']}"), self._alone():
            return self._run(params, self._pass(spec))

    def gradient(self, params: Floats, spec: dict[str, Any]) -> Floats:
        """The gradient of the mean loss of the pass's rows; buffers and optimiser stay as they are."""
        with on(self.device.name, f"a gradient in batches of {spec['batch']}"), self._alone():
            own = self._pass(spec)
            self.bound.load(_floats(params, self.device.torch))
            self._begin(own, 0)
            self._shift(own)
            total = self._weights(own)
            sums = torch.zeros_like(self.bound.values, dtype=self.device.double)
            loss_sum = torch.zeros((), device=self.device.torch, dtype=self.device.double)
            for rows, draws in _batches(own, 0):
                loss, weight = self._slope(own, rows, draws)
                loss_sum += loss
                share = torch.where(total > 0, weight / total, torch.zeros_like(weight))
                sums += self.bound.gradient * share
            self._shift(None)
            _check(own.first_epoch, float(loss_sum))
            found = _array(sums.float())
            if own.moving is not None:
                kept = found.copy()
                found[:] = 0.0
                for start, end in own.moving:
                    found[start:end] = kept[start:end]
            return found

    def evaluate(self, params: Floats, rows: Rows, offsets: Floats | None) -> tuple[float, Counts]:
        """The sum of the losses, and the number of samples by class and prediction."""
        with on(self.device.name, "an evaluation"):
            classes, place = self.classes, self.device.torch
            added = None if offsets is None else _floats(offsets, place)
            loss = torch.zeros((), device=place, dtype=self.device.double)
            confusion = torch.zeros(classes * classes, device=place, dtype=torch.int64)
            for own, logits in self._logits(params, rows):
                labels = self.data.labels[own]
                z = logits.to(self.device.double)
                z = z if added is None else z + added.to(z.dtype)
                loss -= torch.log_softmax(z, 1).gather(1, labels[:, None]).sum()
                guess = (logits if added is None else logits + added).argmax(1)
                confusion += torch.bincount(labels * classes + guess, minlength=classes * classes)
            return float(loss), confusion.cpu().numpy().astype(numpy.uint64)

    def logits(self, params: Floats, rows: Rows) -> Floats:
        """The logits of each row, row by row."""
        with on(self.device.name, "an evaluation"):
            parts = [logits.flatten() for _, logits in self._logits(params, rows)]
            return _array(torch.cat(parts))

    def _pass(self, spec: dict[str, Any]) -> Pass:
        return pass_spec.read(spec, self.device.torch, self.device.double)

    def _alone(self) -> AbstractContextManager[Any]:
        return _GENERATOR if self.own else nullcontext()

    def _run(self, params: Floats, own: Pass) -> tuple[int, list[float], Doubles | None]:
        self.bound.load(_floats(params, self.device.torch))
        self.state.begin(own, self.bound.values)
        total = float(self._weights(own))
        losses, steps, sums = [0.0, 0.0], 0, self._shift(own)
        for epoch in range(len(own.seeds)):
            self._begin(own, epoch)
            loss_sum = torch.zeros((), device=self.device.torch, dtype=self.device.double)
            for rows, draws in _batches(own, epoch):
                loss, _ = self._slope(own, rows, draws)
                loss_sum += loss
                self.state.step(own, self.bound.values, self.bound.gradient, self.device.double)
                steps += 1
            # Once per epoch: reading a number waits for the device.
            found = _check(own.first_epoch + epoch, float(loss_sum))
            losses[1] = found / total if total > 0.0 else 0.0
            if epoch == 0:
                losses[0] = losses[1]
        self._shift(None)
        self.bound.store(torch.from_numpy(params))
        return steps, losses, None if sums is None else (sums / steps).cpu().numpy().astype(numpy.float64)

    def _begin(self, own: Pass, epoch: int) -> None:
        """Training mode, with the epoch's own random numbers: so four passes of one epoch equal one pass of four."""
        self.bound.module.train()
        for name, part in self.norms.items():
            prefix = f"{name}." if name else ""
            names = {prefix + "running_mean", prefix + "running_var"}
            part.still = names <= own.still  # type: ignore[assignment]
        self.generator.manual_seed(own.seeds[epoch])
        if self.own:
            torch.manual_seed(own.seeds[epoch])

    def _weights(self, own: Pass) -> Tensor:
        """The sum of the weights of the pass's samples, without class weights their number."""
        rows = own.orders[0]
        if own.class_weights is None:
            return torch.tensor(float(len(rows)), device=self.device.torch, dtype=self.device.double)
        return own.class_weights[self.data.labels[rows]].sum()

    def _slope(self, own: Pass, rows: Tensor, draws: Tensor | None) -> tuple[Tensor, Tensor]:
        """The gradient of a batch's loss, in the bound vector; the sums of its losses and of its weights."""
        x = self._input(self.data.read(rows, draws, own.crop))
        with self._precision():
            logits = self.bound.module(x)
        total, whole = cross_entropy(self._checked(logits).to(self.device.double), self.data.labels[rows], own)
        mean = total / torch.where(whole > 0, whole, torch.ones_like(whole))
        self.bound.gradient.zero_()
        mean.backward()  # type: ignore[no-untyped-call]
        return total.detach(), whole

    def _logits(self, params: Floats, rows: Rows) -> Any:
        self.bound.load(_floats(params, self.device.torch))
        self.bound.module.eval()
        places = torch.from_numpy(rows.astype(numpy.int64))
        for own in torch.split(places.to(self.device.torch), EVALUATION_BATCH):
            with torch.no_grad(), self._precision():
                logits = self.bound.module(self._input(self.data.read(own, None, 0)))
            yield own, self._checked(logits).float()

    def _input(self, x: Tensor) -> Tensor:
        return x.flatten(1) if self.flat else x.contiguous(memory_format=self.format)

    def _checked(self, logits: Tensor) -> Tensor:
        if logits.dim() != 2 or logits.shape[1] != self.classes:
            raise DeviceFailed(
                f"the module gives outputs of shape {tuple(logits.shape)}; a batch needs one number per sample and class, "
                f"(samples, {self.classes})"
            )
        return logits

    def _precision(self) -> AbstractContextManager[Any]:
        if "bf16" in self.device.options:
            return torch.autocast(self.device.torch.type, dtype=torch.bfloat16)
        return nullcontext()

    def _shift(self, own: Pass | None) -> Tensor | None:
        """Sets or removes the constants of the batch norms; returns where their statistics will be summed."""
        if own is None or own.shift is None or own.floor is None:
            for part in self.norms.values():
                part.shift = None  # type: ignore[assignment]
            return None
        sums = torch.zeros(self.bound.buffer_length, device=self.device.torch, dtype=self.device.double)
        for name, part in self.norms.items():
            prefix = f"{name}." if name else ""
            places = [self.bound.buffers.get(prefix + leaf) for leaf in ("running_mean", "running_var")]
            if places[0] is None or places[1] is None:
                continue
            mean, variance = (slice(start, start + numbers) for start, numbers, _ in (places[0], places[1]))
            part.shift = norm.Shift(  # type: ignore[assignment]
                own.shift[mean], own.shift[variance], own.floor[variance], (sums[mean], sums[variance])
            )
        return sums


def _batches(own: Pass, epoch: int) -> Any:
    """Rows and draws of each batch of an epoch; the last one has the rest."""
    rows = torch.split(own.orders[epoch], own.batch)
    draws = [None] * len(rows) if own.draws is None else torch.split(own.draws[epoch], own.batch)
    return zip(rows, draws, strict=True)


def _check(epoch: int, loss: float) -> float:
    if not numpy.isfinite(loss):
        raise Diverged(epoch, loss)
    return loss


def _floats(values: Floats, place: torch.device) -> Tensor:
    """Numbers on the device; on the CPU they share memory with what they came from."""
    return torch.from_numpy(values).to(place)


def _array(values: Tensor) -> Floats:
    own: Floats = values.detach().cpu().numpy()
    return own
