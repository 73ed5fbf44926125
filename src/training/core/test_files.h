// SPDX-License-Identifier: Apache-2.0
// A temporary folder for the files of one test; the destructor removes it.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace outrider::training {

class TestFiles {
 public:
  TestFiles() {
    std::string name = (std::filesystem::temp_directory_path() / "outrider-training-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    root_ = name;
  }
  ~TestFiles() {
    std::error_code error;
    std::filesystem::remove_all(root_, error);
  }
  TestFiles(const TestFiles&) = delete;
  TestFiles& operator=(const TestFiles&) = delete;

  std::filesystem::path path(const std::string& name) const { return root_ / name; }

  void write_bytes(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(path(name).parent_path());
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
  void write_tokens(const std::string& name, const std::vector<uint16_t>& tokens) const {
    write_bytes(name, {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(uint16_t)});
  }
  std::string read(const std::string& name) const {
    std::ostringstream bytes;
    bytes << std::ifstream(path(name), std::ios::binary).rdbuf();
    return bytes.str();
  }

 private:
  std::filesystem::path root_;
};

}  // namespace outrider::training
