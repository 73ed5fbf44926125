# SPDX-License-Identifier: Apache-2.0
"""The compiled part of the package. Its names are private."""
