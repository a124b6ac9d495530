// What a fresh connection says before it serves, and what the answers mean. Knows no socket.
//
// First round, in one write: AUTH (with a password), HELLO 3 (RESP3 only), CLIENT SETNAME, CLIENT ID, INFO
// server. Second round, once the member's run id is known: CLIENT KILL ID of each orphan, then GET rs:stamp
// for a Look, and last SELECT (the stamp is in database 0). So the connection is named before the stamp is
// read (RESIZE.md, I4).
//
// Failure: without a Look (a static cluster) errors are borne, except for AUTH, HELLO and SELECT, since the
// connection is as good without a name. With one, only a CLIENT KILL may fail: its orphan then stays.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/access.h"
#include "backend/backend.h"
#include "ringshift/error.h"

namespace ringshift::backend {

inline constexpr std::string_view kStampKey = "rs:stamp";

class Handshake {
 public:
  Handshake(Resp resp, std::string_view name, bool with_look, const Credentials& credentials = {},
            unsigned database = 0);

  [[nodiscard]] const std::string& first_round() const noexcept { return first_round_; }
  // May be empty: then the handshake is over.
  [[nodiscard]] std::string second_round(const std::vector<std::uint64_t>& orphans);

  // Takes the next whole reply. A failure ends the connection. REQUIRES: waiting().
  [[nodiscard]] Status on_reply(std::string_view raw);
  [[nodiscard]] bool waiting() const noexcept { return !steps_.empty(); }

  [[nodiscard]] std::uint64_t client_id() const noexcept { return client_id_; }  // 0 when not known.
  [[nodiscard]] const std::string& run_id() const noexcept { return run_id_; }   // "" when not known.
  [[nodiscard]] const std::optional<std::string>& stamp() const noexcept { return stamp_; }
  // Orphans that the member said are gone, since the last call.
  [[nodiscard]] std::vector<std::uint64_t> take_killed() { return std::exchange(killed_, {}); }

 private:
  enum class Kind { auth, hello, set_name, client_id, info, kill, stamp, select };
  struct Step {
    Kind kind;
    std::uint64_t orphan = 0;
  };

  bool with_look_;
  unsigned database_;
  std::string first_round_;
  std::deque<Step> steps_;  // Replies that are due, in order.
  std::uint64_t client_id_ = 0;
  std::string run_id_;
  std::optional<std::string> stamp_;
  std::vector<std::uint64_t> killed_;
};

}  // namespace ringshift::backend
