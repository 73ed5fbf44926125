// SPDX-License-Identifier: Apache-2.0
#include "models/backend/backend_kinds.h"

#include "models/backend/host/host_backend.h"

namespace outrider {

std::vector<BackendKind>& backend_kinds() {
  static std::vector<BackendKind> kinds = {
      {"cpu", make_host_backend},
  };
  return kinds;
}

}  // namespace outrider
