# GPT-2 (124 M parameters, random weights) in training, as a tutorial writes it. No profiler code.
# gpt2_train.py [STEPS]: prints the time of a step by its own clock, without the first ten.
import sys
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config()).cuda().train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
times = []
for step in range(steps):
    tokens = torch.randint(0, 50257, (8, 512)).cuda()
    begin = time.perf_counter()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    value = loss.item()
    times.append(time.perf_counter() - begin)
steady, late = sorted(times[10:]), sorted(times[-len(times) // 3:])
print(f"step_ms {1e3 * steady[len(steady) // 2]:.3f} late_ms {1e3 * late[len(late) // 2]:.3f} loss {value:.4f}")
