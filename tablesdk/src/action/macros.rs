//! What actions have in common, as macros: `.await`, the options of a single call and of `exactly_once`, and `Debug`.

/// Makes an action awaitable: `.await` calls its method `run`. Adds the options of a single call.
macro_rules! action {
    (impl[$($generics:tt)*] $action:ty, $($handle:ident).+ => $lifetime:lifetime, $output:ty) => {
        impl<$($generics)*> IntoFuture for $action {
            type Output = Result<$output, crate::error::Error>;
            type IntoFuture = crate::action::ActionFuture<$lifetime, $output>;

            fn into_future(self) -> Self::IntoFuture {
                let handle = self.$($handle).+.clone();
                // The future of `run` is made where it is polled: moving it would copy all its states.
                Box::pin(async move { self.run().await.map_err(|error| handle.locate(error)) })
            }
        }

        call_options!(impl[$($generics)*] $action, $($handle).+);
    };
    (impl[$($generics:tt)*] $action:ty, $($handle:ident).+ => $output:ty) => {
        action!(impl[$($generics)*] $action, $($handle).+ => 'static, $output);
    };
}

/// Adds the methods `deadline` and `retry`: options of a single call, which its pipeline handle keeps.
macro_rules! call_options {
    (impl[$($generics:tt)*] $action:ty, $($handle:tt)+) => {
        impl<$($generics)*> $action {
            /// The time limit of this call, instead of the [deadline](crate::pipeline::RetryPolicy::deadline) of the client or of
            /// [`retry`](Self::retry). See [what it covers](crate::action#options-of-a-single-call). Must not be 0.
            pub const fn deadline(mut self, deadline: std::time::Duration) -> Self {
                self.$($handle)+.deadline = Some(deadline);
                self
            }

            /// How the requests of this call are retried, instead of the policy of the client. The
            /// [budget](crate::pipeline::RetryPolicy::budget) of retries remains that of the client.
            pub fn retry(mut self, retry: crate::pipeline::RetryPolicy) -> Self {
                self.$($handle)+.retry = Some(retry);
                self
            }
        }
    };
}

/// Adds the methods `exactly_once` and `exactly_once_for` to a write.
macro_rules! exactly_once_options {
    (impl[$($generics:tt)*] $action:ty; $(#[$exactly_once:meta])*) => {
        impl<$($generics)*> $action {
            $(#[$exactly_once])*
            pub const fn exactly_once(mut self) -> Self {
                self.exactly_once = KeepMarker::unless_chosen(self.exactly_once);
                self
            }

            /// As `exactly_once`, and keeps the marker for at least that long. A duplicate of the request that the network delivers
            /// within that time finds the marker and has no effect. Once the marker is deleted, a duplicate is carried out like a new
            /// request. Without this option, the marker is deleted at once after a success.
            ///
            /// The time begins when the service stores the marker. After it, only
            /// [`clean_up_markers`](crate::TableClient::clean_up_markers) deletes the marker. A successful operation therefore sends one
            /// request less, and leaves one more entity in the table until the marker is deleted.
            pub const fn exactly_once_for(mut self, time: std::time::Duration) -> Self {
                self.exactly_once = Some(KeepMarker(time));
                self
            }
        }
    };
}

/// `Debug` by the named fields. A derived one would ask for it from the entity type, too.
macro_rules! debug_by_fields {
    ($action:ident<$($lifetime:lifetime,)? $($param:ident),+> { $($field:ident),+ }) => {
        impl<$($lifetime,)? $($param),+> std::fmt::Debug for $action<$($lifetime,)? $($param),+> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($action))
                    $(.field(stringify!($field), &self.$field))+
                    .finish_non_exhaustive()
            }
        }
    };
}
