// A recorded case as a question to a peer: its servers, options and what the peer does to a key before it
// hashes.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plan/vectors/reading.h"

namespace ringshift::plan::vectors {

struct Question {
  std::vector<Server> servers;
  Options options;
  std::string hash_tag;
  std::string prefix;  // Before every key (Cache::Memcached::Fast's namespace).
};

// `algorithm` is what algorithm_of() gave. An error names the server, field or option that is not understood.
[[nodiscard]] Result<Question> question_of(const Node& node, std::string_view algorithm);

// "md5 (default)" and "default(one_at_a_time)" without what is in brackets.
[[nodiscard]] std::string without_brackets(std::string_view name);

}  // namespace ringshift::plan::vectors
