#include "discovery/instances.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/log.h"
#include "topology/reader.h"
#include "topology/validate.h"

namespace ringshift::discovery {
namespace {

constexpr std::string_view kStates[] = {"ready", "unhealthy", "draining"};

}  // namespace

bool is_label_text(std::string_view text) {
  return text.size() <= kLabelBytesMax &&
         std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
}

std::string_view to_string(InstanceState state) noexcept { return kStates[static_cast<std::size_t>(state)]; }

std::optional<InstanceState> parse_state(std::string_view text) noexcept {
  const auto found = std::ranges::find(kStates, text);
  if (found == std::end(kStates)) return std::nullopt;
  return static_cast<InstanceState>(found - std::begin(kStates));
}

std::string check_instance(const Instance& instance) {
  if (const std::string wrong = topology::check_name(instance.id); !wrong.empty())
    return fmt::format("id {}", wrong);
  if (const std::string wrong = topology::check_address(instance.address); !wrong.empty()) {
    return fmt::format("address {} {}: write host:port, [v6]:port or unix:/path",
                       topology::shown(instance.address), wrong);
  }
  if (instance.protocol != "redis" && instance.protocol != "memcached") {
    return fmt::format("protocol {} is neither redis nor memcached", topology::shown(instance.protocol));
  }
  return {};
}

void add_label(Instance& instance, std::string_view name, std::string_view value) {
  if (name.empty() || !is_label_text(name) || !is_label_text(value)) return;
  instance.labels.insert_or_assign(std::string(name), std::string(value));
  if (instance.labels.size() > kLabelsMax) instance.labels.erase(std::prev(instance.labels.end()));
}

std::optional<std::string> sort_and_check(std::vector<Instance>& all) {
  if (all.size() > kInstancesMax) {
    return fmt::format("{} instances are more than the {} that a cluster can have", all.size(),
                       kInstancesMax);
  }
  std::ranges::sort(all, {}, &Instance::id);
  std::unordered_map<std::string, std::string_view> addresses;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (const std::string wrong = check_instance(all[i]); !wrong.empty())
      return fmt::format("instance {}: {}", topology::shown(all[i].id), wrong);
    if (i > 0 && all[i].id == all[i - 1].id) {
      return fmt::format("id {} is there twice, for {} and {}: an id names one instance",
                         topology::shown(all[i].id), all[i - 1].address, all[i].address);
    }
    if (const auto [first, fresh] = addresses.emplace(topology::canonical_address(all[i].address), all[i].id);
        !fresh) {
      return fmt::format(
          "address {} is there twice, for {} and {}: two members on one server would share its keys",
          all[i].address, topology::shown(first->second), topology::shown(all[i].id));
    }
  }
  return std::nullopt;
}

void Seen::add(Instance instance) {
  if (const std::string wrong = check_instance(instance); !wrong.empty()) {
    leave_out(fmt::format("{}: {}", topology::shown(instance.id), wrong));
    return;
  }
  all.push_back(std::move(instance));
}

void Seen::leave_out(std::string why) {
  if (left_out.size() < kToldMax) left_out.push_back(std::move(why));
}

std::string join_address(std::string_view host, std::uint16_t port) {
  const bool v6 = host.find(':') != std::string_view::npos;
  return v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

bool Teller::saw(Seen seen) {
  if (auto wrong = sort_and_check(seen.all)) {
    trouble({ErrorKind::invalid, fmt::format("the list cannot be right: {}", *wrong)});
    return false;
  }
  std::string warning = fmt::format("{}", fmt::join(seen.left_out, "; "));
  if (warning != warned_ && !warning.empty())
    base::log(base::LogLevel::warning, "discovery: left out what is no instance: {}", warning);
  warned_ = std::move(warning);
  if (!troubled_ && told_ && *told_ == seen.all) return true;
  troubled_ = false;
  told_ = std::move(seen.all);
  sink_.instances(*told_);
  return true;
}

void Teller::trouble(const Error& why) {
  troubled_ = true;
  sink_.trouble(why);
}

}  // namespace ringshift::discovery
