#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <cstring>
#include <ctime>
#include <utility>

namespace ringshift::net {
namespace {

using Made = Result<std::shared_ptr<SSL_CTX>>;

// What OpenSSL has to say of a failure just now, and forgets.
std::string last_words() {
  const unsigned long first = ERR_get_error();
  std::string words = "unknown error";
  if (const char* reason = ERR_reason_error_string(first); reason != nullptr) words = reason;
  if (ERR_SYSTEM_ERROR(first)) words = std::strerror(ERR_GET_REASON(first));  // There is no such file, say.
  ERR_clear_error();
  return words;
}

std::unexpected<Error> bad_file(std::string_view what, const std::string& file) {
  return fail(ErrorKind::invalid, "TLS: " + std::string(what) + " " + file + ": " + last_words());
}

// Without this OpenSSL would ask for a passphrase on the terminal, and a server would hang.
int no_passphrase(char*, int, int, void*) { return 0; }

Made new_context(const SSL_METHOD* method) {
  ERR_clear_error();
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(method), SSL_CTX_free);
  if (context == nullptr) return fail(ErrorKind::internal, "TLS: cannot make a context: " + last_words());
  SSL_CTX* raw = context.get();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  // A peer that just closes its socket is common; RESP says how long everything is, so nobody who cuts a
  // connection can make a command out of half of one.
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  // An idle connection gives its buffers (34 KB) back. The output buffer of a stream grows, and so moves,
  // between two attempts to write the same bytes.
  SSL_CTX_set_mode(
      raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(raw, 1);  // One recv() for a record, not one for its head and one for its body.
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);  // Tickets keep no state here.
  SSL_CTX_set_default_passwd_cb(raw, no_passphrase);
  return context;
}

Status use_certificate(SSL_CTX* context, const std::string& certificate, const std::string& key) {
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1) {
    return bad_file("certificate", certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return bad_file("key (PEM, not encrypted)", key);
  }
  if (SSL_CTX_check_private_key(context) != 1) {
    return fail(ErrorKind::invalid, "TLS: key " + key + " does not belong to certificate " + certificate);
  }
  return {};
}

Made make(const TlsContext::Server& files) {
  Made made = new_context(TLS_server_method());
  if (!made) return made;
  SSL_CTX* context = made->get();
  if (const Status used = use_certificate(context, files.certificate, files.key); !used) {
    return std::unexpected(used.error());
  }
  static constexpr unsigned char kSessionContext[] = "ringshift";
  SSL_CTX_set_session_id_context(context, kSessionContext, sizeof(kSessionContext) - 1);
  SSL_CTX_set_num_tickets(context, 1);
  SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);
  if (files.clients == TlsContext::ClientCertificates::none) return made;
  if (files.ca.empty()) {
    return fail(ErrorKind::invalid,
                "TLS: client certificates are wanted, but no CA that signs them is named");
  }
  if (SSL_CTX_load_verify_locations(context, files.ca.c_str(), nullptr) != 1) {
    return bad_file("CA", files.ca);
  }
  SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(files.ca.c_str()));
  const bool required = files.clients == TlsContext::ClientCertificates::required;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nullptr);
  return made;
}

Made make(const TlsContext::Client& files) {
  if (files.certificate.empty() != files.key.empty()) {
    return fail(ErrorKind::invalid, "TLS: a certificate of our own needs its key, and a key its certificate");
  }
  Made made = new_context(TLS_client_method());
  if (!made) return made;
  SSL_CTX* context = made->get();
  if (!files.certificate.empty()) {
    if (const Status used = use_certificate(context, files.certificate, files.key); !used) {
      return std::unexpected(used.error());
    }
  }
  if (files.insecure) return made;
  if (files.ca.empty()) {
    if (SSL_CTX_set_default_verify_paths(context) != 1) return bad_file("the system's CAs", "");
  } else if (SSL_CTX_load_verify_locations(context, files.ca.c_str(), nullptr) != 1) {
    return bad_file("CA", files.ca);
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  return made;
}

}  // namespace

Result<std::shared_ptr<TlsContext>> TlsContext::server(Server files) {
  std::shared_ptr<TlsContext> context(new TlsContext(std::move(files)));
  if (const Status loaded = context->reload(); !loaded) return std::unexpected(loaded.error());
  return context;
}

Result<std::shared_ptr<TlsContext>> TlsContext::client(Client files) {
  std::shared_ptr<TlsContext> context(new TlsContext(std::move(files)));
  if (const Status loaded = context->reload(); !loaded) return std::unexpected(loaded.error());
  return context;
}

Status TlsContext::reload() {
  Made made = std::visit([](const auto& files) { return make(files); }, files_);
  if (!made) return std::unexpected(made.error());
  const std::lock_guard lock(mutex_);
  current_ = std::move(*made);
  return {};
}

std::optional<std::int64_t> TlsContext::certificate_expires() const {
  const std::shared_ptr<SSL_CTX> context = current();
  const X509* certificate = SSL_CTX_get0_certificate(context.get());
  std::tm end{};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) != 1)
    return std::nullopt;
  return timegm(&end);
}

}  // namespace ringshift::net
