// SPDX-License-Identifier: Apache-2.0
#include "server/api/response_store.h"

#include <algorithm>
#include <utility>

namespace outrider {
namespace {

constexpr size_t kEntryBytes = 1024;  // of the containers, for each response

}  // namespace

size_t conversation_bytes(const std::vector<ChatMessage>& messages) {
  size_t bytes = 0;
  for (const ChatMessage& message : messages) {
    bytes += sizeof message + message.content.value_or("").size() + message.reasoning_content.size() +
             message.name.size() + message.tool_call_id.size();
    for (const ChatToolCall& call : message.tool_calls) {
      bytes += sizeof call + call.id.size() + call.name.size() + call.arguments.size();
    }
  }
  return bytes;
}

void ResponseStore::put(uint64_t scope, const std::string& id, StoredResponse response) {
  const size_t bytes =
      kEntryBytes + conversation_bytes(response.messages) + response.body.size() + response.input.size();
  if (bytes > max_bytes_) return;
  const std::lock_guard lock(mutex_);
  entries_.push_back({.id = id,
                      .scope = scope,
                      .bytes = bytes,
                      .response = std::make_shared<const StoredResponse>(std::move(response))});
  by_id_[id] = std::prev(entries_.end());
  bytes_[scope] += bytes;
  total_ += bytes;
  while (total_ > max_bytes_) forget_one();
}

ResponseStore::Place ResponseStore::find_entry(uint64_t scope, const std::string& id) {
  const auto found = by_id_.find(id);
  return found != by_id_.end() && found->second->scope == scope ? found->second : entries_.end();
}

std::shared_ptr<const StoredResponse> ResponseStore::find(uint64_t scope, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const Place place = find_entry(scope, id);
  if (place == entries_.end()) return nullptr;
  entries_.splice(entries_.end(), entries_, place);
  return place->response;
}

bool ResponseStore::erase(uint64_t scope, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const Place place = find_entry(scope, id);
  if (place == entries_.end()) return false;
  remove(place);
  return true;
}

size_t ResponseStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

void ResponseStore::remove(Place place) {
  total_ -= place->bytes;
  const auto scope = bytes_.find(place->scope);
  scope->second -= place->bytes;
  if (scope->second == 0) bytes_.erase(scope);
  by_id_.erase(place->id);
  entries_.erase(place);
}

void ResponseStore::forget_one() {
  const auto heaviest = std::max_element(bytes_.begin(), bytes_.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
  remove(std::find_if(entries_.begin(), entries_.end(),
                      [&](const Entry& entry) { return entry.scope == heaviest->first; }));
}

}  // namespace outrider
