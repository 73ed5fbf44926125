// SPDX-License-Identifier: Apache-2.0
#include "tests/open/hub_folders.h"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "draft_heads/gguf_head_test_data.h"
#include "draft_heads/recurrent_test_data.h"
#include "formats/gguf/gguf_export.h"
#include "formats/gguf/gguf_model.h"
#include "formats/gguf/gguf_writer.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kSource = OUTRIDER_SOURCE_DIR;

fs::path stored_model(const std::string& name) {
  return fs::exists(kSource / "models" / name) ? kSource / "models" / name
                                               : kSource / "tests/data/models" / name;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void change_config(const fs::path& directory, const json& members) {
  if (members.empty()) return;
  json config = json::parse(bytes_of(directory / "config.json"));
  config.update(members);
  std::ofstream(directory / "config.json") << config.dump();
}

struct Tensors {
  json header = json::object();
  std::string data;
};

Tensors read_safetensors(const fs::path& path) {
  const std::string file = bytes_of(path);
  uint64_t size = 0;
  std::memcpy(&size, file.data(), sizeof(size));
  return {json::parse(file.substr(sizeof(size), size)), file.substr(sizeof(size) + size)};
}

void add_tensors(Tensors& into, const Tensors& from) {
  for (const auto& [name, entry] : from.header.items()) {
    if (name == "__metadata__") continue;
    const auto offsets = entry["data_offsets"].get<std::vector<uint64_t>>();
    json moved = entry;
    moved["data_offsets"] = {offsets[0] + into.data.size(), offsets[1] + into.data.size()};
    into.header[name] = moved;
  }
  into.data += from.data;
}

void write_safetensors(const fs::path& path, const Tensors& tensors) {
  std::string header = tensors.header.dump();
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t size = header.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&size), sizeof(size)) << header << tensors.data;
}

void write_gguf(const fs::path& path, const GgufMetadataWriter& keys,
                const std::vector<GgufTensor>& tensors) {
  std::vector<GgufTensorInfo> infos;
  for (const GgufTensor& tensor : tensors)
    infos.push_back({tensor.name, tensor.view.dtype, tensor.view.shape});
  std::ofstream file(path, std::ios::binary);
  file << gguf_header(keys, infos);
  std::vector<std::byte> made;
  for (const GgufTensor& tensor : tensors) {
    const int64_t rows = tensor.view.rows(), row_bytes = tensor.view.bytes() / rows;
    for (int64_t row = 0; row < rows; ++row)
      file.write(reinterpret_cast<const char*>(tensor.view.row(row, made)), row_bytes);
    file << std::string(static_cast<size_t>(gguf_padding(tensor.view.bytes())), '\0');
  }
}

GgufMetadataWriter keys_of_file(const GgufFile& file) {
  GgufMetadataWriter keys;
  for (const auto& [key, value] : file.metadata) keys.copy(key, value);
  return keys;
}

fs::path stored_module(const std::string& model) {
  return kSource / "tests/data/heads" / (model + "_module.gguf");
}

}  // namespace

