// One client: reads its commands, sends them on, and answers in the order of the commands, each as soon as
// it is its turn.
//
// Every command takes the next number. Numbers from head_ to tail_ wait for their answers in a ring of
// slots: the answer whose number is head_ goes straight to the output, any other waits in its slot. A settled
// key costs no allocation. All on the worker's thread. A client that goes away with answers outstanding
// leaves the session without a stream until the last of them came. Bounds: Options.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "net/stream.h"
#include "protocol/resp/command_parser.h"
#include "protocol/resp/command_table.h"
#include "proxy/gather.h"
#include "proxy/key_set.h"
#include "proxy/measure.h"
#include "proxy/pubsub_counts.h"
#include "proxy/reach.h"
#include "proxy/rules.h"
#include "proxy/task.h"
#include "proxy/transaction.h"
#include "proxy/worker.h"

namespace ringshift::proxy {

class Subscriber;
class Upload;

class Session final : private net::StreamHandler, private backend::ReplySink {
 public:
  Session(Worker& worker, int fd, std::uint64_t id, const net::TlsContext* tls);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // From the worker.
  void end_of_wakeup();    // Writes; may end in Worker::remove.
  void close_when_done();  // Takes no more commands, answers those it has.
  void linger_over();
  // session_drain.cpp: again and again while the worker drains. Destroys nothing by itself.
  enum class DrainStage : std::uint8_t { quiet, any_answer, last_words };
  void drain(DrainStage stage, base::TimePoint now);
  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  void set_index(std::size_t index) noexcept { index_ = index; }

  // From the worker, too: it has adopted a snapshot.
  void topology_changed();

  // From the worker, for its administration (client_list.cpp, worker_admin.cpp).
  std::size_t every_second(base::TimePoint now);  // Bytes that it gave back.
  void release();                                 // Commands wait no longer: see CLIENT PAUSE.
  void kill();                                    // Closes at once, answers nothing.
  bool unblock(bool with_error);                  // CLIENT UNBLOCK; false when it does not wait.
  [[nodiscard]] std::string describe() const;     // A line of CLIENT LIST, without its end.
  [[nodiscard]] std::string local_address() const;
  void set_no_evict(bool on) noexcept { no_evict_ = on; }
  [[nodiscard]] bool connected() const noexcept { return stream_ != nullptr; }
  [[nodiscard]] bool waits() const noexcept { return blocked_ && in_flight() != 0; }  // As BLPOP does.
  [[nodiscard]] bool held() const noexcept { return held_; }
  [[nodiscard]] std::string_view user() const noexcept { return user_name(); }
  [[nodiscard]] std::string_view type() const noexcept { return subscribed() ? "pubsub" : "normal"; }
  // The answer to the next command comes when every worker has answered.
  void gather(Gather::Finish finish, const Gather::Ask& ask);

  // session_pubsub.cpp. From the subscriber: a message, as a push of RESP3. It comes between two answers:
  // while one goes out in pieces, it waits for the end of that.
  void deliver(std::string_view push);
  [[nodiscard]] bool subscribed() const noexcept;
  [[nodiscard]] bool in_subscriber_mode() const noexcept;  // Of RESP2.
  [[nodiscard]] std::size_t subscriptions(ChannelKind kind) const noexcept;

  // From a task: the whole answer to command `number`. Destroys the task.
  void task_done(std::uint64_t number, std::string_view answer);
  // For a task that begins: its number, and the slot that owns it from then on.
  std::uint64_t take_number() {
    if (in_flight() == slot_count_) [[unlikely]]
      grow();
    return tail_++;
  }
  void hold_task(std::uint64_t number, std::unique_ptr<Task> task) { slot(number).task = std::move(task); }
  // Nothing was read behind command `number`; and then nothing will be until it is answered.
  [[nodiscard]] bool is_last(std::uint64_t number) const noexcept { return number + 1 == tail_; }
  void hold_back() noexcept { alone_ = true; }
  // take_alone() for one that may wait long: the client is still heard leaving.
  std::uint64_t take_waiting() {
    blocked_ = true;
    return take_alone();
  }
  // From the worker: what is in flight may be overtaken by what is sent from now on.
  void keep_order() noexcept { alone_ = alone_ || in_flight() != 0; }
  // session_large.cpp. From an upload:
  void upload_goes_on() { mark(); }                                 // It can take more.
  void upload_whole() noexcept { upload_ = nullptr; }               // What comes next is another command.
  void upload_malformed();                                          // Nothing is read after it.
  void upload_done(std::uint64_t number, std::string_view answer);  // As task_done().
  // From a large answer: a piece of the answer to command `number`, its end, or that it breaks off here.
  [[nodiscard]] bool pour(std::uint64_t number, std::string_view bytes);
  void end_pour(std::uint64_t number);
  void break_pour(std::uint64_t number, const backend::Failure& failure);
  // From the transaction. The next command's answer, known at once:
  void answer_now(std::string_view text);
  void refuse(std::string_view error);  // `error` without its line end.
  // A number for a command behind which the next one is not read until it is answered, by complete().
  std::uint64_t take_alone();
  void complete(std::uint64_t number, std::string_view text);
  // The next command is these `count`, of which the client gets the last one's answer.
  void send_block(const Destination& where, std::string_view bytes, std::size_t count,
                  std::vector<std::string> keys, backend::Traffic traffic);
  void count_failure(backend::Failure::Kind kind);
  [[nodiscard]] Worker& worker() noexcept { return worker_; }
  [[nodiscard]] const Worker& worker() const noexcept { return worker_; }
  [[nodiscard]] const Shared& shared() const noexcept { return worker_.shared(); }

