// How many clients the limit of open files leaves room for, when what the proxy needs for members is kept
// from them: else idle clients could take every descriptor, and no member could be reached any more.
//
// The process' soft limit is raised as far as the hard one allows, and never lowered. Any thread; a system
// call or two.
#pragma once
#include <cstddef>

namespace ringshift::proxy {

class OpenFiles {
 public:
  struct Needs {
    std::size_t threads = 0;
    std::size_t members = 0;    // Of all clusters.
    std::size_t listeners = 0;  // Of each thread.
  };
  // Counts what is open now, too.
  explicit OpenFiles(const Needs& needs);

  [[nodiscard]] std::size_t reserved() const noexcept { return reserved_; }
  // `wanted`, or as many as there can be. At least 1.
  [[nodiscard]] std::size_t room_for(std::size_t wanted) const;

 private:
  std::size_t reserved_;
};

}  // namespace ringshift::proxy
