# SPDX-License-Identifier: Apache-2.0
import os


class _ExperimentalConfig:
    def __init__(self, profile_all_threads=False):
        if os.environ.get("FAKE_TORCH_OLD"):
            raise TypeError("no profile_all_threads")
        self.profile_all_threads = profile_all_threads
