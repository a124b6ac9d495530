// Who is known by a certificate: the right one, and each way in which one is not right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/encoding.h"
#include "http/client.h"
#include "net/certificates.h"
#include "registry/server.h"

namespace ringshift::registry {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Json = nlohmann::json;

// The same certificate, changed and signed anew.
std::string changed(const std::string& certificate, const net::PemPair& authority,
                    const std::function<void(X509*)>& change) {
  const auto read = [](const std::string& pem) {
    return BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  };
  BIO *of_leaf = read(certificate), *of_key = read(authority.key), *out = BIO_new(BIO_s_mem());
  X509* leaf = PEM_read_bio_X509(of_leaf, nullptr, nullptr, nullptr);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(of_key, nullptr, nullptr, nullptr);
  change(leaf);
  EXPECT_GT(X509_sign(leaf, key, EVP_sha256()), 0);
  PEM_write_bio_X509(out, leaf);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out, &data);
  std::string pem(data, static_cast<std::size_t>(size));
  X509_free(leaf);
  EVP_PKEY_free(key);
  for (BIO* one : {of_leaf, of_key, out}) BIO_free(one);
  return pem;
}

std::string until(const std::string& certificate, const net::PemPair& authority, long seconds) {
  return changed(certificate, authority,
                 [&](X509* leaf) { X509_gmtime_adj(X509_getm_notAfter(leaf), seconds); });
}

class CertifiedTest : public testing::Test {
 protected:
  CertifiedTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "ringshift-certified-XXXXXX";
    directory = mkdtemp(pattern.data());
    authority = net::make_authority("clients", 10).value();
    write("ca.pem", authority.certificate);
    keep("server", net::issue_certificate(authority, {"server", {"127.0.0.1"}, 5}).value());
    options.port = 0;
    options.database = directory + "/registry.db";
    options.auth = true;
    options.tls_certificate = directory + "/server.pem";
    options.tls_key = directory + "/server.key";
    options.client_ca = directory + "/ca.pem";
    options.client_certificates_required = false;
    server = Server::start(options).value();
    std::ifstream in(server->admin_token_file());
    std::getline(in, admin);
    admin.erase(0, admin.find(':') + 1);
  }
  ~CertifiedTest() override {
    server.reset();
    std::filesystem::remove_all(directory);
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(directory + "/" + name) << text;
  }
  void keep(const std::string& name, const net::PemPair& pair) {
    write(name + ".pem", pair.certificate);
    write(name + ".key", pair.key);
  }
  // Files NAME.pem and NAME.key, with the URI ringshift:IDENTITY ("": none).
  void issue(const std::string& name, const std::string& identity) {
    keep(name,
         net::issue_certificate(authority, {name, {name}, 5, identity.empty() ? "" : "ringshift:" + identity})
             .value());
  }
  struct Got {
    int status = 0;  // 0: no answer, `body` says why.
    std::string body;
  };
  http::Call call(const std::string& path, const std::string& body, const std::string& certificate,
                  const std::string& token = "") const {
    http::Call request;
    request.url = server->url() + path;
    request.body = body;
    request.timeout = 20s;
    request.tls.ca = directory + "/ca.pem";
    if (!certificate.empty()) {
      request.tls.certificate = directory + "/" + certificate + ".pem";
      request.tls.key = directory + "/" + certificate + ".key";
    }
    if (!token.empty()) request.headers = {"Authorization: Bearer " + token};
    return request;
  }
  Got ask(http::Call request) {
    http::Client client;
    const auto answer = client.send(request);
    if (!answer) return {0, answer.error().error.message};
    return {answer->status, answer->body};
  }
  Got create(const Json& entry) { return ask(call("/ringshift/v1/token/create", entry.dump(), "", admin)); }
  // Reads a key of namespace default.
  Got read_as(const std::string& certificate, const std::string& token = "") {
    return ask(call("/v3/kv/range", R"({"key":")" + base::to_base64("/ringshift/default/c/spec") + "\"}",
                    certificate, token));
  }

  std::string directory, admin;
  net::PemPair authority;
  Options options;
  std::unique_ptr<Server> server;
};

