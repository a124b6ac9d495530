// What the small authority issues, judged by the openssl command and by the contexts that serve with it.
#include "net/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "net/tls.h"

namespace ringshift::net {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CertificatesTest : public testing::Test {
 protected:
  CertificatesTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "ringshift-cert-XXXXXX";
    directory = mkdtemp(pattern.data());
  }
  ~CertificatesTest() override { std::filesystem::remove_all(directory); }
  void write(const std::string& name, const PemPair& pair) const {
    std::ofstream(directory + "/" + name + ".pem") << pair.certificate;
    std::ofstream(directory + "/" + name + ".key") << pair.key;
  }
  int openssl(const std::string& command) const {
    return std::system(("cd " + directory + " && openssl " + command + " >> log 2>&1").c_str());
  }
  std::string directory;
};

TEST_F(CertificatesTest, OpensslBelievesThem) {
  const PemPair authority = make_authority("Test authority", 10).value();
  const auto issued = issue_certificate(
      authority, {"registry", {"localhost", "127.0.0.1", "::1", "*.example.org"}, 5, "ringshift:registry"});
  ASSERT_TRUE(issued.has_value()) << issued.error().message;
  write("ca", authority);
  write("registry", *issued);
  for (const char* purpose : {"sslserver", "sslclient"}) {
    EXPECT_EQ(
        openssl("verify -x509_strict -CAfile ca.pem -purpose " + std::string(purpose) + " registry.pem"), 0);
  }
  EXPECT_EQ(openssl("verify -CAfile ca.pem -verify_ip 127.0.0.1 registry.pem"), 0);
  EXPECT_EQ(openssl("verify -CAfile ca.pem -verify_hostname a.example.org registry.pem"), 0);
  EXPECT_NE(openssl("verify -CAfile ca.pem -verify_hostname other registry.pem"), 0);
  const auto facts = read_certificates(issued->certificate + authority.certificate).value();
  ASSERT_EQ(facts.size(), 2U);
  EXPECT_THAT(facts[0].names, ElementsAre("DNS:localhost", "IP:127.0.0.1", "IP:::1", "DNS:*.example.org",
                                          "URI:ringshift:registry"));
  EXPECT_FALSE(facts[0].authority);
  EXPECT_TRUE(facts[1].authority);
  EXPECT_THAT(facts[0].issuer, HasSubstr("Test authority"));
  EXPECT_NEAR(static_cast<double>(facts[0].ends - facts[0].begins), 5 * 86'400 + 300, 5);
  const std::string base = directory + "/registry";
  EXPECT_TRUE(TlsContext::server({base + ".pem", base + ".key", directory + "/ca.pem",
                                  TlsContext::ClientCertificates::required})
                  .has_value());
}

TEST_F(CertificatesTest, WhatCannotBeIsRefused) {
  const PemPair authority = make_authority("a", 2).value(), other = make_authority("b", 2).value();
  const PemPair leaf = issue_certificate(authority, {"x", {"x"}, 1}).value();
  EXPECT_FALSE(make_authority("", 2).has_value());
  EXPECT_FALSE(make_authority("a\nb", 2).has_value());
  EXPECT_FALSE(make_authority("a", 0).has_value());
  EXPECT_FALSE(issue_certificate(leaf, {"x", {"x"}, 1}).has_value()) << "no authority";
  EXPECT_FALSE(issue_certificate({authority.certificate, other.key}, {"x", {"x"}, 1}).has_value());
  EXPECT_FALSE(issue_certificate({"", ""}, {"x", {"x"}, 1}).has_value());
  for (const char* name : {"", "a b", "x,DNS:y", "http://x", "email:x@y"}) {
    EXPECT_FALSE(issue_certificate(authority, {"x", {name}, 1}).has_value()) << name;
  }
  EXPECT_FALSE(read_certificates("nothing").has_value());
  EXPECT_FALSE(read_certificates(authority.key).has_value());
  const auto longer = issue_certificate(authority, {"x", {"x"}, 100}).value();
  EXPECT_EQ(read_certificates(longer.certificate)->front().ends,
            read_certificates(authority.certificate)->front().ends)
      << "not beyond the authority";
}

}  // namespace
}  // namespace ringshift::net
