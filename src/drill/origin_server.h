// The database that a drill's application has behind its cache, as something to start: SQLite in this
// process, or a private server of PostgreSQL or MariaDB on a socket in `directory`, ended with this object.
//
// Their clients are optional when Ringshift is built (libpq, libmariadb), and their servers are looked for
// when asked for: start() says what is missing, and what to install. One thread, which must live as long as
// the server (it ends with it). Start: nothing (SQLite), two to five seconds (servers).
#pragma once
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "drill/origin.h"

namespace ringshift::drill {

enum class OriginKind : std::uint8_t { sqlite, postgres, mysql };

class OriginServer {
 public:
  // `directory` exists, is private to this run, and is removed by its owner.
  [[nodiscard]] static Result<std::unique_ptr<OriginServer>> start(OriginKind kind, std::string directory);
  virtual ~OriginServer() = default;

  // Objects 0 .. objects-1, each at version 1. What an earlier call made is gone: REQUIRES that nobody uses
  // it.
  [[nodiscard]] virtual Result<std::unique_ptr<Origin>> fresh(std::uint64_t objects,
                                                              const BodyBytes& bytes) = 0;
  [[nodiscard]] virtual std::string describe() const = 0;                    // "SQLite 3.40.1"
  [[nodiscard]] virtual std::vector<pid_t> processes() const { return {}; }  // Beside this one.
};

}  // namespace ringshift::drill
