# SPDX-License-Identifier: Apache-2.0
# jax_train.py with advice carried out: jax_advised.py [ROUNDS]. Variants by turns in one process; a line for each.
# remove_syncs: waits every 20 steps only. donate (remove_copies): new weights take the memory of the old ones. one_call
# (cut_host_work): 20 steps in one jitted loop. batch_larger is no advice: a peer that shows the host's share.
import os
import statistics
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp

EACH, STEPS = 20, 400


def loss(weights, x):
    for w in weights:
        x = jax.nn.gelu(x @ w)
    return jnp.mean(x.astype(jnp.float32) ** 2)


def update(weights, x):
    value, gradients = jax.value_and_grad(loss)(weights, x)
    return [w - 0.01 * g for w, g in zip(weights, gradients)], value


def many(weights, x):
    def body(_, state):
        return update(state[0], x)
    return jax.lax.fori_loop(0, EACH, body, (weights, jnp.float32(0)))


def fresh():
    keys = jax.random.split(jax.random.PRNGKey(0), 4)
    return [0.02 * jax.random.normal(key, (2048, 2048), jnp.bfloat16) for key in keys]


def run(step, each, waits_every):
    weights, times = fresh(), []
    begin = time.perf_counter()
    for i in range(STEPS // each):
        weights, value = step(weights, X)
        if (i + 1) % waits_every:
            continue
        value.block_until_ready()
        now = time.perf_counter()
        times.append((now - begin) / (each * waits_every))
        begin = now
    return 1e3 * statistics.median(times[2:])


X = jax.random.normal(jax.random.PRNGKey(1), (4096, 2048), jnp.bfloat16)
PLAIN, DONATED, LOOP = jax.jit(update), jax.jit(update, donate_argnums=0), jax.jit(many)
VARIANTS = {"base": (PLAIN, 1, 1), "remove_syncs": (PLAIN, 1, EACH), "donate": (DONATED, 1, 1), "one_call": (LOOP, EACH, 1)}
times = {}
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
    for name, how in VARIANTS.items():
        times.setdefault(name, []).append(run(*how))
base = statistics.median(times["base"])
for name, values in times.items():
    step = statistics.median(values)
    print(f"jax_train {name} {step:.3f} ms ({min(values):.3f} to {max(values):.3f}), saves {100 * (1 - step / base):.1f} %", flush=True)
