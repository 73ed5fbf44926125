// SPDX-License-Identifier: Apache-2.0
#include "tests/support/adapter_folder.h"

#include <fmt/format.h>

#include <fstream>
#include <random>

#include "formats/model_tensors.h"

namespace outrider {

void write_adapter(const std::filesystem::path& folder, const ModelConfig& config, uint32_t seed,
                   const AdapterShape& shape) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "adapter_config.json") << fmt::format(
      R"({{"peft_type": "LORA", "r": {}, "lora_alpha": {}, "bias": "none"}})", shape.rank, shape.alpha);
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> numbers(static_cast<float>(-shape.size),
                                                static_cast<float>(shape.size));
  std::vector<float> data;
  std::string header;
  const auto add = [&](const std::string& name, int64_t rows, int64_t columns) {
    const size_t begin = data.size() * sizeof(float);
    for (int64_t i = 0; i < rows * columns; ++i) data.push_back(numbers(random));
    header += fmt::format(
        R"({}"base_model.model.{}.weight":{{"dtype":"F32","shape":[{},{}],"data_offsets":[{},{}]}})",
        header.empty() ? "" : ",", name, rows, columns, begin, data.size() * sizeof(float));
  };
  for (const ExpectedTensor& tensor : expected_tensors(config)) {
    const std::string name = tensor.name.substr(0, tensor.name.rfind('.'));
    for (const std::string& module : shape.modules) {
      if (!name.ends_with(module) || tensor.shape.size() != 2) continue;
      add(name + ".lora_A", shape.rank, tensor.shape[1]);
      add(name + ".lora_B", tensor.shape[0], shape.rank);
    }
  }
  header = "{" + header + "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::ofstream file(folder / "adapter_model.safetensors", std::ios::binary);
  const auto length = static_cast<uint64_t>(header.size());
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << header;
  file.write(reinterpret_cast<const char*>(data.data()),
             static_cast<std::streamsize>(data.size() * sizeof(float)));
}

}  // namespace outrider
