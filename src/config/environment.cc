// SPDX-License-Identifier: Apache-2.0
#include "config/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string_view>

namespace outrider {
namespace {

namespace fs = std::filesystem;

std::string text_of(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Empty where there is no base.
fs::path below(const fs::path& base, std::string_view folder) { return base.empty() ? base : base / folder; }

// The folder that a variable names, or `otherwise`.
fs::path folder_in(const char* variable, const fs::path& otherwise) {
  const fs::path folder = text_of(variable);
  return folder.is_absolute() ? folder : otherwise;
}

fs::path home() { return folder_in("HOME", {}); }
fs::path cache_home() { return folder_in("XDG_CACHE_HOME", below(home(), ".cache")); }
fs::path hugging_face_home() { return folder_in("HF_HOME", below(cache_home(), "huggingface")); }

std::string first_line(const fs::path& file) {
  std::string line;
  std::ifstream stream(file);
  std::getline(stream, line);
  return line;
}

}  // namespace

std::map<std::string, std::string> read_environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || !text.starts_with("OUTRIDER_")) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

std::vector<std::string> environment_without(const std::set<std::string, std::less<>>& names) {
  std::vector<std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!names.contains(text.substr(0, text.find('=')))) variables.emplace_back(text);
  }
  return variables;
}

std::filesystem::path user_cache_directory() { return below(cache_home(), "outrider"); }

std::filesystem::path user_state_directory() {
  return below(folder_in("XDG_STATE_HOME", below(home(), ".local/state")), "outrider");
}

HubSite hub_site() {
  HubSite site{.endpoint = text_of("HF_ENDPOINT"), .token = text_of("HF_TOKEN")};
  if (site.endpoint.empty()) site.endpoint = "https://huggingface.co";
  if (std::getenv("HF_TOKEN") == nullptr)
    site.token = first_line(folder_in("HF_TOKEN_PATH", below(hugging_face_home(), "token")));
  return site;
}

bool hub_is_offline() {
  const std::string value = text_of("HF_HUB_OFFLINE");
  return !value.empty() && value != "0";
}

ModelFolders model_folders() {
  ModelFolders folders;
  folders.outrider = below(user_cache_directory(), "models");
  folders.hugging_face = folder_in("HF_HUB_CACHE", below(hugging_face_home(), "hub"));
  folders.llama_cpp = folder_in("LLAMA_CACHE", below(cache_home(), "llama.cpp"));
  folders.lm_studio = {below(home(), ".lmstudio/models"), below(cache_home(), "lm-studio/models")};
  if (const fs::path ollama = folder_in("OLLAMA_MODELS", {}); !ollama.empty()) {
    folders.ollama = {ollama};
  } else {
    folders.ollama = {below(home(), ".ollama/models"), "/usr/share/ollama/.ollama/models"};
  }
  return folders;
}

CollectorVariables collector_variables() {
  const auto either = [](const std::string& name) {
    const std::string of_traces = text_of(("OTEL_EXPORTER_OTLP_TRACES_" + name).c_str());
    return of_traces.empty() ? text_of(("OTEL_EXPORTER_OTLP_" + name).c_str()) : of_traces;
  };
  return {.headers = either("HEADERS"), .certificate = either("CERTIFICATE")};
}

std::string fleet_key() { return text_of(kFleetKeyVariable); }

std::string notify_socket() { return text_of("NOTIFY_SOCKET"); }

std::optional<int> inherited_socket() {
  constexpr int kFirst = 3;  // descriptor, by convention
  const std::string count = text_of("LISTEN_FDS");
  if (text_of("LISTEN_PID") != std::to_string(::getpid()) || count.empty() || count == "0")
    return std::nullopt;
  return kFirst;
}

bool is_mpi_process() { return !text_of("OMPI_COMM_WORLD_SIZE").empty(); }

bool colour_refused() { return !text_of("NO_COLOR").empty(); }

}  // namespace outrider
