// SPDX-License-Identifier: Apache-2.0
// Files that a package installs for shells and readers, written from the tables of commands and options.
#pragma once

#include <string>
#include <string_view>

namespace outrider {

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();
// outrider(1) in the macros of man(7).
std::string manual_page();

}  // namespace outrider
