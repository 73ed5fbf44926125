// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_certificate.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>

namespace outrider {
namespace {

// Writes a new key and a certificate that it signed itself.
void write_certificate(const std::string& key_file, const std::string& certificate_file) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
  X509* const x509 = certificate.get();
  X509_set_version(x509, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
  X509_gmtime_adj(X509_getm_notBefore(x509), -60);
  X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
  X509_set_pubkey(x509, key.get());
  X509_NAME* const name = X509_get_subject_name(x509);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("test"), -1, -1,
                             0);
  X509_set_issuer_name(x509, name);
  X509_EXTENSION* const address = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
  X509_add_ext(x509, address, -1);
  X509_EXTENSION_free(address);
  EXPECT_NE(X509_sign(x509, key.get(), EVP_sha256()), 0);
  FILE* file = std::fopen(key_file.c_str(), "w");
  std::filesystem::permissions(key_file,
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  file = std::fopen(certificate_file.c_str(), "w");
  PEM_write_X509(file, x509);
  std::fclose(file);
}

}  // namespace

TestCertificate::TestCertificate() {
  static std::atomic<int> number = 0;
  folder_ = std::filesystem::temp_directory_path() /
            ("outrider_tls_" + std::to_string(getpid()) + "_" + std::to_string(++number));
  std::filesystem::create_directories(folder_);
  renew();
}

TestCertificate::~TestCertificate() { std::filesystem::remove_all(folder_); }

void TestCertificate::renew() const { write_certificate(key(), certificate()); }

}  // namespace outrider
