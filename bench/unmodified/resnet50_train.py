# ResNet-50 in training on random images. No profiler code.
# resnet50_train.py [STEPS]: prints the time of a step by its own clock, without the first ten.
import sys
import time

import torch
import torchvision

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
model = torchvision.models.resnet50().cuda().train()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
images, labels = torch.randn(64, 3, 224, 224), torch.randint(0, 1000, (64,))
times = []
for step in range(steps):
    begin = time.perf_counter()
    x, y = images.cuda(), labels.cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    value = loss.item()
    times.append(time.perf_counter() - begin)
steady, late = sorted(times[10:]), sorted(times[-len(times) // 3:])
print(f"step_ms {1e3 * steady[len(steady) // 2]:.3f} late_ms {1e3 * late[len(late) // 2]:.3f} loss {value:.4f}")
