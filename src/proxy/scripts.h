// Scripts that a member has not got, and scripts that do not end.
//
// ScriptCall: EVALSHA and EVALSHA_RO. A member that answers NOSCRIPT has executed nothing; when this proxy
// knows the script (script_cache.h), it is loaded there and the command sent again, as one block. When the
// client has sent more commands behind it already, sending it again would change their order: then the script
// is loaded, and the client gets the NOSCRIPT, for which its library has EVAL.
//
// KillScript: SCRIPT KILL and FUNCTION KILL. A member whose script has run too long answers nothing else and
// the connection that sent the script not at all, so each member is asked over a fresh connection without the
// usual handshake. OK when one had something to end; else the first error.
//
// The worker's thread. One deadline each: Options::request_timeout.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "net/loop.h"
#include "proxy/key_set.h"
#include "proxy/task.h"

namespace ringshift::proxy {

class Session;

class ScriptCall final : public Task {
 public:
  // Answers EVALSHA. REQUIRES: located.error is empty, located.where is a member.
  static void run(Session& session, const protocol::resp::CommandParser& arguments, CommandKeys located);

  ScriptCall(Session& session, std::uint64_t number, std::vector<std::string> keys, std::string_view command,
             std::string_view sha);
  void on_reply(std::uint64_t tag, std::string_view raw) override;
  void on_failure(std::uint64_t tag, const backend::Failure& failure) override;

 private:
  void send(const Destination& where, std::string bytes, std::size_t count);
  bool load_and_send_again();

  Session& session_;
  const std::uint64_t number_;
  const backend::Resp resp_;
  const std::vector<std::string> keys_;
  const std::string command_, sha_;
  bool loaded_ = false;
  bool only_loading_ = false;
};

class KillScript final : public Task {
 public:
  static void run(Session& session, const protocol::resp::CommandParser& arguments);

  KillScript(Session& session, std::uint64_t number, std::string_view command);
  ~KillScript() override;
  void start();
  void abandon() override;
  void on_reply(std::uint64_t tag, std::string_view raw) override;
  void on_failure(std::uint64_t tag, const backend::Failure& failure) override;

 private:
  class Asked;
  void one_done();
  void finish();

  Session& session_;
  const std::uint64_t number_;
  const std::string command_;
  std::vector<std::unique_ptr<Asked>> asked_;
  std::unique_ptr<net::Timer> deadline_;
  std::size_t waiting_ = 0;
  std::string ok_, error_;
};

}  // namespace ringshift::proxy
