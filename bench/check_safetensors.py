"""A model written by fedtvd must load into its PyTorch module and give the same logits.

    cargo run --release -p fedtvd-nn --example export -- DIR && python bench/check_safetensors.py DIR

The example writes DIR/MODEL.safetensors and, for input pixels 2 u(7 + i) - 1 with u(k) = frac(43758.5453 sin(k + 1)),
DIR/MODEL.loss: the summed loss of four rows with labels 0 to 3 in evaluation mode, trained for two steps before.
"""
import math, os, sys
import numpy as np, torch, torch.nn.functional as F
from safetensors.torch import load_file
from torch_models import MODELS

directory = sys.argv[1]
worst = 0.0
for name, (make, shape) in MODELS.items():
    model = make()
    state = load_file(os.path.join(directory, f"{name}.safetensors"))
    missing = [n for n in model.load_state_dict(state, strict=False).missing_keys if not n.endswith("num_batches_tracked")]
    assert not missing and set(state) <= set(model.state_dict()), (name, missing)
    model.eval()
    k = np.arange(7, 7 + 4 * math.prod(shape), dtype=np.float64) + 1.0
    x = np.sin(k) * 43758.5453
    x = torch.tensor((2 * (x - np.floor(x)) - 1).astype(np.float32)).reshape(4, *shape)
    with torch.no_grad():
        theirs = F.cross_entropy(model(x), torch.arange(4), reduction="sum").item()
    ours = float(open(os.path.join(directory, f"{name}.loss")).read())
    error = abs(ours - theirs) / abs(theirs)
    worst = max(worst, error)
    print(f"{name:12} fedtvd {ours:.6f}  PyTorch {theirs:.6f}")
    assert error < 1e-4, name
print(f"largest relative difference {worst:.1e}")
