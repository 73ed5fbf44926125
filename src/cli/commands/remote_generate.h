// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/settings.h"
#include "outrider/result.h"
#include "remote/client/server_address.h"
#include "remote/protocol/messages.h"

namespace outrider {

// `generate --server`: drafts here, and a server decodes.
Status run_remote_generate(const Settings& settings);

// The server that options name, with its key. Error: no address, a file that cannot be read.
Result<DraftingServer> server_of(const RemoteTarget& remote);
// The type of states that options ask for.
StateType state_type_of(const RemoteTarget& remote);

}  // namespace outrider
