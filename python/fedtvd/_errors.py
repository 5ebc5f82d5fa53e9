"""Exceptions with the sentences of the command."""


class FedtvdError(Exception):
    """A request that cannot be carried out."""


class RequestError(FedtvdError, ValueError):
    """An invalid request: the sentence names the value and what would have been right."""


class WorkError(FedtvdError, RuntimeError):
    """A failure during the work. Finished rounds are saved; ``fedtvd.resume`` continues a run."""
