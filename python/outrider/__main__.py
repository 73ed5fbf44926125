# SPDX-License-Identifier: Apache-2.0
from outrider._program import main

main()
