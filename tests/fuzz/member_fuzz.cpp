// Any bytes as a member's answers. Whatever it says: the process lives; every command of a client has one
// reply, an error of ours or what stands at the place of this very command in what the member sent, never
// another's; the loop rests; no session stays; and when the member is sane again, so are the answers.
//
// An input is three bytes and then what the member says:
//   byte 0   what the clients ask (kQuestions)
//   byte 1   bit 0: RESP3; bit 1: it says no more but stays connected; bit 2: it lies from the handshake on
//   byte 2   the size of its pieces; 0: in one
#include <cstdint>
#include <map>
#include <set>

#include "tests/fuzz/hostile_member.h"
#include "tests/fuzz/proxy_world.h"
#include "transfer/steps.h"

namespace ringshift::proxy::fuzz {
namespace {

constexpr std::size_t kMaxInput = 4096;
constexpr unsigned kIdleCheckEach = 64;  // Inputs.

// One client's commands, one a line. K0 ... K9: keys of the hostile member; H0 ... H3: of the honest one.
struct Question {
  enum class Place : std::uint8_t {
    settled,
    leaving,
    coming
  };  // Of the K: leaving or coming to the hostile member.
  Place place;
  bool counted;  // Each has one reply.
  const char* commands;
};
constexpr const char* kGets = "GET K0\nGET K1\nGET K2\nGET K3\nGET K4\nGET K5";
using enum Question::Place;
constexpr Question kQuestions[] = {
    {settled, true, kGets},
    {settled, true, "MGET K0 H0 K1 H1 K2\nMSET K3 a H2 b\nDEL K4 H2\nEXISTS K5 H0 K6\nGET K7\nTOUCH K8"},
    {settled, true, "SCAN 0\nSCAN 0 COUNT 2 MATCH *\nKEYS *\nDBSIZE\nRANDOMKEY\nTIME\nHSCAN K0 0"},
    {settled, true, "BLPOP K0 0.02\nBLMPOP 0.02 1 K1 LEFT\nXREAD BLOCK 20 STREAMS K2 0\nBZPOPMIN K3 0.02"},
    {settled, true, "WATCH K0\nGET K0\nMULTI\nSET K0 a\nGET K0\nEXEC\nMULTI\nGET K1\nDISCARD\nMULTI\nEXEC"},
    {settled, false,
     "SUBSCRIBE K0 K1 H0\nPSUBSCRIBE *\nSSUBSCRIBE K2\nPUBLISH K0 x\nUNSUBSCRIBE\nPUNSUBSCRIBE"},
    {settled, true,
     "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 1 K0\nSCRIPT LOAD \"return 1\"\nSCRIPT EXISTS x\n"
     "EVAL \"return 1\" 1 K0\nFUNCTION LIST\nSCRIPT FLUSH\nFUNCTION STATS\nSCRIPT KILL"},
    {settled, true,
     "WAIT 1 20\nOBJECT ENCODING K0\nMEMORY USAGE K1\nXINFO STREAM K2\nSORT K3\nGEOSEARCH K4 "
     "FROMMEMBER a BYRADIUS 1 m ASC\nPUBSUB CHANNELS\nPUBSUB NUMSUB K0\nINFO\nCOMMAND COUNT"},
    {leaving, true, "GET K0\nSET K1 a\nINCR K2\nSTRLEN K0\nTTL K3\nAPPEND K4 x\nGET K4\nEXISTS K5"},
    {leaving, true, "MGET K0 K1 K2\nRENAME K0 K1\nMSET K3 a K4 b\nDEL K5 K6\nMULTI\nINCR K7\nGET K7\nEXEC"},
    {leaving, true, "BLPOP K0 0.02\nWATCH K1\nMULTI\nGET K1\nEXEC\nSCAN 0\nKEYS *\nDBSIZE"},
    {coming, true, "GET K0\nSET K1 a\nINCR K2\nSTRLEN K0\nTTL K3\nAPPEND K4 x\nGET K4\nEXISTS K5"},
    {coming, true, "MGET K0 K1 K2\nRENAME K0 K1\nMSET K3 a K4 b\nDEL K5 K6\nMULTI\nINCR K7\nGET K7\nEXEC"},
    {coming, true, "BLPOP K0 0.02\nWATCH K1\nMULTI\nGET K1\nEXEC\nSCAN 0\nRANDOMKEY\nDBSIZE"},
};

class World {
 public:
  World()
      : real_(directory_, "real"),
        honest_(directory_, "honest"),
        hostile_(directory_.file("hostile"), real_.path()) {
    const topology::Member h = member("h", hostile_.address()), r = member("r", honest_.address());
    fence_ = {1, 1, {{"h", "run-1"}, {"r", "run-2"}}};
    topology::Topology still;
    still.spec.cluster = "c";
    still.spec.members = {h, r};
    add(settled, still, 0);
    for (const bool leaving_it : {true, false}) {
      topology::Topology moving;
      moving.spec.cluster = "c";
      moving.spec.members = {leaving_it ? h : r};
      topology::Resize resize;
      resize.id = "r";
      resize.members = leaving_it ? std::vector{h, r} : std::vector{r, h};
      resize.phase = topology::Phase::dual;
      resize.active = {{0, topology::kSliceCount}};
      moving.resize = resize;
      moving.fence = fence_;
      add(leaving_it ? leaving : coming, moving, 1);
    }
    clean();
  }
  void clean() {
    std::string of_h, of_r;
    transfer::append_set_stamp(of_h, fence_, transfer::open_stamp(fence_, "h"));
    transfer::append_set_stamp(of_r, fence_, transfer::open_stamp(fence_, "r"));
    real_.begin_to_empty(false, of_h);
    honest_.begin_to_empty(false, of_r);
    real_.wait_until_empty();
    honest_.wait_until_empty();
  }
  struct Place {
    std::unique_ptr<FuzzProxy> proxy;
    std::vector<std::string> keys, other_keys;
  };
  [[nodiscard]] Place& at(Question::Place place) { return places_[place]; }
  [[nodiscard]] HostileMember& hostile() { return hostile_; }

