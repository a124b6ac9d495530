// One step of SCAN: asks one member for its next batch, and answers with what was not returned before and the
// cursor of the whole (scan_state.h says what is promised).
//
// An empty batch is an answer, as Redis has it; but a member that has nothing at all to give is passed by at
// once, up to kMaxMembers of them in one answer. MATCH, COUNT and TYPE are the member's. Errors are the
// member's own, and leave the scan where it was, as a failure does. Keys that begin with rs: are not shown.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "proxy/scan_state.h"
#include "proxy/task.h"

namespace ringshift::protocol::resp {
class CommandParser;
}

namespace ringshift::proxy {

class Session;
class Upstream;

class ScanStep final : public Task {
 public:
  static constexpr unsigned kMaxMembers = 16;

  // Answers SCAN. REQUIRES: the arity fits.
  static void run(Session& session, const protocol::resp::CommandParser& arguments);

  ScanStep(Session& session, std::uint64_t number, std::shared_ptr<Scan> scan, ScanPosition position,
           std::string options, std::size_t option_count);
  // After it is in its slot.
  void start();

  void on_reply(std::uint64_t tag, std::string_view raw) override;
  void on_failure(std::uint64_t tag, const backend::Failure& failure) override;

 private:
  void look();
  [[nodiscard]] bool ask();
  void finish();

  Session& session_;
  const std::uint64_t number_;
  const backend::Resp resp_;
  const std::shared_ptr<Scan> scan_;
  ScanPosition position_;
  const std::string options_;  // Bulk strings, as they follow the cursor.
  const std::size_t option_count_;
  unsigned members_left_ = kMaxMembers;
  std::vector<std::shared_ptr<const topology::Snapshot>> views_;
  std::vector<std::string> keys_;
  Upstream* from_ = nullptr;  // Whose member was asked.
};

}  // namespace ringshift::proxy
