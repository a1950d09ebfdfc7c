//! Macros for the common parts of actions: `.await`, the options of a single call, of
//! `exactly_once` and of bulk runs, and `Debug`.

/// Never implemented. The method `timeout` of actions exists so that the compiler can say what it
/// is called. It takes `&mut self` as those of [`other_names`](crate::other_names) do.
#[diagnostic::on_unimplemented(
    message = "the method is called `deadline` here",
    label = "call `deadline`",
    note = "it limits all attempts of the call together, with the pauses between them"
)]
#[expect(unnameable_types, reason = "none implements it")]
pub trait Timeout {
    fn never(&mut self) -> Self;
}

/// Makes an action awaitable: `.await` calls its method `run`. Adds the options of a single call.
macro_rules! action {
    (impl[$($generics:tt)*] $action:ty, $($handle:ident).+ => $lifetime:lifetime, $output:ty) => {
        impl<$($generics)*> IntoFuture for $action {
            type Output = Result<$output, crate::error::Error>;
            type IntoFuture = crate::action::ActionFuture<$lifetime, $output>;

            fn into_future(self) -> Self::IntoFuture {
                let handle = self.$($handle).+.clone();
                // The future of `run` is made where it is polled: moving it would copy all its
                // states.
                Box::pin(async move { self.run().await.map_err(|error| handle.locate(error)) })
            }
        }

        call_options!(impl[$($generics)*] $action, $($handle).+);
    };
    (impl[$($generics:tt)*] $action:ty, $($handle:ident).+ => $output:ty) => {
        action!(impl[$($generics)*] $action, $($handle).+ => 'static, $output);
    };
}

/// Adds the methods `deadline` and `retry`: options of a single call, which its pipeline handle
/// keeps.
macro_rules! call_options {
    (impl[$($generics:tt)*] $action:ty, $($handle:tt)+) => {
        impl<$($generics)*> $action {
            /// The time limit of this call, instead of the
            /// [deadline](crate::pipeline::RetryPolicy::deadline) of the client or of
            /// [`retry`](Self::retry). See [what it
            /// covers](crate::action#options-of-a-single-call). Must not be 0.
            #[doc(alias = "timeout")]
            pub const fn deadline(mut self, deadline: std::time::Duration) -> Self {
                self.$($handle)+.deadline = Some(deadline);
                self
            }

            #[doc(hidden)]
            pub fn timeout<Limit>(&mut self, _: Limit) -> Self
            where
                for<'never> Self: crate::action::macros::Timeout,
            {
                crate::action::macros::Timeout::never(self)
            }

            /// How the requests of this call are retried, instead of the policy of the client. The
            /// [budget](crate::pipeline::RetryPolicy::budget) of retries remains that of the
            /// client.
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

            /// As `exactly_once`, and keeps the marker for at least that long. A duplicate of the
            /// request that the network delivers within that time finds the marker and has no
            /// effect. Once the marker is deleted, a duplicate is carried out like a new request.
            /// Without this option, the marker is deleted at once after a success.
            ///
            /// The time begins when the service stores the marker. After it, only
            /// [`clean_up_markers`](crate::TableClient::clean_up_markers) deletes the marker. A
            /// successful operation therefore sends one request less, and leaves one more entity in
            /// the table until the marker is deleted.
            pub const fn exactly_once_for(mut self, time: std::time::Duration) -> Self {
                self.exactly_once = Some(KeepMarker(time));
                self
            }
        }
    };
}

/// Adds the options of every bulk run, which its [`BulkRun`](crate::action::bulk::run::BulkRun)
/// keeps.
macro_rules! bulk_options {
    (impl[$lifetime:lifetime $($generics:tt)*] $action:ty, $run:tt) => {
        impl<$lifetime $($generics)*> $action {
            /// How many batches are in flight at a time; 16 by default. Must not be 0, not even in
            /// a dry run.
            pub const fn concurrency(mut self, batches: usize) -> Self {
                self.$run.concurrency = batches;
                self
            }

            /// Sets a function that is called with the progress after every batch; in a dry run,
            /// after every 1,000 entities.
            pub fn progress(
                mut self,
                report: impl FnMut(&crate::action::BulkProgress) + Send + $lifetime,
            ) -> Self {
                self.$run.progress = Box::new(report);
                self
            }

            /// The maximum number of entities a second. The run starts batches no faster: after a
            /// batch, the next one starts when the entities of the first would be sent at this
            /// rate. No batch has more entities of the program than a second allows. Entries of
            /// indexes and copies take time, too. No limit by default; must not be 0.
            ///
            /// While the service is busy (503 `ServerBusy`, 500 `OperationTimedOut`, and 429 of
            /// Cosmos DB), the rate is halved, at most once a second and at most to a 64th of the
            /// maximum, and what is sent again counts. It rises by a 20th of the maximum for each
            /// second without such a response.
            /// See [the guide](crate::guide::batches_and_bulk#smooth-the-traffic).
            pub const fn max_rate(mut self, entities: u32) -> Self {
                self.$run.max_rate.of_run = Some(entities);
                self
            }

            /// As [`max_rate`](Self::max_rate), for each partition by itself. The storage service
            /// has a target of 2,000 entities of 1 KiB a second and partition. Both limits may be
            /// set. An entry in another partition counts for the partition of its entity. Batches
            /// that wait for their partition are among the [concurrent](Self::concurrency) ones.
            pub const fn max_rate_per_partition(mut self, entities: u32) -> Self {
                self.$run.max_rate.of_partition = Some(entities);
                self
            }

            /// The number of the failure that ends the run: the 1,000th by default. With 0 or 1,
            /// the first failure ends it. After that failure, the run reads and sends nothing more.
            /// The results of the batches that were in flight are still in the report. This limit
            /// and the [concurrency](Self::concurrency) therefore bound the size of the report.
            pub const fn max_failures(mut self, failures: usize) -> Self {
                self.$run.max_failures = failures;
                self
            }
        }
    };
}

/// Makes a bulk run over what a query finds awaitable: `.await` calls its method `run`.
macro_rules! bulk_over_query {
    ($action:ident { $($field:ident),+ }; $(#[$dry_run:meta])*) => {
        bulk_options!(impl['a] $action<'a>, bulk);

        impl $action<'_> {
            $(#[$dry_run])*
            /// The report's [`read`](crate::action::BulkProgress::read) returns how many entities
            /// the query finds.
            pub const fn dry_run(mut self) -> Self {
                self.bulk.dry_run = true;
                self
            }
        }

        impl<'a> IntoFuture for $action<'a> {
            type Output = Result<crate::action::BulkReport, crate::action::BulkError>;
            type IntoFuture = std::pin::Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

            fn into_future(self) -> Self::IntoFuture {
                Box::pin(self.run())
            }
        }

        impl std::fmt::Debug for $action<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($action))
                    $(.field(stringify!($field), &self.$field))+
                    .finish_non_exhaustive()
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
