// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/command_line.h"

int main(int argc, char** argv) { return outrider::run_command_line(argc, argv); }