 private:
  // `member`: where the keys are, after the resize if there is one.
  void add(Question::Place where, const topology::Topology& topology, topology::MemberIndex member_of_keys) {
    Options options;
    options.request_timeout = milliseconds(60);
    options.connect_timeout = milliseconds(100);
    options.hold_timeout = milliseconds(100);
    auto holder = holder_of(topology);
    Place& place = places_[where];
    const auto snapshot = holder->load();
    for (int i = 0; place.keys.size() < 64 || place.other_keys.size() < 8; ++i) {
      std::string key = fmt::format("key-{}", i);
      const auto owner = topology.resize ? snapshot->owner_after(key) : snapshot->route(key).member;
      (owner == member_of_keys ? place.keys : place.other_keys).push_back(std::move(key));
    }
    place.proxy = std::make_unique<FuzzProxy>(
        directory_.file(fmt::format("proxy-{}", static_cast<int>(where))), options,
        std::vector<ServedCluster>{{"c", std::move(holder), nullptr}}, Rules{});
  }

  TemporaryDirectory directory_;
  FuzzMember real_, honest_;
  HostileMember hostile_;
  topology::Fence fence_;
  std::map<Question::Place, Place> places_;
};

// The commands of client number `which`, who has keys of his own; and how many they are.
std::string filled_in(const Question& question, const World::Place& place, std::size_t which,
                      std::size_t& count) {
  std::string out;
  count = 0;
  for (std::string_view rest = question.commands; !rest.empty(); ++count) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    for (std::size_t i = 0; i < line.size(); ++i) {
      const bool slot = (line[i] == 'K' || line[i] == 'H') && i > 0 && line[i - 1] == ' ' &&
                        i + 1 < line.size() && line[i + 1] >= '0' && line[i + 1] <= '9';
      if (!slot) {
        out += line[i];
        continue;
      }
      const auto n = static_cast<std::size_t>(line[i + 1] - '0');
      out += line[i] == 'K' ? place.keys[which * 10 + n] : place.other_keys[which * 4 + n % 4];
      ++i;
    }
    out += "\r\n";
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
}

bool is_ours(std::string_view reply) {
  for (const std::string_view begin : {"-TIMEOUT ", "-TRYAGAIN ", "-OVERLOADED "}) {
    if (reply.starts_with(begin)) return true;
  }
  return false;
}

// Until the member's own answers come through again: the pool has made its connections anew.
void expect_recovery(FuzzProxy& proxy, const std::string& key, bool resp3) {
  const auto deadline = Clock::now() + kPatience;
  FuzzClient client(proxy.path());
  std::size_t asked = 0;
  if (resp3) {
    client.send("HELLO 3\r\n");
    ++asked;
  }
  while (true) {
    client.send(fmt::format("SET {} sane\r\nGET {}\r\n", key, key));
    asked += 2;
    if (!client.read_until([&] { return client.replies().size() >= asked; }) || client.ended()) {
      found("no answers after the member is sane again");
    }
    if (client.replies().back() == "$4\r\nsane\r\n") return;
    if (Clock::now() > deadline)
      found("the member is sane again, and the answer is " + shown(client.replies().back()));
    std::this_thread::sleep_for(milliseconds(2));
  }
}

void run(World& world, std::uint8_t what, std::uint8_t how, std::size_t piece, std::string_view bytes,
         bool look) {
  const Question& question = kQuestions[what % std::size(kQuestions)];
  World::Place& place = world.at(question.place);
  const bool resp3 = (how & 1U) != 0;
  world.hostile().lie({.bytes = std::string(bytes),
                       .piece = piece == 0 ? std::max<std::size_t>(1, bytes.size()) : piece,
                       .close_after = (how & 2U) == 0,
                       .from_handshake = (how & 4U) != 0});
  std::vector<std::pair<std::string, std::string>> got;  // Key and reply.
  {
    FuzzClient clients[2]{FuzzClient(place.proxy->path()), FuzzClient(place.proxy->path())};
    std::size_t counts[2];
    for (std::size_t i = 0; i < 2; ++i) {
      clients[i].expect_anything();
      // The second one asks simple questions, each for a key that nobody else asks for.
      const Question asked = i == 0 ? question : Question{question.place, true, kGets};
      const std::string commands = filled_in(asked, place, i, counts[i]);
      if (resp3) ++counts[i];
      clients[i].send((resp3 ? "HELLO 3\r\n" : "") + commands);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      const bool counted = i == 1 || question.counted;
      if (!counted) {
        clients[i].read_for(milliseconds(5));
      } else if (!clients[i].read_until([&] { return clients[i].replies().size() >= counts[i]; })) {
        found(fmt::format("client {}: {} replies to {} commands", i, clients[i].replies().size(), counts[i]));
      }
    }
    if (look) expect_idle_loops();
    for (std::size_t i = 0; i < 2; ++i) {
      clients[i].half_close();
      if (!clients[i].read_to_end()) found("the client has ended, and its connection is not closed");
      if ((i == 1 || question.counted) && clients[i].replies().size() != counts[i]) {
        found(fmt::format("client {}: {} replies to {} commands", i, clients[i].replies().size(), counts[i]));
      }
    }
    for (std::size_t n = 0; n < 6; ++n) {
      got.emplace_back(place.keys[10 + n], clients[1].replies()[n + (resp3 ? 1 : 0)]);
    }
  }
  place.proxy->expect_sessions(0);
  const auto truths = world.hostile().be_honest();
  if (question.place == settled) {
    for (const auto& [key, reply] : got) {
      if (is_ours(reply)) continue;
      const auto may_be = [&](const std::string& of) {
        const auto known = truths.find(of);
        return known != truths.end() && known->second.contains(reply);
      };
      if (may_be(key) || may_be(HostileMember::kUntraced)) continue;
      found("GET " + key + " got what was not at its place: " + shown(reply));
    }
  }
  expect_recovery(*place.proxy, place.keys[30], resp3);
  world.clean();
}

}  // namespace
}  // namespace ringshift::proxy::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringshift::proxy::fuzz;
  static World world;
  static unsigned inputs = 0;
  if (size < 3 || size > kMaxInput) return 0;
  run(world, data[0], data[1], data[2], std::string_view(reinterpret_cast<const char*>(data) + 3, size - 3),
      ++inputs % kIdleCheckEach == 0);
  return 0;
}
