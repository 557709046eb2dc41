# GPT-2 (124 M parameters, random weights) generating text, greedily, with a cache of keys.
# gpt2_generate.py [TOKENS]: prints the time of a token by its own clock.
import sys
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 300
torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config()).cuda().half().eval()
prompt = torch.randint(0, 50257, (4, 64)).cuda()
with torch.inference_mode():
    model.generate(prompt, max_new_tokens=20, do_sample=False, pad_token_id=0)
    begin = time.perf_counter()
    model.generate(prompt, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, pad_token_id=0)
    torch.cuda.synchronize()
print(f"step_ms {1e3 * (time.perf_counter() - begin) / tokens:.3f}")
