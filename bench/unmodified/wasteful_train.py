# Training of a head, with four kinds of waste that a data flow shows. No profiler code.
# wasteful_train.py STEPS [WORD…]: a word repairs one of them, grads, aux, table or last.
import sys, time, torch, torch.nn as nn, torch.nn.functional as F
fix = set(sys.argv[2:]); steps = int(sys.argv[1])
torch.manual_seed(0); d = 'cuda'
W = 1024
body = nn.Sequential(*(nn.Sequential(nn.Linear(W, 4 * W), nn.GELU(), nn.Linear(4 * W, W), nn.LayerNorm(W)) for _ in range(6))).to(d).bfloat16()
head = nn.Linear(W, 8192).to(d).bfloat16()
aux = nn.Sequential(nn.Linear(W, 4 * W), nn.GELU(), nn.Linear(4 * W, 4 * W)).to(d).bfloat16()
table = torch.randn(2048, 2 * W, device=d)          # never changes
proj = torch.randn(2 * W, W, device=d)
if 'grads' in fix:
    for p in body.parameters(): p.requires_grad_(False)
opt = torch.optim.AdamW(head.parameters(), lr=1e-4, fused=True)
data = [torch.randint(0, 2048, (32, 128), device=d) for _ in range(8)]
goal = [torch.randint(0, 8192, (32, 128), device=d) for _ in range(8)]
made = (table @ proj).bfloat16() if 'table' in fix else None
times = []
for k in range(steps):
    t = time.perf_counter()
    e = made if made is not None else (table @ proj).bfloat16()      # the same in each step
    x = e[data[k % 8]]
    h = body(x)
    if 'aux' not in fix: side = aux(h.detach())                            # nobody reads it
    logits = head(h)
    if 'last' in fix: loss = F.cross_entropy(logits.flatten(0, 1).float(), goal[k % 8].flatten())
    else:
        loss = F.cross_entropy(head(h).flatten(0, 1).float(), goal[k % 8].flatten()) + 0.0 * logits.float().mean()  # computed twice
    opt.zero_grad(set_to_none=True)
    if 'grads' not in fix:
        for p in body.parameters(): p.grad = None
    loss.backward(); opt.step()
    v = loss.item(); times.append(time.perf_counter() - t)
times = sorted(times[20:]); print('step_ms %.3f loss %.4f' % (1e3 * times[len(times) // 2], v))
