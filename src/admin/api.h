// The JSON API under /api/v1/ of a controlling role's admin port: docs/openapi.yaml is its contract.
//
// What is only read is answered from the model's state at once, on the server's thread; what computes, or
// asks the registry, members or the controller, runs on the listener's workers. Actions need a token, are
// logged, and leave an entry in the audit list of the registry. Thread rule: attach() once, from any thread.
// The coordinator must outlive this, and this the listener: end that one first. Bounds: a body of
// kBodyBytesMax; Events' own; the listener's queue.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "admin/events.h"
#include "admin/listener.h"
#include "admin/model.h"
#include "admin/tokens.h"

namespace ringshift::admin {

struct ApiOptions {
  std::string role;  // serve|up|controller
  coord::ClusterKeys keys;
  PictureNames names;
  std::shared_ptr<const backend::MemberAccess> access;  // Null: plain, without a password.
  std::optional<Tokens> tokens;                         // nullopt: no actions here.
  bool ask_members = true;
};

class Api {
 public:
  Api(coord::Coordinator& coordinator, ApiOptions options);
  ~Api();
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  void attach(Listener& listener);
  // From now on no action waits for the controller: so that the listener can end.
  void stop() noexcept;

  // A path below /api/v1 as docs/openapi.yaml writes it.
  struct RouteName {
    const char* method;
    const char* path;
    bool action;
  };
  [[nodiscard]] static std::vector<RouteName> routes();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringshift::admin
