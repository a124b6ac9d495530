#include "net/tls_session.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "net/tls.h"

namespace ringshift::net {
namespace {

bool is_ip(const std::string& host) {
  unsigned char address[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, host.c_str(), address) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), address) == 1;
}

}  // namespace

// OpenSSL's own socket BIO writes with write(), which raises SIGPIPE; this one does not.
struct TlsSession::Socket {
  static TlsSession& session(BIO* bio) { return *static_cast<TlsSession*>(BIO_get_data(bio)); }

  static int write(BIO* bio, const char* data, int size) {
    TlsSession& self = session(bio);
    ssize_t sent = 0;
    do {
      sent = ::send(self.fd_, data, static_cast<std::size_t>(size), MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    BIO_clear_retry_flags(bio);
    if (sent < 0) {
      self.socket_error_ = errno;
      if (errno == EAGAIN || errno == EWOULDBLOCK) BIO_set_retry_write(bio);
    }
    return static_cast<int>(sent);
  }

  static int read(BIO* bio, char* data, int size) {
    TlsSession& self = session(bio);
    ssize_t got = 0;
    do {
      got = ::recv(self.fd_, data, static_cast<std::size_t>(size), 0);
    } while (got < 0 && errno == EINTR);
    BIO_clear_retry_flags(bio);
    if (got < 0) {
      self.socket_error_ = errno;
      if (errno == EAGAIN || errno == EWOULDBLOCK) BIO_set_retry_read(bio);
    }
    if (got == 0) self.eof_ = true;
    return static_cast<int>(got);
  }

  static long control(BIO* bio, int command, long, void*) {
    if (command == BIO_CTRL_FLUSH) return 1;
    if (command == BIO_CTRL_EOF) return session(bio).eof_ ? 1 : 0;
    return 0;
  }

  static const BIO_METHOD* method() {
    static const std::unique_ptr<BIO_METHOD, void (*)(BIO_METHOD*)> made = [] {
      BIO_METHOD* made_now = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "ringshift socket");
      BIO_meth_set_write(made_now, write);
      BIO_meth_set_read(made_now, read);
      BIO_meth_set_ctrl(made_now, control);
      return std::unique_ptr<BIO_METHOD, void (*)(BIO_METHOD*)>(made_now, BIO_meth_free);
    }();
    return made.get();
  }
};

TlsSession::TlsSession(const TlsContext& context, int fd, std::string_view host) : fd_(fd), host_(host) {
  ERR_clear_error();
  ssl_ = SSL_new(context.current().get());
  BIO* bio = ssl_ == nullptr ? nullptr : BIO_new(Socket::method());
  if (bio == nullptr) {
    end_ = End::failed;
    problem_ = "TLS: out of memory";
    return;
  }
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
  if (context.is_server()) {
    SSL_set_accept_state(ssl_);
    return;
  }
  SSL_set_connect_state(ssl_);
  const TlsContext::Client& files = context.client_files();
  if (!files.name.empty()) host_ = files.name;
  const bool ip = is_ip(host_);
  if (!host_.empty() && !ip) SSL_set_tlsext_host_name(ssl_, host_.c_str());
  if (files.insecure) return;
  const bool named =
      !host_.empty() && (ip ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_), host_.c_str())
                            : SSL_set1_host(ssl_, host_.c_str())) == 1;
  if (named) return;
  end_ = End::failed;
  problem_ = host_.empty() ? "TLS: no name to look for in the certificate: a unix socket's must be given"
                           : "TLS: no certificate can be for the name " + host_;
}

TlsSession::~TlsSession() {
  if (established_ && end_ != End::failed) static_cast<void>(close_notify());
  SSL_free(ssl_);  // And the BIO.
}

void TlsSession::failed(int error, std::string_view step) {
  end_ = End::failed;
  problem_ = "TLS " + std::string(step) + " failed: ";
  const unsigned long code = ERR_peek_error();
  const long verdict = SSL_get_verify_result(ssl_);
  if (verdict != X509_V_OK && !established_) {
    problem_ += "the peer's certificate is refused: ";
    problem_ += X509_verify_cert_error_string(verdict);
    if (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH) {
      problem_ += "; it is not for " + host_;
    }
  } else if (error == SSL_ERROR_SSL && code != 0) {
    const char* reason = ERR_reason_error_string(code);
    problem_ += reason != nullptr ? reason : "unknown error";
  } else if (eof_) {
    problem_ += "the peer closed the connection";
  } else {
    problem_ += std::strerror(socket_error_ != 0 ? socket_error_ : EPROTO);
  }
  ERR_clear_error();
}

TlsSession::Step TlsSession::handshake() {
  if (end_ == End::failed) return Step::failed;
  ERR_clear_error();
  socket_error_ = 0;
  const int result = SSL_do_handshake(ssl_);
  if (result == 1) {
    established_ = true;
    holds_ = SSL_has_pending(ssl_) == 1;  // The peer's first words may have come with its last of this.
    return Step::done;
  }
  const int error = SSL_get_error(ssl_, result);
  if (error == SSL_ERROR_WANT_READ) return Step::wants_read;
  if (error == SSL_ERROR_WANT_WRITE) return Step::wants_write;
  failed(error, "handshake");
  return Step::failed;
}

ssize_t TlsSession::read(char* data, std::size_t size) {
  std::size_t got = 0;
  holds_ = false;
  while (got < size && end_ == End::none) {
    std::size_t part = 0;
    ERR_clear_error();
    socket_error_ = 0;
    const int result = SSL_read_ex(ssl_, data + got, size - got, &part);
    if (result == 1) {
      got += part;
      if (SSL_has_pending(ssl_) == 0) return static_cast<ssize_t>(got);
      continue;
    }
    const int error = SSL_get_error(ssl_, result);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
      read_wants_write_ = error == SSL_ERROR_WANT_WRITE;
      if (got != 0) return static_cast<ssize_t>(got);
      errno = EAGAIN;
      return -1;
    }
    if (error == SSL_ERROR_ZERO_RETURN) {
      end_ = End::ended;
    } else {
      failed(error, "connection");
    }
  }
  if (got != 0) {
    holds_ = true;  // There is no room for the rest, or the end is to be told next.
    return static_cast<ssize_t>(got);
  }
  if (end_ != End::failed) return 0;
  errno = EPROTO;
  return -1;
}

ssize_t TlsSession::write(const char* data, std::size_t size) {
  std::size_t sent = 0;
  while (sent < size && sent < kMaxWrite && end_ != End::failed) {
    std::size_t part = 0;
    ERR_clear_error();
    socket_error_ = 0;
    const int result = SSL_write_ex(ssl_, data + sent, size - sent, &part);
    write_stuck_ = result != 1;
    if (result == 1) {
      sent += part;
      continue;
    }
    const int error = SSL_get_error(ssl_, result);
    if (error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ) {
      if (sent != 0) return static_cast<ssize_t>(sent);
      errno = EAGAIN;
      return -1;
    }
    failed(error, "connection");
  }
  if (end_ != End::failed) return static_cast<ssize_t>(sent);
  errno = EPROTO;
  return -1;
}

bool TlsSession::close_notify() {
  if (said_goodbye_ || write_stuck_ || end_ == End::failed) return true;
  ERR_clear_error();
  const int result = SSL_shutdown(ssl_);
  if (result < 0 && SSL_get_error(ssl_, result) == SSL_ERROR_WANT_WRITE) return false;
  said_goodbye_ = true;
  ERR_clear_error();
  return true;
}

std::string TlsSession::version() const { return SSL_get_version(ssl_); }

}  // namespace ringshift::net
