// A private directory for one run, removed with its owner; what a killed run left is removed by the next.
//
// Invariant: a directory under its final name holds a file `lock` that its live owner has locked with
// flock. The kernel drops that lock with the owner, however it ends; so an unlocked directory is nobody's.
// Directories are made and locked under another name first, so a sweep never sees one without its lock.
// Not thread-safe. Cost: one listing of the parent directory at a start.
#pragma once
#include <string>
#include <string_view>

#include "ringshift/error.h"

namespace ringshift::drill {

class RunDirectory {
 public:
  // Makes `parent`/ringshift-run-XXXXXX, after sweep(parent). `parent` empty: $TMPDIR, else /tmp.
  [[nodiscard]] static Result<RunDirectory> create_temporary(std::string parent = {});
  // Makes `parent`/run-1, or the next number that is free, and never removes it.
  [[nodiscard]] static Result<RunDirectory> create_kept(std::string_view parent);
  // Removes the unlocked run directories of this user in `parent`; gives how many.
  static int sweep(const std::string& parent);

  ~RunDirectory();
  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] bool kept() const noexcept { return lock_fd_ < 0; }

 private:
  RunDirectory(std::string path, int lock_fd) : path_(std::move(path)), lock_fd_(lock_fd) {}
  std::string path_;  // Empty once moved from.
  int lock_fd_;       // -1: the directory outlives us.
};

}  // namespace ringshift::drill
