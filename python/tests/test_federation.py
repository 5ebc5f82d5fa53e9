"""Rules in Python in a federation of processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import rules_of_tests

import fedtvd

RULES = Path(rules_of_tests.__file__)
COMMAND = [sys.executable, "-m", "fedtvd", f"--rules={RULES}"]


def command(*words: str) -> None:
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_federation_with_rules_in_python_gives_the_bits_of_a_simulation(folder: Path) -> None:
    settings = ["split.clients=4", "split.alpha=0.5", "split.holdout=0.1", "seed=3", "rounds=2", "cohort.fraction=1"]
    settings += ["local.epochs=1", "model.name=logistic", "strategy.name=my-tvd+my-balanced+my-momentum"]
    chosen = [f"--set={setting}" for setting in settings]
    command("split", "--quiet", "--export", "sites", "--out", "split", *chosen[:4])
    names = [f"client-{client:03}" for client in range(4)]
    command("certs", "init", "--certs", "certs")
    command("certs", "issue", "--certs", "certs", *names)
    (folder / "roster").write_text("\n".join(names))
    serve = ["serve", "--listen", "127.0.0.1:0", "--out", "fed", "--certs", "certs", "--roster", "roster", *chosen]
    server = subprocess.Popen([*COMMAND, *serve], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert server.stderr is not None
    said = ""
    while not said.startswith("listening on "):
        said = server.stderr.readline()
        assert said, "the server ended"
    clients = [
        subprocess.Popen(
            [*COMMAND, "join", "@fed/federation/address", f"sites/{name}", "--identity", f"certs/clients/{name}",
             "--state", "state"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for name in names
    ]
    try:
        said = server.communicate(timeout=300)[1]
        assert server.returncode == 0, said
        assert [client.wait(60) for client in clients] == [0] * 4
    finally:
        server.kill()
        for client in clients:
            client.kill()
    simulated = fedtvd.run("fed/config.toml", out="simulated", quiet=True)
    federated = fedtvd.Run("fed")
    assert list(federated.rounds.model_hash) == list(simulated.rounds.model_hash)
    assert federated.manifest["rules"] == simulated.manifest["rules"]
    assert set(simulated.manifest["rules"]) == {"my-tvd", "my-balanced", "my-momentum"}