TEST_F(CertifiedTest, OnlyAnEntryMadeForItGivesACertificateRights) {
  issue("plain", "");
  issue("agent-1", "agent-1");
  issue("other", "other");
  const Got token = create({{"name", "other"}, {"role", "admin"}});
  ASSERT_EQ(token.status, 200) << token.body;
  EXPECT_EQ(read_as("plain").status, 401) << "a certificate as it was before";
  EXPECT_EQ(read_as("").status, 401) << "none at all";
  EXPECT_EQ(read_as("agent-1").status, 401) << "no entry";
  EXPECT_THAT(read_as("agent-1").body, HasSubstr("ringshift token create agent-1 --certificate"));
  EXPECT_EQ(read_as("other").status, 401) << "a token's name is no entry for certificates";

  const Got made = create({{"name", "agent-1"}, {"role", "read"}, {"certificate", true}});
  ASSERT_EQ(made.status, 200) << made.body;
  EXPECT_FALSE(Json::parse(made.body).contains("token")) << "no secret";
  EXPECT_EQ(read_as("agent-1").status, 200);
  EXPECT_EQ(read_as("other").status, 401);
  EXPECT_EQ(read_as("plain").status, 401);
  const std::string put =
      R"({"key":")" + base::to_base64("/ringshift/default/c/spec") + R"(","value":"eA=="})";
  EXPECT_EQ(ask(call("/v3/kv/put", put, "agent-1")).status, 403) << "its role, no more";
  EXPECT_EQ(ask(call("/ringshift/v1/token/list", "{}", "agent-1")).status, 403);
  EXPECT_EQ(create({{"name", "agent-1"}, {"role", "admin"}}).status, 400) << "one entry of a name";
  EXPECT_EQ(create({{"name", "x"}, {"role", "read"}, {"certificate", 1}}).status, 400);
}

TEST_F(CertifiedTest, ATokenThatIsSentIsWhatCounts) {
  issue("agent-1", "agent-1");
  ASSERT_EQ(create({{"name", "agent-1"}, {"role", "read"}, {"certificate", true}}).status, 200);
  EXPECT_EQ(ask(call("/ringshift/v1/token/list", "{}", "agent-1", admin)).status, 200)
      << "the token's rights";
  EXPECT_EQ(read_as("agent-1", "rs_" + std::string(43, 'A')).status, 401) << "a wrong token is not mended";
}

TEST_F(CertifiedTest, RevokedExpiredAndForeignOnesAreNobody) {
  issue("agent-1", "agent-1");
  const Json entry = {{"name", "agent-1"}, {"role", "read"}, {"certificate", true}};
  ASSERT_EQ(create(entry).status, 200);
  EXPECT_EQ(read_as("agent-1").status, 200);
  EXPECT_EQ(ask(call("/ringshift/v1/token/rotate", R"({"name":"agent-1"})", "", admin)).status, 400);
  ASSERT_EQ(ask(call("/ringshift/v1/token/revoke", R"({"name":"agent-1"})", "", admin)).status, 200);
  EXPECT_EQ(read_as("agent-1").status, 401) << "revoked";
  ASSERT_EQ(create(entry).status, 200);
  EXPECT_EQ(read_as("agent-1").status, 200);

  const net::PemPair good =
      net::issue_certificate(authority, {"agent-1", {"agent-1"}, 5, "ringshift:agent-1"}).value();
  keep("old", {until(good.certificate, authority, -60), good.key});
  EXPECT_EQ(read_as("old").status, 0) << "an expired one does not even connect";
  // One authority's word is not another's.
  const net::PemPair stranger = net::make_authority("clients", 10).value();
  keep("foreign", net::issue_certificate(stranger, {"agent-1", {"agent-1"}, 5, "ringshift:agent-1"}).value());
  EXPECT_EQ(read_as("foreign").status, 0);

  // It ends while a connection is kept: the next request on it is nobody's, and the watch is over.
  keep("soon", {until(good.certificate, authority, 3), good.key});
  http::StreamCall watch;
  http::Client kept;
  const std::string body =
      R"({"create_request":{"key":")" + base::to_base64("/ringshift/default/c/spec") + "\"}}";
  std::thread watcher([&] {
    const auto ended = watch.run(call("/v3/watch", body, "soon"), [](std::string_view) { return true; });
    EXPECT_EQ(ended.value_or(-1), 200);
  });
  const http::Call question = call("/v3/kv/range", R"({"key":"YQ=="})", "soon");
  const auto first = kept.send(question);
  EXPECT_EQ(first ? first->status : 0, 403) << "known, and not allowed this key";
  watcher.join();  // Forever, if it did not end.
  const auto later = kept.send(question);
  ASSERT_TRUE(later.has_value()) << later.error().error.message;
  EXPECT_EQ(later->status, 401);
  EXPECT_THAT(later->body, HasSubstr("out of date"));
}

