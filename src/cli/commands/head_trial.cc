// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/head_trial.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <system_error>

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The object that holds the base of RoPE.
json& rope_owner(json& config) {
  json& layer = config.contains("transformer_layer_config") ? config["transformer_layer_config"] : config;
  return layer.contains("rope_parameters") ? layer["rope_parameters"] : layer;
}

Result<json> read_config(const fs::path& path) {
  std::ifstream in(path);
  json config = json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (config.is_object()) return config;
  return input_error(path.string() + ": expected an object, found something else");
}

// All but one file.
Status link_files(const fs::path& from, const fs::path& to, const std::string& changed) {
  std::error_code code;
  for (fs::directory_iterator entry(from, code), end; !code && entry != end; entry.increment(code)) {
    if (entry->path().filename() == changed) continue;
    fs::create_symlink(fs::absolute(entry->path()), to / entry->path().filename(), code);
    if (code) break;
  }
  if (code) return io_error(to.string() + ": " + code.message());
  return {};
}

const std::string kWeights = "model.safetensors";

// Changes tensors of a file in place. open_head() has accepted it.
class WeightsFile {
 public:
  explicit WeightsFile(const fs::path& path) : file_(path, std::ios::in | std::ios::out | std::ios::binary) {
    uint64_t size = 0;
    file_.read(reinterpret_cast<char*>(&size), sizeof size);
    std::string text(file_ ? std::min(size, uint64_t{1} << 28) : 0, ' ');
    file_.read(text.data(), static_cast<std::streamsize>(text.size()));
    header_ = json::parse(text, nullptr, /*allow_exceptions=*/false);
    data_ = sizeof size + text.size();
  }

  void exchange(const std::string& one, const std::string& other) {
    const std::string bytes = read(one), others = read(other);
    write(one, others);
    write(other, bytes);
  }

  void order_columns(const std::string& name, const std::vector<size_t>& order) {
    const std::string before = read(name);
    std::string after = before;
    const size_t rows = header_[name]["shape"][0].get<size_t>();
    const size_t block = before.size() / rows / order.size();
    for (size_t row = 0; row < rows; ++row) {
      for (size_t i = 0; i < order.size(); ++i) {
        const size_t begin = row * block * order.size();
        after.replace(begin + i * block, block, before, begin + order[i] * block, block);
      }
    }
    write(name, after);
  }

  bool finish() { return static_cast<bool>(file_.flush()); }

 private:
  std::streamoff offset(const std::string& name, size_t end) {
    return static_cast<std::streamoff>(data_ + header_[name]["data_offsets"][end].get<size_t>());
  }
  std::string read(const std::string& name) {
    std::string bytes(static_cast<size_t>(offset(name, 1) - offset(name, 0)), ' ');
    file_.seekg(offset(name, 0));
    file_.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return bytes;
  }
  void write(const std::string& name, const std::string& bytes) {
    file_.seekp(offset(name, 0));
    file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  std::fstream file_;
  json header_;
  size_t data_ = 0;  // offset of the tensors' bytes
};

// The place of a tensor, "layers.*.self_attn.", and its name there, "q_norm.weight".
std::pair<std::string, std::string> place_and_name(const std::string& tensor) {
  const size_t end = tensor.rfind('.', tensor.rfind('.') - 1);
  const size_t begin = end == std::string::npos ? 0 : end + 1;
  std::string place = tensor.substr(0, begin);
  for (char& c : place)
    if (c >= '0' && c <= '9') c = '*';
  return {place, tensor.substr(begin)};
}

// "1, 0, 2"
std::string listed(const std::vector<size_t>& order) {
  std::string text;
  for (const size_t i : order) text += (text.empty() ? "" : ", ") + std::to_string(i);
  return text;
}

void add_orders(const std::string& matrix, size_t inputs, std::vector<HeadRepair>& repairs) {
  constexpr size_t kAllOrders = 3;  // of more inputs, two are exchanged
  std::vector<size_t> right(inputs);
  std::iota(right.begin(), right.end(), size_t{0});
  const auto add = [&](const std::vector<size_t>& order) {
    repairs.push_back({.what = "the inputs of " + matrix + " in the order " + listed(order),
                       .inputs = matrix,
                       .order = order});
  };
  std::vector<size_t> order = right;
  if (inputs <= kAllOrders) {
    while (std::next_permutation(order.begin(), order.end())) add(order);
    return;
  }
  for (size_t i = 0; i < inputs; ++i) {
    for (size_t j = i + 1; j < inputs; ++j) {
      order = right;
      std::swap(order[i], order[j]);
      add(order);
    }
  }
}

// Norms by place and name: their tensors, one for each layer.
using Norms = std::map<std::string, std::map<std::string, std::vector<std::string>>>;

void add_exchanges(const Norms& norms, const HeadFile& head, std::vector<HeadRepair>& repairs) {
  const auto& tensors = head.file.tensors;
  for (const auto& [place, by_name] : norms) {
    for (auto one = by_name.begin(); one != by_name.end(); ++one) {
      for (auto other = std::next(one); other != by_name.end(); ++other) {
        const auto &a = one->second, &b = other->second;
        if (a.size() != b.size()) continue;
        HeadRepair repair{.what = "the norms " + a.front() + " and " + b.front() + " exchanged"};
        bool fits = true;
        for (size_t i = 0; i < a.size(); ++i) {
          repair.exchanged.emplace_back(a[i], b[i]);
          fits = fits && tensors.at(a[i]).bytes() == tensors.at(b[i]).bytes();
        }
        if (fits) repairs.push_back(std::move(repair));
      }
    }
  }
}

}  // namespace

