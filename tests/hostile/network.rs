//! The networks to choose from: what happens to the requests of a run.

use std::sync::Mutex;
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::fault::{Fault, Which};
use crate::wire::Message;

/// `TABLESDK_HOSTILE_NETWORK` is the name of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// Every kind of fault, but for those of the others.
    Mixed,
    /// Some requests reach the server twice, the second time at once or much later.
    Duplicated,
    /// Every request reaches the server twice, and the client gets the second response.
    Doubled,
    /// Some responses go to the client of another request.
    Exchanged,
    /// As the mixed one. At each start of the server, the account has a new key.
    Rotated,
}

impl Network {
    const ALL: [Self; 5] = [
        Self::Mixed,
        Self::Duplicated,
        Self::Doubled,
        Self::Exchanged,
        Self::Rotated,
    ];

    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    pub(crate) fn named(name: &str) -> Self {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|network| network.name() == name);
        found.unwrap_or_else(|| panic!("no network has the name {name:?}"))
    }

    /// Returns true if requests and responses are also lost.
    pub(crate) const fn is_mixed(self) -> bool {
        matches!(self, Self::Mixed | Self::Rotated)
    }

    /// How many times longer than usual the clients wait: where nothing is lost, only a slow
    /// machine makes them wait.
    pub(crate) const fn patience(self) -> u32 {
        if self.is_mixed() { 1 } else { 5 }
    }

    /// The fault of a request; `None` where it is one of the mixed faults.
    pub(crate) fn fault(self, rng: &mut Rng) -> Option<Fault> {
        match self {
            Self::Mixed | Self::Rotated => None,
            Self::Doubled => Some(Fault::Duplicate(Duration::ZERO, Which::Second)),
            Self::Exchanged if rng.u8(..4) == 0 => Some(Fault::Exchange),
            Self::Duplicated if rng.u8(..3) == 0 => {
                let (gap, which) = match rng.u8(..8) {
                    0..=1 => (0, Which::First),
                    2..=3 => (0, Which::Second),
                    4 => (rng.u64(..60), Which::Second),
                    5..=6 => (rng.u64(..60), Which::First),
                    // Much later: some operations after it have ended.
                    _ => (rng.u64(60..3_000), Which::First),
                };
                Some(Fault::Duplicate(Duration::from_millis(gap), which))
            }
            Self::Exchanged | Self::Duplicated => Some(Fault::Pass),
        }
    }
}

/// A response that waits for another one, and where that one is to be sent.
#[derive(Default)]
pub(crate) struct Swap(Mutex<Option<(Message, oneshot::Sender<Message>)>>);

impl Swap {
    /// Gives a response away, and returns that of another request; its own one if there is no other
    /// for a while.
    pub(crate) async fn with_another(&self, own: Message) -> Message {
        let mut other = {
            let mut waiting = self.0.lock().unwrap();
            if let Some((other, sender)) = waiting.take()
                && sender.send(own.clone()).is_ok()
            {
                return other;
            }
            let (sender, receiver) = oneshot::channel();
            *waiting = Some((own.clone(), sender));
            receiver
        };
        if let Ok(Ok(other)) = timeout(PATIENCE, &mut other).await {
            return other;
        }
        other.close();
        other.try_recv().unwrap_or(own)
    }
}

const PATIENCE: Duration = Duration::from_millis(50);
