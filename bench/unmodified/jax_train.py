# A small network in training with JAX. jax_train.py [STEPS]: the time of a step by its own clock.
import os
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
keys = jax.random.split(jax.random.PRNGKey(0), 4)
weights = [0.02 * jax.random.normal(key, (2048, 2048), jnp.bfloat16) for key in keys]


def loss(weights, x):
    for w in weights:
        x = jax.nn.gelu(x @ w)
    return jnp.mean(x.astype(jnp.float32) ** 2)


@jax.jit
def step(weights, x):
    value, gradients = jax.value_and_grad(loss)(weights, x)
    return [w - 0.01 * g for w, g in zip(weights, gradients)], value


x = jax.random.normal(jax.random.PRNGKey(1), (4096, 2048), jnp.bfloat16)
times = []
for _ in range(steps):
    begin = time.perf_counter()
    weights, value = step(weights, x)
    value.block_until_ready()
    times.append(time.perf_counter() - begin)
steady, late = sorted(times[10:]), sorted(times[-len(times) // 3:])
print(f"step_ms {1e3 * steady[len(steady) // 2]:.3f} late_ms {1e3 * late[len(late) // 2]:.3f}")
