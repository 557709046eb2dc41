// SPDX-License-Identifier: Apache-2.0
#include "fleet/api/store_gate.h"

#include <algorithm>

namespace purlin::fleet {
namespace {

constexpr std::size_t kMaxOfCommit = 64, kMaxIdleReaders = 8;

}  // namespace

StoreGate::StoreGate(std::unique_ptr<store::Store> store)
    : store_(std::move(store)), thread_([this] { run(); }) {}

StoreGate::~StoreGate() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  queued_.notify_all();
  thread_.join();
}

void StoreGate::wait_for(Job& job) {
  std::unique_lock lock(mutex_);
  queue_.push_back(&job);
  queued_.notify_one();
  done_.wait(lock, [&job] { return job.done; });
}

Result<store::Ingest> StoreGate::ingest(store::HashedBatch batch) {
  Job job;
  job.batch = std::move(batch);
  wait_for(job);
  return job.ingested;
}

Status StoreGate::write(std::function<Status(store::Store&)> what) {
  Job job;
  job.what = std::move(what);
  wait_for(job);
  return job.status;
}

void StoreGate::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    queued_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::vector<Job*> jobs;
    const bool batches = queue_.front()->batch.has_value();
    while (!queue_.empty() && queue_.front()->batch.has_value() == batches &&
           jobs.size() < (batches ? kMaxOfCommit : 1)) {
      jobs.push_back(queue_.front());
      queue_.pop_front();
    }
    lock.unlock();
    if (batches)
      do_batches(jobs);
    else
      jobs.front()->status = jobs.front()->what(*store_);
    lock.lock();
    if (batches) {
      ++commits_;
      batches_ += jobs.size();
    }
    for (Job* job : jobs) job->done = true;
    done_.notify_all();
  }
}

void StoreGate::do_batches(const std::vector<Job*>& jobs) {
  std::vector<store::HashedBatch> batches;
  for (Job* job : jobs) batches.push_back(std::move(*job->batch));
  std::vector<Result<store::Ingest>> answers = store_->ingest_many(batches);
  for (std::size_t i = 0; i < jobs.size() && i < answers.size(); ++i)
    jobs[i]->ingested = std::move(answers[i]);
}

Status StoreGate::read(const std::function<Status(store::Reader&)>& what) {
  std::unique_ptr<store::Reader> reader;
  {
    const std::lock_guard lock(readers_mutex_);
    if (!readers_.empty()) {
      reader = std::move(readers_.back());
      readers_.pop_back();
    }
  }
  if (!reader) {
    PURLIN_ASSIGN(reader, store_->reader());
  }
  PURLIN_TRY(what(*reader));  // one that failed is not used again
  const std::lock_guard lock(readers_mutex_);
  if (readers_.size() < kMaxIdleReaders) readers_.push_back(std::move(reader));
  return Status::ok();
}

StoreGate::Counts StoreGate::counts() const {
  const std::lock_guard lock(mutex_);
  return {commits_, batches_, queue_.size()};
}

}  // namespace purlin::fleet
