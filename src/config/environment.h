// SPDX-License-Identifier: Apache-2.0
// The only place that reads the process environment.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace outrider {

// All variables with names that begin with OUTRIDER_.
std::map<std::string, std::string> read_environment();

// All variables but those with these names, as "NAME=VALUE".
std::vector<std::string> environment_without(const std::set<std::string, std::less<>>& names);

// $XDG_CACHE_HOME/outrider or ~/.cache/outrider; empty when neither variable is set.
std::filesystem::path user_cache_directory();

// $XDG_STATE_HOME/outrider or ~/.local/state/outrider; empty when neither variable is set.
std::filesystem::path user_state_directory();

// Where models come from, by the variables of huggingface_hub.
struct HubSite {
  std::string endpoint;  // $HF_ENDPOINT or https://huggingface.co
  std::string token;     // $HF_TOKEN, or the file that "hf auth login" writes; empty: none
};
HubSite hub_site();

// $HF_HUB_OFFLINE is set, and neither empty nor 0: nothing may be fetched.
bool hub_is_offline();

// The folders in which programs keep models. A path is empty, or the folder missing, where there is none.
struct ModelFolders {
  std::filesystem::path outrider;      // `models` in user_cache_directory()
  std::filesystem::path hugging_face;  // $HF_HUB_CACHE, or hub in $HF_HOME
  std::filesystem::path llama_cpp;     // $LLAMA_CACHE
  std::vector<std::filesystem::path> lm_studio;
  std::vector<std::filesystem::path> ollama;  // $OLLAMA_MODELS, or the folders of the user and the service
};
ModelFolders model_folders();

// OpenTelemetry's variables about the collector of traces, OTEL_EXPORTER_OTLP_TRACES_HEADERS and
// OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE, or the names without TRACES_.
struct CollectorVariables {
  std::string headers;                // "name=value,name=value"; empty: none
  std::filesystem::path certificate;  // PEM file of authorities to trust beside the system's; empty: none
};
CollectorVariables collector_variables();

// $NOTIFY_SOCKET, where systemd wants to hear from a service; empty: it does not.
std::string notify_socket();

// The secret of a fleet, which its server hands to its engines; empty: this process is no engine of one.
inline constexpr const char* kFleetKeyVariable = "_OUTRIDER_FLEET_KEY";
std::string fleet_key();

// The descriptor of the listening socket that systemd hands over (sd_listen_fds); nullopt: it hands none to
// this process.
std::optional<int> inherited_socket();

// mpirun of Open MPI has started this process.
bool is_mpi_process();

// NO_COLOR is set and not empty (no-color.org).
bool colour_refused();

}  // namespace outrider
