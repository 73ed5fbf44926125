// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace outrider {

// A new key and a certificate for 127.0.0.1 that it signed itself, in a folder that exists as long as this
// object.
class TestCertificate {
 public:
  TestCertificate();
  ~TestCertificate();
  TestCertificate(const TestCertificate&) = delete;
  TestCertificate& operator=(const TestCertificate&) = delete;

  std::filesystem::path certificate() const { return folder_ / "certificate.pem"; }
  std::filesystem::path key() const { return folder_ / "key.pem"; }
  // Another key and certificate in the same files.
  void renew() const;

 private:
  std::filesystem::path folder_;
};

}  // namespace outrider
