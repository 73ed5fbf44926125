// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "chat_template/chat_template.h"

namespace outrider {

// A response that later requests may continue.
struct StoredResponse {
  std::vector<ChatMessage> messages;  // the conversation to its end, without instructions
  std::string body;                   // the response object
  std::string input;                  // the items of its request, a JSON array
};

size_t conversation_bytes(const std::vector<ChatMessage>& messages);

// The responses of /v1/responses, within a limit on their memory. Beyond it the least recently used one is
// forgotten, of the key that holds most memory, so that one client cannot drive out the conversations of
// others. Thread-safe.
class ResponseStore {
 public:
  explicit ResponseStore(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Keeps a response, unless it is larger than the limit. `scope` is its key's.
  void put(uint64_t scope, const std::string& id, StoredResponse response);
  // The response of this id and scope; null: there is none.
  std::shared_ptr<const StoredResponse> find(uint64_t scope, const std::string& id);
  // False: there is none.
  bool erase(uint64_t scope, const std::string& id);

  size_t bytes() const;

 private:
  struct Entry {
    std::string id;
    uint64_t scope = 0;
    size_t bytes = 0;
    std::shared_ptr<const StoredResponse> response;
  };
  using Place = std::list<Entry>::iterator;

  Place find_entry(uint64_t scope, const std::string& id);
  void remove(Place place);
  void forget_one();

  size_t max_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the most recently used one is last
  std::unordered_map<std::string, Place> by_id_;
  std::map<uint64_t, size_t> bytes_;  // by scope
  size_t total_ = 0;
};

}  // namespace outrider
