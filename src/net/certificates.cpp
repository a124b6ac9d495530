#include "net/certificates.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>

namespace ringshift::net {
namespace {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Memory = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Number = std::unique_ptr<BIGNUM, Freed<BN_free>>;

constexpr long kClockSkew = 300;  // Valid from a little earlier, for machines whose clocks are behind.
constexpr int kSerialBits = 127;

std::unexpected<Error> openssl_failed(std::string_view what) {
  const char* reason = ERR_reason_error_string(ERR_get_error());
  ERR_clear_error();
  return fail(ErrorKind::internal, std::string(what) + ": " + (reason == nullptr ? "unknown error" : reason));
}

std::string text_of(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return {data, static_cast<std::size_t>(std::max(size, 0L))};
}

Memory memory_of(const std::string& text) {
  return Memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Status add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  const bool added = extension != nullptr && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  if (!added) return openssl_failed("certificate extension " + value);
  return {};
}

bool is_ip_name(const std::string& name) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, name.c_str(), bytes) == 1 || inet_pton(AF_INET6, name.c_str(), bytes) == 1;
}

// What cannot be taken for two names, nor for something of OpenSSL's own in its list of them.
bool is_plain_uri(std::string_view uri) {
  constexpr std::size_t kUriBytesMax = 253;
  return uri.size() <= kUriBytesMax && std::ranges::all_of(uri, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ':' ||
                  c == '/' || c == '.' || c == '-' || c == '_';
         });
}

bool is_dns_name(std::string_view name) {
  if (name.starts_with("*.")) name.remove_prefix(2);
  constexpr std::size_t kDnsBytesMax = 253;
  return !name.empty() && name.size() <= kDnsBytesMax && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  });
}

Status check_words(const std::string& common_name, int days) {
  constexpr std::size_t kCommonNameMax = 64;
  const auto plain = [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; };
  if (common_name.empty() || common_name.size() > kCommonNameMax ||
      !std::ranges::all_of(common_name, plain)) {
    return fail(ErrorKind::invalid, "a certificate's name has 1 to 64 printable characters");
  }
  if (days < 1 || days > kCertificateDaysMax) {
    return fail(ErrorKind::invalid,
                "a certificate is valid for 1 to " + std::to_string(kCertificateDaysMax) + " days");
  }
  return {};
}

struct Blank {
  Key key;
  Certificate certificate;
};
Result<Blank> make_blank(const std::string& common_name, int days) {
  ERR_clear_error();
  Blank blank{Key(EVP_EC_gen("P-256")), Certificate(X509_new())};
  const Number serial(BN_new());
  if (!blank.key || !blank.certificate || !serial ||
      BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) != 1) {
    return openssl_failed("cannot make a key");
  }
  X509* raw = blank.certificate.get();
  X509_NAME* subject = X509_get_subject_name(raw);
  const auto* name = reinterpret_cast<const unsigned char*>(common_name.data());
  const bool filled = X509_set_version(raw, X509_VERSION_3) == 1 &&
                      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(raw)) != nullptr &&
                      X509_gmtime_adj(X509_getm_notBefore(raw), -kClockSkew) != nullptr &&
                      X509_time_adj_ex(X509_getm_notAfter(raw), days, 0, nullptr) != nullptr &&
                      X509_set_pubkey(raw, blank.key.get()) == 1 &&
                      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, name,
                                                 static_cast<int>(common_name.size()), -1, 0) == 1;
  if (!filled) return openssl_failed("cannot make a certificate");
  return blank;
}

Result<PemPair> sign_and_write(const Blank& blank, X509* issuer, EVP_PKEY* issuer_key) {
  X509* raw = blank.certificate.get();
  if (X509_set_issuer_name(raw, X509_get_subject_name(issuer)) != 1 ||
      X509_sign(raw, issuer_key, EVP_sha256()) == 0) {
    return openssl_failed("cannot sign");
  }
  const Memory certificate(BIO_new(BIO_s_mem())), key(BIO_new(BIO_s_secmem()));
  if (PEM_write_bio_X509(certificate.get(), raw) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key.get(), blank.key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return openssl_failed("cannot write PEM");
  }
  return PemPair{text_of(certificate.get()), text_of(key.get())};
}

std::int64_t unix_time(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? timegm(&parts) : 0;
}

std::string name_text(const X509_NAME* name) {
  const Memory memory(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(memory.get(), name, 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB);
  return text_of(memory.get());
}

std::string ip_text(const ASN1_OCTET_STRING* bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  const int family = ASN1_STRING_length(bytes) == 4 ? AF_INET : AF_INET6;
  if (family == AF_INET6 && ASN1_STRING_length(bytes) != 16) return "?";
  inet_ntop(family, ASN1_STRING_get0_data(bytes), text, sizeof text);
  return text;
}

std::string bytes_of(const ASN1_STRING* string) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)),
          static_cast<std::size_t>(ASN1_STRING_length(string))};
}

std::vector<std::string> names_of(const X509* certificate) {
  std::vector<std::string> names;
  auto* found =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(found); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(found, i);
    if (name->type == GEN_DNS) {
      names.push_back("DNS:" + bytes_of(name->d.dNSName));
    } else if (name->type == GEN_URI) {
      names.push_back("URI:" + bytes_of(name->d.uniformResourceIdentifier));
    } else if (name->type == GEN_IPADD) {
      names.push_back("IP:" + ip_text(name->d.iPAddress));
    }
  }
  GENERAL_NAMES_free(found);
  return names;
}

