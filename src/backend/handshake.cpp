#include "backend/handshake.h"

#include <fmt/format.h>

#include "base/log.h"
#include "protocol/resp/value.h"

namespace ringshift::backend {
namespace {

using protocol::resp::append_command;
using protocol::resp::Decoded;
using protocol::resp::Value;

std::string run_id_of(std::string_view info) {
  constexpr std::string_view kField = "run_id:";
  const std::size_t at = info.find(kField);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = info.substr(at + kField.size());
  return std::string(rest.substr(0, rest.find_first_of("\r\n")));
}

}  // namespace

Handshake::Handshake(Resp resp, std::string_view name, bool with_look, const Credentials& credentials,
                     unsigned database)
    : with_look_(with_look), database_(database) {
  if (!credentials.password.empty()) {
    append_auth(first_round_, credentials);
    steps_.push_back({Kind::auth});
  }
  if (resp == Resp::v3) {
    append_command(first_round_, {"HELLO", "3"});
    steps_.push_back({Kind::hello});
  }
  if (!name.empty()) {
    append_command(first_round_, {"CLIENT", "SETNAME", name});
    steps_.push_back({Kind::set_name});
  }
  append_command(first_round_, {"CLIENT", "ID"});
  steps_.push_back({Kind::client_id});
  append_command(first_round_, {"INFO", "server"});
  steps_.push_back({Kind::info});
}

std::string Handshake::second_round(const std::vector<std::uint64_t>& orphans) {
  std::string out;
  for (const std::uint64_t orphan : orphans) {
    append_command(out, {"CLIENT", "KILL", "ID", std::to_string(orphan)});
    steps_.push_back({Kind::kill, orphan});
  }
  if (with_look_) {
    append_command(out, {"GET", kStampKey});
    steps_.push_back({Kind::stamp});
  }
  if (database_ != 0) {
    append_command(out, {"SELECT", std::to_string(database_)});
    steps_.push_back({Kind::select});
  }
  return out;
}

Status Handshake::on_reply(std::string_view raw) {
  const Step step = steps_.front();
  steps_.pop_front();
  Result<std::optional<Decoded>> decoded = protocol::resp::decode(raw);
  if (!decoded) return std::unexpected(decoded.error());
  if (!*decoded) return fail(ErrorKind::internal, "a reply of the handshake is not whole");
  Value& value = (*decoded)->value;

  if (step.kind == Kind::kill) {
    // 0 and "No such client" both mean that the connection is gone, which is all we want.
    if (!value.is_error() || value.text.find("No such client") != std::string::npos) {
      killed_.push_back(step.orphan);
    } else {
      base::log(
          base::LogLevel::warning,
          "CLIENT KILL of our broken connection {} failed: {}; a resize waits until the member allows it",
          step.orphan, value.text);
    }
    return {};
  }
  if (value.is_error() && step.kind == Kind::auth) {
    if (!auth_refused(value.text)) return {};
    return fail(ErrorKind::denied, "the member refuses our password: " + value.text);
  }
  if (value.is_error() && value.text.starts_with("NOAUTH")) {
    return fail(ErrorKind::denied, "the member wants a password (--member-password-file): " + value.text);
  }
  if (value.is_error() && step.kind == Kind::select) {
    return fail(ErrorKind::invalid, fmt::format("the member refuses database {}: {}", database_, value.text));
  }
  if (value.is_error()) {
    if (step.kind == Kind::hello || with_look_) return fail(ErrorKind::retryable, std::move(value.text));
    return {};
  }
  switch (step.kind) {
    case Kind::client_id:
      if (value.type == Value::Type::integer) client_id_ = static_cast<std::uint64_t>(value.integer);
      break;
    case Kind::info:
      run_id_ = run_id_of(value.text);
      if (run_id_.empty() && with_look_) return fail(ErrorKind::retryable, "INFO server names no run_id");
      break;
    case Kind::stamp:
      if (!value.is_null()) stamp_ = std::move(value.text);
      break;
    case Kind::auth:
    case Kind::hello:
    case Kind::set_name:
    case Kind::kill:
    case Kind::select:
      break;
  }
  return {};
}

}  // namespace ringshift::backend
