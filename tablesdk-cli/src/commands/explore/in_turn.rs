//! [`InTurn`]: what may wait for the disk or for another program, away from the threads that answer
//! requests.

use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SendError, Sender, channel};
use std::thread;

use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// A value with a thread of its own, which does one job after the other.
pub(super) struct InTurn<T> {
    value: Arc<T>,
    jobs: Sender<Job>,
}

impl<T: Send + Sync + 'static> InTurn<T> {
    pub(super) fn new(value: T) -> io::Result<Self> {
        let (jobs, waiting): (_, Receiver<Job>) = channel();
        thread::Builder::new().spawn(move || waiting.into_iter().for_each(|job| job()))?;
        Ok(Self {
            value: Arc::new(value),
            jobs,
        })
    }

    /// Does a job after the earlier ones. Nothing waits for it.
    pub(super) fn later(&self, job: impl FnOnce(&T) + Send + 'static) {
        let value = Arc::clone(&self.value);
        if let Err(SendError(job)) = self.jobs.send(Box::new(move || job(&value))) {
            job();
        }
    }

    /// Does a job after the earlier ones, and waits for its result.
    pub(super) async fn run<R: Default + Send + 'static>(
        &self,
        job: impl FnOnce(&T) -> R + Send + 'static,
    ) -> R {
        let (done, result) = oneshot::channel();
        self.later(move |value| {
            // The request may have ended.
            let _ = done.send(job(value));
        });
        result.await.unwrap_or_default()
    }
}

/// Access to the parts that never wait.
impl<T> Deref for InTurn<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn a_job_that_waits_keeps_only_later_jobs() {
        let done = InTurn::new(Mutex::new(Vec::new())).expect("there is a thread");
        let (go, waiting) = channel();
        done.later(move |done| {
            waiting.recv().expect("it is sent");
            done.lock().expect("nothing panics").push(1);
        });
        done.later(|done| done.lock().expect("nothing panics").push(2));
        assert!(done.lock().expect("nothing panics").is_empty());
        go.send(()).expect("the job waits");
        let all = done.run(|done| done.lock().expect("nothing panics").clone());
        assert_eq!(all.await, [1, 2]);
    }

    #[tokio::test]
    async fn jobs_are_done_also_without_the_thread() {
        let jobs = InTurn::new(()).expect("there is a thread");
        jobs.later(|()| std::panic::resume_unwind(Box::new(())));
        // The first one may still be in the queue of the thread.
        let _ = jobs.run(|()| 1).await;
        let joined = async {
            while jobs.run(|()| 2).await != 2 {
                tokio::task::yield_now().await;
            }
        };
        joined.await;
    }
}