std::vector<HeadRepair> usual_repairs(const HeadFile& head, int64_t target_hidden) {
  constexpr int64_t kMaxInputs = 8;
  std::vector<HeadRepair> repairs;
  Norms norms;
  for (const auto& [name, tensor] : head.file.tensors) {
    const bool joins = name.ends_with("fc.weight") || name.ends_with("eh_proj.weight");
    if (joins && tensor.shape.size() == 2 && tensor.shape[1] % target_hidden == 0) {
      const int64_t inputs = tensor.shape[1] / target_hidden;
      if (inputs > 1 && inputs <= kMaxInputs) add_orders(name, static_cast<size_t>(inputs), repairs);
    }
    if (tensor.shape.size() != 1 || name.find("norm") == std::string::npos) continue;
    const auto [place, own] = place_and_name(name);
    norms[place][own].push_back(name);
  }
  add_exchanges(norms, head, repairs);
  return repairs;
}

HeadTrial::~HeadTrial() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Result<HeadTrial> HeadTrial::make() {
  std::error_code code;
  std::string name = (fs::temp_directory_path(code) / "outrider-doctor-XXXXXX").string();
  if (code || ::mkdtemp(name.data()) == nullptr) return io_error("cannot make the directory " + name);
  return HeadTrial(fs::path(name));
}

Result<HeadTrial> HeadTrial::with_repair(const fs::path& directory, const HeadRepair& repair) {
  OUTRIDER_TRY(HeadTrial trial, make());
  OUTRIDER_RETURN_IF_ERROR(link_files(directory, trial.path_, kWeights));
  std::error_code code;
  fs::copy_file(directory / kWeights, trial.path_ / kWeights, code);
  if (code) return io_error((directory / kWeights).string() + ": " + code.message());
  WeightsFile file(trial.path_ / kWeights);
  for (const auto& [one, other] : repair.exchanged) file.exchange(one, other);
  if (!repair.inputs.empty()) file.order_columns(repair.inputs, repair.order);
  if (!file.finish()) return io_error("cannot change " + (trial.path_ / kWeights).string());
  return trial;
}

Result<HeadTrial> HeadTrial::with_rope_theta(const fs::path& directory, double theta) {
  OUTRIDER_TRY(json config, read_config(directory / "config.json"));
  rope_owner(config)["rope_theta"] = theta;
  OUTRIDER_TRY(HeadTrial trial, make());
  OUTRIDER_RETURN_IF_ERROR(link_files(directory, trial.path_, "config.json"));
  std::ofstream out(trial.path_ / "config.json");
  out << config.dump();
  if (!out.flush()) return io_error("cannot write " + (trial.path_ / "config.json").string());
  return trial;
}

}  // namespace outrider
