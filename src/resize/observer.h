// The name of connections to members that only look (INFO, DBSIZE, a sample of keys): the plan's and the
// admin API's. They write nothing, so that a fence lets them live.
#pragma once
#include <string_view>

namespace ringshift::resize {

inline constexpr std::string_view kObserverName = "rs:observer";

}  // namespace ringshift::resize
