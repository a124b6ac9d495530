// Who may act: the tokens of the admin API.
//
// A token file has a line for each token: "TOKEN" or "NAME TOKEN"; empty lines and lines that begin with '#'
// do not count. The file must be its owner's alone (mode 0600), since whoever reads it acts. Invariant: a
// token has at least kTokenBytesMin characters; neither logs nor errors ever have one. Thread rule: immutable
// once made. Cost of a check: a comparison with every token, of equal time for every input of the same
// length.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ringshift/error.h"

namespace ringshift::admin {

class Tokens {
 public:
  static constexpr std::size_t kTokenBytesMin = 16, kTokenBytesMax = 512;
  static constexpr std::size_t kTokensMax = 64;
  static constexpr std::size_t kFileBytesMax = 64U << 10;

  [[nodiscard]] static Result<Tokens> read(const std::string& path);
  // Reads `path`; when it is not there, makes it with one token of 256 random bits and mode 0600.
  [[nodiscard]] static Result<Tokens> read_or_make(const std::string& path);
  // `place` is for errors.
  [[nodiscard]] static Result<Tokens> parse(std::string_view text, std::string_view place);

  // The name of the token in an Authorization header; nullopt when it has none of ours.
  [[nodiscard]] std::optional<std::string> who(std::string_view authorization) const;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  struct Token {
    std::string name, token;
  };
  std::string path_;
  std::vector<Token> tokens_;
};

}  // namespace ringshift::admin
