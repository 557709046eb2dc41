# A transformer of 8 layers in data-parallel training. No profiler code.
# torchrun --nproc_per_node 2 ddp_train.py [STEPS]: rank 0 prints the time of a step by its own clock.
import os
import sys
import time

import torch
import torch.distributed as dist

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 150
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.0)
model = torch.nn.TransformerEncoder(layer, 8).cuda()
model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
times = []
for step in range(steps):
    x = torch.randn(16, 256, 1024, device="cuda")
    begin = time.perf_counter()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(x).float().pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    value = loss.item()
    times.append(time.perf_counter() - begin)
steady, late = sorted(times[10:]), sorted(times[-len(times) // 3:])
if rank == 0:
    print(f"step_ms {1e3 * steady[len(steady) // 2]:.3f} late_ms {1e3 * late[len(late) // 2]:.3f} loss {value:.4f}")
dist.destroy_process_group()
