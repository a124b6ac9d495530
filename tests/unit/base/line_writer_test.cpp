#include "base/line_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>

namespace ringshift::base {
namespace {

using std::chrono::milliseconds;

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() { EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0); }
  ~Pipe() {
    ::close(ends[0]);
    if (ends[1] >= 0) ::close(ends[1]);
  }
  // Until a line is `last`.
  std::string read_until(const std::string& last) const {
    std::string text;
    char block[65536];
    while (!text.ends_with(last)) {
      const ssize_t n = ::read(ends[0], block, sizeof block);
      if (n <= 0) break;
      text.append(block, static_cast<std::size_t>(n));
    }
    return text;
  }
};

TEST(LineWriter, WritesInOrder) {
  Pipe pipe;
  std::string all;
  {
    LineWriter writer(pipe.ends[1]);
    for (int i = 0; i < 1000; ++i) {
      writer.write(std::to_string(i) + "\n");
      all += std::to_string(i) + "\n";
    }
    EXPECT_EQ(pipe.read_until("\n999\n"), all);
    EXPECT_TRUE(writer.flush(milliseconds(10000)));
    writer.write("the end\n");
  }
  EXPECT_EQ(pipe.read_until("the end\n"), "the end\n");  // Its destructor has waited for it.
}

TEST(LineWriter, NobodyWaitsForAReaderAndWhatIsLostIsTold) {
  Pipe pipe;
  const std::string line(999, 'x');
  auto writer = std::make_unique<LineWriter>(pipe.ends[1]);
  for (int i = 0; i < 20000; ++i) writer->write(line + "\n");
  EXPECT_FALSE(writer->flush(milliseconds(10)));
  writer->write("the last one\n");
  const std::string text = pipe.read_until("the last one\n");
  EXPECT_NE(text.find(" older lines of the log were dropped: nobody took them)\n"), std::string::npos);
  EXPECT_LT(text.size(), LineWriter::kMaxBytes + (1U << 20));
  EXPECT_GT(text.size(), LineWriter::kMaxBytes / 2);
}

TEST(LineWriter, EndsThoughNothingIsRead) {
  Pipe pipe;
  {
    LineWriter writer(pipe.ends[1]);
    for (int i = 0; i < 1000; ++i) writer.write(std::string(999, 'x') + "\n");
    writer.write("the end\n");
    EXPECT_FALSE(writer.flush(milliseconds(1)));
  }  // And here it is left behind, or the test would hang.
  // The thread must not write into what may become another file.
  EXPECT_GT(pipe.read_until("the end\n").size(), 1'000'000U);
}

}  // namespace
}  // namespace ringshift::base
