// What answers a command that needs more than one reply of one member: a split command, one that asks every
// member, one that waits. Owned by the session's slot of that command; it ends by calling
// Session::task_done(), which destroys it, or when its session ends.
//
// The worker's thread. REQUIRES of a task: what it has sent somewhere knows it as a sink until it is answered
// or failed, so it ends only when nothing is outstanding.
#pragma once
#include "backend/backend.h"

namespace ringshift::proxy {

class Task : public backend::ReplySink {
 public:
  Task() = default;
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  // The client has gone: nobody will read the answer. A task that waits for something without end gives up.
  virtual void abandon() {}
  // The worker has adopted a snapshot; the drain of what went by older ones comes next.
  virtual void topology_changed() {}
  // CLIENT UNBLOCK. False when it does not wait.
  virtual bool unblock(bool /*with_error*/) { return false; }
};

}  // namespace ringshift::proxy
