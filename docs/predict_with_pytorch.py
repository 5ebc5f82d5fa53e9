"""Predicts a table with PyTorch from a fedtvd model file alone: python predict_with_pytorch.py MODEL TABLE > OUT.csv

Python 3.11, torch and safetensors; for networks of linear layers and ReLU, tables with commas and decimal points."""
import csv, json, sys, tomllib, torch
from safetensors import safe_open

file = safe_open(sys.argv[1], "pt")
card = json.loads(file.metadata()["fedtvd"])["header"]
schema = tomllib.loads(card["schema"])

def number(text):
    try: return float(text)
    except ValueError: return None

def same(a, b):
    return a == b or None not in (number(a), number(b)) and number(a) == number(b)

def inputs(column, text):
    absent = any(same(text, x) or text.lower() == x.lower() in ("nan", "null") for x in schema["missing_values"] + column.get("missing_values", []))
    if column["kind"] == "number":
        fill = column["missing"] if not isinstance(column["missing"], str) else column["centre"]
        x = fill if absent else float(text)
        low, high = column.get("bounds", [x, x])
        z = (min(max(x, low), high) - column["centre"]) / column["scale"] if column["scale"] else 0.0
        return [z] + [float(absent)] * (column["missing"] == "indicator")
    known = [[c] if isinstance(c, str) else c["values"] for c in column["categories"]]
    hits = [text in values or any(same(text, v) for v in values) for values in known]
    return [float(hit) for hit in hits] + [float(not any(hits) and not absent)] * (column["unknown"] == "input")

used = [column for column in schema.get("column", []) if column["kind"] != "ignored"]
rows = list(csv.DictReader(open(sys.argv[2], encoding="utf-8-sig"), fieldnames=schema.get("header")))
x = torch.tensor([[z for column in used for z in inputs(column, row[column["name"]].strip())] for row in rows])
for layer in card["network"]["layers"]:
    if layer["layer"] == "linear": x = x @ file.get_tensor(layer["name"] + ".weight").T + file.get_tensor(layer["name"] + ".bias")
    elif layer["layer"] == "relu": x = x.relu()
names = [c if isinstance(c, str) else c["name"] for c in schema["label"]["classes"]]
print("prediction," + ",".join("p_" + name for name in names))
for p in x.softmax(1).tolist(): print(",".join([names[p.index(max(p))]] + [f"{q:.6f}" for q in p]))
