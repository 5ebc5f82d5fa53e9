"""Predicts a table with PyTorch from a fedtvd model file alone: python predict_with_pytorch.py MODEL TABLE > OUT.csv"""
import csv, json, sys, tomllib, torch  # Python 3.11; for networks of linear layers and ReLU, tables with commas and decimal points
from safetensors import safe_open

def value(text):  # as texts are compared: 1 is 1.0, and NaN is nan
    try: return text.lower() if text.lower() in ("nan", "null") else float(text)
    except ValueError: return text

def inputs(column, text):
    absent = value(text) in map(value, schema["missing_values"] + column.get("missing_values", []))
    if column["kind"] == "number":
        x = float(text) if not absent else column["centre"] if isinstance(column["missing"], str) else column["missing"]
        low, high = column.get("bounds", [x, x])
        z = (min(max(x, low), high) - column["centre"]) / (column["scale"] or float("inf"))
        return [z, float(absent)] if column["missing"] == "indicator" else [z]
    hits = [value(text) in map(value, [c] if isinstance(c, str) else c["values"]) for c in column["categories"]]
    return [float(hit) for hit in hits] + [float(not absent and not any(hits))] * (column["unknown"] == "input")

file = safe_open(sys.argv[1], "pt")
card = json.loads(file.metadata()["fedtvd"])["header"]
schema = tomllib.loads(card["schema"])
names = [c if isinstance(c, str) else c["name"] for c in schema["label"]["classes"]]
used = [column for column in schema["column"] if column["kind"] != "ignored"]
rows = csv.DictReader(open(sys.argv[2], encoding="utf-8-sig"), schema.get("header"))
x = torch.tensor([[z for column in used for z in inputs(column, row[column["name"]].strip())] for row in rows])
for layer in card["network"]["layers"]:
    if layer["layer"] == "linear": x = x @ file.get_tensor(layer["name"] + ".weight").T + file.get_tensor(layer["name"] + ".bias")
    elif layer["layer"] == "relu": x = x.relu()
print("prediction", *("p_" + name for name in names), sep=",")
for p in x.softmax(1).tolist(): print(names[p.index(max(p))], *(f"{q:.6f}" for q in p), sep=",")
