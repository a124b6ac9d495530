// A session's part in SELECT, and in commands that name a database.
#include <algorithm>

#include "base/log.h"
#include "proxy/session.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {

unsigned Session::databases() const noexcept {
  unsigned fewest = 0;
  for (const Upstream* upstream : worker_.reach_of(user_name()).upstreams()) {
    const unsigned there = upstream->snapshot().topology().spec.databases;
    fewest = fewest == 0 ? there : std::min(fewest, there);
  }
  return std::max(fewest, 1U);
}

const Reach& Session::reach_of_channels() const noexcept {
  return database_ == 0 ? *reach_ : worker_.reach_of(user_name());
}

bool Session::select_database(std::int64_t number) {
  if (number < 0 || number >= static_cast<std::int64_t>(databases())) return false;
  database_ = static_cast<unsigned>(number);
  reach_ = &worker_.reach_in(user_name(), database_);
  return true;
}

// Its commands must go nowhere rather than to another database.
void Session::leave_lost_database() {
  if (database_ == 0 || closing_ || database_ < databases()) return;
  base::log(base::LogLevel::warning, "proxy: disconnects client {} ({}): there is no database {} any more",
            id_, peer(), database_);
  close_when_done();
}

}  // namespace ringshift::proxy