std::string hex_of(const unsigned char* bytes, std::size_t size) {
  std::string out;
  for (std::size_t i = 0; i < size; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += {kDigits[bytes[i] >> 4], kDigits[bytes[i] & 15]};
  }
  return out;
}

CertificateFacts facts_of(X509* certificate) {
  CertificateFacts facts;
  facts.subject = name_text(X509_get_subject_name(certificate));
  facts.issuer = name_text(X509_get_issuer_name(certificate));
  facts.names = names_of(certificate);
  facts.begins = unix_time(X509_get0_notBefore(certificate));
  facts.ends = unix_time(X509_get0_notAfter(certificate));
  facts.authority = X509_check_ca(certificate) == 1;
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest, &size) == 1) facts.sha256 = hex_of(digest, size);
  const Number serial(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  if (char* text = serial ? BN_bn2hex(serial.get()) : nullptr; text != nullptr) {
    facts.serial = text;
    OPENSSL_free(text);
  }
  return facts;
}

}  // namespace

Result<PemPair> make_authority(const std::string& common_name, int days) {
  if (const Status right = check_words(common_name, days); !right) return std::unexpected(right.error());
  const Result<Blank> blank = make_blank(common_name, days);
  if (!blank) return std::unexpected(blank.error());
  X509* raw = blank->certificate.get();
  const std::pair<int, const char*> extensions[] = {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                                                    {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                                    {NID_subject_key_identifier, "hash"}};
  for (const auto& [kind, value] : extensions) {
    if (const Status added = add_extension(raw, raw, kind, value); !added)
      return std::unexpected(added.error());
  }
  return sign_and_write(*blank, raw, blank->key.get());
}

Result<PemPair> issue_certificate(const PemPair& authority, const CertificateWish& wish) {
  if (const Status right = check_words(wish.common_name, wish.days); !right)
    return std::unexpected(right.error());
  if (wish.names.empty() || wish.names.size() > kCertificateNamesMax) {
    return fail(ErrorKind::invalid, "a certificate needs 1 to 100 names: DNS names or IP addresses");
  }
  std::string names;
  for (const std::string& name : wish.names) {
    const bool ip = is_ip_name(name);
    if (!ip && !is_dns_name(name))
      return fail(ErrorKind::invalid, "'" + name + "' is no DNS name and no IP address");
    names += (names.empty() ? "" : ",") + std::string(ip ? "IP:" : "DNS:") + name;
  }
  if (!is_plain_uri(wish.uri)) {
    return fail(ErrorKind::invalid, "identity '" + wish.uri + "': write letters, digits and : / . - _");
  }
  if (!wish.uri.empty()) names += ",URI:" + wish.uri;
  ERR_clear_error();
  const Certificate issuer(
      PEM_read_bio_X509(memory_of(authority.certificate).get(), nullptr, nullptr, nullptr));
  const Key issuer_key(PEM_read_bio_PrivateKey(
      memory_of(authority.key).get(), nullptr, [](char*, int, int, void*) { return 0; }, nullptr));
  if (!issuer || !issuer_key || X509_check_private_key(issuer.get(), issuer_key.get()) != 1) {
    ERR_clear_error();
    return fail(ErrorKind::invalid, "the authority's certificate and key are not PEM, or not a pair");
  }
  if (X509_check_ca(issuer.get()) != 1) {
    return fail(ErrorKind::invalid, "that certificate is not an authority's: it cannot sign others");
  }
  if (X509_cmp_current_time(X509_get0_notAfter(issuer.get())) < 0) {
    return fail(ErrorKind::invalid,
                "the authority has expired: make a new one with 'ringshift cert init --force'");
  }
  const Result<Blank> blank = make_blank(wish.common_name, wish.days);
  if (!blank) return std::unexpected(blank.error());
  X509* raw = blank->certificate.get();
  if (unix_time(X509_get0_notAfter(raw)) > unix_time(X509_get0_notAfter(issuer.get()))) {
    X509_set1_notAfter(raw, X509_get0_notAfter(issuer.get()));
  }
  const std::pair<int, std::string> extensions[] = {
      {NID_basic_constraints, "critical,CA:FALSE"}, {NID_key_usage, "critical,digitalSignature"},
      {NID_ext_key_usage, "serverAuth,clientAuth"}, {NID_subject_alt_name, names},
      {NID_subject_key_identifier, "hash"},         {NID_authority_key_identifier, "keyid"}};
  for (const auto& [kind, value] : extensions) {
    if (const Status added = add_extension(raw, issuer.get(), kind, value); !added) {
      return std::unexpected(added.error());
    }
  }
  return sign_and_write(*blank, issuer.get(), issuer_key.get());
}

Result<std::vector<CertificateFacts>> read_certificates(const std::string& pem) {
  std::vector<CertificateFacts> all;
  const Memory memory = memory_of(pem);
  while (all.size() < kCertificateNamesMax) {
    const Certificate one(PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr));
    if (!one) break;
    all.push_back(facts_of(one.get()));
  }
  ERR_clear_error();
  if (all.empty()) return fail(ErrorKind::invalid, "there is no certificate in it: PEM is expected");
  return all;
}

std::optional<CertificateFacts> peer_certificate(const ssl_st* connection) {
  if (connection == nullptr || SSL_get_verify_result(connection) != X509_V_OK) return std::nullopt;
  X509* certificate = SSL_get0_peer_certificate(connection);
  if (certificate == nullptr) return std::nullopt;
  return facts_of(certificate);
}

}  // namespace ringshift::net
