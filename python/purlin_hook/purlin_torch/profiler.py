# SPDX-License-Identifier: Apache-2.0
"""PyTorch's profiler, as the hook makes it, and what a recording holds."""

# Parts of names of ops and kernels that a program does not run while it loads a model.
WORK = (
    ("aten::mm", "aten::addmm", "aten::bmm", "aten::convolution", "scaled_dot_product")
    + ("gemm", "nvjet", "cutlass", "cudnn", "flash", "fmha", "attention", "triton")
)


def uses_cuda(torch):
    try:
        return bool(torch.cuda.is_initialized())
    except Exception:
        return False


def new_profiler(torch, **named):
    activity = torch.profiler.ProfilerActivity
    named.update(activities=[activity.CPU, activity.CUDA], record_shapes=True)
    try:  # without acc_events, PyTorch warns
        return torch.profiler.profile(acc_events=True, **named)
    except TypeError:  # before 2.5
        return torch.profiler.profile(**named)


def all_threads():
    """A configuration that records every thread; None where this PyTorch has none."""
    try:
        from torch._C._profiler import _ExperimentalConfig

        return _ExperimentalConfig(profile_all_threads=True)
    except (ImportError, TypeError):
        return None


def has_work(torch, profiler, wanted):
    """Whether a trace has kernels, and one op or kernel of the wanted names; no names: any."""
    try:
        cuda = torch.autograd.DeviceType.CUDA
        kernels = works = False
        for event in profiler.profiler.kineto_results.events():
            kernels = kernels or event.device_type() == cuda
            works = works or not wanted or any(each in event.name() for each in wanted)
            if kernels and works:
                return True
        return False
    except AttributeError:
        return True
