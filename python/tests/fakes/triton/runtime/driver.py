# SPDX-License-Identifier: Apache-2.0
import torch

from ..compiler.compiler import Target


class Driver:
    def __init__(self):
        self.get_current_device, self.get_current_stream = torch.cuda.current_device, torch.cuda.raw_stream

    def get_current_target(self):
        return Target("cuda", 90)


class DriverConfig:
    def __init__(self):
        self._active = Driver()

    @property
    def active(self):
        return self._active

    def set_active(self, active):
        self._active = active


driver = DriverConfig()
