// SPDX-License-Identifier: Apache-2.0
// Kinds of mixers and MLPs, as files tell them. models/blocks has the networks.
#pragma once

#include <any>
#include <map>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "outrider/result.h"

namespace outrider {

class ArchitectureKeys;
struct ModelConfig;
class TensorList;

struct LayerKind {
  std::string_view name;
  bool reads_entries = false;  // a mixer that reads keys and values, else it has a state
  // Checks the traits that only layers of this kind have. Null: there are none.
  Status (*validate)(const ModelConfig& config) = nullptr;
  // Appends the tensors of a layer, which begin with `prefix`: "model.layers.3."
  void (*append_tensors)(const ModelConfig& config, int64_t layer, const std::string& prefix,
                         TensorList& list) = nullptr;
  // Reads the traits from the metadata of GGUF files. Null: there are none.
  Status (*read_gguf)(const ArchitectureKeys& keys, ModelConfig* config) = nullptr;
  // Which layers of a GGUF file with layers of several kinds are of this one; empty: the layers without heads
  // of keys. Null: always so.
  Result<std::vector<bool>> (*find_gguf_layers)(const ArchitectureKeys& keys, size_t layers) = nullptr;
  // Sets the traits of published models, for random models.
  void (*set_published)(ModelConfig* config) = nullptr;
};

// Mixers: a layer reads keys and values of earlier entries.
extern const LayerKind kAttentionKind;
// MLPs: one that all rows pass; experts that rows choose from; both, added, where the dense MLP is often
// called a shared expert.
extern const LayerKind kDenseMlpKind, kExpertsKind, kExpertsAndDenseKind;

// Traits that only layers of one kind have, by their types.
class KindTraits {
 public:
  template <typename Traits>
  const Traits& of() const {
    static const Traits kNone;
    const auto found = traits_.find(typeid(Traits));
    return found == traits_.end() ? kNone : *std::any_cast<Traits>(&found->second);
  }
  template <typename Traits>
  Traits& edit() {
    std::any& held = traits_[typeid(Traits)];
    return held.has_value() ? *std::any_cast<Traits>(&held) : held.emplace<Traits>();
  }

 private:
  std::map<std::type_index, std::any> traits_;
};

}  // namespace outrider
