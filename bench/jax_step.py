"""Milliseconds per training step of jitted JAX on one core, for lenet and cnn: python bench/jax_step.py

Run it under `taskset -c 0`. Batch 32, forward, backward and SGD with momentum in one compiled function.
"""
import os, time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax, jax.numpy as jnp, numpy as np

NETS = {
    "lenet": ([(6, 1, 5, "VALID"), (16, 6, 5, "VALID")], [(256, 120), (120, 84), (84, 10)]),
    "lenet5": ([(6, 1, 5, "SAME"), (16, 6, 5, "VALID")], [(400, 120), (120, 84), (84, 10)]),
    "cnn": ([(32, 1, 5, "SAME"), (64, 32, 5, "SAME")], [(3136, 512), (512, 10)]),
}
rng = np.random.default_rng(0)
for name, (convs, linears) in NETS.items():
    draw = lambda *shape: jnp.asarray(rng.normal(size=shape) * 0.05, jnp.float32)
    params = [[draw(o, i, k, k), draw(o)] for o, i, k, _ in convs] + [[draw(i, o), draw(o)] for i, o in linears]

    def loss(params, x, y):
        for (w, b), (*_, pad) in zip(params, convs):
            x = jax.lax.conv_general_dilated(x, w, (1, 1), pad) + b[:, None, None]
            x = jax.lax.reduce_window(jax.nn.relu(x), -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        x = x.reshape(32, -1)
        for n, (w, b) in enumerate(params[len(convs):]):
            x = x @ w + b
            x = jax.nn.relu(x) if n + 1 < len(linears) else x
        return -jnp.mean(jax.nn.log_softmax(x)[jnp.arange(32), y])

    @jax.jit
    def step(params, velocity, x, y):
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, jax.grad(loss)(params, x, y))
        return jax.tree.map(lambda p, v: p - 0.001 * v, params, velocity), velocity

    velocity = jax.tree.map(jnp.zeros_like, params)
    x, y = draw(32, 1, 28, 28), jnp.asarray(rng.integers(0, 10, 32))
    best = float("inf")
    for _ in range(8):
        start = time.process_time()
        for _ in range(20):
            params, velocity = step(params, velocity, x, y)
        jax.block_until_ready(params)
        best = min(best, (time.process_time() - start) / 20)
    print(f"{name:8} {best * 1e3:.3f} ms", flush=True)