HubFolders::HubFolders() {
  std::string name = (fs::temp_directory_path() / "outrider_hub_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  root_ = name;
  ::setenv("HOME", root_.c_str(), 1);
  ::setenv("XDG_CACHE_HOME", at("cache").c_str(), 1);
  ::setenv("OLLAMA_MODELS", at("ollama").c_str(), 1);
  for (const char* variable : {"HF_HOME", "HF_HUB_CACHE", "LLAMA_CACHE"}) ::unsetenv(variable);
}

HubFolders::~HubFolders() { fs::remove_all(root_); }

fs::path HubFolders::made(const std::string& to) const {
  fs::create_directories(at(to).parent_path());
  return at(to);
}

void HubFolders::model(const std::string& name, const std::string& to, const json& config) const {
  fs::copy(stored_model(name), made(to), fs::copy_options::recursive);
  change_config(at(to), config);
}

void HubFolders::unknown_model(const std::string& to) const {
  model("outrider-small", to);
  const fs::path file = at(to) / "model.safetensors";
  const Tensors tensors = read_safetensors(file);
  const auto begin = tensors.header["model.norm.weight"]["data_offsets"][0].get<uint64_t>();
  const auto place = static_cast<std::streamoff>(fs::file_size(file) - tensors.data.size() + begin);
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(place).write("\0\0", 2);
}

void HubFolders::gguf(const std::string& model, const std::string& to,
                      const std::map<std::string, std::string>& keys) const {
  const fs::path file = stored_model(model + ".gguf");
  auto exported = open_as_gguf(fs::exists(file) ? file : stored_model(model));
  if (!exported.ok()) std::abort();
  for (const auto& [key, value] : keys) exported->metadata.set_string(key, value);
  write_gguf(made(to), exported->metadata, exported->tensors);
}

void HubFolders::head(const FakeHead& made_head, const std::string& to, const json& config) const {
  fs::copy(made_head.write(), made(to), fs::copy_options::recursive);
  change_config(at(to), config);
}

void HubFolders::head_inside(const FakeHead& made_head, const std::string& to) const {
  Tensors tensors = read_safetensors(at(to) / "model.safetensors");
  add_tensors(tensors, read_safetensors(made_head.write() / "model.safetensors"));
  write_safetensors(at(to) / "model.safetensors", tensors);
  for (const char* key : {"num_nextn_predict_layers", "mtp_num_hidden_layers"}) {
    if (made_head.config.contains(key)) change_config(at(to), {{key, made_head.config[key]}});
  }
}

void HubFolders::module(const std::string& model, const std::string& to, const std::string& name) const {
  const auto files = read_gguf_shards(stored_module(model));
  const GgufFile& file = *files->gguf();
  GgufMetadataWriter keys = keys_of_file(file);
  keys.set_string("general.name", name);
  std::vector<GgufTensor> tensors;
  for (const auto& [tensor, view] : file.tensors) tensors.push_back({tensor, view});
  write_gguf(made(to), keys, tensors);
}

void HubFolders::module_inside(const std::string& model, const std::string& to) const {
  const auto target_files = read_gguf_shards(stored_model(model + ".gguf"));
  const auto module_files = read_gguf_shards(stored_module(model));
  const GgufFile& target = *target_files->gguf();
  std::vector<GgufTensor> tensors;
  for (const auto& [tensor, view] : target.tensors) tensors.push_back({tensor, view});
  for (const auto& [tensor, view] : module_files->gguf()->tensors) {
    if (!target.tensors.contains(tensor)) tensors.push_back({tensor, view});
  }
  write_gguf(made(to), keys_of_file(target), tensors);
}

void HubFolders::eagle_gguf(const std::string& to, const std::string& base_model) const {
  const json golden = head_golden("eagle3");
  FakeHead made_head;
  fill_head(made_head, golden);
  testing_gguf::File keys = eagle_keys(golden);
  keys.key("general.base_model.count") = testing_gguf::u32(1);
  keys.key("general.base_model.0.repo_url") = testing_gguf::text("https://huggingface.co/" + base_model);
  const GgufFileOf file(made_head, std::move(keys), "eagle3", 16);
  fs::copy_file(file.path(), made(to));
}

void HubFolders::ollama(const std::string& model, const std::string& name,
                        const std::string& general_name) const {
  const std::string hex(64, 'b');
  gguf(model, "ollama/blobs/sha256-" + hex, {{"general.name", general_name}});
  text("ollama/manifests/registry.ollama.ai/library/" + name + "/latest",
       R"({"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:)" + hex + "\"}]}");
}

void HubFolders::text(const std::string& to, const std::string& contents) const {
  std::ofstream(made(to), std::ios::binary) << contents;
}

std::string HubFolders::snapshot(const std::string& organisation, const std::string& repository) {
  return "cache/huggingface/hub/models--" + organisation + "--" + repository + "/snapshots/" +
         std::string(40, '1');
}

}  // namespace outrider
