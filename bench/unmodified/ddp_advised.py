# SPDX-License-Identifier: Apache-2.0
# ddp_train.py with advice carried out: torchrun --standalone --nproc_per_node 2 ddp_advised.py [ROUNDS [VARIANT…]]. Variants
# by turns, `base` first. fused (cut_host_work, fused_optimizer): fused AdamW. bf16 (remove_copies): weights in bf16, no
# autocast. view (remove_copies): gradients are views of DDP's buckets. compiled (compile_model). graphed (cuda_graphs): the
# step is one graph, captured after 11 steps on another stream, as PyTorch's notes on CUDA graphs ask of DDP. unbound
# (fuse_pointwise): the gradients of query, key and value are written next to each other by one kernel. PyTorch's own
# projection takes them by index: each gradient is then copied into zeros of three times its size, and these are added.
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "0"  # else a capture fails
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")


def unbound_projection(q, k, v, w, b=None):
    """As PyTorch's, where q, k and v are one tensor, but for unbind: its gradient is one stack."""
    packed = torch.nn.functional.linear(q, w, b).unflatten(-1, (3, q.size(-1)))
    return packed.unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous().unbind(0)


PROJECTION = torch.nn.functional._in_projection_packed


def make(name):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.0)
    model = torch.nn.TransformerEncoder(layer, 8).cuda()
    bf16 = name == "bf16"
    if bf16:
        model = model.to(torch.bfloat16)
    graphed, side = name == "graphed", torch.cuda.Stream()
    with torch.cuda.stream(side if graphed else torch.cuda.current_stream()):
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank], gradient_as_bucket_view=name == "view")
    run = torch.compile(model) if name == "compiled" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=name == "fused", capturable=graphed)
    x = torch.randn(16, 256, 1024, device="cuda", dtype=torch.bfloat16 if bf16 else torch.float32)

    def work():
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=not bf16):
            loss = run(x).float().pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    if graphed:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(11):
                work()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        optimizer.zero_grad()
        with torch.cuda.graph(graph):
            captured = work()

    def step():
        if graphed:
            graph.replay()
        (captured if graphed else work()).item()

    def measure(count=40):
        torch.nn.functional._in_projection_packed = unbound_projection if name == "unbound" else PROJECTION
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            step()
            times.append(time.perf_counter() - begin)
        return 1e3 * statistics.median(times)

    measure(8)
    return measure


NAMES = ["base", *(sys.argv[2:] or ["fused", "bf16", "view", "compiled"])]
measures, times = {name: make(name) for name in NAMES}, {}
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
    for name, measure in measures.items():
        times.setdefault(name, []).append(measure())
base = statistics.median(times["base"])
for name, values in times.items() if rank == 0 else ():
    step = statistics.median(values)
    print(f"ddp_train {name} {step:.2f} ms ({min(values):.2f} to {max(values):.2f}), saves {100 * (1 - step / base):.1f} %", flush=True)
measures = measure = None  # a captured graph holds the communicator
dist.destroy_process_group()
