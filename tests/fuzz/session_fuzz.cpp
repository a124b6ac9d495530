// Any bytes from clients, through real sessions of a real proxy, before real members. Whatever they say: the
// process lives; what comes back is whole RESP, of the version that the client chose; each command of the
// plain ones has one reply; a bystander on the same connections to the members gets his own answers; the loop
// rests when nobody asks; no session outlives its client; and the next client is served.
//
// An input is two bytes, how it is sent, and then what is sent:
//   byte 0   bits 0-1: which proxy (plain, users and limits, a resize under way); bits 2-3: how it ends
//   (kEnds) byte 1   the size of the pieces; 0: in one FF op    op % 4: 0 the other one of two clients goes
//   on; 1 waits for quiet; 2 leaves and comes again; 3 sends what
//            it sent since the last FF op once more, up to 32 times
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <optional>

#include "protocol/resp/command_parser.h"
#include "protocol/resp/command_table.h"
#include "tests/fuzz/proxy_world.h"
#include "transfer/steps.h"

namespace ringshift::proxy::fuzz {
namespace {

using protocol::resp::CommandParser;

constexpr std::size_t kMaxInput = 16384;
constexpr unsigned kCheckEach = 64;  // Inputs: for what takes its time.
enum class End : std::uint8_t { half_close, all_answered, close, reset };

Options small_bounds() {
  Options options;
  options.request_timeout = milliseconds(10000);  // Never reached: every failure is one.
  options.connect_timeout = milliseconds(10000);
  options.hold_timeout = milliseconds(10000);
  options.max_in_flight = 16;
  options.max_output_bytes = 4096;
  options.max_total_output_bytes = 64U << 10;
  return options;
}

Rules some_rules() {
  Rules rules;
  const auto add = [&](const std::string& name, const std::vector<std::string>& words) {
    auto user = access::User::parse(name, words);
    if (!user) found(user.error().message);
    rules.users.add(std::move(*user));
  };
  add("al", {"on", ">secret", "~al:*", "%R~shared:*", "&news:*", "+@all", "-@dangerous", "+acl|whoami"});
  add("bo", {"on", "nopass", "~*", "&*", "+get", "+ping", "(~w:* +set)"});
  add("gone", {"off", ">secret", "~*", "+@all"});
  rules.limits = {{LimitRule::Scope::prefix, "slow:", 5, 0, 2, 0},
                  {LimitRule::Scope::user, "bo", 50, 1000, 10, 100}};
  rules.routes = RouteTable({{"", 0}, {"b:", 1}});
  rules.user_routes.emplace("al", RouteTable({{"al:", 0}}));
  return rules;
}

// Two members with two proxies before them, and two more between which all keys are on their way.
class World {
 public:
  World() : a1_(directory_, "a1"), a2_(directory_, "a2"), b1_(directory_, "b1"), b2_(directory_, "b2") {
    topology::Topology both;
    both.spec.cluster = "a";
    both.spec.members = {member("a1", a1_.address()), member("a2", a2_.address())};
    topology::Topology one;
    one.spec.cluster = "b";
    one.spec.members = {member("a2", a2_.address())};
    Options options = small_bounds();
    options.allow_flush = true;
    proxies_.push_back(
        std::make_unique<FuzzProxy>(directory_.file("plain"), options,
                                    std::vector<ServedCluster>{{"a", holder_of(both), nullptr}}, Rules{}));
    options.slowlog_slower_than = 0;
    proxies_.push_back(std::make_unique<FuzzProxy>(
        directory_.file("users"), options,
        std::vector<ServedCluster>{{"a", holder_of(both), nullptr}, {"b", holder_of(one), nullptr}},
        some_rules()));
    proxies_.push_back(std::make_unique<FuzzProxy>(
        directory_.file("resize"), small_bounds(),
        std::vector<ServedCluster>{{"c", holder_of(between()), nullptr}}, Rules{}));
  }
  [[nodiscard]] FuzzProxy& proxy(std::size_t i) { return *proxies_[i % proxies_.size()]; }
  // The same members for every input, so that what is found is found again.
  void clean(const FuzzProxy& used, bool functions) {
    const bool resize = &used == proxies_[2].get();
    FuzzMember &first = resize ? b1_ : a1_, &second = resize ? b2_ : a2_;
    std::string stamp;
    if (resize) transfer::append_set_stamp(stamp, fence_, transfer::open_stamp(fence_, "b2"));
    first.begin_to_empty(functions);
    second.begin_to_empty(functions, stamp);
    first.wait_until_empty();
    second.wait_until_empty();
  }

