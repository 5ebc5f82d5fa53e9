"""The rounds of a run directory as a bare PyTorch loop: processes of one thread train the same clients, longest first, and
evaluate; the parent adds up. Prints seconds per round and the last accuracy: `torch_loop.py RUN IMAGES PROCESSES`.
"""
import json, sys, time
import torch, torch.multiprocessing as mp, torch.nn.functional as F
from run_files import grey_images, partition, rounds
from torch_models import MODELS

EPOCHS, BATCH, LR, MOMENTUM, TESTED = 4, 32, 0.01, 0.9, 500


def work(data, clients, shared, updates, tasks, answers):
    torch.set_num_threads(1)
    (images, labels), (test_images, test_labels) = data
    model = MODELS["lenet"][0]()
    parameters = list(model.parameters())

    def load():
        torch.nn.utils.vector_to_parameters(shared.clone(), parameters)

    for kind, place, number in iter(tasks.get, None):
        load()
        if kind == "train":
            rows = torch.tensor(clients[number])
            sgd = torch.optim.SGD(parameters, LR, MOMENTUM)
            for _ in range(EPOCHS):
                for batch in rows[torch.randperm(len(rows))].split(BATCH):
                    sgd.zero_grad()
                    F.cross_entropy(model(images[batch]), labels[batch]).backward()
                    sgd.step()
            updates[place] = torch.nn.utils.parameters_to_vector(parameters).detach()
            answers.put(0)
        else:
            chunk = slice(number * TESTED, (number + 1) * TESTED)
            with torch.no_grad():
                logits = model(test_images[chunk])
                F.cross_entropy(logits, test_labels[chunk], reduction="sum").item()
            answers.put((logits.argmax(1) == test_labels[chunk]).sum().item())


def main():
    run, folder, processes = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    data, clients, lines = grey_images(folder), partition(run), rounds(run)
    tested = len(data[1][1])
    shared = torch.nn.utils.parameters_to_vector(MODELS["lenet"][0]().parameters()).detach().share_memory_()
    updates = torch.zeros(len(lines[0]["clients"]), len(shared)).share_memory_()
    context = mp.get_context("fork")
    tasks, answers = context.SimpleQueue(), context.SimpleQueue()
    crew = [context.Process(target=work, args=(data, clients, shared, updates, tasks, answers)) for _ in range(processes)]
    for process in crew:
        process.start()

    def all_of(wanted):
        for task in wanted:
            tasks.put(task)
        return sum(answers.get() for _ in wanted)

    chunks = [("evaluate", 0, chunk) for chunk in range(-(-tested // TESTED))]
    all_of(chunks)
    seconds = []
    for line in lines:
        started = time.perf_counter()
        asked = sorted(line["clients"], key=lambda client: -client["size"])
        all_of([("train", place, client["client"]) for place, client in enumerate(asked)])
        weights = torch.tensor([client["weight"] for client in asked])
        shared.copy_(weights @ updates)
        accuracy = all_of(chunks) / tested
        seconds.append(time.perf_counter() - started)
    for _ in crew:
        tasks.put(None)
    for process in crew:
        process.join()
    print(json.dumps({"seconds": seconds, "accuracy": accuracy}))


main()
