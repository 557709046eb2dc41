# SPDX-License-Identifier: Apache-2.0
# A tiny training: a two-layer network in bfloat16, 60 steps.
import torch
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)).cuda().bfloat16()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
x = torch.randn(512, 1024, device="cuda", dtype=torch.bfloat16)
for step in range(300):
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
torch.cuda.synchronize()
print("loss", loss.item())
