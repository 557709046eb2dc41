# Training of a head, with four kinds of waste that a data flow shows. No profiler code.
# wasteful_train.py STEPS [WORD…]: a word repairs one of them, grads, aux, table or last.
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

steps, repaired = int(sys.argv[1]), set(sys.argv[2:])
device, width = "cuda", 1024
torch.manual_seed(0)


def block():
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.LayerNorm(width))


body = nn.Sequential(*(block() for _ in range(6))).to(device).bfloat16()
head = nn.Linear(width, 8192).to(device).bfloat16()
second = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, 4 * width)).to(device).bfloat16()
table, projection = torch.randn(2048, 2 * width, device=device), torch.randn(2 * width, width, device=device)
if "grads" in repaired:
    for weight in body.parameters():
        weight.requires_grad_(False)
optimizer = torch.optim.AdamW(head.parameters(), lr=1e-4, fused=True)
words = [torch.randint(0, 2048, (32, 128), device=device) for _ in range(8)]
goals = [torch.randint(0, 8192, (32, 128), device=device) for _ in range(8)]
made = (table @ projection).bfloat16() if "table" in repaired else None
times = []
for step in range(steps):
    begin = time.perf_counter()
    rows = made if made is not None else (table @ projection).bfloat16()  # the same in each step
    hidden = body(rows[words[step % 8]])
    if "aux" not in repaired:
        side = second(hidden.detach())  # no op reads it
    logits = head(hidden)
    goal = goals[step % 8].flatten()
    if "last" in repaired:
        loss = F.cross_entropy(logits.flatten(0, 1).float(), goal)
    else:  # the head runs twice
        loss = F.cross_entropy(head(hidden).flatten(0, 1).float(), goal) + 0.0 * logits.float().mean()
    optimizer.zero_grad(set_to_none=True)
    if "grads" not in repaired:
        for weight in body.parameters():
            weight.grad = None
    loss.backward()
    optimizer.step()
    value = loss.item()
    times.append(time.perf_counter() - begin)
steady = sorted(times[20:])
print(f"step_ms {1e3 * steady[len(steady) // 2]:.3f} loss {value:.4f}")
