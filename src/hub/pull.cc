// SPDX-License-Identifier: Apache-2.0
#include "hub/pull.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/quote.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxListing = size_t{64} << 20;  // bytes of JSON

// The path of a URL; "/" stays.
std::string url_encoded(std::string_view path) {
  std::string text;
  for (const char c : path) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          std::string_view("-._~/").find(c) != std::string_view::npos;
    text += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return text;
}

bool is_loopback(std::string_view endpoint) {
  const std::string_view rest = endpoint.substr(endpoint.find("://") + 3);
  const std::string_view host =
      rest.starts_with('[') ? rest.substr(0, rest.find(']') + 1) : rest.substr(0, rest.find_first_of(":/"));
  in_addr address = {};
  const bool is_number = inet_pton(AF_INET, std::string(host).c_str(), &address) == 1;
  return host == "localhost" || host == "[::1]" || (is_number && host.starts_with("127."));
}

Error in_repository(const HubReference& reference, const Error& error) {
  return {error.kind, fmt::format("{}: {}", reference.text(), error.message)};
}

}  // namespace

int64_t PullPlan::bytes() const {
  int64_t bytes = 0;
  for (const HubFile& file : choice.files) bytes += file.bytes;
  return bytes;
}

Result<HubSession> HubSession::open(const HubSite& site, TransferObserver& observer, RetryPolicy retries) {
  std::string endpoint = site.endpoint;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const bool is_encrypted = endpoint.starts_with("https://");
  if (!is_encrypted && !endpoint.starts_with("http://")) {
    return usage_error(
        fmt::format("HF_ENDPOINT: expected https://HOST or http://HOST, found {}", quote(endpoint)));
  }
  if (!is_encrypted && !site.token.empty() && !is_loopback(endpoint)) {
    return usage_error(fmt::format(
        "the token would travel unencrypted to {}; use https in HF_ENDPOINT, or set HF_TOKEN to nothing",
        endpoint));
  }
  OUTRIDER_TRY(std::unique_ptr<HubClient> client, HubClient::open(site.token, observer));
  return HubSession(std::move(endpoint), std::move(client), observer, retries);
}

HubSession::HubSession(std::string endpoint, std::unique_ptr<HubClient> client, TransferObserver& observer,
                       RetryPolicy retries)
    : endpoint_(std::move(endpoint)), client_(std::move(client)), observer_(&observer), retries_(retries) {}

Result<PullPlan> HubSession::plan(const HubReference& reference, const fs::path& folder,
                                  int64_t memory_bytes) {
  const std::string url = fmt::format("{}/api/models/{}?blobs=true", endpoint_, reference.repository);
  OUTRIDER_TRY(const std::string listing, fetch_text(*client_, *observer_, url, kMaxListing, retries_));
  const auto repository = parse_hub_repository(listing);
  if (!repository.ok()) return in_repository(reference, repository.error());
  PullPlan plan{
      .reference = reference,
      .base_url = fmt::format("{}/{}/resolve/{}/", endpoint_, reference.repository, repository->commit),
      .folder = folder / reference.repository,
      .choice = {}};
  auto choice = choose(*repository, plan, memory_bytes);
  if (!choice.ok()) return in_repository(reference, choice.error());
  plan.choice = std::move(choice).value();
  return plan;
}

Result<FileChoice> HubSession::choose(const HubRepository& repository, const PullPlan& plan,
                                      int64_t memory_bytes) {
  if (!plan.reference.wanted.empty() || !is_model_folder(repository))
    return choose_gguf(repository, plan.reference.wanted, memory_bytes);
  std::vector<std::string> indexed;
  if (const HubFile* index = weight_index_of(repository)) {
    OUTRIDER_TRY(
        const std::string json,
        fetch_text(*client_, *observer_, plan.base_url + url_encoded(index->path), kMaxListing, retries_));
    OUTRIDER_TRY(indexed, parse_weight_index(json));
  }
  return choose_folder(repository, indexed);
}

Status HubSession::fetch(const PullPlan& plan) {
  for (const HubFile& file : plan.choice.files) {
    const RemoteFile remote{.url = plan.base_url + url_encoded(file.path),
                            .path = plan.folder / file.path,
                            .bytes = file.bytes,
                            .checksum = file.checksum};
    OUTRIDER_RETURN_IF_ERROR(download_file(*client_, *observer_, remote, retries_));
  }
  return {};
}

}  // namespace outrider
