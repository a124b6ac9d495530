// What goes through the registry comes back equal, and nothing that others put there ends the controller.
#include "resize/status.h"

#include <gtest/gtest.h>

namespace ringshift::resize {
namespace {

topology::Spec spec() {
  topology::Spec out;
  out.cluster = "test";
  topology::Member member;
  member.id = "cache-1";
  member.address = "127.0.0.1:7001";
  out.members.push_back(member);
  return out;
}

TEST(RequestJson, EveryActionComesBack) {
  for (const auto action : {Request::Action::start, Request::Action::pause, Request::Action::resume,
                            Request::Action::rollback, Request::Action::set_rate, Request::Action::lost}) {
    Request request;
    request.id = "id \"with\" \xc3\xa9";
    request.action = action;
    request.steps = {0.5, 100};
    request.allow_foreign = request.force = true;
    request.keys_per_second = 1234567890123;
    request.lost = {"a", "b"};
    request.origin_budget = 77;
    request.expire = true;
    request.rest = "drop";
    request.deadline_seconds = 90;
    request.bytes_per_second = 7;
    request.soak = std::chrono::milliseconds(60'000);
    request.at = "02:00";
    request.until = "06:00";
    request.abort_if = "hit_rate<0.9";
    request.replace = true;
    request.by = "ann@host";
    if (action == Request::Action::start) request.spec = spec();
    const Result<Request> back = parse_request(to_json(request));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->id, request.id);
    EXPECT_EQ(back->action, request.action);
    EXPECT_EQ(back->steps, request.steps);
    EXPECT_TRUE(back->allow_foreign && back->force);
    EXPECT_EQ(back->keys_per_second, request.keys_per_second);
    EXPECT_EQ(back->bytes_per_second, 7U);
    EXPECT_EQ(back->soak, request.soak);
    EXPECT_EQ(back->at + back->until + back->abort_if + back->by, "02:0006:00hit_rate<0.9ann@host");
    EXPECT_TRUE(back->replace);
    EXPECT_EQ(back->spec, request.spec);
    EXPECT_EQ(back->lost, request.lost);
    EXPECT_EQ(back->origin_budget, 77U);
    EXPECT_TRUE(back->expire && back->rest == "drop" && back->deadline_seconds == 90);
  }
}

TEST(RequestJson, WhatIsNoRequestIsRefused) {
  for (const char* bad : {"", "nul", "[]", "\"start\"", "{", "{}", R"({"action":"explode"})",
                          R"({"action":1})", R"({"action":"start","spec":7})",
                          R"({"action":"start","spec":{"cluster":[]}})", R"({"action":"start","spec":null})",
                          R"({"action":"start","rest":"burn"})", "{\"action\":\"\xff\"}"}) {
    const Result<Request> parsed = parse_request(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().kind, ErrorKind::invalid) << bad;
    EXPECT_FALSE(parsed.error().message.empty());
  }
}

TEST(RequestJson, FieldsOfAnotherTypeCountAsAbsent) {
  const auto parsed =
      parse_request(R"({"action":"pause","id":7,"steps":"all","force":"yes","keys_per_second":"x"})");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->id, "");
  EXPECT_TRUE(parsed->steps.empty());
  EXPECT_FALSE(parsed->force);
  EXPECT_EQ(parsed->keys_per_second, 0U);
}

ResizeStatus full_status() {
  ResizeStatus status;
  status.state = "running";
  status.id = "4-17";
  status.version = "1.17";
  status.step = 2;
  status.steps = 4;
  status.phase = "dual";
  status.keys_moved = 1ULL << 60;
  status.keys_to_move = (1ULL << 60) + 1;
  status.bytes_moved = 3;
  status.keys_per_second = 1.5;
  status.eta_seconds = 2.25;
  status.hold_ms_max = 0.125;
  status.fences = 9;
  status.pairs = {{"a", "b", 3, 300, 7}, {"b", "c", 4, 0, 0}};
  status.big_keys = {"one", "two"};
  status.rate_in_force = 1234;
  status.held_back = {"a: slow"};
  status.keys_verified = 8;
  status.retries = 9;
  status.big_keys_waiting = 2;
  status.waiting_big_keys = {{"big", 1U << 30, "a", "b"}, {"bigger", 2, "a", "c"}};
  status.last_error = "line\nline";
  status.rolled_back = true;
  status.lost = {"c"};
  status.origin_budget = 5;
  status.misses_per_second = 2.5;
  status.mode = "expire";
  status.expire_until_ms = 1ULL << 50;
  status.keys_without_ttl = 6;
  status.keys_dropped = 7;
  status.keys_without_ttl_examples = {"k"};
  status.waits_for = "the origin";
  status.request_id = "r";
  status.request_error = "no";
  status.waiting = "soak";
  status.waiting_until = "2026-12-01T02:00:00+01:00";
  status.window = "02:00 to 06:00 every day";
  status.abort_if = "p99_ms>20";
  status.aborted = "aborted: because";
  status.rate = 10;
  status.byte_rate = 11;
  status.queued = true;
  status.hit_rate = 0.5;
  status.p99_ms = 1.5;
  return status;
}

TEST(StatusJson, ComesBackEqual) {
  const Result<ResizeStatus> back = parse_status(to_json(full_status()));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, full_status());
  EXPECT_EQ(*parse_status("{}"), ResizeStatus{});
}

