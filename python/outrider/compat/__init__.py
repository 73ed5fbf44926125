# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for other packages, so that programs written for them run unchanged."""
