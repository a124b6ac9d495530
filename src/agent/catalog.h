// Where else than in our registry an agent makes its instance known: Consul and Nacos, in their own words.
//
// What is told: id, HOST:PORT, protocol, state, labels. Never a weight or a zone. Other programs find the
// instance there, and so does a source of kind consul or nacos (src/discovery), which reads all of it back.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "agent/record.h"
#include "discovery/options.h"
#include "ringshift/error.h"

namespace ringshift::agent {

// One instance in one system. Blocking, each call bounded by the timeout; one thread, but cancel().
class Catalog {
 public:
  virtual ~Catalog() = default;
  // From nothing, or over what is there.
  [[nodiscard]] virtual Status put(const Record& record) = 0;
  // We are here, and in this state. False: it knows nothing of us any more, so put() again.
  [[nodiscard]] virtual Result<bool> beat(const Record& record) = 0;
  [[nodiscard]] virtual Status remove(const Record& record) = 0;
  [[nodiscard]] virtual std::chrono::milliseconds every() const = 0;  // Between two beats.
  [[nodiscard]] virtual std::string describe() const = 0;
  virtual void cancel() = 0;  // Any thread: the call under way ends, and those that follow.
};

// "consul service=cache url=http://127.0.0.1:8500 token_file=/etc/consul.token": a kind, and fields of
// discovery/options.h. `ttl`: how long the instance outlives an agent that died. invalid: names the field.
[[nodiscard]] Result<discovery::Options> parse_catalog(std::string_view words);
// `address` is the instance's: neither system knows another form than HOST:PORT.
[[nodiscard]] Status check_catalog_address(std::string_view address);
[[nodiscard]] std::unique_ptr<Catalog> make_catalog(discovery::Options options, std::chrono::seconds ttl);

[[nodiscard]] std::unique_ptr<Catalog> make_consul_catalog(discovery::Options options,
                                                           std::chrono::seconds ttl);
[[nodiscard]] std::unique_ptr<Catalog> make_nacos_catalog(discovery::Options options);

}  // namespace ringshift::agent