 private:
  topology::Topology between() {
    topology::Topology out;
    out.spec.cluster = "c";
    out.spec.members = {member("b1", b1_.address())};
    topology::Resize resize;
    resize.id = "r";
    resize.members = {member("b1", b1_.address()), member("b2", b2_.address())};
    resize.phase = topology::Phase::dual;
    resize.active = {{0, topology::kSliceCount}};
    out.resize = resize;
    fence_ = {1, 1, {{"b1", "run-1"}, {"b2", "run-2"}}};
    out.fence = fence_;
    return out;
  }

  TemporaryDirectory directory_;
  FuzzMember a1_, a2_, b1_, b2_;
  topology::Fence fence_;
  std::vector<std::unique_ptr<FuzzProxy>> proxies_;
};

// --- what the bytes of one client ask for
// ---------------------------------------------------------------------

bool contains(std::string_view text, std::string_view small) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return std::search(text.begin(), text.end(), small.begin(), small.end(), same) != text.end();
}

// Replies that are not one for one, or that come when another client says so.
bool is_plain(const CommandParser& parser) {
  using protocol::resp::equals_ignoring_case;
  using protocol::resp::Handling;
  const protocol::resp::Command* command = protocol::resp::find_command(parser.argument(0));
  if (command == nullptr) {
    return !equals_ignoring_case(parser.argument(0), "post") &&
           !equals_ignoring_case(parser.argument(0), "host:");
  }
  if (command->handling == Handling::pubsub || command->handling == Handling::blocking) return false;
  for (const std::string_view name : {"wait", "waitaof", "monitor"}) {
    if (equals_ignoring_case(parser.argument(0), name)) return false;
  }
  if (equals_ignoring_case(parser.argument(0), "client") && parser.argument_count() > 1) {
    for (const std::string_view name : {"reply", "kill", "unblock", "pause"}) {
      if (equals_ignoring_case(parser.argument(1), name)) return false;
    }
  }
  return true;
}

// How many replies `bytes` is to have; nullopt when that cannot be told.
std::optional<std::size_t> replies_to(std::string_view bytes) {
  CommandParser parser;
  std::size_t count = 0;
  while (!bytes.empty()) {
    const CommandParser::State state = parser.parse(bytes);
    if (state == CommandParser::State::need_more) return count;
    if (state == CommandParser::State::error) return count + 1;
    if (!is_plain(parser)) return std::nullopt;
    ++count;
    if (protocol::resp::equals_ignoring_case(parser.argument(0), "quit")) return count;
    bytes.remove_prefix(parser.consumed());
  }
  return count;
}

// --- one input --------------------------------------------------------------------------------------------

// CLIENT PAUSE holds up everybody, and an input that waits a day finds nothing: no number behind it is
// above 99.
std::string without_long_pauses(std::string_view bytes) {
  constexpr std::string_view kPause = "pause";
  std::string out(bytes);
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  auto at = out.begin();
  while ((at = std::search(at, out.end(), kPause.begin(), kPause.end(), same)) != out.end()) {
    at += kPause.size();
    const auto stop = out.end() - at > 64 ? at + 64 : out.end();
    for (auto digit = at; digit != stop; ++digit) {
      if (*digit == '-') *digit = '0';
      const bool more = stop - digit > 2 && std::isdigit(static_cast<unsigned char>(digit[1])) != 0 &&
                        std::isdigit(static_cast<unsigned char>(digit[2])) != 0;
      if (std::isdigit(static_cast<unsigned char>(*digit)) != 0 && more) *digit = '0';
    }
  }
  return out;
}

// A command that waits holds up what is behind it, for ever if it says so, and the proxy reads 64 KiB of
// that.
bool may_wait(std::string_view bytes) {
  constexpr std::array<std::string_view, 9> kWaiting = {"blpop",  "brpop", "blmove", "blmpop", "bzpop",
                                                        "bzmpop", "xread", "wait",   "pause"};
  return std::ranges::any_of(kWaiting, [&](std::string_view name) { return contains(bytes, name); });
}

class One {
 public:
  explicit One(FuzzProxy& proxy) : proxy_(proxy), client_(std::make_unique<FuzzClient>(proxy.path())) {}
  void send(std::string_view bytes, std::size_t piece) {
    sent_ += bytes;
    client_->expect_resp2(!contains(sent_, "hello"));
    client_->expect_to_be_read(!may_wait(sent_));
    for (std::size_t at = 0; at < bytes.size(); at += piece) client_->send(bytes.substr(at, piece));
  }
  void leave(bool with_a_reset) {
    if (!with_a_reset) client_->read_for(milliseconds(0));  // Unread answers make it one.
    client_->close();
    client_ = std::make_unique<FuzzClient>(proxy_.path());
    sent_.clear();
  }
  void wait_for_quiet() { client_->read_for(milliseconds(2)); }
  void finish(End end, bool undisturbed) {
    const std::optional<std::size_t> expected = undisturbed ? replies_to(sent_) : std::nullopt;
    if (end == End::close || end == End::reset) {
      if (end == End::close) client_->read_for(milliseconds(0));
      client_->close();
      return;
    }
    if (end == End::all_answered && expected) {
      if (!client_->read_until([&] { return client_->replies().size() >= *expected; })) {
        found(fmt::format("{} replies of {}", client_->replies().size(), *expected));
      }
    }
    client_->half_close();
    if (!client_->read_to_end()) found("the client has ended, and its connection is not closed");
    if (!undisturbed || client_->had_enough()) return;
    if (!client_->unfinished().empty()) found("half a reply: " + shown(client_->unfinished()));
    if (!expected || client_->replies().size() == *expected) return;
    const std::string last = client_->replies().empty() ? "(none)" : client_->replies().back();
    found(fmt::format("{} replies for {} commands; the last: {}", client_->replies().size(), *expected,
                      shown(last)));
  }
  void look_at_idle_loops() {
    client_->read_for(milliseconds(5));
    expect_idle_loops();
  }

