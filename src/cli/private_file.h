// Files that hold secrets, or belong to them: whole or not there, and never replaced without a word.
#pragma once
#include <string>
#include <string_view>

#include "ringshift/error.h"

namespace ringshift::cli {

// A place for what is yet to come, a secret that is shown once: whatever would keep it from there, but the
// end of this machine, is found when the place is taken. Invariant: what is at the path changes in fill()
// alone.
class ReservedFile {
 public:
  // `force`: although there is a file; else invalid names it and the flag. What is no file is never replaced.
  [[nodiscard]] static Result<ReservedFile> take(const std::string& path, std::size_t bytes, unsigned mode,
                                                 bool force);
  ReservedFile(ReservedFile&& other) noexcept;
  ReservedFile& operator=(ReservedFile&&) = delete;
  ~ReservedFile();
  // Once.
  [[nodiscard]] Status fill(std::string_view text);

 private:
  ReservedFile(const std::string& path, unsigned mode, bool force)
      : path_(path), mode_(mode), force_(force) {}
  [[nodiscard]] Status write(std::string_view text) const;
  [[nodiscard]] std::string temporary() const { return path_ + ".new"; }
  std::string path_;
  unsigned mode_;
  bool force_;
  int fd_ = -1;
};

// The same for a text that is there: written beside `path` and renamed.
[[nodiscard]] Status write_file(const std::string& path, std::string_view text, unsigned mode, bool force);
// At most a mebibyte.
[[nodiscard]] Result<std::string> read_whole_file(const std::string& path);

}  // namespace ringshift::cli
