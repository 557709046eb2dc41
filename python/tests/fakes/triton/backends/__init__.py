# SPDX-License-Identifier: Apache-2.0
class BaseBackend:
    supports_native_tensor_specialization = True
