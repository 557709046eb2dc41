# SPDX-License-Identifier: Apache-2.0
"""The launcher of compiled kernels. What reaches the driver is in `launched`."""
import torch

_BASE_ARGS_FORMAT = "iiiKKppOOOOOO"
launched = []  # (kernel's name, grid, stream, arguments)


class CudaLauncher:
    launch_cooperative_grid, launch_pdl, profile_scratch_size = False, False, 0

    def __init__(self, src, metadata):
        self.launch, self.global_scratch_size = make_launcher(src, metadata), metadata.get("global_scratch_size", 0)

    def __call__(self, gridX, gridY, gridZ, stream, function, *args):
        scratch = "scratch" if self.global_scratch_size > 0 else None
        self.launch(gridX, gridY, gridZ, stream, function, self.launch_cooperative_grid, self.launch_pdl, scratch,
                    None, *args)


def make_launcher(src, metadata):
    def launch(x, y, z, stream, function, cooperative, dependent, scratch, profile, packed, launch_metadata, enter,
               leave, *args):
        assert (scratch is not None) == (metadata.get("global_scratch_size", 0) > 0)
        if enter is not None:
            enter(launch_metadata)
        tensors = []
        for value, kind in zip(args, src.signature.values()):
            # A pointer is an integer, or an object with a data_ptr.
            address = value if not hasattr(value, "data_ptr") else value.data_ptr()
            tensors.append(torch.at_address(address) if kind.startswith("*") else value)
        launched.append((function, (x, y, z), stream, tensors))
        src.fn.work(*tensors, options=src.options)
        if leave is not None:
            leave(launch_metadata)

    return launch
