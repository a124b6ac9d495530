#include "admin/answers.h"

#include <fmt/format.h>

#include "admin/json_text.h"
#include "base/encoding.h"

namespace ringshift::admin {
namespace {

struct Kind {
  int status;
  const char* code;
};

Kind kind_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid:
      return {400, "invalid"};
    case ErrorKind::not_found:
      return {404, "not_found"};
    case ErrorKind::retryable:
      return {503, "retryable"};
    case ErrorKind::overloaded:
      return {429, "overloaded"};
    case ErrorKind::stale:
      return {409, "stale"};
    case ErrorKind::denied:
      return {403, "forbidden"};
    case ErrorKind::internal:
      return {500, "internal"};
  }
  return {500, "internal"};
}

// "change.edit.add[0].id: is missing" is about change.edit.add[0].id.
std::string field_of_message(std::string_view message) {
  const std::size_t colon = message.find(": ");
  if (colon == std::string_view::npos || colon == 0 || colon > 128) return "";
  const std::string_view name = message.substr(0, colon);
  const bool plain =
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.-[]") == std::string_view::npos;
  return plain ? std::string(name) : "";
}

std::string error_body(std::string_view code, std::string_view message, std::string_view field,
                       std::string_view fix) {
  Object error;
  error.add("code", string_json(code)).add("message", string_json(message));
  if (!field.empty()) error.add("field", string_json(field));
  if (!fix.empty()) error.add("fix", string_json(fix));
  return Object().add("error", error.text()).text() + "\n";
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out += ' ';
    } else if (text[i] == '%' && i + 2 < text.size()) {
      const auto byte = base::from_hex(text.substr(i + 1, 2));
      out += byte ? *byte : "%";
      i += byte ? 2 : 0;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

Answer json_answer(std::string body, int status) {
  Answer answer;
  answer.status = status;
  answer.body = std::move(body);
  answer.body += '\n';
  return answer;
}

Answer error_answer(int status, std::string_view code, std::string_view message, std::string_view fix) {
  Answer answer;
  answer.status = status;
  answer.body = error_body(code, message, "", fix);
  return answer;
}

Answer error_answer(const Error& error) {
  const Kind kind = kind_of(error.kind);
  Answer answer;
  answer.status = kind.status;
  answer.body = error_body(kind.code, error.message,
                           error.kind == ErrorKind::invalid ? field_of_message(error.message) : "", "");
  return answer;
}

Answer answer_of(Result<std::string> json) {
  return json ? json_answer(*std::move(json)) : error_answer(json.error());
}

std::map<std::string, std::string> parse_query(std::string_view query) {
  std::map<std::string, std::string> out;
  for (std::size_t begin = 0; begin < query.size() && out.size() < kQueryFields;) {
    const std::size_t end = std::min(query.find('&', begin), query.size());
    const std::string_view field = query.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = std::min(field.find('='), field.size());
    if (equals == 0) continue;
    out[percent_decoded(field.substr(0, equals))] =
        equals < field.size() ? percent_decoded(field.substr(equals + 1)) : "";
  }
  return out;
}

Result<std::uint64_t> number_of(const std::map<std::string, std::string>& query, const char* name,
                                std::uint64_t least, std::uint64_t most, std::uint64_t usual) {
  const auto found = query.find(name);
  if (found == query.end()) return usual;
  const auto number = base::parse_u64(found->second);
  if (!number || *number < least || *number > most) {
    return fail(ErrorKind::invalid, fmt::format("{}: '{}' is no whole number from {} to {}", name,
                                                base::printable(found->second, 40), least, most));
  }
  return *number;
}

}  // namespace ringshift::admin
