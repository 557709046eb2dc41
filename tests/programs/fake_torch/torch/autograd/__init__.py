# SPDX-License-Identifier: Apache-2.0
import enum

from .._state import STATE


class DeviceType(enum.Enum):
    CPU = 0
    CUDA = 1


def _profiler_enabled():
    return STATE.recording is not None


def _enable_record_function(enabled):
    STATE.record_function = enabled


from . import profiler  # noqa: E402,F401
