// SPDX-License-Identifier: Apache-2.0
// Zip archives of entries that are stored as they are, which torch.save() writes so that they can be mapped.
// Libraries for zip give copies of entries, and not their place in the file.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "outrider/result.h"

namespace outrider {

using ZipEntries = std::map<std::string, std::span<const std::byte>, std::less<>>;

// The entries of an archive, with or without Zip64, within `bytes`; `name` is for messages.
// Errors: no archive, or one that is cut; compressed or encrypted entries; entries that overlap or lie
// outside the file, two of one name, more than 65,536.
Result<ZipEntries> read_stored_zip(std::span<const std::byte> bytes, std::string_view name);

}  // namespace outrider
