# A launch-bound loop without optimizer steps, for 8 s: the longest time that it stood still, in ms.
# With PURLIN_TORCH_WAIT=0.3 a trace by time begins while Purlin still records its start-up window.
import time

import torch

a = torch.randn(64, 64, device="cuda")
begin = last = time.perf_counter()
worst, rounds = [], 0
while last - begin < 8:
    for _ in range(20):
        a = (a @ a).clamp(-1, 1)
    torch.cuda.synchronize()
    now = time.perf_counter()
    if now - begin > 0.2:
        worst.append((1e3 * (now - last), round(last - begin, 2)))
        rounds += 1
    last = now
print(f"rounds {rounds} longest_ms {[(round(ms, 1), at) for ms, at in sorted(worst)[-4:]]}")
