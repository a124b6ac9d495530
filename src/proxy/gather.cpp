#include "proxy/gather.h"

#include <algorithm>
#include <utility>

#include "proxy/session.h"
#include "proxy/worker.h"

namespace ringshift::proxy {

struct Gather::State {
  Gather* task;  // Null once it is gone.
  std::size_t waiting = 0;
  Part all;
};

Gather::Gather(Session& session, std::uint64_t number, Finish finish)
    : session_(session), number_(number), finish_(std::move(finish)), state_(std::make_shared<State>(this)) {}

Gather::~Gather() { state_->task = nullptr; }

void Gather::start(const Ask& ask) {
  Worker& home = session_.worker();
  for (Worker* worker : session_.shared().workers) {
    // Our own takes it in any case, so the last answer never comes from in here.
    const bool taken = worker->write_to([ask, worker, &home, state = state_] {
      Part part = ask(*worker);
      // Refused: home has ended, and the session with it.
      (void)home.write_to([state, part = std::move(part)] {
        state->all.number += part.number;
        state->all.rows.insert(state->all.rows.end(), part.rows.begin(), part.rows.end());
        if (--state->waiting == 0 && state->task != nullptr) state->task->finish();
      });
    });
    if (taken) ++state_->waiting;
  }
}

void Gather::finish() {
  std::ranges::stable_sort(state_->all.rows, {}, &Row::order);
  session_.task_done(number_, finish_(state_->all));  // Destroys this.
}

}  // namespace ringshift::proxy
