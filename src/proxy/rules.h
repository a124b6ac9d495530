// What the configuration says about clients, apart from what a listener needs: who they are and what they may
// do, which clusters their keys belong to, how fast they may send. Replaced as a whole by Proxy::set_rules()
// while clients are connected.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "access/user.h"
#include "proxy/limits.h"
#include "proxy/routes.h"

namespace ringshift::proxy {

struct Rules {
  access::Users users;
  RouteTable routes;                                           // Of every user without routes of his own.
  std::map<std::string, RouteTable, std::less<>> user_routes;  // Such a user has only these.
  std::vector<LimitRule> limits;
  bool protected_mode = true;  // See Options::protected_mode: either ends it.
};

// Rules in force, with the state of their limits.
struct RulesInForce {
  explicit RulesInForce(Rules r) : rules(std::move(r)), limits(rules.limits), guarded(needed(rules)) {}
  const Rules rules;
  const Limits limits;
  const bool guarded;  // Sessions have something to ask about a command.

 private:
  static bool needed(const Rules& r) {
    return r.users.restrict() || !r.limits.empty() || !r.user_routes.empty() || r.routes.clusters().empty();
  }
};

}  // namespace ringshift::proxy