  // What local commands read and change.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] std::string peer() const { return stream_ ? stream_->peer() : std::string(); }
  [[nodiscard]] backend::Resp resp() const noexcept { return resp_; }
  void set_resp(backend::Resp resp) noexcept { resp_ = resp; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  void set_name(std::string_view name) { name_ = name; }

  // admission.cpp: who the client is, and what he may do. From the worker, first and on every change:
  void rules_adopted();
  // The clusters of the user's routes, in the client's database.
  [[nodiscard]] const Reach& reach() const noexcept { return *reach_; }
  // session_databases.cpp. Channels belong to no database:
  [[nodiscard]] const Reach& reach_of_channels() const noexcept;
  [[nodiscard]] unsigned database() const noexcept { return database_; }
  // How many there are: the fewest of the clusters that the user reaches.
  [[nodiscard]] unsigned databases() const noexcept;
  // REQUIRES: nothing is in flight. False: there is none of this number.
  [[nodiscard]] bool select_database(std::int64_t number);
  [[nodiscard]] bool watching() const noexcept { return transaction_ != nullptr && transaction_->watching(); }
  [[nodiscard]] const std::string& user_name() const noexcept { return user_->name(); }
  [[nodiscard]] bool authenticated() const noexcept { return authenticated_; }
  [[nodiscard]] bool authenticate(std::string_view name, std::string_view password);
  void become_default_user();  // RESET, and a new client.
  // For what is subscribed to or published by other ways than admitted(): "", or the error without its line
  // end; also notes it in ACL LOG.
  [[nodiscard]] std::string refused(const protocol::resp::Command& command,
                                    const protocol::resp::Arguments& arguments);

 private:
  struct Slot {
    std::string answer;
    std::unique_ptr<Task> task;
    bool ready = false;  // With a task: a LargeAnswer, which has begun.
  };
  enum class Outcome : std::uint8_t { done, not_now };

  // net::StreamHandler
  std::size_t on_data(std::string_view bytes) override;
  void on_end() override;
  void on_closed(std::string_view reason) override;
  void on_drained() override {
    mark();
    go_on_pouring();
  }
  // backend::ReplySink; the tag is the number.
  backend::PieceTaker* on_large_reply(std::uint64_t tag, std::size_t size,
                                      backend::LargeReply& from) override;
  void on_reply(std::uint64_t tag, std::string_view raw) override;
  void on_failure(std::uint64_t tag, const backend::Failure& failure) override;

  // admission.cpp
  [[nodiscard]] bool admitted(const protocol::resp::Command& command);  // False: it was answered.
  [[nodiscard]] std::string over_limit(const protocol::resp::Command& command);
  void become(const access::User& user);
  void leave_lost_database();
  void note_refusal(std::string_view reason, std::string_view object, std::string_view user);
  // session_large.cpp
  enum class Large : std::uint8_t { more, not_now, taken };
  Large meet_large(std::string_view bytes);
  Large look_at_large(std::string_view bytes);
  Upload& begin_upload(const protocol::resp::CommandParser::UnderWay& so_far);
  std::size_t feed_upload(std::string_view bytes);
  [[nodiscard]] bool upload_choked() const noexcept;
  void go_on_pouring();
  // A part of the oldest answer may be out already, and its rest not.
  [[nodiscard]] bool pouring() noexcept {
    return in_flight() != 0 && slot(head_).ready && slot(head_).task != nullptr;
  }
  // session_pubsub.cpp
  Outcome dispatch_pubsub(const protocol::resp::Command& command);
  void dispatch_pubsub_query(const protocol::resp::Command& command);
  [[nodiscard]] bool refused_to_subscriber(const protocol::resp::Command& command);
  [[nodiscard]] std::size_t output_bound() const noexcept;  // Unread bytes beyond which the client is cut.
  void put_late_pushes();
  // dispatch.cpp
  Outcome dispatch();
  void dispatch_routed(const protocol::resp::Command& command);
  void dispatch_split(const protocol::resp::Command& command);
  Outcome dispatch_local(const protocol::resp::Command& command);
  Outcome dispatch_transaction(const protocol::resp::Command& command);
  bool look_closer(const protocol::resp::Command& command);  // False: the command has to wait.
  Outcome dispatch_reply(const protocol::resp::Command& command);
  Outcome dispatch_blocking(const protocol::resp::Command& command);
  Outcome dispatch_fan_out(const protocol::resp::Command& command);
  [[nodiscard]] std::string_view why_no_flush() const;
  void dispatch_many_keys(const protocol::resp::Command& command);
  [[nodiscard]] bool queued_in_transaction(const protocol::resp::Command& command);
  void refuse_arity(const protocol::resp::Command& command);
  void refuse_unknown();
  const protocol::resp::Command* subcommand(const protocol::resp::Command& container);
  void send_one(const protocol::resp::Command& command, std::string_view key);
  void send_parts(const protocol::resp::Command& command, std::vector<std::uint32_t> part_of_key);
  [[nodiscard]] bool between_members(Upstream& upstream, const topology::Route& route, std::string_view key);

  // session_drain.cpp
  [[nodiscard]] bool owes_nothing() const;
  void leave();

  void advance();
  [[nodiscard]] Slot& slot(std::uint64_t number) noexcept { return slots_[number & (slot_count_ - 1)]; }
  [[nodiscard]] std::size_t in_flight() const noexcept { return static_cast<std::size_t>(tail_ - head_); }
  [[nodiscard]] bool congested() const noexcept;
  void grow();
  void put(std::string_view text);
  void pause();
  void wait_for_turn();
  void resume_if_caught_up();
  void abandon_tasks();
  void finish();
  std::size_t rest();
  void look_whether_stalled(base::TimePoint now);
  void cut(std::string_view why);
  void count_unread();
  void count_written();
  void count_member_error(std::string_view error);
  void settle_measure();
  void sample(const protocol::resp::Command& command);
  [[nodiscard]] std::string member_asked(const protocol::resp::Command& command) const;
  [[nodiscard]] bool needs_numbers() const noexcept {
    return muted_ || measure_ != nullptr || sampled_ != kNoNumber;
  }
  [[nodiscard]] std::size_t unread() const noexcept {
    return (stream_ ? stream_->queued_bytes() : 0) + stored_bytes_;
  }
  [[nodiscard]] bool silent() noexcept;
  void mark() {
    if (!marked_) {
      marked_ = true;
      worker_.at_end_of_wakeup(*this);
    }
  }

  Worker& worker_;
  const std::uint64_t id_;
  std::unique_ptr<net::Stream> stream_;
  protocol::resp::CommandParser parser_;
  std::vector<Slot> slots_;       // A power of two; empty when the client is idle.
  std::size_t slot_count_ = 0;    // slots_.size()
  std::uint64_t head_ = 0;        // The next number to be answered.
  std::uint64_t tail_ = 0;        // The next number to be given.
  std::size_t stored_bytes_ = 0;  // In answers that wait for their turn, and in late_pushes_.
  std::size_t index_ = 0;         // In Worker::sessions_.
  backend::Resp resp_ = backend::Resp::v2;
  bool marked_ = false;
  bool closing_ = false;     // No more commands are read.
  bool finished_ = false;    // All answered and our end is shut; waiting for the client to close.
  bool peer_ended_ = false;  // The client sends no more.
  bool paused_ = false;      // Not reading, for congestion.
  bool barrier_ = false;     // The next command waits until nothing is in flight.
  bool alone_ = false;       // The command in flight is to be answered before the next is read.
  bool held_ = false;        // The next command waits for CLIENT UNPAUSE.
  bool numbered_ = false;    // Every answer needs a number: see needs_numbers().
  bool muted_ = false;       // CLIENT REPLY: the answers from mute_from_ to before mute_to_ are dropped.
  bool no_evict_ = false;
  bool blocked_ = false;  // The same for one that may wait long: we go on reading, to see the client leave.
  bool guarded_ = false;  // Every command is to be admitted().
  bool authenticated_ = true;
  bool leaving_ =
      false;  // The worker drains: it is closed with the next answer behind which nothing is begun.
  bool was_admitted_ = false;  // The next command has been, and is looked at again.
  unsigned database_ = 0;
  const access::User* user_ = nullptr;  // These belong to the worker's rules.
  const Reach* reach_ = nullptr;
  Meter* user_meter_ = nullptr;
  std::unique_ptr<Meter> client_meter_;
  std::uint64_t mute_from_ = 0, mute_to_ = 0;
  std::size_t counted_unread_ = 0;     // In Shared::unread_output.
  std::uint64_t counted_written_ = 0;  // In Counter::bytes_out.
  const base::TimePoint since_;
  base::TimePoint last_active_;                            // The last wakeup with something for us.
  const protocol::resp::Command* last_command_ = nullptr;  // For CLIENT LIST.
  std::uint64_t stalled_at_ = 0;                           // Bytes written when it stopped to read,
  base::TimePoint stalled_since_{base::TimePoint::max()};  // if it has.
  std::unique_ptr<Measure> measure_;                       // Null unless commands are measured.
  static constexpr std::uint64_t kNoNumber = ~std::uint64_t{0};
  std::uint64_t sampled_ = kNoNumber;  // The command under way whose time is taken for the figures.
  base::TimePoint sampled_at_{};
  Upload* upload_ = nullptr;                  // A command that is passed on while it comes; its slot owns it.
  std::unique_ptr<Transaction> transaction_;  // Null nearly always.
  std::unique_ptr<Subscriber> subscriber_;    // Null unless it has subscribed.
  std::string late_pushes_;                   // Came while an answer went out in pieces.
  std::string name_;
};

}  // namespace ringshift::proxy
