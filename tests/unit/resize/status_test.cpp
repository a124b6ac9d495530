#include "resize/status.h"

#include <gtest/gtest.h>

namespace ringshift::resize {
namespace {

// A member's error, or a key's name, may be any bytes: what is told to operators stays JSON.
TEST(Status, AnyBytesInAMessageAreToldAsText) {
  ResizeStatus status;
  status.last_error = "moving \xff\xfe failed";
  status.big_keys = {"\x80"};
  const Result<ResizeStatus> read = parse_status(to_json(status));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->last_error.starts_with("moving "));
  EXPECT_EQ(read->big_keys.size(), 1U);
}

TEST(Checkpoint, AnyBytesInAKeysNameAreKeptAsText) {
  Checkpoint checkpoint;
  checkpoint.steps = {100};
  checkpoint.big_keys = {"\xff"};
  EXPECT_FALSE(to_json(checkpoint).empty());
}

}  // namespace
}  // namespace ringshift::resize