 private:
  FuzzProxy& proxy_;
  std::unique_ptr<FuzzClient> client_;
  std::string sent_;
};

// Somebody else, who uses the same connections to the members in the middle of it all.
class Bystander {
 public:
  explicit Bystander(FuzzProxy& proxy) : client_(proxy.path()) { client_.expect_resp2(true); }
  void ask() {
    std::string commands;
    for (int i = 0; i < 4; ++i) {
      expected_.push_back(fmt::format("token-{}", ++last_token));
      protocol::resp::append_command(
          commands, {"EVAL", "return ARGV[1]", "1", fmt::format("bystander:{}", i), expected_.back()});
    }
    client_.send(commands);
  }
  void judge(bool undisturbed) {
    const bool in_time = client_.read_until([&] { return client_.replies().size() >= expected_.size(); });
    if (!undisturbed) return;
    if (!in_time || client_.ended()) found("a bystander is not answered");
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      if (client_.replies()[i] == fmt::format("${}\r\n{}\r\n", expected_[i].size(), expected_[i])) continue;
      found("a bystander expects " + expected_[i] + " and gets " + shown(client_.replies()[i]));
    }
  }

 private:
  static inline std::uint64_t last_token = 0;
  FuzzClient client_;
  std::vector<std::string> expected_;
};

void run(World& world, std::uint8_t how, std::size_t piece, const std::string& bytes, bool check) {
  FuzzProxy& proxy = world.proxy(how & 3U);
  // These change what others meet; the rest of an input that has one of them is for memory and life alone.
  const bool undisturbed =
      !contains(bytes, "kill") && !contains(bytes, "config") && !contains(bytes, "pause");
  const bool changes_settings = contains(bytes, "config");
  {
    Bystander bystander(proxy);
    One clients[2]{One(proxy), One(proxy)};
    std::size_t now = 0;
    std::string_view rest = bytes, last;
    bool asked = false;
    while (!rest.empty()) {
      const std::size_t mark = rest.find('\xff');
      last = rest.substr(0, mark);
      clients[now].send(last, piece == 0 ? std::max<std::size_t>(1, last.size()) : piece);
      if (!std::exchange(asked, true)) bystander.ask();
      if (mark == std::string_view::npos) break;
      rest.remove_prefix(mark + 1);
      if (rest.empty()) break;
      const auto op = static_cast<std::uint8_t>(rest[0]);
      rest.remove_prefix(1);
      if (op % 4 == 0) now = 1 - now;
      if (op % 4 == 1) clients[now].wait_for_quiet();
      if (op % 4 == 2) clients[now].leave((op & 4U) != 0);
      for (unsigned i = 0; op % 4 == 3 && i < op / 8U; ++i) clients[now].send(last, bytes.size());
    }
    if (check) clients[now].look_at_idle_loops();
    clients[0].finish(static_cast<End>((how >> 2U) & 3U), undisturbed);
    clients[1].finish(static_cast<End>((how >> 4U) & 3U), undisturbed);
    bystander.judge(undisturbed);
  }
  if (changes_settings) {
    proxy.start();
  } else {
    proxy.expect_sessions(0);
    if (check || !undisturbed) proxy.expect_service();  // Else the next one shows it.
  }
  world.clean(proxy, contains(bytes, "function"));
}

}  // namespace
}  // namespace ringshift::proxy::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringshift::proxy::fuzz;
  static World world;
  static unsigned inputs = 0;
  if (size < 2 || size > kMaxInput) return 0;
  const std::string bytes =
      without_long_pauses(std::string_view(reinterpret_cast<const char*>(data) + 2, size - 2));
  run(world, data[0], data[1], bytes, ++inputs % kCheckEach == 0);
  return 0;
}
