# Carries out what `purlin advise` says first for the programs of this folder, and measures it.
# advised.py gpt2_train|gpt2_generate|resnet50_train [ROUNDS]: variants by turns in one process. Each has the id of the
# advice. A line for each variant: the median of its rounds' median step, and the change against `base`.
# ROUNDS 0: the first measurement counts. gpt2_generate: cuDNN's plans for new lengths are part of it.
import statistics
import sys
import time

import torch

torch.manual_seed(0)


def steps_of(step, count, warm_up):
    for _ in range(warm_up):
        step()
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(times)


def gpt2_train(variant):
    from transformers import GPT2Config, GPT2LMHeadModel

    vocabulary = 50304 if variant == "align_dimensions" else 50257
    activation = "gelu_pytorch_tanh" if variant == "fuse_pointwise" else "gelu_new"
    model = GPT2LMHeadModel(GPT2Config(vocab_size=vocabulary, activation_function=activation)).cuda().train()
    if variant == "cast_weights_once":
        model = model.to(torch.bfloat16)
    run = torch.compile(model) if variant == "compile_model" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=variant == "fused_optimizer")

    def step():
        tokens = torch.randint(0, 50257, (8, 512)).cuda()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=variant != "cast_weights_once"):
            loss = run(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()

    return lambda: steps_of(step, 40, 10)


def gpt2_generate(variant):
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config()).cuda().half().eval()
    prompt = torch.randint(0, 50257, (4, 64)).cuda()
    count = 100
    options = {"cache_implementation": "static"} if variant in ("compile_model", "static_cache_eager") else {}
    if variant == "static_cache_eager":
        options["disable_compile"] = True

    def measure():
        torch.backends.cuda.enable_cudnn_sdp(variant != "slow_op")
        with torch.inference_mode():
            def generate(tokens):
                model.generate(prompt, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False,
                               pad_token_id=0, **options)
                torch.cuda.synchronize()
            generate(10)
            begin = time.perf_counter()
            generate(count)
            return 1e3 * (time.perf_counter() - begin) / count

    return measure


def resnet50_train(variant):
    import torchvision

    torch.backends.cudnn.benchmark = True
    model = torchvision.models.resnet50().cuda().train()
    images, labels = torch.randn(64, 3, 224, 224), torch.randint(0, 1000, (64,))
    pinned = variant == "pin_memory"
    if pinned:
        images, labels = images.pin_memory(), labels.pin_memory()
    if variant == "channels_last":
        model = model.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    run = torch.compile(model) if variant == "compile_model" else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step():
        x, y = images.to("cuda", non_blocking=pinned), labels.to("cuda", non_blocking=pinned)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(run(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()

    return lambda: steps_of(step, 40, 10)


PROGRAMS = {
    "gpt2_train": (gpt2_train, ["compile_model", "align_dimensions", "fuse_pointwise", "cast_weights_once", "fused_optimizer"]),
    "gpt2_generate": (gpt2_generate, ["slow_op", "compile_model", "static_cache_eager"]),
    "resnet50_train": (resnet50_train, ["channels_last", "compile_model", "pin_memory"]),
}


def main():
    name, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    make, variants = PROGRAMS[name]
    measures, times = {}, {}
    for variant in ["base", *variants]:
        try:
            measures[variant] = make(variant)
            first = measures[variant]()  # compiles, fills caches
            if rounds == 0:
                times[variant] = [first]
        except Exception as problem:
            measures.pop(variant, None)
            print(f"{name} {variant} failed: {str(problem)[:200]!r}", flush=True)
    for _ in range(rounds):
        for variant, measure in measures.items():
            times.setdefault(variant, []).append(measure())
    base = statistics.median(times["base"])
    for variant, values in times.items():
        step = statistics.median(values)
        print(f"{name} {variant} {step:.2f} ms ({min(values):.2f} to {max(values):.2f}), "
              f"saves {100 * (1 - step / base):.1f} %", flush=True)


main()
