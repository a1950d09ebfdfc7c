//! A future that resolves when a storage is closed.

use tokio::sync::watch;

/// Resolves once a storage is closed.
#[derive(Clone, Debug)]
pub(crate) struct Closed(Option<watch::Receiver<()>>);

impl Closed {
    /// For a storage that holds no resource that another process or server could wait for.
    pub(crate) const NOW: Self = Self(None);

    /// The end of a storage that drops the sender when it is closed.
    #[cfg(feature = "durable")]
    pub(super) const fn after(closing: watch::Receiver<()>) -> Self {
        Self(Some(closing))
    }

    /// Returns true if the storage is closed already.
    pub(crate) fn is_now(&self) -> bool {
        let closing = self.0.as_ref();
        closing.is_none_or(|closing| closing.has_changed().is_err())
    }

    /// Waits until it is.
    pub(crate) async fn wait(mut self) {
        if let Some(closing) = &mut self.0 {
            // No value is ever sent; dropping the sender returns an error.
            while closing.changed().await.is_ok() {}
        }
    }
}
