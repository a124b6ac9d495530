// Certificates for people who have no authority to sign them: a small one of their own, by OpenSSL.
//
// Keys are EC P-256. An authority signs no further authorities (path length 0). Pure: nothing is read or
// written here; PEM in, PEM out. Whoever has an authority's key makes certificates that everybody who trusts
// it believes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ringshift/error.h"

struct ssl_st;

namespace ringshift::net {

inline constexpr int kCertificateDaysMax = 36'500;
inline constexpr std::size_t kCertificateNamesMax = 100;

struct PemPair {
  std::string certificate, key;
};

[[nodiscard]] Result<PemPair> make_authority(const std::string& common_name, int days);

struct CertificateWish {
  std::string common_name;
  std::vector<std::string> names;  // What it is valid for: DNS names (one '*.' may lead) and IP addresses.
  int days = 365;
  std::string uri{};  // Who its holder is, as a further name; "": says none.
};
// For servers and clients alike. It ends with the authority at the latest.
[[nodiscard]] Result<PemPair> issue_certificate(const PemPair& authority, const CertificateWish& wish);

struct CertificateFacts {
  std::string subject, issuer, serial;  // serial: hex.
  std::vector<std::string> names;       // "DNS:...", "IP:...", "URI:..."
  std::int64_t begins = 0, ends = 0;    // Unix seconds.
  std::string sha256;                   // Of the whole certificate, hex.
  bool authority = false;
};
// Every certificate in `pem`; invalid when there is none.
[[nodiscard]] Result<std::vector<CertificateFacts>> read_certificates(const std::string& pem);

// What the other side of a connection has shown, and its authority vouches for; nullopt when it showed none.
[[nodiscard]] std::optional<CertificateFacts> peer_certificate(const ssl_st* connection);

}  // namespace ringshift::net
