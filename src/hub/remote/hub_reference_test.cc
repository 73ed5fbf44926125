// SPDX-License-Identifier: Apache-2.0
#include "hub/remote/hub_reference.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(HubReference, FormsThatNameAModel) {
  EXPECT_EQ(parse_hub_reference("hf:Org/Repo-1.0_x")->repository, "Org/Repo-1.0_x");
  EXPECT_EQ(parse_hub_reference("Org/Repo")->text(), "hf:Org/Repo");
  const auto wanted = parse_hub_reference("hf:Org/Repo:sub/file.gguf");
  EXPECT_EQ(wanted->repository, "Org/Repo");
  EXPECT_EQ(wanted->wanted, "sub/file.gguf");
  for (const KnownModel& known : known_models()) {
    const auto reference = parse_hub_reference(known.name);
    ASSERT_TRUE(reference.ok()) << known.name;
    EXPECT_EQ(reference->repository, known.repository);
    EXPECT_TRUE(parse_hub_reference(reference->text()).ok());
  }
}

TEST(HubReference, AddressesOfTheHub) {
  const std::pair<const char*, const char*> cases[] = {
      {"https://huggingface.co/Org/Repo", "hf:Org/Repo"},
      {"https://huggingface.co/Org/Repo/", "hf:Org/Repo"},
      {"https://huggingface.co/Org/Repo/tree/main", "hf:Org/Repo"},
      {"https://huggingface.co/Org/Repo/blob/main/sub/m.Q4_0.gguf", "hf:Org/Repo:sub/m.Q4_0.gguf"},
      {"https://hf.co/Org/Repo/resolve/main/m.gguf?download=true", "hf:Org/Repo:m.gguf"},
      {"hf.co/Org/Repo:Q4_K_M", "hf:Org/Repo:Q4_K_M"},
      {"huggingface.co/Org/Repo", "hf:Org/Repo"}};
  for (const auto& [address, expected] : cases) {
    const auto reference = parse_hub_reference(address);
    ASSERT_TRUE(reference.ok()) << address << ": " << reference.error().message;
    EXPECT_EQ(reference->text(), expected);
  }
  const auto branch = parse_hub_reference("https://huggingface.co/Org/Repo/tree/other");
  ASSERT_FALSE(branch.ok());
  EXPECT_NE(branch.error().message.find("branch main"), std::string::npos);
  for (const char* text :
       {"https://huggingface.co/datasets/Org/Repo", "https://huggingface.co/Org", "hf.co/"})
    EXPECT_FALSE(parse_hub_reference(text).ok()) << text;
}

TEST(HubReference, EverythingElseIsRefusedWithTheKnownNames) {
  for (const char* text :
       {"", "hf:", "smollm", "hf:repo", "hf:/repo", "hf:org/", "hf:org/a/b", "hf:org/repo:", "hf:../repo",
        "hf:org/..", "hf:org/re po", "hf:org/repo?x=1", "https://h/org/repo"}) {
    const auto reference = parse_hub_reference(text);
    ASSERT_FALSE(reference.ok()) << text;
    EXPECT_NE(reference.error().message.find("smollm2"), std::string::npos) << reference.error().message;
  }
}

}  // namespace
}  // namespace outrider
