# SPDX-License-Identifier: Apache-2.0
from .driver import driver  # noqa: F401  hides the module, as in Triton
