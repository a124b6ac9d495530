// The owner's end of a private connection. The Connection itself belongs to the pool, which may thus close
// it, and mourn its unanswered commands, after the owner has gone.
//
// Invariant: of a handle and its Connection each knows the other, or neither does: the handle's end abandons
// the Connection, the Connection's end (that of the pool) makes the handle forget it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "backend/connection.h"

namespace ringshift::backend {

class PrivateHandle final : public PrivateConnection {
 public:
  PrivateHandle(Connection& connection, PrivateOwner& owner)
      : connection_(&connection), owner_(owner), member_(connection.member().id) {
    connection.own(*this);
  }
  ~PrivateHandle() override {
    if (connection_ != nullptr) connection_->abandon();
  }
  PrivateHandle(const PrivateHandle&) = delete;
  PrivateHandle& operator=(const PrivateHandle&) = delete;

  // From the Connection. The owner may destroy this in each of them, so nothing comes behind the call.
  void ready() { owner_.on_ready(); }
  void pushed(std::string_view raw) { owner_.on_push(raw); }
  void lost(const Failure& failure) { owner_.on_lost(failure); }
  void forget() noexcept { connection_ = nullptr; }

  // Without a Connection the pool is gone, the loop has stopped, and nobody waits for anything.
  void send(std::string_view command, ReplySink& sink, std::uint64_t tag, Traffic traffic) override {
    if (connection_ != nullptr) connection_->send(command, sink, tag, traffic);
  }
  void send_block(std::string_view commands, std::size_t count, ReplySink& sink, std::uint64_t tag,
                  Traffic traffic) override {
    if (connection_ != nullptr) connection_->send_block(commands, count, sink, tag, traffic);
  }
  void send_untimed(std::string_view command, ReplySink& sink, std::uint64_t tag, Traffic traffic) override {
    if (connection_ != nullptr) connection_->send_untimed(command, sink, tag, traffic);
  }
  void send_for_pushes(std::string_view command) override {
    if (connection_ != nullptr) connection_->send_for_pushes(command);
  }
  void drained() { owner_.on_drained(); }
  void begin_command(ReplySink& sink, std::uint64_t tag, Traffic traffic) override {
    if (connection_ != nullptr) connection_->begin_command(sink, tag, traffic);
  }
  void add_piece(std::string_view bytes) override {
    if (connection_ != nullptr) connection_->add_piece(bytes);
  }
  void end_command() override {
    if (connection_ != nullptr) connection_->end_command();
  }
  [[nodiscard]] std::size_t unsent() const noexcept override {
    return connection_ == nullptr ? 0 : connection_->unsent();
  }
  [[nodiscard]] bool connected() const noexcept override {
    return connection_ != nullptr && connection_->connected();
  }
  [[nodiscard]] bool lost() const noexcept override { return connection_ == nullptr || connection_->lost(); }
  [[nodiscard]] std::size_t unanswered() const noexcept override {
    return connection_ == nullptr ? 0 : connection_->unanswered();
  }
  [[nodiscard]] std::uint64_t client_id() const noexcept override {
    return connection_ == nullptr ? 0 : connection_->client_id();
  }
  [[nodiscard]] const std::string& member() const noexcept override { return member_; }
  void set_exempt(bool exempt) override {
    if (connection_ != nullptr) connection_->set_exempt(exempt);
  }
  void unblock(bool with_error) override {
    if (connection_ != nullptr) connection_->unblock(with_error);
  }

  // For give_back(): the Connection, which nobody owns then.
  [[nodiscard]] Connection* take() noexcept { return std::exchange(connection_, nullptr); }

 private:
  Connection* connection_;
  PrivateOwner& owner_;
  const std::string member_;
};

}  // namespace ringshift::backend