TEST_F(CertifiedTest, AWatchIsNotTheNextEntrysOfItsName) {
  issue("agent-1", "agent-1");
  const Json entry = {{"name", "agent-1"}, {"role", "read"}, {"certificate", true}};
  ASSERT_EQ(create(entry).status, 200);
  http::StreamCall watch;
  std::atomic<bool> begun{false};
  std::thread watcher([&] {
    const auto ended = watch.run(
        call("/v3/watch",
             R"({"create_request":{"key":")" + base::to_base64("/ringshift/default/c/spec") + "\"}}",
             "agent-1"),
        [&](std::string_view) { return begun = true; });
    EXPECT_EQ(ended.value_or(-1), 200);
  });
  while (!begun) std::this_thread::sleep_for(5ms);
  // Sooner than anybody looks again at who may go on.
  ASSERT_EQ(ask(call("/ringshift/v1/token/revoke", R"({"name":"agent-1"})", "", admin)).status, 200);
  ASSERT_EQ(create({{"name", "agent-1"}, {"role", "read"}, {"namespace", "b"}, {"certificate", true}}).status,
            200);
  watcher.join();  // Forever, if it did not end.
}

TEST_F(CertifiedTest, APageInABrowserIsNotItsOwner) {
  issue("agent-1", "agent-1");
  ASSERT_EQ(create({{"name", "agent-1"}, {"role", "admin"}, {"certificate", true}}).status, 200);
  http::Call request = call("/ringshift/v1/token/list", "{}", "agent-1");
  EXPECT_EQ(ask(request).status, 200);
  request.headers = {"Origin: https://elsewhere.example"};
  EXPECT_EQ(ask(request).status, 401);
}

TEST_F(CertifiedTest, TheAuditNamesItAndTheLastAdminsTokenStays) {
  issue("boss", "boss");
  ASSERT_EQ(create({{"name", "boss"}, {"role", "admin"}, {"certificate", true}}).status, 200);
  const Got refused = ask(call("/ringshift/v1/token/revoke", R"({"name":"admin"})", "boss"));
  EXPECT_EQ(refused.status, 400) << "without --client-ca nobody could get in: " << refused.body;
  const std::string put =
      R"({"key":")" + base::to_base64("/ringshift/default/c/spec") + R"(","value":"eA=="})";
  EXPECT_EQ(ask(call("/v3/kv/put", put, "boss")).status, 200);
  const Json rows = Json::parse(ask(call("/ringshift/v1/audit", "{}", "boss")).body).at("rows");
  const auto has = [&](const std::string& who, const std::string& verb) {
    return std::ranges::any_of(rows, [&](const Json& row) {
      return row.value("who", "") == who && row.value("verb", "") == verb && row.value("outcome", "") == "ok";
    });
  };
  EXPECT_TRUE(has("boss", "put")) << rows;
  EXPECT_TRUE(has("admin", "token create (certificate)")) << rows;
  const Got list = ask(call("/ringshift/v1/token/list", "{}", "boss"));
  EXPECT_THAT(list.body, HasSubstr(R"("certificate":true)"));
  server.reset();
  server = Server::start(options).value();  // It is kept.
  EXPECT_TRUE(server->admin_token_file().empty());
  EXPECT_EQ(read_as("boss").status, 200);
}

TEST_F(CertifiedTest, TwoNamesAreNone) {
  for (const char* name : {"a", "b"}) {
    ASSERT_EQ(create({{"name", name}, {"role", "read"}, {"certificate", true}}).status, 200);
  }
  EXPECT_FALSE(
      net::issue_certificate(authority, {"two", {"two"}, 5, "ringshift:a,URI:ringshift:b"}).has_value());
  // Another program may issue one.
  const net::PemPair one = net::issue_certificate(authority, {"two", {"two"}, 5, "ringshift:a"}).value();
  keep("two", {changed(one.certificate, authority,
                       [](X509* leaf) {
                         const int names = X509_get_ext_by_NID(leaf, NID_subject_alt_name, -1);
                         X509_EXTENSION_free(X509_delete_ext(leaf, names));
                         X509_EXTENSION* both = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name,
                                                                    "URI:ringshift:a,URI:ringshift:b");
                         EXPECT_EQ(X509_add_ext(leaf, both, -1), 1);
                         X509_EXTENSION_free(both);
                       }),
               one.key});
  EXPECT_EQ(read_as("two").status, 401);
  EXPECT_THAT(read_as("two").body, HasSubstr("more than one"));
}

}  // namespace
}  // namespace ringshift::registry
