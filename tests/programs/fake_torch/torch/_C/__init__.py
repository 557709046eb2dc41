# SPDX-License-Identifier: Apache-2.0


def _cuda_hasPrimaryContext(device):
    from .. import cuda

    return device == 0 and cuda.is_initialized()
