// SPDX-License-Identifier: Apache-2.0
#include "hub/remote/hub_repository.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

const std::string kCommit(40, 'c');
const std::string kBlob(40, 'b');
const std::string kSha(64, 'd');

std::string listing(const std::string& siblings) {
  return R"({"_id":"1","id":"org/repo","sha":")" + kCommit + R"(","private":false,"siblings":[)" + siblings +
         "]}";
}

std::string file(const std::string& path, const std::string& size = "7") {
  return R"({"rfilename":")" + path + R"(","size":)" + size + R"(,"blobId":")" + kBlob + "\"}";
}

TEST(HubRepository, ReadsSizesAndChecksums) {
  const auto repository = parse_hub_repository(
      listing(file("config.json") + "," + file(".gitattributes") +
              R"(,{"rfilename":"m.gguf","size":9,"blobId":")" + kBlob + R"(","lfs":{"sha256":")" + kSha +
              R"(","size":9,"pointerSize":134}})" + R"(,{"rfilename":"unknown.bin"})"));
  ASSERT_TRUE(repository.ok()) << repository.error().message;
  EXPECT_EQ(repository->commit, kCommit);
  ASSERT_EQ(repository->files.size(), 2u);
  EXPECT_EQ(repository->find("config.json")->checksum, (Checksum{ChecksumKind::kGitBlob, kBlob}));
  EXPECT_EQ(repository->find("m.gguf")->checksum, (Checksum{ChecksumKind::kSha256, kSha}));
  EXPECT_EQ(repository->find("m.gguf")->bytes, 9);
  EXPECT_EQ(repository->find("other"), nullptr);
}

TEST(HubRepository, LeavesOutPathsThatLeaveTheFolder) {
  for (const char* path :
       {"../x", "a/../x", "/etc/x", "a//b", "a/", "a\\\\b", "a/.hidden", "a b", "\\u0001", "..", ""}) {
    const auto repository = parse_hub_repository(listing(file(path) + "," + file("kept")));
    ASSERT_TRUE(repository.ok()) << path;
    ASSERT_EQ(repository->files.size(), 1u) << path;
    EXPECT_EQ(repository->files.front().path, "kept");
  }
}

TEST(HubRepository, RefusesWhatIsNoListing) {
  for (const std::string& json :
       {std::string("<html>"), std::string("{}"), std::string(R"({"sha":"main","siblings":[]})"),
        listing(file("a", "-1")), listing("3"), R"({"sha":")" + kCommit + "\"}"})
    EXPECT_FALSE(parse_hub_repository(json).ok()) << json;
}

TEST(WeightIndex, NamesEachFileOnce) {
  const auto names = parse_weight_index(R"({"weight_map":{"a":"2.st","b":"1.st","c":"2.st"}})");
  ASSERT_TRUE(names.ok());
  EXPECT_EQ(*names, (std::vector<std::string>{"1.st", "2.st"}));
  EXPECT_FALSE(parse_weight_index(R"({"weight_map":{"a":3}})").ok());
}

}  // namespace
}  // namespace outrider
