// What an operator should know now, in words: judged from facts, with the time since when each holds.
//
// Plain values; one thread. At most kAlertsMax, the worst first.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "admin/figures.h"
#include "admin/member_poll.h"
#include "membership/report.h"
#include "resize/status.h"

namespace ringshift::admin {

inline constexpr std::size_t kAlertsMax = 100;

struct Alert {
  enum class Severity { critical, warning, info };
  Severity severity = Severity::info;
  std::string code;     // Stable, for translation: docs/openapi.yaml lists them.
  std::string subject;  // Id of a member, router or resize; "" for the cluster.
  std::string text;
  std::vector<std::pair<std::string, double>> values;
  std::int64_t since_ms = 0;
};

struct RouterFacts {
  std::string id;
  const coord::RouterRecord* record = nullptr;
  bool agrees = false, other_digest = false;
};

struct HotKeyFacts {
  std::string key;  // Printable.
  double per_second = 0, share = 0;
};

struct AlertFacts {
  std::int64_t now_ms = 0;
  bool connected = true;
  std::int64_t connection_since_ms = 0;
  std::string connection_error;
  bool has_topology = true, has_controller = true;
  std::int64_t controller_lost_ms = 0;  // Since when there is none.
  std::int64_t topology_since_ms = 0;   // When the version in force was seen.
  std::string version;
  std::vector<RouterFacts> routers;
  MemberPoll::Infos members;
  std::optional<double> requests_per_second, errors_per_second;
  std::vector<HotKeyFacts> hot_keys;
  resize::ResizeStatus resize;
  const membership::Report* membership = nullptr;  // Null: no policy, or nobody has looked yet.
};

class AlertBook {
 public:
  [[nodiscard]] std::vector<Alert> judge(const AlertFacts& facts);

 private:
  std::map<std::pair<std::string, std::string>, std::int64_t> since_;  // (code, subject)
};

[[nodiscard]] const char* to_string(Alert::Severity severity) noexcept;

}  // namespace ringshift::admin