TEST(StatusJson, HostileShapesAreDefaults) {
  const auto parsed =
      parse_status(R"({"state":[],"step":-1,"pairs":[1,{"from":2},null],"big_keys":{"a":1},"fences":1e300})");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->state, "idle");
  EXPECT_EQ(parsed->pairs.size(), 1U);
  EXPECT_TRUE(parsed->big_keys.empty());
  for (const char* bad : {"", "3", "null", "[1,2]", "{\"state\":"}) EXPECT_FALSE(parse_status(bad)) << bad;
}

// Keys are bytes; the JSON that lists big ones must not end the controller.
TEST(StatusJson, ABigKeyThatIsNoUtf8) {
  ResizeStatus status;
  status.big_keys = {"\xff\xfe\x00binary"};
  const std::string json = to_json(status);
  ASSERT_TRUE(parse_status(json));
  Checkpoint checkpoint;
  checkpoint.target = spec();
  checkpoint.big_keys = {"\xff\xfe"};
  EXPECT_TRUE(parse_checkpoint(to_json(checkpoint)));
  status.big_keys.clear();
  status.last_error = "-ERR \xff";
  EXPECT_TRUE(parse_status(to_json(status)));
}

TEST(CheckpointJson, ComesBackEqual) {
  Checkpoint checkpoint;
  checkpoint.steps = {1, 2, 100};
  checkpoint.prepared = checkpoint.opened = checkpoint.paused = checkpoint.allow_foreign =
      checkpoint.rollback = true;
  checkpoint.keys_moved = 1;
  checkpoint.keys_to_move = 2;
  checkpoint.bytes_moved = 3;
  checkpoint.fences = 4;
  checkpoint.hold_ms_max = 5.5;
  checkpoint.pairs = {{{"a", "b"}, {6, 600, 9}}};
  checkpoint.big_keys = {"big"};
  checkpoint.big_key_policy = "move";
  checkpoint.big_key_limit = 77;
  checkpoint.verify = "all";
  checkpoint.keys_verified = 78;
  checkpoint.soak = std::chrono::milliseconds(1000);
  checkpoint.soak_until = 12;
  checkpoint.window = {120, 360, 5, 6};
  checkpoint.abort_if = *parse_conditions("hit_rate<0.9,p99_ms>20");
  checkpoint.aborted = "aborted: because";
  checkpoint.keys_per_second = 13;
  checkpoint.bytes_per_second = 14;
  checkpoint.target = spec();
  const std::string json = to_json(checkpoint);
  const Result<Checkpoint> back = parse_checkpoint(json);
  ASSERT_TRUE(back);
  EXPECT_EQ(to_json(*back), json);
  EXPECT_EQ(back->target, checkpoint.target);
  EXPECT_EQ(back->big_key_policy, "move");
  EXPECT_EQ(back->big_key_limit, 77U);
  EXPECT_EQ(back->verify, "all");
  EXPECT_EQ(back->keys_verified, 78U);
  EXPECT_EQ(back->window, checkpoint.window);
  EXPECT_EQ(back->abort_if, checkpoint.abort_if);
  EXPECT_TRUE(back->opened && back->rollback && back->prepared && back->paused && back->allow_foreign);
}

TEST(CheckpointJson, WithoutASpecItIsRefused) {
  for (const char* bad : {"{}", "", "[]", R"({"spec":1})", R"({"spec":{}})"})
    EXPECT_FALSE(parse_checkpoint(bad)) << bad;
}

}  // namespace
}  // namespace ringshift::resize
